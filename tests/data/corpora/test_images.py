"""Images are read as they were written, and what cannot be read is said with file and line."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regard.data.corpora.images import Shape, one_shape, open_images
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused


def file(tmp_path: Path, text: str, name: str = "some.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_rows_are_values_and_then_the_label(tmp_path: Path) -> None:
    corpus = open_images(file(tmp_path, "0,1,2,3,a\n\n4,5,6.0,7,b\n"))
    assert [image.sides() for image in corpus.examples()] == [("0,1,2,3", "a"), ("4,5,6,7", "b")]
    assert corpus.where(1) == f"{tmp_path}/some.csv:3"
    assert corpus.shape == Shape(2, 2)
    assert next(corpus.examples()).sides()[0].count(",") == 3


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Label,p0,p1,p2,p3\n9,0,1,2,3\n", None),
        ("p0,p1,p2,p3,digit\n0,1,2,3,9\n", None),
        ("p0,digit,p1,p2,p3\n0,9,1,2,3\n", "Digit"),
        ("0,1,2,3,Class\n0,1,2,3,9\n", None),
        ("9,0,1,2,3\n", "1"),
        ("p0,p1,p2,p3,x\n0,1,2,3,9\n", "5"),
        ("0,1,2,3,nine\n", None),  # a label that is a word makes no header
    ],
)
def test_label_stands_where_the_header_or_the_option_says(tmp_path: Path, text: str, columns: str | None) -> None:
    label = "nine" if "nine" in text else "9"
    assert [image.sides() for image in open_images(file(tmp_path, text), columns).examples()] == [("0,1,2,3", label)]


def test_tabs_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "some.tsv.gz"
    path.write_bytes(gzip.compress(b"0\t255\t65535\t3\ta b\n"))
    assert [image.sides() for image in open_images(path).examples()] == [("0,255,65535,3", "a b")]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("0,1,2,3,a\n0,1,2,b\n", "5", 2),
        ("0,1,2,3,a\n0,x,2,3,a\n", "'x', the 2.", 2),
        ("0,1,x,3,a\n", "'x'", 1),
        ("0,1,2,3,a\n0,1,2,,a\n", "'', the 4.", 2),
        ("0,0.5,2,3,a\n", "'0.5'", 1),
        ("0,-1,2,3,a\n", "'-1'", 1),
        ("0,65536,2,3,a\n", "'65536'", 1),
        ("0,nan,2,3,a\n", "'nan'", 1),
        ("a\n", "", 1),
    ],
)
def test_what_is_no_image_is_said(tmp_path: Path, text: str, message: str, line: int) -> None:
    with refused(RegardError, f"{tmp_path}/some.csv:{line}", message):
        list(open_images(file(tmp_path, text)).examples())


@pytest.mark.parametrize(("columns", "error"), [("0", UsageError), ("6", RegardError), ("no such", RegardError)])
def test_a_column_that_is_not_there_is_said(tmp_path: Path, columns: str, error: type[RegardError]) -> None:
    with refused(error, None, columns):
        list(open_images(file(tmp_path, "0,1,2,3,a\n"), columns).examples())


def test_two_columns_and_unknown_endings_are_refused(tmp_path: Path) -> None:
    with refused(UsageError, "--columns"):
        open_images(tmp_path / "some.csv", "text,label")
    with refused(UsageError, tmp_path / "folder.png", ".npz"):
        open_images(tmp_path / "folder.png")


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 3)])
def test_arrays_are_read(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    drawn = np.random.default_rng(1).integers(0, 256, (4, *sizes), dtype=np.uint8)
    np.savez_compressed(tmp_path / "some.npz", images=drawn, labels=np.array([3, 1, 4, 1]))
    corpus = open_images(tmp_path / "some.npz")
    assert [label for _, label in corpus.examples()] == ["3", "1", "4", "1"]
    assert [image.pixels.tolist() for image in corpus.examples()] == [one.ravel().tolist() for one in drawn]
    assert corpus.shape == Shape(*sizes)
    assert corpus.where(2) == f"{tmp_path}/some.npz:3"


def test_whole_numbers_may_be_floats(tmp_path: Path) -> None:
    images = np.arange(8).reshape(2, 2, 2)
    np.savez(tmp_path / "some.npz", images=images.astype(np.float32), labels=np.zeros(2, int))
    found = [image.pixels.tolist() for image in open_images(tmp_path / "some.npz").examples()]
    assert found == images.reshape(2, 4).tolist()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.zeros((2, 2, 2), int)}, "labels"),
        ({"images": np.zeros((2, 4), int), "labels": np.zeros(2, int)}, "(2, 4)"),
        ({"images": np.zeros((2, 2, 2), int), "labels": np.zeros(3, int)}, "(3,)"),
        ({"images": np.zeros((0, 2, 2), int), "labels": np.zeros(0, int)}, "(0, 2, 2)"),
        ({"images": np.full((2, 2, 2), 0.25), "labels": np.zeros(2, int)}, "holds 0.25"),
        ({"images": np.full((2, 2, 2), np.nan), "labels": np.zeros(2, int)}, "holds nan"),
        ({"images": np.full((2, 2, 2), 1j), "labels": np.zeros(2, int)}, "complex128"),
        ({"images": np.full((2, 2, 2), -1), "labels": np.zeros(2, int)}, "65,535"),
        ({"images": np.zeros((2, 2, 2), int), "labels": np.array([None, "a"], object)}, ".npz"),
    ],
)
def test_arrays_that_are_no_images_are_said(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "some.npz", **arrays)  # type: ignore[arg-type]
    with refused(RegardError, tmp_path / "some.npz", message):
        list(open_images(tmp_path / "some.npz").examples())


def test_damaged_arrays_are_said(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "some.npz", images=np.arange(8).reshape(2, 2, 2), labels=np.arange(2))
    whole = (tmp_path / "some.npz").read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"text"):
        (tmp_path / "some.npz").write_bytes(content)
        with refused(RegardError, tmp_path / "some.npz"):
            list(open_images(tmp_path / "some.npz").examples())


@pytest.mark.parametrize("count", [10**12, 10**30])
def test_arrays_that_claim_to_be_huge_are_said_with_their_file(tmp_path: Path, count: int) -> None:
    header, path = io.BytesIO(), tmp_path / "huge.npz"
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (count, 8, 8)})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("images.npy", header.getvalue())
    with refused(RegardError, path):
        list(open_images(path).examples())


def test_square_images_are_known_by_their_number_of_values() -> None:
    for side in range(1, 40):
        assert Shape.square(side * side) == Shape(side, side)
        assert Shape.square(3 * side * side) == Shape(side, side, 3)
    assert [Shape.square(values) for values in (0, 2, 5, 63, 65)] == [None] * 5


def test_corpora_of_different_sizes_are_told_apart(tmp_path: Path) -> None:
    small, large = file(tmp_path, "0,1,2,3,a\n"), file(tmp_path, "0,1,2,3,4,a\n", "other.csv")
    assert one_shape([open_images(small), open_images(small)]) == Shape(2, 2)
    assert one_shape([open_images(large)]) == 5
    with refused(RegardError, large, "5", "2 x 2 x 1"):
        one_shape([open_images(small), open_images(large)])


def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path: Path) -> None:
    images = np.zeros((1, 1 << 12, (1 << 12) + 1), np.uint8)
    np.savez_compressed(tmp_path / "i.npz", images=images, labels=np.arange(1))
    with refused(RegardError, "i.npz", f"{(1 << 24) + (1 << 12):,}"):
        list(open_images(tmp_path / "i.npz").examples())
