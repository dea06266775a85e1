"""``regard score``: a line for each text, with its log-probability and its confidence."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from regard.config import TASKS
from regard.text.confidence import ScoredText
from tests.cli.fakes import Shouts, Unaware, answering


class Scores(Shouts):
    """Finds what it would shout certain, and all else improbable."""

    def score(self, texts: list[str], translations: list[str], first: int) -> list[ScoredText]:
        pairs = zip(texts, translations, strict=True)
        return [ScoredText(("a", "</s>"), (0.0 if one.upper() == two else -2.0, -1.0)) for one, two in pairs]


class Reads(Unaware):
    """A language model to which a text is as improbable as it is long."""

    info = TASKS["language-model"]

    def score(self, text: str) -> ScoredText:
        return ScoredText(tuple(text), tuple(-1.0 for _ in text))


score, score_text = answering("score", Scores), answering("score", Reads)


def test_a_line_for_each_pair(score: Any, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("A\nb\n")
    done = score("--target", tmp_path / "out.txt", stdin=b"a\nb\n").succeeds()
    assert done.out == f"-1.0000\t{math.exp(-0.5):.4f}\n-3.0000\t{math.exp(-1.5):.4f}\n"
    done = score("--target", tmp_path / "out.txt", "--json", "a")
    assert json.loads(done.out) == {
        "log_probability": -1.0,
        "confidence": round(math.exp(-0.5), 6),
        "pieces": ["a", "</s>"],
        "log_probabilities": [0.0, -1.0],
    }
    done = score("--target", tmp_path / "out.txt", "a", "b", "c")
    assert (done.code, "has 2 lines, so text 3 has none" in done.err) == (2, True)


def test_lines_left_over_and_bytes_that_are_no_text_are_told(score: Any, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_bytes(b"A\n\xff\nC\n")
    done = score("--target", tmp_path / "out.txt", "a", "b").succeeds()
    assert "has 3 lines for 2 texts" in done.err
    assert "1 line was not valid UTF-8" in done.err
    done = score("--target", tmp_path / "out.txt", "a", "b", "c").succeeds()
    assert "lines for" not in done.err


def test_what_is_read_is_never_written_over(score: Any, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("A\n")
    done = score("--target", tmp_path / "out.txt", "--output", tmp_path / "out.txt", "a")
    assert (done.code, "is the input itself" in done.err) == (2, True)
    assert (tmp_path / "out.txt").read_text() == "A\n"


def test_a_language_model_is_given_texts_alone(score_text: Any, tmp_path: Path) -> None:
    assert score_text("abc").succeeds().out == f"-3.0000\t{math.exp(-1):.4f}\n"
    (tmp_path / "out.txt").write_text("A\n")
    done = score_text("--target", tmp_path / "out.txt", "a")
    assert (done.code, "--target: is for models" in done.err) == (2, True)
    assert "is for translators" in score_text("a", "--to", "de").err


def test_what_would_be_written_is_needed(score: Any) -> None:
    done = score("a")
    assert (done.code, "--target: is needed" in done.err) == (2, True)


@pytest.mark.parametrize("made", [Unaware])
def test_other_models_are_refused(regard: Any, loaded: Any, made: Any) -> None:
    task = made()
    task.info = TASKS["classification"]
    loaded(task)
    done = regard("score", "model", "a")
    assert done.code == 2
