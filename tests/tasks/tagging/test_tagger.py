"""A tagger from files to spans with their characters: schemes, windows, whole sentences, validation as in use."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batches.batch import pack_sources
from regard.data.checks.labels import TagScan
from regard.data.corpora.corpus import no_progress
from regard.data.corpora.scan import DataScan
from regard.data.corpora.tagged import open_tagged
from regard.runs.train import train
from regard.system.errors import RegardError, UsageError
from regard.tasks.tagging import tagger
from regard.tasks.tagging.tagger import TagAssets, Tagging, decode_tags, head_of, read_words
from regard.tasks.tagging.training import TaggingJob, TaggingTraining
from regard.tasks.training.base import ProductPaths
from regard.text.tags import TaggedWords, places_of
from tests.refusals import refused
from tests.tasks.small_tasks import evenly, shares, stepper
from tests.tasks.small_tasks import tagger as untaught

Sentence = list[tuple[str, str]]
NAMES = ["Ann", "Bob", "Eve", "Dan", "Ida"]
TOWNS = ["Rome", "Oslo", "Bern", "Lima", "New York"]
SIZES = {"layers": 1, "d_model": 32, "d_ff": 64, "heads": 2, "dropout": 0.0, "norm_place": "pre"}
SIZES |= {"positions": "relative", "pool": "mean", "embedding_norm": False, "segments": 0}


def sentences(count: int, seed: int) -> list[Sentence]:
    """People and towns, which differ by what stands before them."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        one: Sentence = []
        for _ in range(draw.randint(1, 3)):
            name, town = [draw.choice(NAMES), *draw.choice([[], ["Lee"]])], draw.choice(TOWNS).split()
            one += [(word, "I-PER" if place else "B-PER") for place, word in enumerate(name)]
            one += [("went", "O"), ("to", "O")]
            one += [(word, "I-LOC" if place else "B-LOC") for place, word in enumerate(town)]
            one.append((draw.choice([",", ";"]), "O"))
        made.append([*one, (str(draw.randint(1, 10**6)), "O")])
    return made


def write(path: Path, made: list[Sentence]) -> Path:
    path.write_text("\n".join("".join(f"{word}\t{tag}\n" for word, tag in one) for one in made), encoding="utf-8")
    return path


def recipe(steps: int = 60, max_tokens: int = 40, **own: Any) -> dict[str, Any]:
    return {
        "task": "tagging",
        "text": {"vocabulary": 320},
        "data": {"max_tokens": max_tokens},
        "model": SIZES,
        "training": {"tokens": 256, "steps": steps, "validate_every": steps, "rate": 1e-2, "label_smoothing": 0.0},
        "tagging": own,
    }


def taught_on(paths: list[Path], output: Path, values: dict[str, Any]) -> Tagging:
    return train(train=paths[0], valid=paths[1], output=output, task="tagging", recipe=values, device="cpu")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tagging]:
    """A tagger taught with these values of the section, once for each."""
    folder = tmp_path_factory.mktemp("taggers")
    known: dict[str, Tagging] = {}

    def teach(plain: bool = False, **own: Any) -> Tagging:
        name = json.dumps([plain, own])
        if name not in known:
            place = folder / str(len(list(folder.iterdir())))
            place.mkdir()
            sides = [sentences(200, 1), sentences(20, 2)]
            if plain:
                sides = [[[(word, tag[-3:]) for word, tag in one] for one in side] for side in sides]
            paths = [write(place / f"{number}.conll", side) for number, side in enumerate(sides)]
            known[name] = taught_on(paths, place / "model", recipe(90, **own))
        return known[name]

    return teach


@pytest.mark.one_of(4)
@pytest.mark.parametrize("own", [{}, {"crf": True}, {"scheme": "bilou"}, {"scheme": "io"}], ids=str)
def test_spans_are_learned_and_come_with_their_characters(made: Callable[..., Tagging], own: dict[str, Any]) -> None:
    task = made(**own)
    assert task.assets.scheme == own.get("scheme", "bio")
    text = "Ann Lee went to New York, Bob went to Oslo;"
    found = task.tag(text)
    spans = [f"{span.label} {text[span.start : span.end]}" for span in found.spans]
    assert spans == ["PER Ann Lee", "LOC New York", "PER Bob", "LOC Oslo"]
    assert all(span.text == text[span.start : span.end] and 0 < span.probability <= 1 for span in found.spans)
    assert found.tags == tuple("B-PER I-PER O O B-LOC I-LOC O B-PER O O B-LOC O".split())
    assert found.words == "Ann Lee went to New York , Bob went to Oslo ;".split()
    again = task.tag(["", text])[1]  # in company, where a product may round otherwise
    assert (again.tags, again.words) == (found.tags, found.words)
    assert again.probabilities == pytest.approx(found.probabilities, rel=1e-4)
    for one, other in zip(again.spans, found.spans, strict=True):
        assert one.probability == pytest.approx(other.probability, rel=1e-4)
        assert replace(one, probability=other.probability) == other
    assert task.tag([" "])[0].tags == ()


