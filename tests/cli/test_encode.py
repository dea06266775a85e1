"""``regard encode``: a vector per line or token, as JSON on stdout or in a file written atomically."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.config import TASKS
from regard.system.errors import RegardError
from regard.tasks.text.encoding import TokenVectors


class Counts:
    """An encoder into the numbers of words and characters."""

    size = 2

    def __init__(self, task: Any, layer: int | None = None) -> None:
        self.asked = layer

    def texts(self, texts: list[str], pool: str | None = None, normalise: bool | None = None) -> np.ndarray:
        rows = [[len(text.split()), len(text) / 3] for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), 2)

    def tokens(self, texts: list[str], normalise: bool | None = None) -> list[TokenVectors]:
        found = []
        for text in texts:
            words, ends = text.split(), np.cumsum([len(word) + 1 for word in text.split()]).tolist()
            places = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
            rows = np.array([[len(word), 0.1] for word in words], np.float32).reshape(len(words), 2)
            found.append(TokenVectors(text, tuple(map(len, words)), tuple(words), places, rows))
        return found


@pytest.fixture
def ask(regard, loaded, monkeypatch: pytest.MonkeyPatch):
    loaded(SimpleNamespace(info=TASKS["translation"]))
    monkeypatch.setattr("regard.cli.io.lines.bursts.__defaults__", (2, 0.05))
    monkeypatch.setattr("regard.tasks.text.encoding.TextVectors", Counts)
    return lambda *words, stdin=b"": regard("encode", "model", *words, stdin=stdin)


def test_an_object_a_line(ask) -> None:
    done = ask(stdin=b"the cat\n\nold\n")
    assert done.code == 0
    values = [json.loads(line) for line in done.out.splitlines()]
    assert [value["text"] for value in values] == ["the cat", "", "old"]
    assert [value["vector"] for value in values] == [[2.0, 2.333333], [0.0, 0.0], [1.0, 1.0]]
    assert "2.333333492" not in done.out  # as many digits as a float32 has


def test_an_object_a_line_with_its_tokens(ask) -> None:
    values = [json.loads(line) for line in ask("--each", "token", stdin=b"the old cat\n\n").out.splitlines()]
    assert values[1] == {"text": "", "tokens": []}
    tokens = values[0]["tokens"]
    assert [values[0]["text"][token["start"] : token["end"]] for token in tokens] == ["the", "old", "cat"]
    assert [token["text"] for token in tokens] == ["the", "old", "cat"]
    assert [token["vector"] for token in tokens] == [[3.0, 0.1]] * 3


def test_a_row_a_line_in_a_file(ask, tmp_path: Path) -> None:
    done = ask("--output", tmp_path / "v.npz", stdin=b"the cat\n\nold\na b c\nd\n")
    assert (done.code, done.out) == (0, "")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
        assert list(found) == ["vectors"]
        assert found["vectors"].dtype == np.float32
        assert found["vectors"][:, 0].tolist() == [2, 0, 1, 3, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]


def test_a_row_a_token_in_a_file(ask, tmp_path: Path) -> None:
    ask("--each", "token", "--output", tmp_path / "v.npz", stdin=b"the cat\n\nold\na b c\n")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
        assert found["lines"].tolist() == [0, 0, 2, 3, 3, 3]
        assert found["ids"].tolist() == [3, 3, 3, 1, 1, 1]
        assert found["offsets"].tolist() == [[0, 3], [4, 7], [0, 3], [0, 1], [2, 3], [4, 5]]
        assert found["vectors"].shape == (6, 2)


@pytest.mark.parametrize("each", ["text", "token"])
def test_nothing_in_is_a_file_without_rows(ask, tmp_path: Path, each: str) -> None:
    assert ask("--each", each, "--output", tmp_path / "v.npz").code == 0
    with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
        assert found["vectors"].shape == (0, 2)


def test_an_older_file_is_replaced_at_once(ask, tmp_path: Path) -> None:
    (tmp_path / "v.npz").write_bytes(b"old")
    assert ask("--output", tmp_path / "v.npz", stdin=b"a\n").code == 0
    with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
        assert len(found["vectors"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--output", "v.json"), ".npz"),
        (("--output", "v"), ".npz"),
        (("--output", "absent/v.npz"), "there is no folder"),
        (("--each", "token", "--pool", "max"), "--pool"),
        (("--each", "patch", "--pool", "max"), "--pool"),
        (("--pool", "sum"), "'first'"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_loaded(regard, words: tuple[str, ...], said: str) -> None:
    regard("encode", "absent", *words).refuses(said)


def test_a_file_that_cannot_be_written_is_told(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    ask("--output", tmp_path / "v.npz", stdin=b"a\n").refuses("v.npz: cannot be written: No space left on device", 1)
    assert not list(tmp_path.iterdir())


class Pixels:
    """An encoder of images of two pixels, each a patch, into these and twice these."""

    size, rows, columns = 2, 1, 2

    def __init__(self, task: Any, layer: int | None = None) -> None:
        self.task = task

    def images(self, images: list[Any], pool: str | None = None, normalise: bool = False) -> np.ndarray:
        return np.array(images, np.float32).reshape(len(images), 2)

    def patches(self, images: list[Any], normalise: bool = False) -> np.ndarray:
        whole = self.images(images)
        return np.stack([whole, 2 * whole], 1)


class Reader:
    """The task; a header stands in line 1."""

    info = TASKS["image-classification"]

    def parse_lines(self, lines: list[str], first: int) -> list[Any]:
        cells = lines[0].split(",")
        if not lines[0].strip() or (first == 1 and cells[0] == "x"):
            return []
        if len(cells) != 2:
            raise RegardError("has no two values", f"line {first}")
        return [np.array(cells, np.int64)]


@pytest.fixture
def see(regard, loaded, monkeypatch: pytest.MonkeyPatch):
    loaded(Reader())
    monkeypatch.setattr("regard.tasks.text.encoding.ImageVectors", Pixels)
    monkeypatch.setattr("regard.cli.io.lines.bursts.__defaults__", (2, 0.05))
    return lambda *words, stdin=b"x,y\n1,2\n\n3,4\n": regard("encode", "model", *words, stdin=stdin)


def test_an_object_an_image_with_its_line(see) -> None:
    done = see()
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"line": 2, "vector": [1.0, 2.0]},
        {"line": 4, "vector": [3.0, 4.0]},
    ]
    assert "line 1 names columns" in done.err
    first, _ = (json.loads(line) for line in see("--each", "patch").out.splitlines())
    assert first["line"] == 2
    assert [(one["row"], one["column"], one["vector"]) for one in first["patches"]] == [
        (1, 1, [1.0, 2.0]),
        (1, 2, [2.0, 4.0]),
    ]


def test_images_in_a_file(see, tmp_path: Path) -> None:
    for words, rows, lines in ((), 2, [1, 3]), (("--each", "patch"), 4, [1, 1, 3, 3]):
        assert see(*words, "--output", tmp_path / "v.npz").code == 0
        with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
            assert found["vectors"].shape == (rows, 2)
            assert found["lines"].tolist() == lines
            if words:
                assert found["patches"].tolist() == [[0, 0], [0, 1]] * 2
    for each in ("image", "patch"):
        assert see("--each", each, "--output", tmp_path / "e.npz", stdin=b"").code == 0
        with np.load(tmp_path / "e.npz", allow_pickle=False) as found:
            assert found["vectors"].shape == (0, 2)


@pytest.mark.parametrize("each", ["image", "patch"])
def test_images_before_a_line_that_cannot_be_read_are_answered(see, tmp_path: Path, each: str) -> None:
    done = see("--each", each, stdin=b"1,2\n3,4\n5\n6,7\n")
    assert (done.code, len(done.out.splitlines())) == (1, 2)
    assert done.err == "regard: line 3: has no two values\n"
    done = see("--each", each, "--output", tmp_path / "v.npz", stdin=b"1,2\n5\n")
    assert done.code == 1
    assert not list(tmp_path.iterdir())


def test_vectors_are_of_what_the_model_reads(see, ask) -> None:
    assert "a vector is of each text or token" in ask("--each", "patch", stdin=b"a\n").err


def test_vectors_of_images_are_of_no_tokens(see) -> None:
    see("--each", "token").refuses("a vector is of each image or patch")
