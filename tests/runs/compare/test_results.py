"""What is read off a run's log, between its validations, by the length of the source; and the tables of it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from regard.models.complexity import Count, ModelCosts
from regard.runs.compare import results
from regard.runs.compare.compare import append
from regard.runs.compare.report import STUDENT, ComparisonReport, estimate, format_fraction, page
from regard.runs.compare.results import (
    Part,
    Point,
    Result,
    ScoreCurve,
    ScoreSummary,
    at,
    common,
    length,
    quality,
)
from regard.system.errors import RegardError
from tests.refusals import refused

POINTS = (Point(10, 1.0, 4.0), Point(20, 3.0, 3.0, 10.0), Point(40, 4.0, 2.5, 30.0))


@pytest.mark.parametrize("axis", ["step", "seconds"])
@pytest.mark.parametrize("score", ["loss", "bleu"])
def test_between_validations_is_a_straight_line(axis: str, score: str) -> None:
    known = [(getattr(p, axis), getattr(p, score)) for p in POINTS if getattr(p, score) is not None]
    places, values = zip(*known, strict=True)
    for place in np.linspace(places[0], places[-1], 13):
        assert at(POINTS, axis, place, score) == pytest.approx(np.interp(place, places, values))
    for points, place in ((POINTS, places[0] - 0.1), (POINTS, places[-1] + 0.1), ((), 1.0)):
        assert at(points, axis, place, score) is None


def logged(name: str = "a", points: tuple[Point, ...] = POINTS, failed: str | None = None) -> Result:
    log = ScoreCurve(1000, points[-1].step if points else 3, 5.0, 200.0, points)
    return Result(f"{name}-seed1", name, 1, 1.0, {"training.rate": 0.1, "data.weights": []}, log, failed=failed)


def test_the_place_that_all_reach() -> None:
    other = logged("b", (Point(5, 0.5, 5.0), Point(30, 2.0, 3.5)))
    assert (common([logged(), other], "step"), common([logged(), other], "seconds")) == (30, 2.0)
    assert common([logged(), logged("c", (), "diverged")], "step") == 40
    assert common([logged(), logged("c", ())], "step") is common([], "step") is None


ENTRIES: list[dict[str, object]] = [
    {"kind": "start", "step": 0, "parameters": 77, "steps": 3},
    {"kind": "step", "step": 1, "seconds": 1.0, "tokens": 100, "tokens_per_second": 100.0},
    {"kind": "step", "step": 2, "seconds": 1.5, "tokens": 300, "tokens_per_second": 600.0},
    {"kind": "valid", "step": 2, "seconds": 4.0, "loss": 5.0, "best": True},
    {"kind": "sample", "step": 2, "source": "a", "reference": "b", "hypothesis": "c"},
    {"kind": "step", "step": 3, "seconds": 4.5, "tokens": 200, "tokens_per_second": 400.0},
    {"kind": "valid", "step": 3, "seconds": 7.5, "loss": 4.0, "bleu": 12.0, "chrf": 30.0, "best": True},
    {"kind": "valid", "step": 3, "seconds": 7.6, "loss": None, "best": False},
    {"kind": "later", "step": 3},
]


def test_a_log_is_read(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES) + '{"kind": "st')
    found = results.score_curve(path)
    assert found == ScoreCurve(77, 3, 7.5, 600 / 2.0, (Point(2, 4.0, 5.0), Point(3, 7.5, 4.0, 12.0)))
    for content in (json.dumps(ENTRIES[0]), "{", "[]", '{"kind": "step"}', '{"step": 1}'):
        path.write_text(f"{content}\n")
        with refused(RegardError, "metrics.jsonl"):
            results.score_curve(path)
    with refused(RegardError, "nowhere"):
        results.score_curve(tmp_path / "nowhere")


def test_results_come_back_as_they_were_and_torn_lines_do_not(tmp_path) -> None:
    path = tmp_path / "results.jsonl"
    assert results.read_results(path) == {}
    scores = quality(["a b c d"], ["a b c d"], ["a b c d"], ("de", "en"))
    first, second = replace(logged("a"), shape=SHAPE, valid=scores), logged("b", failed="went bad")
    append(path, first)
    append(path, second)
    assert results.read_results(path) == {"a-seed1": first, "b-seed1": second}
    with open(path, "ab") as file:
        file.write(b'{"run": "c-se')
    assert set(results.read_results(path)) == {"a-seed1", "b-seed1"}
    again = replace(second, failed=None)
    append(path, again)  # in the place of the torn line
    assert results.read_results(path) == {"a-seed1": first, "b-seed1": again}
    assert len(path.read_bytes().splitlines()) == 3
    for line in ("no json", '{"run": "a"}', "[]"):
        path.write_text(f"{line}\n")
        with refused(RegardError, "results.jsonl:1", "1"):
            results.read_results(path)


def test_numbers_that_json_has_not_become_none() -> None:
    values = results.to_json(logged("a", (Point(1, 1.0, 2.0, float("nan")),)))
    assert values["course"]["points"] == [{"step": 1, "seconds": 1.0, "loss": 2.0, "bleu": None}]
    json.dumps(values, allow_nan=False)


def test_bleu_by_length_is_that_of_the_sentences() -> None:
    draw = np.random.default_rng(1)
    words = ["Der", "der", "Hund", "hund", "sieht", "die", "Katze", "im", "Garten"]
    sources = [" ".join(draw.choice(words, n)) for n in [*range(1, 26), *range(1, 21)]]
    references = [" ".join(draw.permutation(source.split())) for source in sources]
    said = [source.upper() if i % 7 == 0 else source for i, source in enumerate(sources)]
    found = quality(sources, said, references, ("de", "en"))
    spans = {"1-8": (1, 8), "9-12": (9, 12), "13-16": (13, 16), "17-20": (17, 20), "21+": (21, 10**9)}
    assert [part.name for part in found.by_length] == list(spans)
    for part in found.by_length:
        low, high = spans[part.name]
        chosen = [i for i, source in enumerate(sources) if low <= len(source.split()) <= high]
        assert part.sentences == len(chosen)
        for lowercase, value in ((False, part.bleu), (True, part.bleu_lowercase)):
            score = BLEU(lowercase=lowercase).corpus_score([said[i] for i in chosen], [[references[i] for i in chosen]])
            assert value == pytest.approx(score.score)
    assert found.bleu == pytest.approx(BLEU().corpus_score(said, [references]).score)
    assert found.bleu_lowercase > found.bleu
    assert "case:lc" in found.signature_lowercase
    short = quality(["a b"], ["a b"], ["a b"], ("de", "en")).by_length  # a length nobody has has no score
    assert (short[0].sentences, short[1]) == (1, Part(9, 12, 0, None, None))


def test_length_is_in_characters_where_there_are_no_spaces() -> None:
    assert [length("ein alter  Mann ", "de"), length("一个 老人", "zh-CN"), length("", "de")] == [3, 4, 0]


SHAPE = ModelCosts(14, 15, Count("n + m", 29), Count("n", 14), Count("2", 2))


def scored(bleu: float) -> ScoreSummary:
    parts = (Part(1, 8, 5, bleu + 2, bleu + 3), Part(9, None, 4, bleu - 2, bleu - 1), Part(21, None, 0, None, None))
    return ScoreSummary(9, bleu, bleu + 1, 50.0, "cased|x", "lower|x", parts)


def result(name: str, bleu: float, seed: int = 1, share: float = 1.0, pace: float = 1.0, test: bool = False) -> Result:
    points = tuple(Point(int(10 * i * pace), 60.0 * i, 5.0 - i, bleu if i == 4 else None) for i in range(1, 5))
    course = ScoreCurve(1_234_567, int(40 * pace), 241.0, 1000 * pace, points)
    scores = {"valid": scored(bleu), **({"test": scored(bleu - 5)} if test else {})}
    return Result(f"{name}-{share}-{seed}", name, seed, share, {}, course, SHAPE, **scores)


def cells(compared: ComparisonReport) -> dict[str, dict[str, str]]:
    """What stands in the table, by recipe and heading."""
    table = compared.table()
    return {row[0]: dict(zip(table.headings, row, strict=True)) for row in table.rows}


def test_equal_steps_are_the_slowest_runs_and_lie_between_validations() -> None:
    found = cells(ComparisonReport([result("slow", 20.0), result("fast", 30.0, pace=1.5)]))
    steps, bleu = "loss at\n40 steps", "greedy BLEU\nat 40 steps"
    assert (found["slow"][steps], found["slow"][bleu]) == ("1.000", "20.0")
    # 40 of the fast one's steps 15, 30, 45, 60: two thirds of the way from loss 3 to 2; its BLEU is not taken by then
    assert (found["fast"][steps], found["fast"][bleu]) == (f"{3 - 2 / 3:.3f}", "–")
    wanted = {"loss at\n4.0 min": "1.000", "BLEU\nvalidation": "30.0", "target\ntokens/s": "1,500"}
    wanted |= {"parameters": "1,234,567", "sequential\nsteps": "n + m = 29", "path: target\nto source": "2"}
    assert wanted.items() <= found["fast"].items()
    assert "BLEU\ntest" not in found["fast"]


def test_seeds_become_a_mean_and_an_interval() -> None:
    compared = ComparisonReport(
        [result("a", 20.0, 1, test=True), result("a", 22.0, 2, test=True), result("b", 1.0, test=True)]
    )
    half, found = estimate([20.0, 22.0]).half, cells(compared)
    assert found["a"]["BLEU\nvalidation"] == f"21.0 ± {half:.1f}"
    assert found["a"]["BLEU\ntest"] == f"16.0 ± {half:.1f}"
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
    compared = ComparisonReport([result("a", 10.0 * share, share=share) for share in (0.125, 0.5, 1.0)])
    assert [row[:2] for row in compared.table().rows] == [("a", "1/8"), ("a", "1/2"), ("a", "1")]
    assert compared.by_length().rows == (("a", "12.0", "8.0", "–"),)
    assert all(row in page(compared) for row in ("| a | 1 |", "| a | 1/2 |", "## By the length of the source"))


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


@pytest.mark.parametrize(("share", "said"), [(1.0, "1"), (0.125, "1/8"), (1 / 3, "1/3"), (0.3, "0.3"), (0.9, "0.9")])
def test_fractions_as_people_write_them(share: float, said: str) -> None:
    assert format_fraction(share) == said


@pytest.mark.parametrize("freedom", range(1, len(STUDENT) + 1))
def test_student(freedom: int) -> None:
    place = np.linspace(0.0, STUDENT[freedom - 1], 200_001)
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(log - (freedom + 1) / 2 * np.log1p(place**2 / freedom))
    assert 0.5 + np.trapezoid(density, place) == pytest.approx(0.975, abs=2e-5)


@pytest.mark.parametrize(("values", "factor"), [([30.0, 31.5, 33.0], 4.303), (range(40), 1.96)])
def test_mean_and_interval(values, factor: float) -> None:
    found = estimate(list(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.half == pytest.approx(factor * np.std(values, ddof=1) / math.sqrt(len(values)))
    assert estimate([]) is None
    assert (estimate([12345.6]).mean, estimate([12345.6]).half) == (12345.6, None)
