"""Facts about models of every family, and example texts from all their sources."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import RnnSection, recipe_from
from regard.data.prepare.shards import SideWriter
from regard.inspection.folders import facts as module
from regard.inspection.folders.facts import PLAIN, examples, is_demo, is_demo_recipe, make_cloze, regularisation, title
from regard.runs.demo.grammar import generate
from regard.runs.demo.translation import RECIPE
from regard.text.confidence import WORDS, SeenWords, WordCounter
from regard.text.tokenizers.tokenizer import learn
from tests.tasks.small_tasks import EVERY, classifier, log, recurrent, spanner, tagger, viewer

OLD = [
    "The old cat doesn't sleep on the green mat.",
    "Small dogs never bark behind big white houses.",
    "The river couldn't carry the heavy boat.",
    "Old houses stand behind the green river.",
]


def test_titles() -> None:
    def of(source: str, target: str) -> str:
        return title(recipe_from({"text": {"source_language": source, "target_language": target}}))

    assert of("en-GB", "deu") == "English → German"
    assert of("hsb", "de") == "hsb → German"
    assert of("und", "de") == "Translator"
    assert title(recipe_from(RECIPE)) == "English → German"
    named = {tagger: "Tagger", spanner: "Text-to-text model", viewer: "Image classifier"}
    assert {make: title(make().recipe) for make in named} == named


def test_a_model_of_which_nothing_is_known_is_told_in_the_same_words() -> None:
    assert module.positions_of(RnnSection()) == "none"
    for name, make in EVERY.items():
        task = make()
        found = module.facts(task.recipe, task.assets)
        assert found.keys() == module.NOTHING.keys()
        assert task.recipe.info.has_labels == (name in ("classifier", "pairs", "reader", "tagger", "viewer"))
        for key, value in module.NOTHING.items():
            assert value is None or isinstance(found[key], int | float if isinstance(value, int) else type(value)), key


def test_what_makes_the_loss_of_training_another_is_told() -> None:
    """Smoothing where one answer of several is right, dropout where there is any."""
    for make, known in ((classifier, True), (lambda: classifier("multi"), False), (recurrent, True), (tagger, True)):
        recipe = make().recipe
        shares = {"label_smoothing": recipe.training.label_smoothing if known else 0, "dropout": recipe.model.dropout}
        assert regularisation(recipe) == {name: share for name, share in shares.items() if share}
    moved = recipe_from({"task": "classification", "classification": {"adversarial": 0.5}})
    assert regularisation(moved)["adversarial"] == 0.5
    assert "dropout" not in regularisation(recurrent(dropout=0.0).recipe)
    plain = recipe_from({"training": {"label_smoothing": 0}, "model": {"dropout": 0.25}})
    assert regularisation(plain) == {"dropout": 0.25}


def any_word(word: str, behind: bool) -> bool:
    return True


def test_what_stands_in_most_sentences_is_left_out_last() -> None:
    line = "because the brook because deep"
    drawn = {make_cloze(line, str(seed), ["because"], any_word) for seed in range(20)}
    assert drawn == {"because the [MASK] because deep", "because the brook because [MASK]"}
    assert make_cloze(line, "1", ["because", "brook", "deep"], any_word) not in (None, *drawn)
    assert make_cloze("Alone.", "1", (), any_word) is None
    assert make_cloze("nothing fits here", "1", (), lambda word, behind: False) is None
    assert make_cloze("it fits here", "1", (), lambda word, behind: not behind) == "[MASK] fits here"


def of(task: str, **more: Any) -> Any:
    return recipe_from({"task": task, **more})


def sample(source: str) -> dict[str, Any]:
    return {"kind": "sample", "step": 1, "source": source, "reference": "", "hypothesis": ""}


def test_a_model_of_the_same_sizes_is_not_the_demonstration(tmp_path: Path) -> None:
    recipe = recipe_from(RECIPE)
    assert is_demo(tmp_path, recipe)  # of an earlier version: it does not say
    other = dict.fromkeys("two men are standing on a wet street in front of the red car".split(), 9)
    (tmp_path / WORDS).write_bytes(SeenWords.of(other).content)
    assert not is_demo(tmp_path, recipe)
    counter = WordCounter()
    counter.add(pair.source for pair in generate("train", 2000, recipe.seed))
    (tmp_path / WORDS).write_bytes(counter.seen_words().content)
    assert is_demo(tmp_path, recipe)
    (tmp_path / WORDS).write_text("{")
    assert not is_demo(tmp_path, recipe)


def test_the_demonstration_shows_its_pronouns(tmp_path: Path) -> None:
    recipe = recipe_from({**RECIPE, "seed": 4})
    assert is_demo_recipe(recipe)
    found = examples(tmp_path, recipe)
    assert found[0] == "The animal didn't cross the street because it was too tired."
    assert len(found) == len(set(found)) == 6
    assert all(" because it " in text for text in found[:4])
    assert not any(" it " in text for text in found[4:])
    assert found != examples(tmp_path, recipe_from({**RECIPE, "seed": 5}))
    assert not is_demo_recipe(recipe_from({**RECIPE, "text": {**RECIPE["text"], "vocabulary": 2401}}))
    assert not is_demo_recipe(of("translation", model={"family": "rnn"}))


def test_a_run_shows_what_it_showed(tmp_path: Path) -> None:
    old, *rest = map(sample, ("old", "b c", "new " * 60, "new", "b c"))
    path = log(tmp_path, [old, {"kind": "step", "step": 2}, *rest])
    path.write_bytes(path.read_bytes() + b'{"kind": "sample", "source": "to\n{"kind": "sample", "source": 5}\n')
    found = examples(tmp_path, of("classification"))
    assert found[:2] == ["b c", "new"]
    assert found[3:] == ["old"]
    assert len(found[2]) <= 160
    assert found[2].endswith("new")


@pytest.mark.parametrize(("task", "most"), [("classification", 126), ("language-model", 94)])
def test_a_model_of_characters_begins_with_a_text_that_it_reads(tmp_path: Path, task: str, most: int) -> None:
    """Whole, and with room behind it where it goes on."""
    log(tmp_path, [sample("Two households, both alike in dignity, " * 5)])
    recipe = of(task, text={"units": "characters"}, data={"max_tokens": 128})
    (found,) = examples(tmp_path, recipe)
    assert most - 12 < len(found) <= most
    assert not found.endswith(" ")
    (pieces,) = examples(tmp_path, of(task, data={"max_tokens": 128}))
    assert len(pieces) > 140


def test_of_running_text_the_lines_are_shown(tmp_path: Path) -> None:
    log(tmp_path, [sample("caf\ufffd"), sample("café")])  # one was cut inside a letter
    assert examples(tmp_path, of("classification")) == ["café"]
    log(tmp_path, [sample("alf a line\nA whole line.\nAnother one.\nand ha"), sample("two\nlines more")])
    assert examples(tmp_path, of("language-model")) == ["lines more", "A whole line.", "Another one."]


def prepared(folder: Path, lines: list[str]) -> Any:
    """A folder whose run is validated on these lines."""
    data = folder / "training" / "data"
    data.mkdir(parents=True)
    known = learn(OLD * 3, 400, symbols=("[MASK]",))
    known.save(data / "tokenizer.json")
    writer = SideWriter(data, "validation.text", known.size)
    writer.add([np.array([*known.encode(line).ids, known.end]) for line in lines])
    side, _ = writer.close()
    (data / "index.json").write_text(json.dumps({"sides": {"validation.text": side}}))
    return known


def test_gaps_stand_for_whole_words_of_what_it_is_validated_on(tmp_path: Path) -> None:
    assert examples(tmp_path, of("masked-lm")) == [PLAIN]
    known = prepared(tmp_path, OLD)
    log(tmp_path, [sample("couldn [MASK] half")])
    found = examples(tmp_path, of("masked-lm", seed=3))
    assert len(found) == len(OLD)
    assert found == examples(tmp_path, of("masked-lm", seed=3)) != examples(tmp_path, of("masked-lm", seed=4))
    for text, line in zip(found, OLD, strict=True):
        parts = text.split("[MASK]")
        assert len(parts) == (3 if len(line.split()) > 6 else 2)
        hidden = re.fullmatch("(.*)".join(map(re.escape, parts)), line)
        assert hidden
        for word in hidden.groups():
            assert word in re.split(r"[ .]", line)
            assert len(known.encode(f" {word}").ids) == 1


@pytest.mark.parametrize("broken", "tokenizer.json index.json validation.text.offsets validation.text.000.ids".split())
def test_where_validation_is_lost_what_it_showed_is_left(tmp_path: Path, broken: str) -> None:
    prepared(tmp_path, OLD)
    (tmp_path / "training" / "data" / broken).write_bytes(b"")
    log(tmp_path, [sample("no gap"), sample("a [MASK] b")])
    assert examples(tmp_path, of("masked-lm")) == ["a [MASK] b"]


def test_before_it_shows_anything_a_translator_has_what_it_is_validated_on(tmp_path: Path) -> None:
    data = tmp_path / "training" / "data"
    data.mkdir(parents=True)
    (data / "validation.source.txt").write_text("".join(f"sentence {n}\n" for n in range(20)))
    assert examples(tmp_path, of("translation")) == [f"sentence {n}" for n in range(6)]


def test_there_may_be_none(tmp_path: Path) -> None:
    assert module.validation_examples(tmp_path) is None
    for task in ("translation", "classification", "language-model", "tagging", "image-classification", "encoding"):
        assert examples(tmp_path, of(task)) == []
    (tmp_path / "training" / "metrics.jsonl").mkdir(parents=True)
    assert examples(tmp_path, of("translation")) == []
