"""A stack of layers, recorded once and run for every batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.engine.layers import SubLayer
from regard.engine.parts import Floats, Recording
from regard.engine.past import CHUNK
from regard.engine.positions import Positions
from regard.engine.texts import Texts

Ids = NDArray[np.int64]
Ints = NDArray[np.int32]


class Stack:
    """``layers(Embedding(ids) · scale + positions)`` [Vaswani17 §3.4, §3.5], recorded once and run for every batch.

    Args:
        table_VD: of the embeddings; ``scale`` multiplies them.
        layers: all sub-layers with their norms.
    """

    def __init__(self, table_VD: Floats, scale: float, positions: Positions, layers: SubLayer) -> None:
        self.size = table_VD.shape[1]
        self.positions = positions
        recording = Recording()
        stream = recording.room("stream", self.size)
        recording.program.embed(table_VD, scale, stream)
        self._result = layers.record(recording, stream)
        self._program = recording.program

    def __call__(self, ids_T: Ids, place_T: Ints, length_T: Ints, longest: int, **more: Any) -> Floats:
        """``hidden_TD``.

        Args:
            ids_T: of the tokens.
            place_T: of each in its text.
            length_T: keys that it attends to, of its own text.
            longest: the most of them.
            more: where these are.
        """
        hidden_TD = np.empty((len(ids_T), self.size), np.float32)
        tables: dict[str, Any] = {**self.positions.tables(longest)}
        self._program.run(self._result, hidden_TD, ids_T, place_T, length_T, **more, **tables)
        return hidden_TD

    def search(self, longest: int, **given: Any) -> tuple[int, int, int]:
        """Steps of a search at once; the rows there are then, the steps and slots that were used.

        Args:
            longest: the most tokens of a row after all steps.
            given: further arguments of ``_native.Program.search``.
        """
        tables: dict[str, Any] = {**self.positions.tables(longest)}
        return self._program.search(self._result, **given, **tables)

    def read(self, texts: Texts, *, causal: bool = False, added_TD: Floats | None = None) -> Floats:
        """``hidden_TD`` of whole texts, in which each token attends to all, or by ``causal`` to none after it.

        Args:
            texts: to read.
            causal: see above.
            added_TD: what is added to the embeddings.
        """
        first_T, place_T = texts.first_T, texts.place_T
        length_T = place_T + np.int32(1) if causal else np.repeat(texts.lengths_B, texts.lengths_B).astype(np.int32)
        hidden_TD = np.empty((len(texts.ids_T), self.size), np.float32)
        longest = int(texts.lengths_B.max(initial=0))
        for begin, end in _parts(texts.lengths_B):
            now = slice(begin, end)
            added = None if added_TD is None else added_TD[now]
            first = first_T[now] - np.int32(begin)
            hidden_TD[now] = self(texts.ids_T[now], place_T[now], length_T[now], longest, first=first, added=added)
        return hidden_TD


def _parts(lengths_B: Ids) -> Iterator[tuple[int, int]]:
    """Where texts begin and end that are read at once: :data:`CHUNK` tokens at most, or one longer text."""
    begin = end = 0
    for length in lengths_B.tolist():
        if end > begin and end + length > begin + CHUNK:
            yield begin, end
            begin = end
        end += length
    if end > begin:
        yield begin, end
