"""What is read off a run's log, between its validations, and by the length of the source."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from regard.models.complexity import Count
from regard.runs.compare import results
from regard.runs.compare.results import Part, Point, Result, ScoreCurve, Shape, at, common, length, quality
from regard.runs.compare.trainings import append
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
    for place in (places[0] - 0.1, places[-1] + 0.1):
        assert at(POINTS, axis, place, score) is None
    assert at((), axis, 1.0, score) is None


def result(name: str = "a", points: tuple[Point, ...] = POINTS, failed: str | None = None) -> Result:
    log = ScoreCurve(1000, points[-1].step if points else 3, 5.0, 200.0, points)
    return Result(f"{name}-seed1", name, 1, 1.0, {"training.rate": 0.1, "data.weights": []}, log, failed=failed)


def test_the_place_that_all_reach() -> None:
    other = result("b", (Point(5, 0.5, 5.0), Point(30, 2.0, 3.5)))
    assert common([result(), other], "step") == 30
    assert common([result(), other], "seconds") == 2.0
    assert common([result(), result("c", (), "diverged")], "step") == 40
    assert common([result(), result("c", ())], "step") is None
    assert common([], "step") is None


def entries() -> list[dict[str, object]]:
    return [
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


def test_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries()) + '{"kind": "st')
    found = results.score_curve(path)
    assert found == ScoreCurve(77, 3, 7.5, 600 / 2.0, (Point(2, 4.0, 5.0), Point(3, 7.5, 4.0, 12.0)))
    path.write_text(json.dumps(entries()[0]) + "\n")
    with refused(RegardError, "metrics.jsonl"):
        results.score_curve(path)
    with refused(RegardError, "nowhere"):
        results.score_curve(tmp_path / "nowhere")


def test_results_come_back_as_they_were_and_torn_lines_do_not(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert results.read_results(path) == {}
    shaped = Shape(5, 6, Count("n + m", 11), Count("n", 5), Count("2", 2))
    scores = quality(["a b c d"], ["a b c d"], ["a b c d"], ("de", "en"))
    first, second = replace(result("a"), shape=shaped, valid=scores), result("b", failed="went bad")
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


def test_another_file_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for line in ("no json", '{"run": "a"}', "[]"):
        path.write_text(f"{line}\n")
        with refused(RegardError, "results.jsonl:1", "1"):
            results.read_results(path)


def test_numbers_that_json_has_not_become_none() -> None:
    values = results.to_json(result("a", (Point(1, 1.0, 2.0, float("nan")),)))
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


def test_a_length_nobody_has_has_no_score() -> None:
    found = quality(["a b"], ["a b"], ["a b"], ("de", "en"))
    assert found.by_length[1] == Part(9, 12, 0, None, None)
    assert found.by_length[0].sentences == 1


def test_length_is_in_characters_where_there_are_no_spaces() -> None:
    assert length("ein alter  Mann ", "de") == 3
    assert length("一个 老人", "zh-CN") == 4
    assert length("", "de") == 0