def test_words_with_a_tag_of_their_own_and_what_is_no_text(made: Callable[..., Tagging]) -> None:
    task = made(plain=True)
    assert (task.assets.scheme, sorted(task.assets.labels)) == ("none", ["LOC", "O", "PER"])
    found = task.tag_words([["Ann", "Lee", "went", "to", "Rome", ","], []])
    assert found[0].tags == ("PER", "PER", "O", "O", "LOC", "O")
    assert (found[0].text, found[0].spans) == ("Ann Lee went to Rome ,", ())
    assert (found[1].text, found[1].tags) == ("", ())
    with refused(UsageError, "texts[0][1]"):
        task.tag_words([["a", " "]])
    with refused(UsageError, "texts[0]", "int"):
        task.tag([1])  # type: ignore[list-item]
    with refused(UsageError, "texts", "str"):
        task.tag_words(["ab"])


@pytest.mark.parametrize("own", [{}, {"crf": True}], ids=str)
def test_validation_scores_are_those_in_use(made: Callable[..., Tagging], tmp_path: Path, own: dict[str, Any]) -> None:
    task = made(**own)
    corpus = open_tagged(write(tmp_path / "valid.conll", sentences(20, 2)))
    found = task.evaluate(corpus)
    assert found.spans is not None
    assert found.spans.spans.f1 > 95
    assert found.spans.surface is not None
    teaching = taught(task, tmp_path)
    assert shares(teaching) == evenly(len(teaching.validation))
    assert (shares(teaching, True), teaching.final_seconds(2.0, 2.0)) == ([], 2.0)
    validation = teaching.validate(True)
    assert validation.scores == pytest.approx(found.values)
    assert list(validation.scores) == ["f1", "accuracy"]
    assert len(validation.samples) == 3
    assert "PER: " in validation.samples[0].reference


@pytest.mark.parametrize("plain", [False, True], ids=["spans", "tags"])
def test_a_file_whose_tags_the_model_does_not_know_is_a_slip(
    made: Callable[..., Tagging], tmp_path: Path, plain: bool
) -> None:
    task = made(plain)
    wrong = [[(f"text {n} and more", "pos" if n % 2 else "neg")] for n in range(20)]  # labelled texts, say
    path = write(tmp_path / "a.tsv", wrong)
    with refused(RegardError, path, "'neg', 'pos'"):
        task.evaluate(open_tagged(path))
    tags = ["PER", *["NN"] * 12] if plain else ["B-PER", *["B-NP"] * 12]
    path = write(tmp_path / "b.conll", [[("Ann", tag), ("went", "O")] for tag in tags])
    with pytest.warns(UserWarning, match=r"b\.conll: .* 1 .* 13 .*NP?N?', .*'B?-?LOC'"):
        assert task.evaluate(open_tagged(path)).words == 26
    nothing = write(tmp_path / "c.conll", [[("went", "O"), ("to", "O")]])
    with pytest.warns(UserWarning, match=r"c\.conll: .* O$"):
        task.evaluate(open_tagged(nothing))
    if not plain:  # letters of another scheme are no strangers
        path = write(tmp_path / "d.conll", [[("Ann", "U-PER"), ("went", "O"), ("York", "S-LOC"), ("ran", "I-ORG")]])
        found = task.evaluate(open_tagged(path))
        assert found.spans is not None
        assert found.spans.spans.gold == 3


def taught(task: Tagging, folder: Path) -> TaggingTraining:
    """The teaching of a task that is there, on what it learned from."""
    folder.mkdir(exist_ok=True)
    sides = [open_tagged(write(folder / f"{n}.conll", sentences(count, n))) for n, count in ((1, 200), (2, 20))]
    job = TaggingJob(task.recipe, DataScan.of(sides[:1], sides[1], scan=TagScan))
    return TaggingTraining(task, job.prepare(folder / "data", no_progress), ProductPaths())


@pytest.mark.parametrize("own", [{}, {"crf": True}], ids=str)
def test_a_long_text_is_tagged_as_its_windows_are(made: Callable[..., Tagging], own: dict[str, Any]) -> None:
    """Every word's scores are those of the window where it is most central, read alone."""
    task = made(**own)
    text = " ".join(word for one in sentences(12, 3) for word, _ in one)
    words = TaggedWords(text, tuple(places_of(text)))
    windows = task.coding.encode_texts([words])[0]
    assert len(windows) > 3
    alone = np.concatenate([read_words(task, [window]) for window in windows])
    np.testing.assert_allclose(read_words(task, windows), alone, atol=1e-4)
    assert len(alone) == len(words.places)
    right = [tag for one in sentences(12, 3) for _, tag in one]
    wrong = sum(said != tag for said, tag in zip(task.tag(text).tags, right, strict=True))
    assert wrong <= len(words.places) // 20


