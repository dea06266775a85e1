"""A pass as one file that any browser opens, without server and network: the page with its numbers in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import regard
from regard.explore import altered
from regard.explore.fitting import Fitted
from regard.explore.looks import every_weight, seen
from regard.explore.passes import Pass
from regard.explore.payload import packed

PLACE = "<!-- payload -->"
UNTOLD: dict[str, Any] = {"examples": [], "snapshots": [], "weights": None, "why": None}
"""Of a model: other texts and moments of its training are none of the file's."""


def alone(one: Pass, model: Mapping[str, Any], asked: Fitted, place: Mapping[str, Any]) -> str:
    """The page of one pass.

    Args:
        one: the pass.
        model: what a page has to know of the model, as in the answer to ``state``; of it goes along what belongs to
            this pass alone, no path and no other text.
        asked: what the pass is of.
        place: where the page begins: ``kind``, ``layer``, ``head``, the row ``query`` that stays lit, and whether a
            row is a ``whole`` word; what is not there is as the page finds it best.
    """
    values, arrays = seen(one)
    kept = {**model, "folder": model["name"], **UNTOLD}
    told = {
        **values,
        "version": regard.__version__,
        "model": kept,
        "asked": altered.values(asked.asked),
        **asked.values,
        "place": dict(place),
    }
    before, behind = _page().split(PLACE)
    return before + b64encode(packed(told, arrays | every_weight(one.record))).decode("ascii") + behind


@cache
def _page() -> str:
    """The page without numbers, as it was built."""
    return (files("regard.explore") / "page" / "alone.html").read_text(encoding="utf-8")
