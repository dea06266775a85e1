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
from tests.cli.conftest import Done


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


def objects(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0
    return [json.loads(line) for line in done.out.splitlines()]


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


def test_an_object_a_line_with_its_tokens(ask) -> None:
    done = ask(stdin=b"the cat\n\nold\n")
    assert [value["text"] for value in objects(done)] == ["the cat", "", "old"]
    assert [value["vector"] for value in objects(done)] == [[2.0, 2.333333], [0.0, 0.0], [1.0, 1.0]]
    assert "2.333333492" not in done.out  # as many digits as a float32 has
    first, second = objects(ask("--each", "token", stdin=b"the old cat\n\n"))
    assert second == {"text": "", "tokens": []}
    assert [first["text"][token["start"] : token["end"]] for token in first["tokens"]] == ["the", "old", "cat"]
    assert [token["text"] for token in first["tokens"]] == ["the", "old", "cat"]
    assert [token["vector"] for token in first["tokens"]] == [[3.0, 0.1]] * 3


def test_a_row_a_line_or_a_token_in_a_file(ask, tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_bytes(b"old")
    done = ask("--output", path, stdin=b"the cat\n\nold\na b c\nd\n")
    assert (done.code, done.out, list(tmp_path.iterdir())) == (0, "", [path])
    assert list(arrays(path)) == ["vectors"]
    assert arrays(path)["vectors"].dtype == np.float32
    assert arrays(path)["vectors"][:, 0].tolist() == [2, 0, 1, 3, 1]
    ask("--each", "token", "--output", path, stdin=b"the cat\n\nold\na b c\n")
    found = arrays(path)
    assert found["lines"].tolist() == [0, 0, 2, 3, 3, 3]
    assert found["ids"].tolist() == [3, 3, 3, 1, 1, 1]
    assert found["offsets"].tolist() == [[0, 3], [4, 7], [0, 3], [0, 1], [2, 3], [4, 5]]
    assert found["vectors"].shape == (6, 2)


@pytest.mark.parametrize("each", ["text", "token"])
def test_nothing_in_is_a_file_without_rows(ask, tmp_path: Path, each: str) -> None:
    assert ask("--each", each, "--output", tmp_path / "v.npz").code == 0
    assert arrays(tmp_path / "v.npz")["vectors"].shape == (0, 2)


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
    assert objects(done) == [{"line": 2, "vector": [1.0, 2.0]}, {"line": 4, "vector": [3.0, 4.0]}]
    assert "line 1 names columns" in done.err
    first, _ = objects(see("--each", "patch"))
    patches = [{"row": 1, "column": 1, "vector": [1.0, 2.0]}, {"row": 1, "column": 2, "vector": [2.0, 4.0]}]
    assert first == {"line": 2, "patches": patches}


def test_images_in_a_file(see, tmp_path: Path) -> None:
    for words, rows, lines in ((), 2, [1, 3]), (("--each", "patch"), 4, [1, 1, 3, 3]):
        assert see(*words, "--output", tmp_path / "v.npz").code == 0
        found = arrays(tmp_path / "v.npz")
        assert found["vectors"].shape == (rows, 2)
        assert found["lines"].tolist() == lines
        assert not words or found["patches"].tolist() == [[0, 0], [0, 1]] * 2
        assert see(*words, "--output", tmp_path / "e.npz", stdin=b"").code == 0
        assert arrays(tmp_path / "e.npz")["vectors"].shape == (0, 2)


@pytest.mark.parametrize("each", ["image", "patch"])
def test_images_before_a_line_that_cannot_be_read_are_answered(see, tmp_path: Path, each: str) -> None:
    done = see("--each", each, stdin=b"1,2\n3,4\n5\n6,7\n")
    assert (done.code, len(done.out.splitlines())) == (1, 2)
    assert done.err == "regard: line 3: has no two values\n"
    done = see("--each", each, "--output", tmp_path / "v.npz", stdin=b"1,2\n5\n")
    assert done.code == 1
    assert not list(tmp_path.iterdir())


def test_vectors_are_of_what_the_model_reads(see, regard, loaded) -> None:
    see("--each", "token").refuses("a vector is of each image or patch")
    loaded(SimpleNamespace(info=TASKS["translation"]))
    regard("encode", "model", "--each", "patch", stdin=b"a\n").refuses("a vector is of each text or token")
