"""Tables of a translator for a vocabulary with further pieces, merged of those that its model knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.models import store
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

SIDES = {
    "encoder.input.tokens.weight": "source",
    "decoder.input.tokens.weight": "target",
    "output.weight": "target",
    "output_bias": "target",
}
"""Names of tables, and of which side their rows are pieces."""


def extend_tables(path: Path, model: nn.Module, known: Vocabularies, extended: Vocabularies) -> set[str]:
    """Fill the tables of a model that has further pieces; the names of those that have the size.

    Args:
        path: the weights of the model that it goes on from.
        model: to be filled.
        known: the vocabularies of that one.
        extended: these with further pieces.

    Raises:
        RegardError: the file is broken.
    """
    wanted, filled = store.named_tensors(model), set[str]()
    with torch.no_grad():
        for name, table in store.some(path, SIDES.keys() & wanted.keys()).items():
            rows = _extend(table, SIDES[name], known, extended)
            if rows.shape == wanted[name].shape:
                wanted[name].copy_(rows)
                filled.add(name)
    return filled


def _extend(table: Tensor, side: str, known: Vocabularies, extended: Vocabularies) -> Tensor:
    """The rows of known pieces, the mean of its known parts for each further one, and last the start symbol's row."""
    own, names = getattr(known, side), getattr(extended, side).names
    sides = (known.source, known.target) if known.source.names == known.target.names else (own,)
    rows = [table[_parts(sides, name)].mean(0, keepdim=True) for name in names[own.size :]]
    return torch.cat([table[: own.size], *rows, table[own.size :]])


def _parts(sides: Sequence[AnyTokenizer], name: str) -> list[int]:
    """The known pieces of a further one, by the side that needs the fewest, or knows all of it."""
    parts = [one.pieces_of(name) for one in sides if not isinstance(one, HuggingFaceTokenizer)]
    return min(parts, key=lambda ids: (any(map(sides[0].is_byte, ids)), len(ids)))
