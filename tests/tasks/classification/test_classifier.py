"""A loaded classifier: labels, probabilities, long texts in windows, whatever stands beside them; what it is scored."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from regard.config import Classification as Section
from regard.data.corpora.corpus import LabelledText
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import FittedValues
from regard.tasks.classification.classifier import NOTHING, Predictor, evaluate_labels
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
    for given, where in ((None, "texts"), ([None], "texts[0]"), (["a", 1], "texts[1]")):
        with refused(UsageError, where, "int" if where == "texts[1]" else "None"):
            model.classify(given)


LABELS = ("a", "b", "c")


def judge(kind: str = "single", asked: float | None = None, **fields: Any) -> Predictor:
    values: dict[str, Any] = {"kind": kind, **{name: fields[name] for name in fields if name in Section.model_fields}}
    return Predictor(Section.model_validate(values), LABELS, fields.get("fitted", FittedValues()), asked)


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


class Rows:
    """Labelled texts in memory; each text is the number of its row of scores."""

    name, notes = "rows", ()

    def __init__(self, labels: list[str]) -> None:
        self._labels = labels

    def examples(self) -> Iterator[LabelledText]:
        return (LabelledText(str(number), label) for number, label in enumerate(self._labels))

    def where(self, number: int, side: int = 0) -> str:
        return f"rows:{number + 1}"


def found(labels: list[str], score_BC: np.ndarray, asked: float | None = None, **fields: Any):
    return evaluate_labels(
        judge(asked=asked, **fields), lambda texts: score_BC[[int(text) for text in texts]], Rows(labels)
    )


def some(count: int = 60) -> tuple[list[str], np.ndarray]:
    draw = np.random.default_rng(4)
    gold = draw.integers(0, 3, count)
    return [LABELS[one] for one in gold], draw.normal(size=(count, 3)) + 1.5 * np.eye(3)[gold]


def test_accuracy_is_the_share_of_best_labels_that_are_right() -> None:
    labels, score_BC = some()
    result = found(labels, score_BC)
    right = [LABELS[row.argmax()] == label for row, label in zip(score_BC, labels, strict=True)]
    assert result.scores.accuracy == pytest.approx(100 * np.mean(right))
    assert (result.scope, result.unknown, result.unlabelled) == (None, {}, 0)
    assert 0 < result.calibration_error < 1
    values = result.to_dict()
    assert values["texts"] == 60
    assert values["out_of_scope"] is None


def test_texts_without_a_label_are_left_out_and_strange_labels_are_wrong() -> None:
    labels, score_BC = some()
    before = found(labels, score_BC).scores
    result = found([*labels, "", "z", "z"], np.vstack([score_BC, score_BC[:3]]))
    assert (result.unlabelled, result.unknown) == (1, {"z": 2})
    assert result.scores.accuracy == pytest.approx(before.accuracy * 60 / 62)
    assert result.scores.classes["z"].gold == 2
    assert result.scores.classes["z"].correct == 0


@pytest.mark.parametrize("threshold", [0.0, 0.6, 1.0])
def test_what_is_out_of_scope_is_judged_by_the_threshold(threshold: float) -> None:
    labels, score_BC = some()
    labels[::5] = ["oos"] * 12
    result = found(labels, score_BC, threshold, out_of_scope="oos")
    probability_BC = np.exp(score_BC) / np.exp(score_BC).sum(1, keepdims=True)
    said = ["oos" if row.max() < threshold else LABELS[row.argmax()] for row in probability_BC]
    inside = [(one, label) for one, label in zip(said, labels, strict=True) if label != "oos"]
    assert result.scope is not None
    assert result.scope.accuracy == pytest.approx(100 * np.mean([a == b for a, b in zip(said, labels, strict=True)]))
    assert result.scope.in_scope_accuracy == pytest.approx(100 * np.mean([a == b for a, b in inside]))
    outside = [one == "oos" for one, label in zip(said, labels, strict=True) if label == "oos"]
    assert result.scope.recall == pytest.approx(100 * np.mean(outside))
    assert result.scores.texts == 48  # without the threshold, over what is in scope
    assert result.unknown == {}


def test_several_labels_a_text() -> None:
    score_BC = np.array([[2.0, -1.0, 0.5], [-3.0, 4.0, -2.0], [-1.0, -1.0, -1.0]])
    result = found(["a|c", "b|z", ""], score_BC, kind="multi")
    assert result.scores.micro.correct == 3
    assert (result.scores.micro.predicted, result.scores.micro.gold) == (3, 4)
    assert result.scores.exact == pytest.approx(200 / 3)
    assert (result.unknown, result.unlabelled) == ({"z": 1}, 0)
    assert found(["a|c", "b", "a"], score_BC, 0.9, kind="multi").scores.micro.predicted == 1


def test_numbers() -> None:
    result = found(["1", "2.5", "", "-3"], np.array([[1.0], [2.0], [7.0], [-3.5]]), kind="regression")
    assert result.scores.mean_squared_error == pytest.approx((0 + 0.25 + 0.25) / 3)
    assert (result.scores.texts, result.unlabelled, result.calibration_error) == (3, 1, None)


@pytest.mark.parametrize(
    ("labels", "fields", "where", "named"),
    [
        (["", ""], {}, "rows", ""),
        (["oos", "oos"], {"out_of_scope": "oos"}, "rows", "'oos'"),
        (["1", "x"], {"kind": "regression"}, "rows:2", "'x'"),
        ([], {}, "rows", ""),
    ],
)
def test_what_cannot_be_scored_is_said(labels: list[str], fields: dict[str, Any], where: str, named: str) -> None:
    with refused(RegardError, where, named):
        found(labels, np.ones((2, 3)), **fields)


def test_a_test_set_of_which_no_label_is_known_is_a_slip() -> None:
    with refused(RegardError, "rows", "'x', 'y', 'z', …", "'a', 'b', 'c'", "columns"):
        found(list("xyzw"), np.ones((4, 3)))
    with refused(RegardError, "rows", "'x', 'y', 'z'"):
        found(["x|y", "", "z"], np.ones((3, 3)), kind="multi")
    assert found(["", ""], np.ones((2, 3)), kind="multi").scores.exact == 0  # nothing is said, so nothing is strange


@pytest.mark.parametrize(("strange", "few"), [(18, False), (19, True), (50, True)])
def test_where_hardly_any_label_is_known_it_is_said_but_scored(strange: int, few: bool) -> None:
    labels = [f"the text {number}" for number in range(strange)] + ["a", "b"]
    scores = np.eye(3)[[0] * strange + [0, 1]]
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = found(labels, scores)
    assert result.scores.accuracy == pytest.approx(200 / (strange + 2))
    assert len(result.unknown) == strange
    assert [re.match(rf"rows: .* 2 .* {strange + 2} ", str(one.message)) is not None for one in given] == [True] * few


def test_what_is_out_of_scope_is_no_stranger() -> None:
    result = found(["oos"] * 30 + ["z"], np.ones((31, 3)), 0.5, out_of_scope="oos")
    assert (result.unknown, result.scores.texts) == ({"z": 1}, 1)


def test_an_empty_text_is_left_out() -> None:
    class Blank(Rows):
        def examples(self) -> Iterator[LabelledText]:
            return (one._replace(text="  ") if number == 1 else one for number, one in enumerate(super().examples()))

    labels, score_BC = some()
    result = evaluate_labels(judge(), lambda texts: score_BC[[int(text) for text in texts]], Blank(labels))
    kept = [place for place in range(60) if place != 1]
    assert (result.scores.texts, result.empty, result.unlabelled) == (59, 1, 0)
    assert result.scores.accuracy == found([labels[one] for one in kept], score_BC[kept]).scores.accuracy
    assert result.to_dict()["empty"] == 1
