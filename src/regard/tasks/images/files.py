"""Reads images to display from a file, with their labels if it has any."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from regard.data.corpora.images import ImageRows, Pixels, is_header, open_images, parse_cells, parse_pixels
from regard.system.errors import RegardError
from regard.tasks.images.classifier import ImageClassification
from regard.text.lines import InvalidLines

Labelled = tuple[Pixels, str | None]


def some_images(task: ImageClassification, path: Path, count: int) -> list[Labelled]:
    """The first images of a file, each with its label; CSV and TSV may have no labels.

    Args:
        task: a classifier of images.
        path: CSV, TSV or ``.npz``, as :func:`~regard.data.corpora.images.open_images` reads them.
        count: of images, at most.

    Raises:
        RegardError: the file cannot be read, or holds no image.
    """
    corpus = open_images(path)
    if isinstance(corpus, ImageRows) and _width(corpus) == task.cut.shape.values:
        given = _unlabelled_rows(corpus)
    else:
        given = ((parse_pixels(text), label) for text, label in corpus.pairs())
    if not (found := list(islice(given, count))):
        raise RegardError("holds no image", corpus.name)
    return found


def _width(corpus: ImageRows) -> int:
    """Columns of the first row."""
    return next((len(cells) for _, cells in corpus.table.rows(InvalidLines())), 0)


def _unlabelled_rows(corpus: ImageRows) -> Iterator[Labelled]:
    """Rows of pixel values alone; a header, which names them, is passed over."""
    for place, (line, cells) in enumerate(corpus.table.rows(InvalidLines())):
        if place == 0 and is_header(cells):
            continue
        try:
            yield parse_cells(cells), None
        except ValueError as error:
            raise RegardError(str(error), corpus.at(line)) from None
