"""A model to begin from; BPE-dropout is the default where it helps, refused where there are no merges to leave out."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.config import Recipe, Text, recipe_from
from regard.models.store import named_tensors
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.classification.classifier import Classification
from regard.tasks.text import preparation
from regard.tasks.text.preparation import FEW, SYMBOLS, Pretrained, learned_tokenizer, segmented_sides, uses_bpe_dropout
from regard.training.checkpoints.checkpoint import load
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import rows
from tests.tasks.small_tasks import classifier, put, reader


def recipe(**text: Any) -> Recipe:
    return recipe_from({"task": "tagging", "text": text})


def test_few_texts_in_pieces_are_drawn_anew() -> None:
    assert uses_bpe_dropout(recipe(), 1000, None) == {"text.bpe_dropout": 0.1}
    begun: Any = object()
    for asked in ((recipe(), FEW, None), (recipe(units="characters"), 1000, None), (recipe(), 1000, begun)):
        assert uses_bpe_dropout(*asked) == {}


def test_a_foreign_vocabulary_has_no_merges_to_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout it is what lies there."""

    class Prepared:
        text, labels, folder = object(), object(), "data"

    prepared: Any = Prepared()
    assert segmented_sides(prepared, recipe()) == (prepared.text, prepared.labels)
    found = SimpleNamespace(load=lambda folder: SimpleNamespace(tokenizer=object()))
    monkeypatch.setattr(preparation, "TextAssets", found)
    with refused(UsageError, "text.bpe_dropout"):
        segmented_sides(prepared, recipe(bpe_dropout=0.1))


def test_a_foreign_vocabulary_is_refused_before_any_text_is_read() -> None:
    def texts() -> Iterator[str]:
        raise AssertionError("read")
        yield ""

    begun: Any = SimpleNamespace(tokenizer=object())
    with refused(UsageError, "text.bpe_dropout"):
        learned_tokenizer(recipe(bpe_dropout=0.1).text, texts(), begun)
    with pytest.raises(AssertionError):
        learned_tokenizer(recipe().text, texts(), begun)


@pytest.fixture
def begun(tmp_path: Path) -> Pretrained:
    return Pretrained.load(put(tmp_path / "begun", classifier()))


def test_every_weight_below_the_head_is_taken(begun: Pretrained) -> None:
    model: Any = Classification.build(begun.recipe, (begun.tokenizer.size, 7), key=99)
    before = {name: tensor.clone() for name, tensor in named_tensors(model).items()}
    begun.give(model)
    saved = load(begun.folder / "model.safetensors")
    for name, tensor in named_tensors(model).items():
        fresh = name.startswith("head.classes")  # of seven labels, not of three
        assert torch.equal(tensor, (before if fresh else saved)[name]), name


@pytest.mark.parametrize(
    ("changed", "name"),
    [({"d_ff": 48}, "feedforward.inner"), ({"layers": 3}, "layers.2."), ({"d_model": 16, "heads": 2}, "encoder")],
)
def test_a_model_of_other_sizes_is_refused_by_the_weights_name(
    begun: Pretrained, changed: dict[str, Any], name: str
) -> None:
    other = begun.recipe.model_copy(update={"model": begun.recipe.model.model_copy(update=changed)})
    with refused(RegardError, begun.folder, name):
        begun.give(Classification.build(other, (begun.tokenizer.size, 3)))


def test_its_tokenizer_takes_the_place_of_a_learned_one(begun: Pretrained) -> None:
    texts = iter(["one", "two"])
    assert learned_tokenizer(Text(), texts, begun).sha256 == begun.tokenizer.sha256
    assert list(texts) == []  # the labels beside them are counted all the same


def test_a_vocabulary_is_a_pure_function_of_section_and_texts() -> None:
    texts = [text for text, _ in rows(200)]
    section = Text(vocabulary=320, sample=50)
    found = [learned_tokenizer(section, iter(texts), None).sha256 for _ in range(2)]
    assert found[0] == found[1]
    assert learned_tokenizer(section, iter(texts[::-1]), None).sha256 != found[0]
    tokenizer = learned_tokenizer(section, iter(texts), None)
    assert tokenizer.size <= 320
    assert [tokenizer.names[id] for id in (*tokenizer.begin, tokenizer.mask)] == list(SYMBOLS)


def test_what_a_recipe_takes_over(begun: Pretrained) -> None:
    found = begun.values("classification")
    assert found["model"]["d_model"] == begun.recipe.model.d_model
    assert found["text"] == {"vocabulary": 8000, "units": "pieces", "normalisation": "nfc", "lowercase": False}


@pytest.mark.parametrize(("d_model", "rate"), [(32, 1e-3), (128, 1e-3), (384, 1e-3 / 3), (768, 1e-3 / 6)])
def test_the_rate_of_a_classifier_follows_the_size_of_what_it_begins_from(d_model: int, rate: float) -> None:
    begun = Pretrained(
        Path("there"), recipe_from({"task": "encoding", "model": {"family": "bert", "d_model": d_model, "heads": 4}})
    )
    assert begun.values("classification")["training"] == {"rate": pytest.approx(rate)}
    assert begun.values("classification", low_rank=True)["training"] == {"rate": pytest.approx(3 * rate)}
    assert "training" not in begun.values("tagging")


def test_what_is_no_model_folder_is_said(tmp_path: Path, begun: Pretrained) -> None:
    for place, told in ((tmp_path / "absent", "no such folder"), (begun.folder / "recipe.toml", "regard import")):
        with refused(RegardError, place, told):
            Pretrained.load(place)
    weights = begun.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with refused(Damaged, weights):
        Pretrained.load(begun.folder)


def test_what_weighs_whole_texts_is_not_taken_over_by_a_tagger(tmp_path: Path) -> None:
    begun = Pretrained.load(put(tmp_path / "reader", reader()))
    assert begun.values("classification")["model"]["pool"] == "attention"
    model = begun.values("tagging")["model"]
    assert "pool" not in model
    assert recipe_from({"task": "tagging", "model": model}).model.pool == "mean"
