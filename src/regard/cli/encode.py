"""``regard encode``: a vector for each line in, or for each of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.lines import answer_each
from regard.errors import UsageError


def encode(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    pool: Literal["first", "mean", "max", "last"] | None = None,
    each: Literal["text", "token"] = "text",
    layer: int | None = None,
    normalise: bool = False,
    output: Path | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Turn each line of stdin into a vector, by the encoder of any model that reads text: a JSON object a line.

    Of a translator the encoder speaks, of a language model the whole stack. An empty line has the zero vector, and no
    tokens.

    Args:
        folder: the model folder.
        pool: what stands for a text: its first or last token, or the mean or the largest of all, with the symbols
            around it; default: mean, but of an encoder that was brought in what it was made with.
        each: text: {"text", "vector"} a line; token: {"text", "tokens"}, of each token its text, its characters
            (start, end) in the line's text as the model sees it, and its vector.
        layer: whose vectors, counted from 1; default: the last.
        normalise: every vector gets length one, so that products are cosines; some encoders were made with that.
        output: write an .npz file instead: "vectors", a row a line; with --each token a row a token, beside it "lines"
            (from 0), "ids" and "offsets".
        device: cpu, cuda ...
        threads: processor threads.
    """
    if each == "token" and pool is not None:
        raise UsageError("is for whole texts; with --each token every token has its vector", "--pool")
    if output is not None:
        _refuse_unwritable(output)
    from regard.cli.opening import opened
    from regard.cli.vectors import Texts, Tokens, Way, joined, write
    from regard.tasks.encoding import TextVectors

    vectors = TextVectors(opened(folder, device, threads, "encode"), layer)
    way: Way = Tokens(vectors, normalise) if each == "token" else Texts(vectors, pool, normalise or None)
    if output is None:
        answer_each(lambda lines, first: way.objects(lines))
        return 0
    parts = []

    def kept(lines: list[str], first: int) -> Iterator[str]:
        parts.append(way.arrays(lines, first - 1))
        return iter(())

    answer_each(kept)
    write(output, joined(parts or [way.arrays([], 0)]))
    return 0


def _refuse_unwritable(path: Path) -> None:
    """Raise a UsageError before anything is computed for a file that cannot be."""
    if path.suffix != ".npz":
        raise UsageError("must end in .npz; without --output JSON goes to stdout", str(path))
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise UsageError("is a folder, or in a folder that is not there; name a file", str(path))
