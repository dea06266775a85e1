"""Notes on how a pass differs from the plain model: ablations, snapshot and forced target."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from regard.explore.kinds import NAMES
from regard.explore.requests import Request

PARTS = {"positions": "positions", "scaling": "scaling", "mask": "the mask"}
"""Names of the other ablations."""


def describe_changes(asked: Request) -> str:
    """Sentences on ablations, snapshot and forced target.

    Args:
        asked: what the pass is of.

    Returns:
        Nothing where the model is as it is, and writes what it would.
    """
    without = asked.without
    parts = [f"{NAMES[kind]} head {layer}·{head}" for kind, layer, head in without.off]
    parts += [name for part, name in PARTS.items() if not getattr(without, part)]
    told = [f"Without {', '.join(parts)}."] if parts else []
    if asked.snapshot is not None:
        told.append(f"With the weights of {asked.snapshot}.")
    if asked.target is not None:
        told.append(f"Made to write “{asked.target}”")
    return " ".join(told)


def values(asked: Request) -> dict[str, Any]:
    """The same as values: ``snapshot``, forced ``target``, and ``changes`` as requested."""
    without = {**asdict(asked.without), "off": [list(head) for head in asked.without.off]}
    return {"snapshot": asked.snapshot, "target": asked.target, "changes": without}
