"""Exports of a pass: all numbers as JSON, a picture as SVG, or a self-contained page as HTML."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Literal

from regard.config.families import Model
from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import NO_WALK_STATE
from regard.inspection.forward.passes import ForwardPass, forward_pass
from regard.inspection.forward.record import NAMES, Kind
from regard.inspection.forward.text_windows import WindowedRequest, fit_request
from regard.inspection.pictures.images import ImageName, ImageView, usual_query
from regard.inspection.pictures.view import View
from regard.inspection.questions.look import every_weight, first_head, pass_values
from regard.inspection.requests import Flag, Number, Place, Request, pack, question
from regard.system import VERSION
from regard.system.errors import RegardError, UsageError

PARTS = {"positions": "positions", "scaling": "scaling", "mask": "the mask"}
"""Names of the other ablations."""
PLACE = "<!-- payload -->"
UNTOLD: dict[str, object] = {"examples": [], "snapshots": [], "weights": None, "why": None} | NO_WALK_STATE
"""Neutral values for facts that do not belong in the file: other texts, snapshots, weights."""
BRIGHTEST = 255.0
MEDIA = {"json": "application/json", "svg": "image/svg+xml", "html": "text/html"}
MOST = 1 << 22
"""Most weights in one file: 22 MB as a page, 33 MB as JSON, and some seconds of computation."""
SQUARES = 1 << 18
"""Most squares of a picture: one head over 512 tokens; several heads with more are drawn smaller."""


def describe_changes(asked: Request) -> str:
    """Sentences on ablations, snapshot and forced target.

    Args:
        asked: what the pass is of.

    Returns:
        Nothing where the model is as it is, and writes what it would.
    """
    without = asked.changes
    parts = [f"{NAMES[kind]} head {layer}·{head}" for kind, layer, head in without.off]
    parts += [name for part, name in PARTS.items() if not getattr(without, part)]
    told = [f"Without {', '.join(parts)}."] if parts else []
    if asked.snapshot is not None:
        told.append(f"With the weights of {asked.snapshot}.")
    if asked.target is not None:
        told.append(f"Made to write “{asked.target}”")
    return " ".join(told)


def request_values(asked: Request) -> dict[str, object]:
    """The same as values: ``snapshot``, forced ``target``, and ``changes`` as requested."""
    without = {**asdict(asked.changes), "off": [list(head) for head in asked.changes.off]}
    return {"snapshot": asked.snapshot, "target": asked.target, "changes": without}


def render_page(
    one: ForwardPass, model: Mapping[str, object], asked: WindowedRequest, place: Mapping[str, object]
) -> str:
    """The HTML page of one pass.

    Args:
        one: the pass.
        model: what a page has to know of the model, as in the answer to ``state``; of it goes along what belongs to
            this pass alone, no path and no other text.
        asked: what the pass is of.
        place: where the page begins: ``kind``, ``layer``, ``head``, the row ``query`` that stays lit, and whether a
            row is a ``whole`` word; what is not there is as the page finds it best.
    """
    values, arrays = pass_values(one)
    kept = {**model, "folder": model["name"], **UNTOLD}
    told = {
        **values,
        "version": VERSION,
        "model": kept,
        "asked": request_values(asked.asked),
        **asked.values,
        "place": dict(place),
    }
    before, behind = _page().split(PLACE)
    return before + b64encode(pack(told, {**arrays, **every_weight(one.record)})).decode("ascii") + behind


@cache
def _page() -> str:
    """The built page, without data.

    Raises:
        RegardError: it is not installed.
    """
    try:
        return (files("regard.inspection") / "page" / "alone.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RegardError("the page is not here; pip install regard, or build it (web/)") from None


@question
def export_file(
    models: Models,
    asked: Request,
    form: Literal["json", "svg", "html"],
    kind: Literal["", Kind] = "",
    layer: Number | None = None,
    head: Number | None = None,
    token: Place | None = None,
    words: Flag = False,
) -> tuple[bytes, str, str]:
    """An exported file: content, media type and name.

    Raises:
        UsageError: there is no such form, or no such kind, layer or head.
        RegardError: the file would have more numbers than one should hold.
    """
    folder, one, cut = models.folder(asked.model), forward_pass(models, asked), fit_request(models, asked)
    there = one.record.kinds
    if not there:
        raise UsageError("this model has no attention to look at", "kind")
    one.record.head(kind or there[0], layer or 1, head or 1)
    if form == "svg":
        remark = " ".join(filter(None, (cut.label, describe_changes(cut.asked))))
        if one.pixels is None:
            content = View(one.record, kind or there[0], layer, head).svg(remark=remark, most=SQUARES)
        else:
            content = _image_view(one, asked, folder.recipe.model, layer, head).svg(remark)
    else:
        count = sum(weight_HQK.size for layers in one.record.weights.values() for weight_HQK in layers)
        if count > MOST:
            raise RegardError(f"makes {count:,} weights, one file holds {MOST:,} at most; give a shorter text", "text")
        if form == "json":
            values = {**one.record.to_dict(), "output": one.output, "asked": request_values(asked), **cut.cut_values}
            content = json.dumps(values, ensure_ascii=False) + "\n"
        else:
            place: dict[str, object] = {"kind": kind, "layer": layer, "head": head, "query": token, "whole": words}
            if not kind:  # as on the served page: the kind of the output if there is one, else the first
                first: Kind = "cross" if "cross" in there else there[0]
                found = first_head(models, cut.asked, one, first)
                place |= {"kind": first} if found is None else {"kind": first, **asdict(found), "whole": True}
            place = {name: value for name, value in place.items() if value not in (None, "")}
            content = render_page(one, folder.state(asked.model), cut, place)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.name).strip("-") or "model"
    return content.encode(), MEDIA[form], f"{name}-attention.{form}"


def _image_view(one: ForwardPass, asked: Request, section: Model, layer: int | None, head: int | None) -> ImageView:
    """One head large, or several small, over the patches of an image."""
    assert one.pixels is not None
    assert one.grid is not None
    said, number = one.output["said"], None if asked.image is None else asked.image.number
    told = "|".join(said) if isinstance(said, list) else str(said)
    name = ImageName(None if number is None else number + 1, one.label, told)
    heads = 1 if layer and head else sum(map(len, one.record.weights["encoder"]))
    squares = heads * one.grid[0] * one.grid[1]
    if squares > SQUARES:
        raise RegardError(f"these are {squares:,} squares, a picture has {SQUARES:,} at most; name one head", "head")
    pixels = one.pixels.astype("int64")
    return ImageView(pixels, BRIGHTEST, one.grid, one.record, name, usual_query(section), layer, head)
