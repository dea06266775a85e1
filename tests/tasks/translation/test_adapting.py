"""A translator that goes on from another: its weights, vocabularies, languages and decoding; both scored alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config import Recipe
from regard.models.store import named_tensors
from regard.runs import train as training
from regard.system.errors import RegardError, UsageError
from regard.tasks.metrics.bleu import score
from regard.tasks.translation.training import TranslationTraining
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, polyglot, put, translator
from tests.training.toy import Counting

SIDES = (("source", "en"), ("target", "fr"))
SMALL = ["training.tokens=300", "training.validation_sentences=4", "data.validation=12", "training.select=last"]


def separate() -> Any:
    """A translator of two vocabularies that are not tied, with settings of its own."""
    found = translator(tie="none")
    assets, text = replace(found.assets, joint=False), found.recipe.text.model_copy(update={"joint": False})
    decoding = found.recipe.decoding.model_copy(update={"beam": 3, "length_penalty": 0.25, "refill": True})
    data = found.recipe.data.model_copy(update={"max_tokens": 300})
    wide = found.recipe.training.model_copy(update={"tokens": 300})
    recipe = found.recipe.model_copy(update={"text": text, "decoding": decoding, "data": data, "training": wide})
    return type(found)(recipe, assets, found.model)


def learned() -> Any:
    """A translator that knows the positions of its longest texts, and no more."""
    found = translator(positions="learned", max_positions=100)
    data = found.recipe.data.model_copy(update={"max_tokens": 50})
    return type(found)(found.recipe.model_copy(update={"data": data}), found.assets, found.model)


@pytest.fixture
def go_on(tmp_path: Path) -> Any:
    """Goes on from a translator with sixty pairs."""
    for code, text in (("en", SOURCE), ("fr", TARGET), ("txt", TARGET)):
        (tmp_path / f"a.{code}").write_text("".join(f"{text[: 9 + n % 30]} {n}\n" for n in range(60)))

    def train(begun: Any, files: str = "fr", **wishes: Any) -> Any:
        settings = [*SMALL, *wishes.pop("settings", ())]
        begun = put(tmp_path / "begun", begun)
        where = {"output": tmp_path / "model", "start_from": begun, "device": "cpu", "threads": 1}
        given = {"reporter": Counting(), "steps": 1, "despite_check": True, "settings": settings, **where, **wishes}
        return training.train(tmp_path / "a.en", tmp_path / f"a.{files}", **given)

    return train


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "make",
    [translator, separate, EVERY["recurrent"], polyglot, lambda: polyglot(False), learned],
    ids="1 2 rnn many label learned".split(),
)
def test_it_begins_with_the_weights_and_keeps_what_is_the_models(go_on: Any, tmp_path: Path, make: Any) -> None:
    """A rate that changes nothing leaves the weights of step 0."""
    begun = make()
    wishes = {"target_language": "de"} if begun.assets.languages else {}
    made = go_on(begun, settings=["training.rate=1e-30"], **wishes)
    for name, tensor in named_tensors(begun.model).items():
        assert torch.equal(named_tensors(made.model)[name], tensor), name
    recipe, base = made.recipe, begun.recipe
    assert (recipe.model, recipe.decoding, recipe.data.max_tokens) == (base.model, base.decoding, base.data.max_tokens)
    assert made.assets.contents.keys() - {"confidence.json"} == begun.assets.contents.keys()
    assert (made.assets.sha256, made.assets.languages) == (begun.assets.sha256, begun.assets.languages)
    assert recipe.text.joint == base.text.joint
    assert recipe.text.source_language == "en"  # the model's where it has one each way and knows them, else the files'
    assert recipe.text.target_language == ("de" if base.text.target_language == "de" else "fr")
    held = [line for line in (tmp_path / "model" / "card.md").read_text().splitlines() if line.startswith("* ")]
    assert len(held) == 6
    assert [line.partition(" before, ")[0] for line in held[3:]] == held[:3]


def test_both_models_are_scored_on_the_same_pairs(go_on: Any, tmp_path: Path) -> None:
    """In all, and those of each corpus: what the other one was trained on shows what is forgotten."""
    for code in ("en", "fr"):
        (tmp_path / f"old.{code}").write_text("".join((tmp_path / f"a.{code}").read_text().splitlines(True)[::3]))
    valid = {f"valid_{side}": [tmp_path / f"{name}.{code}" for name in ("a", "old")] for side, code in SIDES}
    made = go_on(polyglot(), steps=20, settings=["training.rate=3e-3"], **valid)
    sources, references = ("".join(one.read_text() for one in both).splitlines() for both in valid.values())
    both = [one.between("en", "fr").translate(sources) for one in (made, regard.load(tmp_path / "begun"))]
    found = [score(texts, references, "fr").chrf for texts in both]
    assert found[0] != found[1]
    card = (tmp_path / "model" / "card.md").read_text()
    lines = [line for line in card.splitlines() if line.startswith("* chrF")]
    assert [float(line.split()[2]) for line in lines] == [round(one, 2) for one in found]
    for name, some in (("a", slice(60)), ("old", slice(60, None))):
        parts = [score(texts[some], references[some], "fr", samples=1) for texts in both]
        for one, end in zip(parts, ("", " before, of the model that it began from"), strict=True):
            held = f"{name}.en and {name}.fr alone ({len(references[some])} pairs)"
            assert f"\n* of {held}: BLEU {one.bleu:.2f}, chrF {one.chrf:.2f}{end}\n" in card
    assert made.assets.seen is None  # what the other one read is not known


def test_its_schedule_is_short(go_on: Any, tmp_path: Path) -> None:
    made: Recipe = go_on(translator(dropout=0.2), steps=None).recipe
    row = TranslationTraining.adapted[0]
    assert made.training.rate == pytest.approx(0.384 / 12)  # the wider, the smaller
    assert made.training.warmup == row.values["training"]["warmup"]
    assert made.training.steps is not None
    assert made.training.steps <= 48 * row.epochs
    assert made.model.dropout == 0.1  # ten passes


def test_few_passes_have_no_dropout_unless_one_is_named(go_on: Any, tmp_path: Path) -> None:
    few = go_on(translator(dropout=0.2), steps=1)
    assert few.recipe.model.dropout == 0.0
    named = go_on(translator(dropout=0.2), steps=1, settings=["model.dropout=0.3"], output=tmp_path / "other")
    assert named.recipe.model.dropout == 0.3


@pytest.mark.parametrize(
    ("make", "wishes", "error", "where"),
    [
        ("classifier", {}, UsageError, "begun"),
        ("asker", {}, UsageError, "begun"),
        ("translator", {"settings": ["model.family=rnn"]}, UsageError, "start_from"),
        ("translator", {"settings": ["model.d_ff=24"]}, RegardError, "begun"),
        ("translator", {"settings": ["text.vocabulary=500"]}, UsageError, "settings text.vocabulary=500"),
        ("translator", {"source_language": "fr"}, UsageError, "settings text.source_language=fr"),
        ("translator", {"preset": "tiny"}, UsageError, "preset"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    go_on: Any, make: str, wishes: dict[str, Any], error: type[RegardError], where: str
) -> None:
    with refused(error, where):
        go_on(EVERY[make](), **wishes)


@pytest.mark.parametrize(("codes", "knows"), [(("en", "de"), "de alone"), (("und", "und"), "does not name")])
def test_a_model_of_one_pair_says_what_it_knows(codes: tuple[str, str], knows: str) -> None:
    made = translator()
    made.direction = codes
    with refused(UsageError, "to", knows, "'xx'", "leave it out"):
        made.between(to="xx")
    assert codes[0] == "und" or made.between("eng", "de_DE") is made


def test_languages_that_a_model_of_several_does_not_know_are_refused(go_on: Any, tmp_path: Path) -> None:
    with refused(UsageError, "target_language", "'it'", "fra_Latn"):
        go_on(polyglot(), target_language="it")
    unsaid = polyglot()
    unsaid.recipe = unsaid.recipe.model_copy(
        update={"text": unsaid.recipe.text.model_copy(update={"target_language": "und"})}
    )
    with refused(UsageError, f"{tmp_path / 'a.en'} and {tmp_path / 'a.txt'}", "target_language"):
        go_on(unsaid, files="txt")
