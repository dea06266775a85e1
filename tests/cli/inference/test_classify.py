"""``regard classify``: one label per line, for texts and images; lines before an unreadable one are answered."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.config import TASKS
from regard.config import Classification as Section
from regard.system.errors import RegardError
from regard.tasks.assets import FittedValues
from regard.text.confidence import UnseenWord


class Letters:
    """A classifier of texts by their first letter; it sees no empty text."""

    info = TASKS["classification"]

    def parse_line(self, line: str, number: int) -> str | None:
        return line if line.strip() else None

    def __init__(self, labels: tuple[str, ...] = ("a", "b\tc"), **fields: Any) -> None:
        self.recipe = SimpleNamespace(classification=Section.model_validate(fields))
        self.assets = SimpleNamespace(labels=labels, fitted=FittedValues())
        self.seen: list[list[str]] = []

    unseen: list[UnseenWord] | None = None

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        return self.unseen

    def scores(self, texts: list[str]) -> np.ndarray:
        assert all(text.strip() for text in texts)
        self.seen.append(texts)
        rows = [[4.0 * (text[0] == label[0]) for label in self.assets.labels] for text in texts]
        return np.array(rows).reshape(len(texts), len(self.assets.labels))


class Images(Letters):
    """One of images of two pixels; a header stands in line 1."""

    info = TASKS["image-classification"]

    def parse_lines(self, lines: list[str], first: int) -> list[str]:
        (line,) = lines
        if not line.strip() or (first == 1 and "x" in line):
            return []
        if line.count(",") != 1:
            raise RegardError("has no two values", f"line {first}")
        return [line]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", ""),
        (b"an\nbe\n", "a\t0.9820\nb c\t0.9820\n"),
        (b"an", "a\t0.9820\n"),
        (b"\n  \nan\n\n", "\n\na\t0.9820\n\n"),
        (b"\xef\xbb\xbfan\r\n", "a\t0.9820\n"),
        (b"zoo\n", "a\t0.5000\n"),
        (b"b" * 1_000_000 + b"\nan\n", "b c\t0.9820\na\t0.9820\n"),
    ],
    ids=lambda given: str(given[:20]),
)
def test_lines_out_are_lines_in(regard, loaded, given: bytes, expected: str) -> None:
    loaded(Letters())
    done = regard("classify", "model", stdin=given)
    assert (done.code, done.out) == (0, expected)


def test_json_of_each_kind(regard, loaded) -> None:
    loaded(Letters())
    done = regard("classify", "model", "--json", stdin=b"bad\n\n")
    first, second = map(json.loads, done.out.splitlines())
    assert first == {"label": "b\tc", "probability": pytest.approx(0.982014)}
    assert second == {"label": None, "probability": None}
    loaded(Letters(kind="multi"))
    first, second = map(json.loads, regard("classify", "model", "--json", stdin=b"bad\n\n").out.splitlines())
    assert first == {"labels": ["b\tc", "a"], "probability": 0.5}
    assert second == {"labels": [], "probability": None}
    loaded(Letters(("a",), kind="regression"))
    first, second = map(json.loads, regard("classify", "model", "--all", stdin=b"an\n\n").out.splitlines())
    assert (first, second) == ({"value": 4.0}, {"value": None})


def test_words_that_training_never_saw_are_in_the_json(regard, loaded) -> None:
    classifier = Letters()
    classifier.unseen = [UnseenWord("zoo", 2, 5)]
    loaded(classifier)
    for option in ("--json", "--all"):
        (line,) = regard("classify", "model", option, stdin=b"a zoo\n").out.splitlines()
        assert json.loads(line)["unseen"] == [["zoo", 2, 5]]


def test_all_probabilities_the_most_probable_first(regard, loaded) -> None:
    loaded(Letters(("a", "b", "c")))
    (line,) = regard("classify", "model", "--all", stdin=b"cat\n").out.splitlines()
    found = json.loads(line)["probabilities"]
    assert list(found) == ["c", "a", "b"]
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)


def test_numbers_are_printed_alone(regard, loaded) -> None:
    loaded(Letters(("a",), kind="regression"))
    assert regard("classify", "model", stdin=b"an\n\nbe\n").out == "4\n\n0\n"
    regard("classify", "model", "--threshold", "0.5", stdin=b"an\n").refuses("predicts numbers")


def test_a_threshold_puts_texts_out_of_scope(regard, loaded) -> None:
    loaded(Letters())
    assert regard("classify", "model", "--threshold", "1", stdin=b"an\n").out == "out of scope\t0.9820\n"
    assert regard("classify", "model", "--threshold", "0", stdin=b"an\n").out == "a\t0.9820\n"


@pytest.mark.parametrize("threshold", ["-0.1", "1.01", "nan"])
def test_a_threshold_is_a_probability(regard, threshold: str) -> None:
    regard("classify", "model", f"--threshold={threshold}").refuses("is no probability")


def test_images_may_have_a_header(regard, loaded) -> None:
    loaded(Images(("1", "2")))
    done = regard("classify", "model", stdin=b"x,y\n1,1\n\n2,0\n")
    assert done.out == "\n1\t0.9820\n\n2\t0.9820\n"
    assert done.err == "regard: line 1 names columns; it is taken for a header, not for an image\n"


def test_what_stands_before_a_line_that_cannot_be_read_is_answered(regard, loaded) -> None:
    loaded(Images(("1", "2")))
    done = regard("classify", "model", stdin=b"1,1\n2,0\n1,2,3\n1,1\n")
    assert (done.code, done.out) == (1, "1\t0.9820\n2\t0.9820\n")
    assert done.err == "regard: line 3: has no two values\n"
