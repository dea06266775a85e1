"""``model.attribute``: the page's numbers, complete integrals, and one output instead of another."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.inspection.folders.models import Models
from regard.inspection.forward.record import text_inputs
from regard.inspection.questions import attribution as questions
from regard.inspection.questions.answers import answer
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.library.conftest import IMAGE
from tests.refusals import refused
from tests.tasks.small_tasks import GAPPED, PLACELESS, SOURCE, SPANNED, TARGET, before, classifier, put

ModelOf = Callable[[str], Any]
OTHER = TARGET.replace("es zu", "sie zu")
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("translator", SOURCE, {"target": TARGET}),
    ("translator", SOURCE, {"target": TARGET, "word": "es"}),
    ("translator", SOURCE, {"target": TARGET, "word": "es", "against": "sie", "passes": 100}),
    ("translator", SOURCE, {"target": TARGET, "against": OTHER}),
    ("recurrent", SOURCE, {"target": TARGET, "word": 2}),
    ("spanner", SPANNED, {"target": "<extra_0> cat", "word": 1}),
    ("speaker", SOURCE, {}),
    ("speaker", SOURCE, {"target": " The animal", "against": " The street"}),
    ("speaker", SOURCE, {"against": " The"}),
    ("speaker", SOURCE, {"word": "street"}),
    ("filler", GAPPED, {}),
    ("filler", GAPPED, {"target": "animal", "against": "street"}),
    ("filler", SOURCE, {"word": "cross"}),
    ("classifier", SOURCE, {}),
    ("classifier", SOURCE, {"target": "bad", "against": "good"}),
    ("reader", SOURCE, {"target": "bad"}),
    ("tagger", SOURCE, {"word": "street", "target": "good", "against": "fair"}),
    ("viewer", IMAGE, {"target": "fair"}),
]
IDS = [f"{name}-{'-'.join(given) or 'own'}" for name, _, given in CASES]


def sides(found: regard.Attribution) -> list[regard.TokenShares]:
    return [side for side in (found.source, found.target) if side is not None]


LONG = [name in ("translator", "spanner") and "passes" not in given for name, _, given in CASES]


@pytest.mark.one_of(12)
@pytest.mark.parametrize(
    ("name", "text", "given"),
    [pytest.param(*case, marks=[pytest.mark.long(0.1)] * long) for case, long in zip(CASES, LONG, strict=True)],
    ids=IDS,
)
def test_integrated_gradients_are_complete(name: str, text: Any, given: dict[str, Any], model: ModelOf) -> None:
    """Their sum is the difference of two outputs, the second of a pass whose embeddings are all zero."""
    found = model(name).attribute(text, method="integrated_gradients", **given)
    total = sum(side.shares.sum() for side in sides(found))
    assert found.baseline is not None
    assert total == pytest.approx(found.score - found.baseline, rel=5e-3, abs=1e-3)
    assert found.delta == pytest.approx(found.score - found.baseline - total, abs=1e-9)
    plain = model(name).attribute(text, **given)
    assert (plain.score, plain.output, plain.against) == pytest.approx((found.score, found.output, found.against))
    assert plain.baseline is plain.delta is None


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("name", "text", "given"), CASES, ids=IDS)
def test_every_side_has_its_labels(name: str, text: Any, given: dict[str, Any], model: ModelOf) -> None:
    found = model(name).attribute(text, **given)
    assert (found.target is not None) == (name in ("translator", "recurrent", "spanner"))
    for side in sides(found):
        assert side.shares.shape == (len(side.labels),)
        assert sum(share for _, share in side.by_word()) == pytest.approx(side.shares.sum())
    assert repr(found.output) in repr(found)
    assert found._repr_html_().count("<span") == sum(len(side.labels) for side in sides(found))


PAGE = [
    ("translator", {"target": TARGET, "word": 3}, {"target": TARGET, "place": 3}),
    ("recurrent", {"target": TARGET, "word": 2}, {"target": TARGET, "place": 2}),
    ("spanner", {"target": "<extra_0> cat", "word": 1}, {"target": "<extra_0> cat", "place": 1}),
    ("speaker", {"word": 5}, {"place": 5}),
    ("filler", {"word": 2}, {"place": 2}),
    ("filler", {}, {"place": 2}),
    ("classifier", {"target": "bad"}, {"label": "bad"}),
    ("classifier", {}, {}),
    ("tagger", {"word": 4}, {"place": 4}),
    ("tagger", {"word": 4, "target": "good"}, {"place": 4, "label": "good"}),
    ("viewer", {}, {}),
]


@pytest.mark.one_of(12)
@pytest.mark.parametrize(("name", "given", "asked"), PAGE, ids=[f"{n}-{'-'.join(g) or 'own'}" for n, g, _ in PAGE])
@pytest.mark.parametrize("positions", [True, False])
def test_gradients_are_the_pages(
    name: str,
    given: dict[str, Any],
    asked: dict[str, Any],
    positions: bool,
    model: ModelOf,
    folder: Callable[[str], Path],
) -> None:
    if name == "filler":
        first = model(name).attention(GAPPED).queries.tokens
        asked = {"place": next(n for n, one in enumerate(first) if "MASK" in one)}
        given = {**given, "word": asked["place"]} if given else given
    positions |= name in PLACELESS
    whole = model(name) if positions else model(name).without(positions=True)
    text = IMAGE if name == "viewer" else before(name)["text"]
    found = whole.attribute(text, **given)
    changes = {} if positions else {"changes": {"positions": False}}
    values, arrays = unpack(answer(Models([folder(name)]), "owes", {**before(name), **asked, **changes}))
    assert found.score == pytest.approx(values["score"], abs=1e-12)
    for side, shares in zip(sides(found), arrays.values(), strict=True):
        np.testing.assert_allclose(side.shares, shares, rtol=1e-6, atol=1e-9)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients"])
@pytest.mark.parametrize("name", ["translator", "classifier", "tagger", "filler"])
def test_contrasts_are_the_pages(name: str, method: Any, model: ModelOf, folder: Callable[[str], Path]) -> None:
    """One output instead of another, by either method; with as many passes as the page makes."""
    models = Models([folder(name)])
    given: dict[str, Any] = {"target": "bad", "against": "good"}
    asked: dict[str, Any] = {"label": "bad", "against": "good"}
    if name == "tagger":
        given, asked = {**given, "word": 4}, {**asked, "place": 4}
    elif name == "translator":
        one, other = (text_inputs(models.load(0).task, SOURCE, text).written_ids for text in (TARGET, OTHER))
        place = next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        given, asked = {"target": TARGET, "against": OTHER}, {"target": TARGET, "place": place, "against": other[place]}
    elif name == "filler":
        place = next(at for at, one in enumerate(model(name).attention(GAPPED).queries.tokens) if "MASK" in one)
        id = text_inputs(models.load(0).task, GAPPED.replace("[MASK]", "street"), None).written_ids[place]
        given, asked = {"against": "street"}, {"place": place, "against": id}
    found = model(name).attribute(before(name)["text"], method=method, passes=questions.AT_ONCE, **given)
    values, arrays = unpack(answer(models, "owes", {**before(name), **asked, "method": method}))
    assert found.against is not None
    assert values["score"] == pytest.approx(found.score, abs=1e-12)
    assert values["baseline"] == (None if found.baseline is None else pytest.approx(found.baseline, abs=1e-12))
    for side, shares in zip(sides(found), arrays.values(), strict=True):
        np.testing.assert_allclose(side.shares, shares, rtol=1e-6, atol=1e-9)


def test_the_page_waits_for_no_large_model(folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """There its integrated gradients have fewer passes, as few as they can, and the baseline is still the same."""
    passes = list[int]()
    monkeypatch.setattr(questions, "attribute", lambda *given: passes.append(given[4]) or (0.0, 0.0, {}))
    for work in (1e99, 0.0):
        monkeypatch.setattr(questions, "WORK", work)
        answer(Models([folder("classifier")]), "owes", {"text": SOURCE, "method": "integrated_gradients"})
    assert passes == [questions.AT_ONCE, questions.FEWEST]


def test_a_contrast_is_the_difference_of_two(model: ModelOf) -> None:
    tagger = model("tagger")
    good, bad, both = (
        tagger.attribute(SOURCE, word="street", **given)
        for given in ({"target": "good"}, {"target": "bad"}, {"target": "good", "against": "bad"})
    )
    assert both.score == pytest.approx(good.score - bad.score)
    np.testing.assert_allclose(both.source.shares, good.source.shares - bad.source.shares, atol=1e-6)


def test_es_instead_of_sie(model: ModelOf) -> None:
    """Where two texts first differ, their pieces are compared; a word in place of another is the same as two texts."""
    translator = model("translator")
    texts = translator.attribute(SOURCE, TARGET, OTHER)
    word = translator.attribute(SOURCE, TARGET, "sie", word="es")
    assert (texts.output, texts.against, texts.score) == (word.output, word.against, word.score)
    back = translator.attribute(SOURCE, OTHER, TARGET)
    assert back.score == pytest.approx(-texts.score)
    attention = translator.attention(SOURCE, TARGET)
    assert texts.output in attention.queries.tokens
    assert texts.source.labels.tokens == attention.keys.tokens


def test_a_whole_text_is_the_sum_of_its_tokens(model: ModelOf) -> None:
    translator = model("translator")
    whole = translator.attribute(SOURCE, TARGET)
    count = len(translator.attention(SOURCE, TARGET).queries)
    each = [translator.attribute(SOURCE, TARGET, word=place) for place in range(count)]
    assert whole.score == pytest.approx(sum(one.score for one in each))
    np.testing.assert_allclose(whole.source.shares, sum(one.source.shares for one in each), atol=1e-5)


def test_scores_are_what_the_model_says(model: ModelOf) -> None:
    (best, *_), *_ = model("filler").fill(GAPPED, 1)
    found = model("filler").attribute(GAPPED)
    assert found.output == best.piece
    assert math.exp(found.score) == pytest.approx(best.probability, rel=1e-5)
    probabilities = model("classifier").classify(SOURCE).probabilities
    assert math.exp(model("classifier").attribute(SOURCE, "good").score) == pytest.approx(probabilities["good"])
    assert model("classifier").attribute(SOURCE).output == model("classifier").classify(SOURCE).label
    speaker, more = model("speaker"), " The animal"
    scored = [speaker.score(text, ended=False).log_probability for text in (SOURCE + more, SOURCE)]
    assert speaker.attribute(SOURCE, more).score == pytest.approx(scored[0] - scored[1], rel=1e-4)


def test_a_regression_has_its_number(tmp_path: Path) -> None:
    found = regard.load(put(tmp_path / "model", classifier("regression")), device="cpu")
    assert isinstance(found, regard.Classifier)
    assert found.attribute(SOURCE).score == pytest.approx(found.classify(SOURCE).value, rel=1e-5)
    with refused(UsageError, "against"):
        found.attribute(SOURCE, against="bad")


REFUSALS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("translator", SOURCE, {"target": TARGET, "against": TARGET}, "against"),
    ("translator", SOURCE, {"target": TARGET, "word": "cat"}, "word"),
    ("translator", SOURCE, {"target": TARGET, "word": 999}, "word"),
    ("translator", SOURCE, {"method": "saliency"}, "method"),
    ("translator", SOURCE, {"passes": 0}, "passes"),
    ("speaker", SOURCE, {"word": 0}, "word"),
    ("speaker", SOURCE, {"word": "cross", "target": " a"}, "target"),
    ("speaker", SOURCE, {"against": ""}, "against"),
    ("filler", SOURCE, {}, "word"),
    ("filler", GAPPED, {"target": "a whole sentence"}, "target"),
    ("filler", GAPPED, {"target": "animal", "against": "animal"}, "against"),
    ("classifier", SOURCE, {"target": "purple"}, "target"),
    ("classifier", SOURCE, {"target": "bad", "against": "purple"}, "against"),
    ("classifier", SOURCE, {"word": "street"}, "word"),
    ("tagger", SOURCE, {}, "word"),
    ("viewer", IMAGE, {"target": "purple"}, "target"),
    ("encoder", SOURCE, {}, "model"),
]


@pytest.mark.parametrize(("name", "text", "given", "where"), REFUSALS)
def test_what_cannot_be_explained_is_named(
    name: str, text: Any, given: dict[str, Any], where: str, model: ModelOf
) -> None:
    with refused(UsageError, where):
        model(name).attribute(text, **given)


def test_a_continuation_has_to_fit(model: ModelOf) -> None:
    with refused(RegardError, "text"):
        model("speaker").attribute(SOURCE, " ".join([SOURCE] * 9))
