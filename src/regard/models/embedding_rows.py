"""Tables of a translator for a vocabulary with further pieces, merged of those that its model knows."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from regard.models import store
from regard.text.tokenizers.tokenizer import Tokenizer
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
            rows = _extend(table, *(getattr(one, SIDES[name]) for one in (known, extended)))
            if rows.shape == wanted[name].shape:
                wanted[name].copy_(rows)
                filled.add(name)
    return filled


def _extend(table: Tensor, known: AnyTokenizer, extended: AnyTokenizer) -> Tensor:
    """The rows of known pieces, the mean of its known parts for each further one, and last the start symbol's row."""
    assert isinstance(known, Tokenizer)
    assert isinstance(extended, Tokenizer)
    parts = [table[known.pieces_of(name)].mean(0, keepdim=True) for name in extended.names[known.size :]]
    return torch.cat([table[: known.size], *parts, table[known.size :]])
