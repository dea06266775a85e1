"""The uses of attention [Vaswani17 §3.2.3], and what they are called."""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
}
NAMES: dict[Kind, str] = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}
"""In a head's name."""


def as_kind(word: str) -> Kind:
    """One of :data:`KINDS`, which it must be."""
    kind: Kind = word  # type: ignore[assignment]  # one of KINDS, as Kind says them
    return kind
