"""Comparison tables: means over seeds, scores at the same point, and gaps for missing values."""

import math
from dataclasses import replace

import numpy as np
import pytest

from regard.models.complexity import Count
from regard.runs.compare.report import STUDENT, ComparisonReport, estimate, format_fraction, page
from regard.runs.compare.results import Part, Point, Result, ScoreCurve, ScoreSummary, Shape

SHAPE = Shape(14, 15, Count("n + m", 29), Count("n", 14), Count("2", 2))


def quality(bleu: float) -> ScoreSummary:
    parts = (Part(1, 8, 5, bleu + 2, bleu + 3), Part(9, None, 4, bleu - 2, bleu - 1), Part(21, None, 0, None, None))
    return ScoreSummary(9, bleu, bleu + 1, 50.0, "cased|x", "lower|x", parts)


def result(name: str, bleu: float, seed: int = 1, share: float = 1.0, pace: float = 1.0, test: bool = False) -> Result:
    points = tuple(Point(int(10 * i * pace), 60.0 * i, 5.0 - i, bleu if i == 4 else None) for i in range(1, 5))
    course = ScoreCurve(1_234_567, int(40 * pace), 241.0, 1000 * pace, points)
    scores = {"valid": quality(bleu), **({"test": quality(bleu - 5)} if test else {})}
    return Result(f"{name}-{share}-{seed}", name, seed, share, {}, course, SHAPE, **scores)


def cells(compared: ComparisonReport) -> dict[str, dict[str, str]]:
    table = compared.table()
    return {row[0]: dict(zip(table.headings, row, strict=True)) for row in table.rows}


def test_equal_steps_are_the_slowest_runs_and_lie_between_validations() -> None:
    found = cells(ComparisonReport([result("slow", 20.0), result("fast", 30.0, pace=1.5)]))
    assert found["slow"]["loss at\n40 steps"] == "1.000"
    # 40 of the fast one's steps 15, 30, 45, 60: two thirds of the way from loss 3 to 2
    assert found["fast"]["loss at\n40 steps"] == f"{3 - 2 / 3:.3f}"
    assert found["slow"]["greedy BLEU\nat 40 steps"] == "20.0"
    assert found["fast"]["greedy BLEU\nat 40 steps"] == "–"  # not taken by then
    assert found["fast"]["loss at\n4.0 min"] == "1.000"
    assert found["fast"]["BLEU\nvalidation"] == "30.0"
    assert found["fast"]["target\ntokens/s"] == "1,500"
    assert found["fast"]["parameters"] == "1,234,567"
    assert found["fast"]["sequential\nsteps"] == "n + m = 29"
    assert found["fast"]["path: target\nto source"] == "2"
    assert "BLEU\ntest" not in found["fast"]


def test_seeds_become_a_mean_and_an_interval() -> None:
    compared = ComparisonReport(
        [result("a", 20.0, 1, test=True), result("a", 22.0, 2, test=True), result("b", 1.0, test=True)]
    )
    scores = estimate([20.0, 22.0])
    assert scores is not None
    found = cells(compared)
    assert found["a"]["BLEU\nvalidation"] == f"21.0 ± {scores.half:.1f}"
    assert found["a"]["BLEU\ntest"] == f"16.0 ± {scores.half:.1f}"
    assert found["b"]["BLEU\ntest"] == "-4.0"
    assert any("95 %" in note for note in compared.table().notes)
    lower = ComparisonReport(compared.results, lowercase=True)
    assert cells(lower)["b"]["BLEU lc\nvalidation"] == "2.0"
    assert any("lower|x" in note for note in lower.table().notes)


def test_by_length_is_of_the_test_set_where_there_is_one() -> None:
    table = ComparisonReport([result("a", 20.0, test=True), result("b", 30.0, test=True)]).by_length()
    assert table.headings == ("recipe", "1-8 words\n(5)", "9+ words\n(4)", "21+ words\n(0)")
    assert table.rows == (("a", "17.0", "13.0", "–"), ("b", "27.0", "23.0", "–"))
    assert "test set" in table.notes[0]
    assert ComparisonReport([result("a", 20.0)], lowercase=True).by_length().rows == (("a", "23.0", "19.0", "–"),)


def test_shares_are_rows_of_their_own() -> None:
    results = [result("a", 10.0 * share, share=share) for share in (0.125, 0.5, 1.0)]
    compared = ComparisonReport(results)
    table = compared.table()
    assert [row[:2] for row in table.rows] == [("a", "1/8"), ("a", "1/2"), ("a", "1")]
    assert compared.by_length().rows == (("a", "12.0", "8.0", "–"),)


def test_a_run_that_diverged_is_named_so() -> None:
    bad = replace(result("bad", 1.0), failed="went bad", valid=None, test=None, shape=None)
    compared = ComparisonReport([result("a", 20.0), bad])
    found = cells(compared)["bad"]
    assert found["BLEU\nvalidation"] == "diverged"
    assert found["sequential\nsteps"] == found["steps\nmade"] == found["loss at\n40 steps"] == "–"
    assert compared.by_length().rows[1] == ("bad", "–", "–", "–")
    only = ComparisonReport([bad])
    assert only.table().rows[0][-1] == "diverged"
    assert only.by_length().headings == ("recipe",)
    assert "diverged" in page(only)


def test_the_page_shows_all_of_it() -> None:
    found = page(ComparisonReport([result("a", 20.0), result("b", 21.0, share=0.5)]))
    assert all(row in found for row in ("| a | 1 |", "| b | 1/2 |", "## By the length of the source"))


@pytest.mark.parametrize(("share", "said"), [(1.0, "1"), (0.125, "1/8"), (1 / 3, "1/3"), (0.3, "0.3"), (0.9, "0.9")])
def test_fractions_as_people_write_them(share: float, said: str) -> None:
    assert format_fraction(share) == said


@pytest.mark.parametrize("freedom", range(1, len(STUDENT) + 1))
def test_student(freedom: int) -> None:
    place = np.linspace(0.0, STUDENT[freedom - 1], 200_001)
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(log - (freedom + 1) / 2 * np.log1p(place**2 / freedom))
    assert 0.5 + np.trapezoid(density, place) == pytest.approx(0.975, abs=2e-5)


def test_mean_and_interval() -> None:
    values = [30.0, 31.5, 33.0]
    found = estimate(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.half == pytest.approx(4.303 * np.std(values, ddof=1) / math.sqrt(3))
    assert found.to_text(1) == "31.5 ± 3.7"
    many = estimate(list(range(40)))
    assert many is not None
    assert many.half == pytest.approx(1.96 * np.std(range(40), ddof=1) / math.sqrt(40))


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    assert estimate([]) is None
    one = estimate([12345.6])
    assert one is not None
    assert one.to_text(0) == "12,346"
