"""Images of a file to be looked at, with their labels where they have some."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from regard.data.images import ImageRows, Pixels, header, images, numbers, read
from regard.errors import RegardError
from regard.tasks.image_classification import ImageClassification
from regard.text.lines import Notes

Labelled = tuple[Pixels, str | None]


def some_images(task: ImageClassification, path: Path, count: int) -> list[Labelled]:
    """The first images of a file, each with its label; CSV and TSV may be without labels, as what is classified.

    Args:
        task: a classifier of images.
        path: CSV, TSV or ``.npz``, as :func:`~regard.data.images.images` reads them.
        count: of images, at most.

    Raises:
        RegardError: the file cannot be read, or holds no image.
    """
    corpus = images(path)
    if isinstance(corpus, ImageRows) and _width(corpus) == task.cut.shape.values:
        given = _unlabelled(corpus)
    else:
        given = ((read(text), label) for text, label in corpus.pairs())
    if not (found := list(islice(given, count))):
        raise RegardError("holds no image", corpus.name)
    return found


def _width(corpus: ImageRows) -> int:
    """Columns of the first row."""
    return next((len(cells) for _, cells in corpus.table.rows(Notes())), 0)


def _unlabelled(corpus: ImageRows) -> Iterator[Labelled]:
    """Rows of pixel values alone; a header, which names them, is passed over."""
    for place, (line, cells) in enumerate(corpus.table.rows(Notes())):
        if place == 0 and header(cells):
            continue
        try:
            yield numbers(cells), None
        except ValueError as error:
            raise RegardError(str(error), corpus.at(line)) from None
