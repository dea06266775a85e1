"""The page with the data of one pass embedded: a single HTML file that needs no server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import regard
from regard.explore.forward import ablation_note
from regard.explore.forward.passes import ForwardPass
from regard.explore.forward.text_windows import WindowedRequest
from regard.explore.payload import pack
from regard.explore.questions.look import every_weight, pass_values

PLACE = "<!-- payload -->"
UNTOLD: dict[str, Any] = {"examples": [], "snapshots": [], "weights": None, "why": None}
"""Neutral values for facts that do not belong in the file: other texts, snapshots, weights."""


def render_page(one: ForwardPass, model: Mapping[str, Any], asked: WindowedRequest, place: Mapping[str, Any]) -> str:
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
        "version": regard.__version__,
        "model": kept,
        "asked": ablation_note.values(asked.asked),
        **asked.values,
        "place": dict(place),
    }
    before, behind = _page().split(PLACE)
    return before + b64encode(pack(told, arrays | every_weight(one.record))).decode("ascii") + behind


@cache
def _page() -> str:
    """The built page, without data."""
    return (files("regard.explore") / "page" / "alone.html").read_text(encoding="utf-8")
