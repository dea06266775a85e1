"""What is seen as a file to keep: all numbers as JSON, a picture as SVG, or the page itself as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.errors import RegardError, UsageError
from regard.explore import altered
from regard.explore.alone import alone
from regard.explore.asked import Asked, Fields
from regard.explore.fitting import Fitted, fitted
from regard.explore.image_view import CLASS, MEAN, ImageName, ImageView
from regard.explore.kinds import KINDS, Kind, as_kind
from regard.explore.looks import begins_with, kinds_of
from regard.explore.models import Loaded, Models
from regard.explore.opening import opening
from regard.explore.passes import Pass, passed
from regard.explore.record import Record
from regard.explore.view import View

BRIGHTEST = 255.0
MOST = 1 << 22
"""Weights that one file holds: as a page 22 MB, as JSON 33, and some seconds of whoever else asks."""
SQUARES = 1 << 18
"""Of a picture: one head over 512 tokens; where several heads have more together, each is drawn smaller."""


@dataclass(frozen=True)
class Wanted:
    """What of a pass is to be kept.

    Args:
        one: the pass; ``asked``: what it is of; ``cut``: the same, as far as the model reads it.
        kind: of attention.
        layer, head: counted from 1; ``None``: all.
        who: what looks, in an image.
        model: what a page has to know of the model.
        place: where a page begins.
    """

    one: Pass
    asked: Asked
    cut: Fitted
    kind: Kind
    layer: int | None
    head: int | None
    who: str = CLASS
    model: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remark(self) -> str:
        """What is not as the model is, or not the whole text, in a sentence each."""
        return " ".join(filter(None, (self.cut.told, altered.altered(self.cut.asked))))


def exported(models: Models, given: Fields) -> tuple[bytes, str, str]:
    """A file: its content, its media type, and its name.

    Raises:
        UsageError: there is no such form, or no such kind, layer or head.
        RegardError: the file would have more numbers than one should hold.
    """
    asked, form = Asked.read(given), given.word("form", tuple(FORMS))
    kind = given.word("kind", ("", *KINDS), "")
    layer, head = given.whole("layer", 1, 65536, None), given.whole("head", 1, 65536, None)
    place = {"kind": kind, "layer": layer, "head": head, "query": given.whole("token", 0, 65536, None)}
    place["whole"] = given.flag("words", False)
    given.end()
    loaded = models.asked(asked)
    folder, one, cut = models.folder(asked.model), passed(models, asked), fitted(models, loaded, asked)
    there = kinds_of(one.record)
    if not there:
        raise UsageError("this model has no attention to look at", "kind")
    who = CLASS if getattr(folder.recipe.model, "pool", "first") == "first" else MEAN
    use = as_kind(kind) if kind else there[0]
    if form == "html" and not kind:
        place |= _begun(models, loaded, cut.asked, one)
    wanted = Wanted(one, asked, cut, use, layer, head, who, folder.state(asked.model), place)
    one.record.layer(wanted.kind, layer or 1)
    if head is not None:
        one.record.head(wanted.kind, layer or 1, head)
    content, media = FORMS[form](wanted)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.name).strip("-") or "model"
    return content.encode(), media, f"{name}-attention.{form}"


def _begun(models: Models, loaded: Loaded, asked: Asked, one: Pass) -> dict[str, Any]:
    """Where a page begins for which nothing was chosen: as the served one does."""
    kind = begins_with(one.record)
    found = opening(models, loaded, asked, one, kind)
    return {"kind": kind} if found is None else {"kind": kind, **asdict(found), "whole": True}


def _json(wanted: Wanted) -> tuple[str, str]:
    """Tokens, weights of all heads, what the model makes of the text, and what of it is not as it is by itself."""
    _refuse_many(wanted.one.record)
    values = {**wanted.one.record.to_dict(), "output": wanted.one.output, "asked": altered.values(wanted.asked)}
    values |= wanted.cut.seen
    return json.dumps(values, ensure_ascii=False) + "\n", "application/json"


def _svg(wanted: Wanted) -> tuple[str, str]:
    """One head large, or several small."""
    return (_of_image if wanted.one.pixels is not None else _of_text)(wanted), "image/svg+xml"


def _of_text(wanted: Wanted) -> str:
    view = View(wanted.one.record, wanted.kind, wanted.layer, wanted.head)
    return view.svg(remark=wanted.remark, most=SQUARES)


def _of_image(wanted: Wanted) -> str:
    one, said = wanted.one, wanted.one.output["said"]
    assert one.pixels is not None
    assert one.grid is not None
    number = None if wanted.asked.image is None else wanted.asked.image + 1
    name = ImageName(number, one.label, "|".join(said) if isinstance(said, list) else str(said))
    pixels = one.pixels.astype("int64")
    weights = one.record.weights[wanted.kind]
    squares = (1 if wanted.layer and wanted.head else sum(map(len, weights))) * one.grid[0] * one.grid[1]
    if squares > SQUARES:
        raise RegardError(f"these are {squares:,} squares, a picture has {SQUARES:,} at most; name one head")
    view = ImageView(pixels, BRIGHTEST, one.grid, weights, name, wanted.who, wanted.layer, wanted.head)
    return view.svg(remark=wanted.remark)


def _html(wanted: Wanted) -> tuple[str, str]:
    """All heads, to be looked through."""
    _refuse_many(wanted.one.record)
    place = {name: value for name, value in wanted.place.items() if value not in (None, "")}
    return alone(wanted.one, wanted.model, wanted.cut, place), "text/html"


def _refuse_many(record: Record) -> None:
    count = sum(weight_HQK.size for layers in record.weights.values() for weight_HQK in layers)
    if count > MOST:
        raise RegardError(f"this text makes {count:,} weights, one file holds {MOST:,} at most; give a shorter text")


FORMS: dict[str, Callable[[Wanted], tuple[str, str]]] = {"json": _json, "svg": _svg, "html": _html}
"""From what is wanted to a file's text and its media type."""
