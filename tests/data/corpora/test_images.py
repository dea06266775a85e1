"""Images are read as they were written, and what cannot be read is said with file and line."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regard.data.corpora.images import Images, Shape, one_shape, open_images
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused


def rows(folder: Path, text: str, columns: str | None = None, name: str = "some.csv") -> Images:
    (folder / name).write_text(text)
    return open_images(folder / name, columns)


def read(corpus: Images) -> list[tuple[str, str]]:
    return [image.sides() for image in corpus.examples()]


def test_rows_are_values_and_then_the_label(tmp_path: Path) -> None:
    corpus = rows(tmp_path, "0,1,2,3,a\n\n4,5,6.0,7,b\n")
    assert read(corpus) == [("0,1,2,3", "a"), ("4,5,6,7", "b")]
    assert (corpus.where(1), corpus.shape) == (f"{tmp_path}/some.csv:3", Shape(2, 2))
    (tmp_path / "some.tsv.gz").write_bytes(gzip.compress(b"0\t255\t65535\t3\ta b\n"))
    assert read(open_images(tmp_path / "some.tsv.gz")) == [("0,255,65535,3", "a b")]


PLACES = [
    ("Label,p0,p1,p2,p3\n9,0,1,2,3\n", None),
    ("p0,p1,p2,p3,digit\n0,1,2,3,9\n", None),
    ("p0,digit,p1,p2,p3\n0,9,1,2,3\n", "Digit"),
    ("0,1,2,3,Class\n0,1,2,3,9\n", None),
    ("9,0,1,2,3\n", "1"),
    ("p0,p1,p2,p3,x\n0,1,2,3,9\n", "5"),
    ("0,1,2,3,nine\n", None),  # a label that is a word makes no header
]


@pytest.mark.parametrize(("text", "columns"), PLACES)
def test_label_stands_where_the_header_or_the_option_says(tmp_path: Path, text: str, columns: str | None) -> None:
    assert read(rows(tmp_path, text, columns)) == [("0,1,2,3", "nine" if "nine" in text else "9")]


WRONG_ROWS = [
    ("0,1,2,3,a\n0,1,2,b\n", "5", 2),
    ("0,1,2,3,a\n0,x,2,3,a\n", "'x', the 2.", 2),
    ("0,1,x,3,a\n", "'x'", 1),
    ("0,1,2,3,a\n0,1,2,,a\n", "'', the 4.", 2),
    ("0,0.5,2,3,a\n", "'0.5'", 1),
    ("0,-1,2,3,a\n", "'-1'", 1),
    ("0,65536,2,3,a\n", "'65536'", 1),
    ("0,nan,2,3,a\n", "'nan'", 1),
    ("a\n", "", 1),
]


@pytest.mark.parametrize(("text", "message", "line"), WRONG_ROWS)
def test_what_is_no_image_is_said(tmp_path: Path, text: str, message: str, line: int) -> None:
    with refused(RegardError, f"{tmp_path}/some.csv:{line}", message):
        read(rows(tmp_path, text))


def test_columns_that_are_not_there_and_unknown_endings_are_said(tmp_path: Path) -> None:
    for columns, error in (("0", UsageError), ("6", RegardError), ("no such", RegardError)):
        with refused(error, None, columns):
            read(rows(tmp_path, "0,1,2,3,a\n", columns))
    with refused(UsageError, "columns"):
        open_images(tmp_path / "some.csv", "text,label")
    with refused(UsageError, tmp_path / "folder.png", ".npz"):
        open_images(tmp_path / "folder.png")


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 3)])
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_arrays_are_read(tmp_path: Path, sizes: tuple[int, ...], kind: type) -> None:
    drawn = np.random.default_rng(1).integers(0, 256, (4, *sizes)).astype(kind)
    np.savez_compressed(tmp_path / "some.npz", images=drawn, labels=np.array([3, 1, 4, 1]))
    corpus = open_images(tmp_path / "some.npz")
    found = list(corpus.examples())
    assert [image.label for image in found] == ["3", "1", "4", "1"]
    assert [image.pixels.tolist() for image in found] == drawn.astype(int).reshape(4, -1).tolist()
    assert (corpus.shape, corpus.where(2)) == (Shape(*sizes), f"{tmp_path}/some.npz:3")


WRONG_ARRAYS = [
    (np.zeros((2, 2, 2), int), None, "labels"),
    (np.zeros((2, 4), int), np.zeros(2, int), "(2, 4)"),
    (np.zeros((2, 2, 2), int), np.zeros(3, int), "(3,)"),
    (np.zeros((0, 2, 2), int), np.zeros(0, int), "(0, 2, 2)"),
    (np.full((2, 2, 2), 0.25), np.zeros(2, int), "holds 0.25"),
    (np.full((2, 2, 2), np.nan), np.zeros(2, int), "holds nan"),
    (np.full((2, 2, 2), 1j), np.zeros(2, int), "complex128"),
    (np.full((2, 2, 2), -1), np.zeros(2, int), "65,535"),
    (np.zeros((2, 2, 2), int), np.array([None, "a"], object), ".npz"),
    (np.zeros((1, 1 << 12, (1 << 12) + 1), np.uint8), np.arange(1), f"{(1 << 24) + (1 << 12):,}"),
]


@pytest.mark.parametrize(("images", "labels", "message"), WRONG_ARRAYS)
def test_arrays_that_are_no_images_are_said(tmp_path: Path, images, labels, message: str) -> None:
    np.savez_compressed(tmp_path / "some.npz", images=images, **({} if labels is None else {"labels": labels}))
    with refused(RegardError, tmp_path / "some.npz", message):
        list(open_images(tmp_path / "some.npz").examples())


def test_damaged_arrays_and_those_that_claim_to_be_huge_are_said(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez_compressed(path, images=np.arange(8).reshape(2, 2, 2), labels=np.arange(2))
    contents = [b"", b"PK\x03\x04", path.read_bytes()[: path.stat().st_size // 2], b"text"]
    for count in (10**12, 10**30):
        header, whole = io.BytesIO(), io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (count, 8, 8)})
        with zipfile.ZipFile(whole, "w") as file:
            file.writestr("images.npy", header.getvalue())
        contents.append(whole.getvalue())
    for content in contents:
        path.write_bytes(content)
        with refused(RegardError, path):
            list(open_images(path).examples())


def test_square_images_are_known_by_their_number_of_values() -> None:
    for side in range(1, 40):
        assert Shape.square(side * side) == Shape(side, side)
        assert Shape.square(3 * side * side) == Shape(side, side, 3)
    assert [Shape.square(values) for values in (0, 2, 5, 63, 65)] == [None] * 5


def test_corpora_of_different_sizes_are_told_apart(tmp_path: Path) -> None:
    small, large = rows(tmp_path, "0,1,2,3,a\n"), rows(tmp_path, "0,1,2,3,4,a\n", None, "other.csv")
    assert (one_shape([small, small]), one_shape([large])) == (Shape(2, 2), 5)
    with refused(RegardError, tmp_path / "other.csv", "5", "2 x 2 x 1"):
        one_shape([small, large])
