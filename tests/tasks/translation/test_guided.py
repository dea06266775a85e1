"""Guided alignment: the loss of one head against links of words, by plain loops; where the links are kept."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import Recipe, recipe_from
from regard.data.alignment.hmm import LONGEST, WordAligner
from regard.data.alignment.links import Links, write_links
from regard.data.alignment.prepared import INDEX, PreparedLinks
from regard.data.batches.batch import Position
from regard.data.corpora.corpus import no_progress
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import DataMismatch, PreparedPairs
from regard.models.build import transformer
from regard.models.captured_attention import weights_of
from regard.models.inputs import pairs
from regard.runs.train import train
from regard.system.errors import Damaged, RegardError, Stopped, UsageError
from regard.tasks.protocols import InputFiles
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.align import AlignmentHead, heads_of, is_known
from regard.tasks.translation.training import TranslationJob, TranslationTraining, links_of
from regard.tasks.translation.translator import Translation
from tests.data.prepare.preparing import prepare_pairs
from tests.refusals import refused

WEIGHT = 0.3
VALUES = {
    "text": {"vocabulary": 300},
    "data": {"validation": 12, "max_tokens": 64},
    "model": {"encoder_layers": 1, "decoder_layers": 3, "d_model": 8, "d_ff": 16, "heads": 2, "dropout": 0.0},
    "training": {"tokens": 128, "label_smoothing": 0.0},
}
PLAIN = recipe_from(VALUES)
GUIDED_VALUES = {**VALUES, "training": {**VALUES["training"], "guided_alignment": WEIGHT}}
GUIDED = recipe_from(GUIDED_VALUES)
WORDS = {"dog": "hund", "cat": "katze", "house": "haus", "green": "grün", "old": "alte", "tree": "baum", ",": ","}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedPairs:
    """Pairs that are translated word by word, the last word first."""
    folder, draw = tmp_path_factory.mktemp("guided"), np.random.default_rng(1)
    chosen = [draw.permutation(list(WORDS))[: draw.integers(2, 7)].tolist() for _ in range(150)]
    (folder / "a.en").write_text("".join(f"{' '.join(words)} {n}\n" for n, words in enumerate(chosen)))
    turned = [[WORDS[word] for word in [words[-1], *words[:-1]]] for words in chosen]
    (folder / "a.de").write_text("".join(f"{' '.join(words)} {n}\n" for n, words in enumerate(turned)))
    return prepare_pairs([open_pairs(folder / "a.en", folder / "a.de")], PLAIN, folder / "data")


def made(prepared: PreparedPairs, recipe: Recipe = GUIDED) -> TranslationTraining:
    both = prepared.vocabularies
    model = transformer(recipe.model, both.source.size, both.target.size, 3)
    return TranslationTraining(Translation(recipe, both, model), prepared, ProductPaths())


def by_loops(teaching: TranslationTraining, number: int) -> float:
    """The loss of one pair."""
    prepared, model = teaching.prepared, teaching.model
    both = prepared.vocabularies
    source, target = (side.sentence(number).tolist() for side in (prepared.source, prepared.target))
    words = []
    for ids, tokenizer in ((source, both.source), (target, both.target)):
        words.append((np.cumsum(tokenizer.word_starts(ids)) - 1).tolist())
    links = set(zip(*(one.tolist() for one in links_of(prepared).gather(np.array([number]))[:2]), strict=True))
    assert links
    [weight_HQK] = weights_of(model, "transformer", [source], [[both.target.start, *target[:-1]]])["cross"][1]
    total = 0.0
    for j, word in enumerate(words[1]):
        keys = [i for i, other in enumerate(words[0]) if (other, word) in links]
        for i in keys:
            total -= float(weight_HQK[0, j + 1, i].log()) / len(keys)
    return WEIGHT * total


def test_the_loss_is_that_of_plain_loops(prepared: PreparedPairs) -> None:
    guided, plain = made(prepared), made(prepared, PLAIN)
    batch, _ = next(guided.batches.iterate(Position()))
    guided.model.train()
    plain.model.train()
    found, usual = guided.loss(batch), plain.loss(batch)
    wanted = sum(by_loops(guided, number) for number in batch.sentences.tolist())
    assert float(found.total.detach() - usual.total.detach()) == pytest.approx(wanted, rel=1e-4)
    assert (float(found.nll), found.count) == (pytest.approx(float(usual.nll), rel=1e-5), usual.count)
    found.total.backward()
    assert all(parameter.grad is not None for parameter in guided.model.parameters())


def test_validation_is_not_guided(prepared: PreparedPairs) -> None:
    guided, plain = made(prepared), made(prepared, PLAIN)
    assert guided.validate(False).loss == plain.validate(False).loss
    batch = guided.batches.validation[0]
    guided.model.eval()
    plain.model.eval()
    assert torch.equal(guided.loss(batch).total, plain.loss(batch).total)
    assert pairs(batch).labels_T.shape == batch.labels_T.shape


def texts_in(prepared: PreparedPairs) -> list[list[list[str]]]:
    """The words of each side of the pairs that are learned from."""
    found, both = [], prepared.vocabularies
    for side, tokenizer in ((prepared.source, both.source), (prepared.target, both.target)):
        ids_T, lengths_B = side.gather(0, np.arange(prepared.pairs))
        sentences = np.split(ids_T, lengths_B.cumsum()[:-1])
        found.append([tokenizer.decode(ids[:-1].tolist()).split() for ids in sentences])
    return found


def links_in(prepared: PreparedPairs) -> list[Links]:
    source_R, target_R, counts_B = links_of(prepared).gather(np.arange(prepared.pairs))
    pairs, ends = list(zip(source_R.tolist(), target_R.tolist(), strict=True)), counts_B.cumsum().tolist()
    return [frozenset(pairs[end - count : end]) for count, end in zip(counts_B.tolist(), ends, strict=True)]


def test_links_are_those_of_the_lexical_model_over_the_words_of_the_tokenizers(prepared: PreparedPairs) -> None:
    texts, found = texts_in(prepared), links_in(prepared)
    assert found == WordAligner(*texts).align(*texts)
    assert max(source for links in found for source, _ in links) < LONGEST


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_file_of_those_links_guides_alike(prepared: PreparedPairs, tmp_path: Path, dropout: float) -> None:
    """Pairs to validate on, an empty and a long one are left out with their links."""
    values = {**VALUES, "text": {**VALUES["text"], "bpe_dropout": dropout}}
    weights, sides = [WEIGHT], list[list[str]]()
    for code in ("en", "de"):
        sides.append((prepared.folder.parent / f"a.{code}").read_text().splitlines())
        sides[-1][5 * len(sides)] = "" if code == "en" else "hund " * 70
        (tmp_path / f"a.{code}").write_text("".join(f"{text}\n" for text in sides[-1]))

    def job(name: str, *alignment: Path) -> PreparedPairs:
        recipe = recipe_from({**values, "training": {**VALUES["training"], "guided_alignment": weights[-1]}})
        files = InputFiles(source=[tmp_path / "a.en"], target=[tmp_path / "a.de"], alignment=alignment)
        made = TranslationJob.of_files(files, lambda pairs: recipe, lambda told: None, True)
        return made.prepare(tmp_path / name, no_progress)

    learned, path = job("learned"), tmp_path / "links"
    assert learned.pairs < 150 - 2 - VALUES["data"]["validation"] + 1
    every = WordAligner(*texts_in(learned)).align(*([text.split() for text in side] for side in sides))
    path.write_text("".join(f"{write_links(links)}\n" for links in every))
    given = job("given", path)
    assert links_in(given) == links_in(learned)
    assert given.fingerprint != learned.fingerprint
    path.write_text("\n" * len(every))
    with refused(DataMismatch, "given", "alignment"):
        job("given", path)
    weights.append(0.0)
    with refused(UsageError, "alignment", "guided_alignment"):
        job("plain", path)


def test_a_run_with_a_file_of_links_resumes_exactly(prepared: PreparedPairs, tmp_path: Path) -> None:
    path, folder = tmp_path / "links", prepared.folder.parent
    path.write_text("0-0\n" * 150)
    given = {"source": folder / "a.en", "target": folder / "a.de", "alignment": path, "recipe": GUIDED_VALUES}
    asked = {**given, "steps": 4, "threads": 1, "despite_check": True, "quiet": True}
    calls = iter(range(100))
    with pytest.raises(Stopped):
        train(output=tmp_path / "a", should_stop=lambda: next(calls) > 3, **asked)
    for name in ("a", "b"):
        train(output=tmp_path / name, **asked)
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b"))
    assert one == other


def test_links_are_kept_and_damage_is_seen(prepared: PreparedPairs) -> None:
    links_of(prepared)
    ids = next(prepared.folder.glob("train.links.*ids"))
    content, before = ids.read_bytes(), (prepared.folder / INDEX).stat().st_mtime_ns
    links_of(prepared)
    assert (prepared.folder / INDEX).stat().st_mtime_ns == before
    ids.write_bytes(b"\0" + content[1:] if content[0] else b"\1" + content[1:])
    with refused(Damaged, ids.name):
        links_of(prepared)
    ids.write_bytes(content)
    other = type("Other", (), {"fingerprint": "0"})()
    with refused(RegardError, INDEX):
        PreparedLinks.of(prepared.folder, other, prepared.vocabularies)


def test_the_guided_head_aligns_words(prepared: PreparedPairs) -> None:
    assert heads_of(GUIDED, 3) == (AlignmentHead(2, 1, "reads"),)
    assert (is_known(GUIDED), is_known(PLAIN)) == (True, False)
    chosen = GUIDED.model_copy(
        update={"decoding": GUIDED.decoding.model_copy(update={"alignment_heads": ("3 predicts",)})}
    )
    assert heads_of(chosen, 3) == (AlignmentHead(3, 0, "predicts"),)


@pytest.mark.parametrize("values", [{"model": {"family": "rnn"}}, {"task": "text-to-text"}])
def test_other_models_are_not_guided(values: dict[str, object]) -> None:
    with refused(UsageError, None, "guided_alignment"):
        recipe_from({**values, "training": {"guided_alignment": 0.1}})
