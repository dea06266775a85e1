"""A loaded classifier: labels, probabilities, long texts in windows, whatever stands beside them."""

from typing import Any

import numpy as np
import pytest

from regard.config import Classification as Section
from regard.system.errors import UsageError
from regard.tasks.classification.classifier import NOTHING, Predictor
from regard.tasks.text.labels import FittedValues
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import rows, taught, written


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("classification")
    return taught(folder / "model", written(folder / "a.csv", rows(200)))


def test_texts_are_labelled_in_their_order_whatever_stands_beside(model: Any) -> None:
    texts = [text for text, _ in rows(40, seed=7)] + ["", "near " * 200]
    together = model.scores(texts)
    assert together.shape == (42, 3)
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_allclose(model.scores([text])[0], row, atol=1e-5)
    assert [verdict.label for verdict in model.classify(texts[:40])] == [label for _, label in rows(40, seed=7)]


def test_a_long_text_has_the_mean_of_its_windows(model: Any) -> None:
    text = " ".join(f"{one} bread" for one in "the my near big see".split() * 12)
    (ids,) = model.assets.tokenizer.ids_batch([text])
    windows = list(model.frame.windows(ids))
    assert len(windows) > 3
    decoded = [model.assets.tokenizer.decode(window.ids) for window in windows]
    expected = np.mean([model.scores([part])[0] for part in decoded], axis=0)
    np.testing.assert_allclose(model.scores([text])[0], expected, atol=0.05)  # a word may be cut at a window's edge
    assert model.classify(text).label == "food"


def test_one_text_is_a_verdict_and_several_are_a_list(model: Any) -> None:
    one, (other,) = model.classify("my bread soup"), model.classify(["my bread soup"])
    assert one == other
    assert one.label == "food"
    assert one.probability == pytest.approx(max(one.probabilities.values()))
    assert sum(one.probabilities.values()) == pytest.approx(1)
    assert model.classify([]) == []
    assert model.scores([]).shape == (0, 3)


def test_of_an_empty_text_nothing_is_said(model: Any) -> None:
    first, *empty, last = model.classify(["my bread soup", "", " \t", "\n", "the star moon"])
    assert (first.label, last.label) == ("food", "sky")
    assert empty == [NOTHING] * 3
    assert model.classify("", threshold=0.99) == NOTHING
    assert (NOTHING.label, NOTHING.labels, NOTHING.probability) == ("", (), 0.0)
    assert (NOTHING.value, NOTHING.probabilities) == (None, None)


def test_what_is_no_text_is_named(model: Any) -> None:
    for given, where in ((None, "text"), ([None], "text[0]"), (["a", 1], "text[1]")):
        with refused(UsageError, where, "int" if where == "text[1]" else "None"):
            model.classify(given)


def judge(kind: str = "single", asked: float | None = None, **fields: Any) -> Predictor:
    values: dict[str, Any] = {"kind": kind, **{name: fields[name] for name in fields if name in Section.model_fields}}
    return Predictor(Section.model_validate(values), ("a", "b", "c"), fields.get("fitted", FittedValues()), asked)


def test_probabilities_are_a_softmax_at_the_fitted_temperature() -> None:
    score_BC = np.array([[3.0, 1.0, -2.0], [800.0, -800.0, 0.0]])
    (found, sure) = judge(fitted=FittedValues(2.0)).predictions(score_BC)
    expected = np.exp(score_BC[0] / 2) / np.exp(score_BC[0] / 2).sum()
    np.testing.assert_allclose(list((found.probabilities or {}).values()), expected)
    assert (found.label, sure.label, sure.probability) == ("a", "a", 1.0)


@pytest.mark.parametrize(
    ("fields", "asked", "label"),
    [
        ({}, None, "a"),
        ({"threshold": 0.9}, None, "out of scope"),
        ({"threshold": 0.9, "out_of_scope": "oos"}, None, "oos"),
        ({"fitted": FittedValues(1.0, 0.9)}, None, "out of scope"),
        ({"fitted": FittedValues(1.0, 0.9), "threshold": 0.1}, None, "a"),
        ({"fitted": FittedValues(1.0, 0.9)}, 0.0, "a"),
        ({"threshold": 0.1}, 0.99, "out of scope"),
    ],
)
def test_who_says_what_is_out_of_scope(fields: dict[str, Any], asked: float | None, label: str) -> None:
    (verdict,) = judge(asked=asked, **fields).predictions(np.array([[1.0, 0.0, 0.0]]))
    assert verdict.label == label
    assert verdict.probability == pytest.approx(np.e / (np.e + 2))


def test_several_labels_are_each_there_or_not() -> None:
    score_BC = np.array([[2.0, -1.0, 0.5], [-3.0, -1.0, -2.0], [900.0, -900.0, -900.0]])
    some, none, sure = judge("multi").predictions(score_BC)
    assert (some.labels, some.label) == (("a", "c"), "a|c")
    assert some.probability == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert (none.labels, none.label) == ((), "")
    assert none.probability == pytest.approx(1 - 1 / (1 + np.exp(1.0)))
    assert (sure.labels, sure.probability) == (("a",), 1.0)
    np.testing.assert_allclose(list((some.probabilities or {}).values()), 1 / (1 + np.exp(-score_BC[0])))
    assert judge("multi", 0.25).predictions(score_BC[:1])[0].labels == ("a", "c", "b")
    assert judge("multi", 0.85).predictions(score_BC[:1])[0].labels == ("a",)


def test_a_number_is_a_number() -> None:
    (verdict,) = judge("regression").predictions(np.array([[1.25]]))
    assert (verdict.value, verdict.labels, verdict.label) == (1.25, (), "")
