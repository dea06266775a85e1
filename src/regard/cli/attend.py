"""``regard attend``: where each word looks, as a heat map in the terminal or an SVG file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.errors import RegardError, UsageError


def attend(
    folder: Annotated[Path, Parameter(name="DIR")],
    text: Annotated[str, Parameter(name="TEXT")],
    /,
    *,
    kind: Literal["encoder", "decoder", "cross"] | None = None,
    layer: int | None = None,
    head: int | None = None,
    token: str | None = None,
    beside: str | None = None,
    words: bool = False,
    target: str | None = None,
    svg: Path | None = None,
    threads: int | None = None,
    json: bool = False,
) -> int:
    """Show where each word of a sentence looks: one head, one word, or all heads at a glance.

    Rows are queries (who looks), columns are keys (what is looked at); every row sums to one. With no head named all
    heads are shown small. Layers and heads count from 1.

    Args:
        folder: the model folder.
        text: the sentence.
        kind: encoder self-attention, decoder self-attention, or cross (from the translation to the sentence); default:
            the first of these that the model has.
        layer: which layer; default: the last.
        head: which head.
        token: show where this word looks (its last occurrence; es/sie: whichever is there), in one head or the mean of
            all; a word of the translation where the kind is decoder or cross.
        beside: a second sentence to show below the first, for --token.
        words: whole words instead of the vocabulary's pieces.
        target: the translation to look at; default: the model's own.
        svg: write the picture to this file.
        threads: processor threads.
        json: print one JSON object a sentence, with tokens and weights.
    """
    if svg is not None and svg.is_dir():
        raise UsageError("is a folder; name a file", str(svg))
    if beside is not None and token is None:
        raise UsageError("a second sentence goes with one word: add --token WORD", "--beside")
    from regard.cli.opening import opened
    from regard.cli.terminal import look, result, result_json, say
    from regard.explore.record import KINDS, Kind, record
    from regard.explore.view import View, gazes

    task = opened(folder, threads=threads, command="attend")
    made = [record(task, text, target), *([record(task, beside)] if beside else [])]
    there: list[Kind] = [one for one in KINDS if one in made[0].weights]
    use = there[0] if kind is None else kind
    made[0].layer(use, 1)  # a kind that the model lacks is refused
    if layer is None and (head is not None or token is not None):
        layer = len(made[0].weights[use])
    views = [View(one, use, layer, head, words or token is not None) for one in made]
    if json:
        for view in views:
            result_json(view.values())
    if svg is not None:
        _write(svg, gazes(views, token) if token else views[0].svg())
        say(f"wrote {svg}")
    elif not json:
        result("\n".join(view.terminal(look(), token) for view in views))
    return 0


def _write(path: Path, picture: str) -> None:
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror}", str(path)) from None
