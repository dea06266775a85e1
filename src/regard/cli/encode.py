"""``regard encode``: a vector for each line in, or for each of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.cli.lines import answer_each
from regard.cli.opening import IMAGES, opened, refuse_unwritable, write
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.vectors import Way
    from regard.tasks.encoding import Pool


def encode(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    pool: Literal["first", "mean", "max", "last"] | None = None,
    each: Literal["text", "token", "image", "patch"] | None = None,
    layer: int | None = None,
    normalise: bool = False,
    output: Path | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Turn each line of stdin into a vector, by the encoder of any model: a JSON object a line.

    Of a translator the encoder speaks, of a language model the whole stack. An empty line has the zero vector, and no
    tokens. A model of images reads an image a line, as regard classify does; an empty line, and a header, have no
    vector.

    Args:
        folder: the model folder.
        pool: what stands for a text or an image: its first or last token, or the mean or the largest of all, with the
            symbols around it (of images the first is the class token); default: mean, but of images and of an encoder
            that was brought in what the model was made with.
        each: text (the default): {"text", "vector"} a line; token: {"text", "tokens"}, of each token its text, its
            characters (start, end) in the line's text as the model sees it, and its vector. Of images: image (the
            default): {"line", "vector"}; patch: {"line", "patches"}, of each patch its row, its column and its vector.
        layer: whose vectors, counted from 1; default: the last.
        normalise: every vector gets length one, so that products are cosines; some encoders were made with that.
        output: write an .npz file instead: "vectors", a row a line; with --each token a row a token, beside it "lines"
            (from 0), "ids" and "offsets". Of images a row an image, beside it "lines"; with --each patch a row a patch,
            and "patches", its row and column (from 0).
        device: cpu, cuda ...
        threads: processor threads.
    """
    if each in PARTS and pool is not None:
        raise UsageError(f"is for whole texts and images; with --each {each} every {each} has its vector", "--pool")
    if output is not None:
        if output.suffix != ".npz":
            raise UsageError("must end in .npz; without --output JSON goes to stdout", str(output))
        refuse_unwritable(output, "--output")
    from regard.cli.vectors import joined, packed

    task = opened(folder, device, threads, "encode")
    way = (_images if task.name == IMAGES else _texts)(task, each, layer, pool, normalise)
    if output is None:
        answer_each(way.objects)
        return 0
    parts = []

    def kept(lines: list[str], first: int) -> Iterator[str]:
        parts.append(way.arrays(lines, first))
        return iter(())

    answer_each(kept)
    write(output, packed(joined(parts or [way.arrays([], 1)])))
    return 0


PARTS = ("token", "patch")
"""What has a vector of its own instead of the whole."""


def _texts(task: Any, each: str | None, layer: int | None, pool: Pool | None, normalise: bool) -> Way:
    from regard.cli.vectors import Texts, Tokens
    from regard.tasks.encoding import TextVectors

    if each not in (None, "text", "token"):
        raise UsageError("this model reads texts; a vector is of each text or token", "--each")
    vectors = TextVectors(task, layer)
    return Tokens(vectors, normalise) if each == "token" else Texts(vectors, pool, normalise or None)


def _images(task: Any, each: str | None, layer: int | None, pool: Pool | None, normalise: bool) -> Way:
    from regard.cli.vectors import Images, Patches
    from regard.tasks.image_encoding import ImageVectors

    if each not in (None, "image", "patch"):
        raise UsageError("this model reads images; a vector is of each image or patch", "--each")
    vectors = ImageVectors(task, layer)
    return Patches(vectors, normalise) if each == "patch" else Images(vectors, pool, normalise)