def test_a_recurrence_steps_over_the_words_that_are_tagged() -> None:
    task = stepper()
    text = "Don't go to U.S. (no?!) .. ï漢字"
    words = TaggedWords(text, tuple(places_of(text)))
    windows = task.coding.encode_texts([words, TaggedWords.from_words(["a", "b."], ())])
    packed = pack_sources([window[0] for one in windows for window in one])
    marks_X = np.concatenate([window[1] for one in windows for window in one])
    by_marks, by_text = task.inputs(packed, marks_X).words, task.inputs(packed).words
    assert by_marks.word_T[: len(windows[0][0][0])].max() == len(words.places)
    assert by_marks.word_T.max() == len(words.places) + 2
    cut = len(windows[0][0][0])  # of running text "b." would be two words
    assert by_text.word_T[:cut].tolist() == by_marks.word_T[:cut].tolist()
    assert by_text.features_WE[: len(words.places)].tolist() == by_marks.features_WE[: len(words.places)].tolist()
    assert by_text.word_T.max() == len(words.places) + 3
    joined = task.inputs(*coded(task, ["do", "n't"])).words
    assert joined.word_T.max() == 2


def coded(task: Tagging, words: list[str]) -> tuple[Any, Any]:
    (window,) = task.coding.encode_texts([TaggedWords.from_words(words, (), [False] * len(words))])[0]
    return pack_sources([window[0]]), window[1]


@pytest.mark.parametrize("own", [{}, {"crf": True}], ids=str)
def test_texts_are_decided_alone_whatever_stands_beside_them(
    made: Callable[..., Tagging], monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    chain, cpu = head_of(made(**own).model).chain, torch.device("cpu")
    lengths = np.array([3, 0, 7, 1, 12, 5])
    score = np.random.default_rng(1).normal(size=(28, 5)).astype(np.float32)
    each = np.split(score, lengths.cumsum()[:-1])
    expected = [decode_tags(chain, part, np.array([len(part)]), cpu, 1.5) for part in each]
    monkeypatch.setattr(tagger, "CELLS", 14)
    tags, sure = decode_tags(chain, score, lengths, cpu, 1.5)
    assert tags.tolist() == [tag for one, _ in expected for tag in one.tolist()]
    np.testing.assert_allclose(sure, np.concatenate([one for _, one in expected]), atol=1e-6)
    monkeypatch.setattr(tagger, "LONGEST", 4)
    parts = decode_tags(chain, score[10:22], np.array([12]), cpu)[0]
    cut = [decode_tags(chain, score[at : at + 4], np.array([4]), cpu)[0] for at in (10, 14, 18)]
    assert parts.tolist() == np.concatenate(cut).tolist()


def test_labels_of_validation_texts_only_are_missed_but_counted(tmp_path: Path) -> None:
    learned = write(tmp_path / "a.conll", sentences(40, 1))
    other = write(tmp_path / "b.conll", [[("Acme", "B-ORG"), ("ran", "O")], [("Ann", "B-PER")]])
    task = taught_on([learned, other], tmp_path / "m", recipe(2))
    assert task.assets.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    card = (tmp_path / "m" / "card.md").read_text()
    assert "* F1 of ORG 0.00 (1)" in card
    assert "5 tags (spans written as BIO)" in card


def test_tags_and_scheme_stand_in_the_model_folder(tmp_path: Path) -> None:
    made = replace(untaught().assets, labels=("O", "B-LOC", "I-LOC", "L-LOC", "U-LOC"), scheme="bilou")
    for name, content in made.contents.items():
        (tmp_path / name).write_bytes(content)
    found = TagAssets.load(tmp_path)
    assert (found.labels, found.scheme, found.fitted) == (made.labels, "bilou", made.fitted)
    assert found.sha256 == made.sha256 != replace(found, scheme="bio").sha256
    path = tmp_path / "labels.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"scheme": "iob9"}))
    with refused(RegardError, "labels.json", "iob9"):
        TagAssets.load(tmp_path)
    path.write_text(json.dumps({name: part for name, part in value.items() if name != "scheme"}))
    assert TagAssets.load(tmp_path).scheme == "io"  # from elsewhere: read leniently
    path.write_text(json.dumps({**value, "labels": ["NOUN", "VERB"], "scheme": None}))
    assert TagAssets.load(tmp_path).scheme == "none"
    path.unlink()
    with refused(RegardError, path):
        TagAssets.load(tmp_path)


def test_words_are_drawn_anew_in_every_epoch_where_asked(made: Callable[..., Tagging], tmp_path: Path) -> None:
    task = made()
    assert task.recipe.text.bpe_dropout == 0.1  # where nobody says otherwise
    text = task.recipe.text.model_copy(update={"bpe_dropout": 0.3})
    task = Tagging(task.recipe.model_copy(update={"text": text}), task.assets, task.model)
    teaching = taught(task, tmp_path)
    one, same, other = (teaching.examples.batch(np.arange(10), epoch).text.ids_T.tolist() for epoch in (0, 0, 1))
    assert one == same != other
    plainly = taught(made(), tmp_path / "b").validation[0]
    assert teaching.validation[0].text.ids_T.tolist() == plainly.text.ids_T.tolist()
