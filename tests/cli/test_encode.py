"""``regard encode``: a vector per line or token, as JSON on stdout or in a file written atomically."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.tasks.text.encoding import ImageVectors, TextVectors
from tests.cli.conftest import Done
from tests.tasks.small_tasks import PIXELS, encoder, viewer

LINES = ["the cat", "", "old", "a b c", "d"]
IMAGES = list(np.array([PIXELS, PIXELS[::-1]]))
TEXT = "".join(f"{line}\n" for line in LINES).encode()
ROWS = [",".join(map(str, pixels)) for pixels in IMAGES]
PICTURES = "\n".join([",".join("x" * len(PIXELS)), ROWS[0], "", ROWS[1], ""]).encode()
"""A header, an image, an empty line, and another image."""
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)


@pytest.fixture
def encode(regard, loaded, monkeypatch: pytest.MonkeyPatch):
    """Encodes two lines at once, with a task."""
    monkeypatch.setattr("regard.cli.io.lines.bursts.__defaults__", (2, 0.05))

    def run(task: Any, *words: object, stdin: bytes) -> Done:
        loaded(task)
        return regard("encode", "model", *words, stdin=stdin)

    return run


@pytest.fixture
def ask(encode):
    return lambda *words, stdin=TEXT: encode(encoder(), *words, stdin=stdin)


@pytest.fixture
def see(encode):
    return lambda *words, stdin=PICTURES: encode(viewer(), *words, stdin=stdin)


def objects(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


def test_an_object_a_line_with_its_tokens(ask) -> None:
    found, vectors = objects(ask()), TextVectors(encoder())
    assert [value["text"] for value in found] == LINES
    near([value["vector"] for value in found], vectors.texts(LINES))
    assert found[1]["vector"] == [0.0] * vectors.size
    for entry in found[0]["vector"]:  # as many digits as a float32 has
        assert entry == float(f"{entry:.7g}")
    for value, wanted in zip(objects(ask("--each", "token")), vectors.tokens(LINES), strict=True):
        assert value["text"] == wanted.text
        near(np.reshape([token["vector"] for token in value["tokens"]], wanted.vectors.shape), wanted.vectors)
        places = [(token["text"], token["start"], token["end"]) for token in value["tokens"]]
        assert places == [(piece, *place) for piece, place in zip(wanted.pieces, wanted.offsets, strict=True)]


def test_a_row_a_line_or_a_token_in_a_file(ask, tmp_path: Path) -> None:
    path, vectors = tmp_path / "v.npz", TextVectors(encoder())
    path.write_bytes(b"old")
    done = ask("--output", path)
    assert (done.code, done.out, list(tmp_path.iterdir())) == (0, "", [path])
    assert [(name, array.dtype) for name, array in arrays(path).items()] == [("vectors", np.float32)]
    near(arrays(path)["vectors"], vectors.texts(LINES))
    ask("--each", "token", "--output", path)
    found, wanted = arrays(path), vectors.tokens(LINES)
    near(found["vectors"], np.concatenate([one.vectors for one in wanted]))
    assert found["lines"].tolist() == [n for n, one in enumerate(wanted) for _ in one.ids]
    assert found["ids"].tolist() == [id for one in wanted for id in one.ids]
    assert found["offsets"].tolist() == [[*place] for one in wanted for place in one.offsets]


@pytest.mark.parametrize("each", ["text", "token"])
def test_nothing_in_is_a_file_without_rows(ask, tmp_path: Path, each: str) -> None:
    assert ask("--each", each, "--output", tmp_path / "v.npz", stdin=b"").code == 0
    assert arrays(tmp_path / "v.npz")["vectors"].shape == (0, 12)


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
    ask("--output", tmp_path / "v.npz").refuses("v.npz: cannot be written: No space left on device", 1)
    assert not list(tmp_path.iterdir())


def test_an_object_an_image_with_its_line(see) -> None:
    done, vectors = see(), ImageVectors(viewer())
    assert [value["line"] for value in objects(done)] == [2, 4]
    near([value["vector"] for value in objects(done)], vectors.images(IMAGES))
    assert "line 1 names columns" in done.err
    for value, wanted in zip(objects(see("--each", "patch")), vectors.patches(IMAGES), strict=True):
        places = [(patch["row"], patch["column"]) for patch in value["patches"]]
        assert places == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
        near([patch["vector"] for patch in value["patches"]], wanted)


def test_images_in_a_file(see, tmp_path: Path) -> None:
    for words, count in ((), 1), (("--each", "patch"), 6):
        assert see(*words, "--output", tmp_path / "v.npz").code == 0
        found = arrays(tmp_path / "v.npz")
        assert found["vectors"].shape == (2 * count, 12)
        assert found["lines"].tolist() == [1] * count + [3] * count
        assert not words or found["patches"].tolist() == [[r, c] for r in range(3) for c in range(2)] * 2
        assert see(*words, "--output", tmp_path / "e.npz", stdin=b"").code == 0
        assert arrays(tmp_path / "e.npz")["vectors"].shape == (0, 12)


@pytest.mark.parametrize("each", ["image", "patch"])
def test_images_before_a_line_that_cannot_be_read_are_answered(see, tmp_path: Path, each: str) -> None:
    stdin = "\n".join([*ROWS, "5", ROWS[0]]).encode()
    done = see("--each", each, stdin=stdin)
    assert (done.code, len(done.out.splitlines())) == (1, 2)
    assert done.err.startswith("regard: line 3: has 1 value;")
    assert see("--each", each, "--output", tmp_path / "v.npz", stdin=stdin).code == 1
    assert not list(tmp_path.iterdir())


def test_vectors_are_of_what_the_model_reads(ask, see) -> None:
    see("--each", "token").refuses("a vector is of each image or patch")
    ask("--each", "patch").refuses("a vector is of each text or token")
