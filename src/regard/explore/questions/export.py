"""Exports of a pass: all numbers as JSON, a picture as SVG, or a self-contained page as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.explore.folders.models import LoadedModel, Models
from regard.explore.forward import ablation_note
from regard.explore.forward.passes import ForwardPass, forward_pass
from regard.explore.forward.record import AttentionRecord
from regard.explore.forward.text_windows import WindowedRequest, fit_request
from regard.explore.kinds import KINDS, Kind, as_kind
from regard.explore.pictures.image_view import CLASS, MEAN, ImageName, ImageView
from regard.explore.pictures.view import View
from regard.explore.questions.first_head import first_head
from regard.explore.questions.look import first_kind, kinds_of
from regard.explore.questions.single_file import render_page
from regard.explore.requests import Fields, Request
from regard.system.errors import RegardError, UsageError

BRIGHTEST = 255.0
MOST = 1 << 22
"""Most weights in one file: 22 MB as a page, 33 MB as JSON, and some seconds of computation."""
SQUARES = 1 << 18
"""Most squares of a picture: one head over 512 tokens; several heads with more are drawn smaller."""


@dataclass(frozen=True)
class ExportRequest:
    """What to export of a pass.

    Args:
        one: the pass; ``asked``: what it is of; ``cut``: the same, as far as the model reads it.
        kind: of attention.
        layer, head: counted from 1; ``None``: all.
        who: what looks, in an image.
        model: what a page has to know of the model.
        place: where a page begins.
    """

    one: ForwardPass
    asked: Request
    cut: WindowedRequest
    kind: Kind
    layer: int | None
    head: int | None
    who: str = CLASS
    model: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remark(self) -> str:
        """Sentences on ablations and windows."""
        return " ".join(filter(None, (self.cut.label, ablation_note.describe_changes(self.cut.asked))))


def export_file(models: Models, given: Fields) -> tuple[bytes, str, str]:
    """An exported file: content, media type and name.

    Raises:
        UsageError: there is no such form, or no such kind, layer or head.
        RegardError: the file would have more numbers than one should hold.
    """
    asked, form = Request.from_fields(given), given.word("form", tuple(FORMS))
    kind = given.word("kind", ("", *KINDS), "")
    layer, head = given.whole("layer", 1, 65536, None), given.whole("head", 1, 65536, None)
    place = {"kind": kind, "layer": layer, "head": head, "query": given.whole("token", 0, 65536, None)}
    place["whole"] = given.flag("words", False)
    given.end()
    loaded = models.load_for(asked)
    folder, one, cut = models.folder(asked.model), forward_pass(models, asked), fit_request(models, loaded, asked)
    there = kinds_of(one.record)
    if not there:
        raise UsageError("this model has no attention to look at", "kind")
    who = CLASS if getattr(folder.recipe.model, "pool", "first") == "first" else MEAN
    use = as_kind(kind) if kind else there[0]
    if form == "html" and not kind:
        place |= _initial_view(models, loaded, cut.asked, one)
    wanted = ExportRequest(one, asked, cut, use, layer, head, who, folder.state(asked.model), place)
    one.record.layer(wanted.kind, layer or 1)
    if head is not None:
        one.record.head(wanted.kind, layer or 1, head)
    content, media = FORMS[form](wanted)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.name).strip("-") or "model"
    return content.encode(), media, f"{name}-attention.{form}"


def _initial_view(models: Models, loaded: LoadedModel, asked: Request, one: ForwardPass) -> dict[str, Any]:
    """The initial selection of a page, as on the served page."""
    kind = first_kind(one.record)
    found = first_head(models, loaded, asked, one, kind)
    return {"kind": kind} if found is None else {"kind": kind, **asdict(found), "whole": True}


def _json(wanted: ExportRequest) -> tuple[str, str]:
    """JSON: tokens, weights of all heads, the model's output, and the ablations."""
    _refuse_many(wanted.one.record)
    values = {**wanted.one.record.to_dict(), "output": wanted.one.output, "asked": ablation_note.values(wanted.asked)}
    values |= wanted.cut.cut_values
    return json.dumps(values, ensure_ascii=False) + "\n", "application/json"


def _svg(wanted: ExportRequest) -> tuple[str, str]:
    """SVG: one head large, or several small."""
    return (_image_svg if wanted.one.pixels is not None else _text_svg)(wanted), "image/svg+xml"


def _text_svg(wanted: ExportRequest) -> str:
    view = View(wanted.one.record, wanted.kind, wanted.layer, wanted.head)
    return view.svg(remark=wanted.remark, most=SQUARES)


def _image_svg(wanted: ExportRequest) -> str:
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


def _html(wanted: ExportRequest) -> tuple[str, str]:
    """HTML: an interactive page with all heads."""
    _refuse_many(wanted.one.record)
    place = {name: value for name, value in wanted.place.items() if value not in (None, "")}
    return render_page(wanted.one, wanted.model, wanted.cut, place), "text/html"


def _refuse_many(record: AttentionRecord) -> None:
    count = sum(weight_HQK.size for layers in record.weights.values() for weight_HQK in layers)
    if count > MOST:
        raise RegardError(f"this text makes {count:,} weights, one file holds {MOST:,} at most; give a shorter text")


FORMS: dict[str, Callable[[ExportRequest], tuple[str, str]]] = {"json": _json, "svg": _svg, "html": _html}
"""Writers by format, returning content and media type."""
