"""What of a pass is otherwise than the model is by itself: told beside a picture or numbers that are kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from regard.explore.asked import Asked
from regard.explore.kinds import NAMES

PARTS = {"positions": "positions", "scaling": "scaling", "mask": "the mask"}
"""What else may be taken away."""


def altered(asked: Asked) -> str:
    """In a sentence each: what the model does without, which weights it has, and what it is made to write.

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


def values(asked: Asked) -> dict[str, Any]:
    """The same as values: ``snapshot``, ``target`` where it is forced, and ``changes`` as they are asked for."""
    without = {**asdict(asked.without), "off": [list(head) for head in asked.without.off]}
    return {"snapshot": asked.snapshot, "target": asked.target, "changes": without}
