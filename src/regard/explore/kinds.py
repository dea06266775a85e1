"""The uses of attention, and what they are called: three of [Vaswani17 §3.2.3], and one of [Yang16 §2.2]."""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["encoder", "decoder", "cross", "pool"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
    "pool": "Attention pooling",
}
NAMES: dict[Kind, str] = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder", "pool": "pooling"}
"""In a head's name."""


def as_kind(word: str) -> Kind:
    """One of :data:`KINDS`, which it must be."""
    kind: Kind = word  # type: ignore[assignment]  # one of KINDS, as Kind says them
    return kind


def within(kind: Kind) -> bool:
    """Whether the tokens of a text look at each other."""
    return kind in ("encoder", "decoder")
