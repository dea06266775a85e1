"""``regard encode``: a vector for each text, token, image or patch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.io.vectors import VectorWriter
    from regard.tasks.protocols import Task
    from regard.tasks.text.encoding import Pool

KINDS = (".npz", ".jsonl")
"""File endings allowed for vectors."""
PARTS = ("token", "patch")
"""The units that may get a vector each, other than the whole."""


def encode(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    pool: Literal["first", "mean", "max", "last"] | None = None,
    each: Literal["text", "token", "image", "patch"] | None = None,
    layer: int | None = None,
    normalise: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Turn texts into vectors, by the encoder of any model: arguments, or the lines of a file or of stdin.

    A JSON object comes out for each. Of a translator the encoder speaks, of a language model the whole stack. An empty
    text has the zero vector, and no tokens. A model of images reads an image a line, as regard classify does; an empty
    line, and a header, have no vector.

    A file of --output that ends in .jsonl gets the same JSON objects; one in .npz arrays: "vectors", a row a text; with
    --each token a row a token, beside it "lines" (from 0), "ids" and "offsets". Of images a row an image, beside it
    "lines"; with --each patch a row a patch, and "patches", its row and column (from 0).

    Args:
        folder: the model folder.
        pool: what stands for a text or an image: its first or last token, or the mean or the largest of all, with the
            symbols around it (of images the first is the class token); default: mean, but of images and of an encoder
            that was brought in what the model was made with.
        each: text (the default): {"text", "vector"} a line; token: {"text", "tokens"}, of each token its text, its
            characters (start, end) in the line's text as the model sees it, and its vector. Of images: image (the
            default): {"line", "vector"}; patch: {"line", "patches"}, of each patch its row, its column and its vector.
        layer: whose vectors, counted from 1; default: the last. torch computes them, in fp32.
        normalise: every vector gets length one, so that products are cosines; some encoders were made with that.
    """
    if each in PARTS and pool is not None:
        raise UsageError(f"is for whole texts and images; with --each {each} every {each} has its vector", "--pool")
    output = given.output
    arrays = output is not None and output.suffix == ".npz"
    options = {"--pool": pool, "--each": each, "--layer": layer, "--normalise": normalise, "arrays": arrays}
    if layer is not None and given.precision not in ("auto", "fp32"):
        raise UsageError("torch computes the vectors of a layer; leave it out", "--precision")
    with Exchange("encode", folder, texts, given, options) as exchange:
        if exchange.target.file is not None and output is not None and output.suffix not in KINDS:
            raise UsageError(f"must end in {' or '.join(KINDS)}; without --output JSON goes to stdout", str(output))
        from regard.cli.io.vectors import frame_arrays, join_frames

        task = exchange.open_model()
        way = _writer(task, each, layer, pool, normalise)
        if arrays:
            exchange.keep(lambda lines, first: frame_arrays(way.arrays(lines, first)), whole=partial(join_frames, way))
        else:
            exchange.answer(way.objects)


def _writer(task: Task, each: str | None, layer: int | None, pool: Pool | None, normalise: bool) -> VectorWriter:
    from regard.cli.io.vectors import ImageWriter, TextWriter, TokenWriter
    from regard.tasks.kinds import reads_image, reads_text
    from regard.tasks.text.encoding import ImageVectors, TextVectors

    if reads_image(task):
        if each not in (None, "image", "patch"):
            raise UsageError("this model reads images; a vector is of each image or patch", "--each")
        return ImageWriter(ImageVectors(task, layer), pool, normalise, patches=each == "patch")
    if each not in (None, "text", "token"):
        raise UsageError("this model reads texts; a vector is of each text or token", "--each")
    assert reads_text(task)
    vectors = TextVectors(task, layer)
    return TokenWriter(vectors, normalise) if each == "token" else TextWriter(vectors, pool, normalise or None)
