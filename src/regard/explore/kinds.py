"""The uses of attention and their names: three of [Vaswani17 §3.2.3], and one of [Yang16 §2.2]."""

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
"""Short names, in the name of a head."""


def is_self_attention(kind: Kind) -> bool:
    """Whether queries and keys are tokens of the same text."""
    return kind in ("encoder", "decoder")
