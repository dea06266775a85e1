"""``model.heads(texts)``: the table of every model, its rows and views."""

import html
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import regard
from regard.system.errors import UsageError
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, TARGET, TEXTS

Model = Callable[[str], regard.Model]


@pytest.mark.parametrize("name", ["translator", "reader", "speaker", "filler"])
def test_the_table_of_a_model(model: Model, name: str) -> None:
    text = TEXTS.get(name, SOURCE)
    found = model(name).heads([text, f"{text} {text}", text])  # twice it makes nothing surer
    sizes = model(name).recipe.model.attention
    assert len(found) == sum(layers * heads for layers, heads in sizes.values())
    assert found.texts == 2
    assert set(found.kinds) == set(sizes)
    assert repr(found).startswith("<HeadTable ")
    kind = found.kinds[0]
    one: regard.HeadSummary = found.of(kind, 1, 1)
    estimate: regard.Estimate = one.estimates["entropy"]
    assert estimate.low <= estimate.mean <= estimate.high
    assert estimate.texts == 2
    assert {row["name"] for row in found.rows()} >= {"entropy", "first"}
    assert len(found.rows()) == sum(len(head.estimates) for head in found)
    assert max(map(len, found.table().split("\n"))) <= 80


def test_the_table_of_images(model: Model) -> None:
    viewer = model("viewer")
    assert isinstance(viewer, regard.ImageClassifier)
    shape = viewer.cut.shape
    images = np.random.default_rng(1).integers(0, 9, (12, shape.height, shape.width, shape.channels))
    found = viewer.heads(list(images))
    assert len(found) == np.prod(viewer.recipe.model.attention["encoder"])
    assert (found.texts, found.kinds) == (12, ("encoder",))
    one = found.of("encoder", 1, 1).estimates["class_token"]
    weight_LHQK = np.mean([viewer.attention(image).weights for image in images], axis=0)
    assert one.mean == pytest.approx(weight_LHQK[0, 0, 1:, 0].mean(), rel=1e-4)
    assert one.chance == pytest.approx(1 / viewer.cut.tokens)
    assert html.unescape(found._repr_html_()) == f"<pre>{found.table()}</pre>"
    for text in (repr(found), found.table()):
        assert "12 images" in text
        assert "texts" not in text
    assert "pixels" in found.table()
    assert max(map(len, found.table().split("\n"))) <= 80
    with refused(regard.RegardError, "image"):
        viewer.heads([np.zeros((3, 1))])


def test_entropy_is_that_of_the_attention(model: Model) -> None:
    translator = model("translator")
    found = translator.heads([SOURCE], [TARGET]).of("encoder", 2, 3).estimates["entropy"]
    entropy_LHQ = translator.attention(SOURCE, TARGET, "encoder").entropy()
    assert found.mean == pytest.approx(entropy_LHQ[1, 2].mean(), rel=1e-5)
    assert found.queries == entropy_LHQ.shape[2]


def test_a_kind_without_a_query_that_can_choose_has_no_rows(model: Model) -> None:
    """As where nothing but one symbol is read or written."""
    whole = model("translator").heads([SOURCE])
    heads = [replace(head, estimates={}) if head.kind == "decoder" else head for head in whole]
    found = replace(whole, heads=tuple(heads))
    decoder = [line for line in found.table().split("\n") if line.startswith("Decoder self-attention")]
    assert decoder == ["Decoder self-attention · 1 text: no query sees more than one key"]
    assert found.table().count("chance  ") == 2


def test_ablations_count(model: Model) -> None:
    changed = model("translator").without(positions=True).heads([SOURCE], [TARGET])
    whole = model("translator").heads([SOURCE], [TARGET])
    assert changed.of("encoder", 1, 1).estimates["entropy"] != whole.of("encoder", 1, 1).estimates["entropy"]


@pytest.mark.parametrize(
    ("name", "given", "where"),
    [
        ("translator", ([],), "texts"),
        ("translator", (SOURCE,), "texts"),
        ("translator", ([SOURCE], [TARGET, TARGET]), "targets"),
        ("classifier", ([SOURCE], [TARGET]), "targets"),
        ("pairs", ([SOURCE],), "texts[0]"),
        ("viewer", ([],), "texts"),
        ("viewer", ("1,2",), "texts"),
        ("viewer", ([], [TARGET]), "targets"),
    ],
)
def test_refusals(model: Model, name: str, given: tuple[list[str], ...], where: str) -> None:
    with refused(UsageError, where):
        model(name).heads(*given)
    with refused(regard.RegardError, "texts[1]"):
        model("translator").heads([SOURCE, " "])


def test_there_is_no_such_head(model: Model) -> None:
    with refused(UsageError, "head"):
        model("classifier").heads([SOURCE]).of("encoder", 9, 1)
