"""The compiled kernels; ``native/python`` checks every shape, stride and index, and raises ``ValueError``.

Arrays are float32 or int32 where not said otherwise, and never copied. A row's entries are neighbours in memory; rows
may lie apart. Results are written to arrays that are given.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Panels = NDArray[Any]
"""A packed matrix: float32 panels are fp32, uint16 ones bf16, int8 ones int8."""

Kept = NDArray[np.float32] | NDArray[np.uint16]
"""Rows of keys or values, uint16 ones of bf16."""

PANEL: int
KEPT: int
"""Attention weights of a query are kept in rows of a multiple of so many."""

def sets() -> list[str]:
    """The instruction sets of this processor that kernels were compiled for, fastest first."""

def in_use() -> str:
    """The instruction set in use."""

def use(name: str) -> bool:
    """Use an instruction set; False where there is none of this name."""

def threads() -> int:
    """How many threads compute one call."""

def set_threads(count: int) -> None:
    """Compute each call by so many threads, 1 to 8; results are the same for any number."""

def pack(weight: Floats, bias: Floats | None, packed: Panels, column: int) -> None:
    """Columns of a packed matrix, from ``column`` on, from the rows of ``weight`` and ``bias``."""

def product(x: Floats, packed: Panels, out: Floats, activation: int) -> None:
    """``out_TN = activation(x_TK W_KN + b_N)``; ``packed``: by :func:`regard.system.kernels.packing.pack`."""

def gate(x: Floats, out: Floats, activation: int) -> None:
    """``out_TF = activation(x_TF) * gate_TF``, both side by side in ``x``."""

def norm(
    x: Floats,
    y: Floats | None,
    sum: Floats | None,
    out: Floats,
    gain: Floats,
    bias: Floats | None,
    kind: int,
    groups: int,
    epsilon: float,
) -> None:
    """A residual connection and its norm, of ``x`` and ``y``; the sum may go to ``x``. No ``y``: nothing is added."""

def attention(
    query: Floats,
    key: Kept,
    value: Kept,
    context: Floats,
    heads: int,
    scale: float,
    length: Ints,
    first: Ints,
    places: Ints | None,
    bias: Floats | None,
    place: Ints | None,
) -> None:
    """``context_THU = softmax(scale query_THK key_SHK^T + bias) value_SHU``, each query over keys of its own.

    Args:
        length: keys of each query, ``length_T``; zero gives a zero context.
        first: where they begin, ``first_T``, if they are neighbours (not read otherwise) ...
        places: ... or where each of them is, ``places_TS``: the ancestor table.
        bias: each head's addend by distance, ``bias_HX``; the middle of a row is distance zero, keys ahead come after.
        place: of each query among its keys, ``place_T``, if there is a bias.
    """

def training_attention(
    query: Floats,
    key: Floats,
    value: Floats,
    context: Floats,
    heads: int,
    scale: float,
    causal: bool,
    query_start: NDArray[np.int64],
    query_length: NDArray[np.int64],
    key_start: NDArray[np.int64],
    key_length: NDArray[np.int64],
    bias: Floats | None,
    weights: Floats,
) -> None:
    """``context_THU += softmax(scale query_THK key_SHK^T + bias) value_SHU`` of sequences that are neighbours.

    Args:
        causal: the last query of a sequence sees all keys, the one before it all but the last.
        query_start, query_length, key_start, key_length: of each sequence, int64.
        bias: ``bias_HLL``, added to the scores of every sequence.
        weights: becomes the attention weights: of each sequence, head and query a row of as many as there are keys,
            rounded up to :data:`KEPT`.
    """

def attention_gradient(
    query: Floats,
    key: Floats,
    value: Floats,
    gradient: Floats,
    query_gradient: Floats,
    key_gradient: Floats,
    value_gradient: Floats,
    heads: int,
    scale: float,
    causal: bool,
    query_start: NDArray[np.int64],
    query_length: NDArray[np.int64],
    key_start: NDArray[np.int64],
    key_length: NDArray[np.int64],
    bias: Floats | None,
    weights: Floats,
    bias_gradient: Floats | None,
) -> None:
    """The gradients of :func:`training_attention` from that of its context, added to what their arrays hold."""

def vocabulary(
    hidden: Floats,
    packed: Panels,
    columns: int,
    without: NDArray[np.uint8] | None,
    ids: Ints,
    score: Floats,
    log_sum: NDArray[np.float64],
) -> None:
    """The k best ids and scores of each row, ``ids_Nk`` and ``score_Nk``, and ``log_sum_N``, log sum exp of all.

    Ties go to the smaller id; tokens marked in ``without`` are never among the best; -1 where there is none.
    """

def argmax(
    hidden: Floats,
    screen: Panels,
    exact: Panels,
    columns: int,
    without: NDArray[np.uint8] | None,
    ids: Ints,
) -> None:
    """The id of the largest score of each row, ``id_N``; -1 where there is none, or a computed one is not finite.

    Ties go to the smaller id. ``screen`` is ``exact`` itself, or the same matrix in int8, without biases: then only few
    scores are computed exactly, and the ids are the same.
    """

def softmax(x: Floats | NDArray[np.uint16], log_sum: Floats) -> None:
    """Every row of ``x_RV`` replaced by its softmax, and ``log_sum_R``, log sum exp of it; uint16 holds bf16."""

def dropout(
    x: Floats | NDArray[np.uint16],
    drawn: NDArray[np.uint8],
    out: Floats | NDArray[np.uint16],
    threshold: int,
    scale: float,
    gate: Floats | NDArray[np.uint16] | None,
) -> None:
    """``out = scale x`` where ``drawn`` is the threshold or more and no ``gate`` is 0 or less; else 0. uint16: bf16."""

def add_dropout(
    x: Floats | NDArray[np.uint16],
    drawn: NDArray[np.uint8],
    stream: Floats,
    sum: Floats,
    threshold: int,
    scale: float,
) -> None:
    """``sum = stream + scale x`` where ``drawn`` is the threshold or more, else ``stream``."""

def halve(x: Floats, out: NDArray[np.uint16]) -> None:
    """``x_TK`` in bf16: the upper halves of its floats, rounded to the nearest."""

def rotation(x: Floats, heads: int, cos: Floats, sin: Floats, place: Ints) -> None:
    """Every head of ``x_THK`` turned in place by the angles of its row's place, of which each has K / 2."""

class Program:
    """A pass through a stack of layers: calls of kernels over rooms, recorded once and run for every batch.

    A room holds a row of numbers for each token. The calls are those above; -1 in place of a room is none.
    """

    def __init__(self) -> None: ...
    def room(self, width: int) -> int:
        """A new room, by its number."""

    def embed(self, table: Floats, scale: float, out: int) -> None:
        """``table[ids] * scale``, plus ``positions[place]`` and ``added`` (a row a token) where a run has them."""

    def product(self, x: int, packed: Panels, out: int, activation: int) -> None: ...
    def gate(self, x: int, out: int, activation: int) -> None: ...
    def norm(
        self,
        x: int,
        y: int,
        sum: int,
        out: int,
        gain: Floats,
        bias: Floats | None,
        kind: int,
        groups: int,
        epsilon: float,
    ) -> None: ...
    def rotate(self, x: int, heads: int, size: int) -> None:
        """The first heads of ``x`` turned in place by the angles of their row's place."""

    def attend(self, projected: int, out: int, heads: int, d_k: int, d_v: int, scale: float, biased: bool) -> None:
        """To the row's sentence, ``length`` rows from ``first`` on: query, key and value side by side."""

    def attend_past(
        self, projected: int, out: int, heads: int, d_k: int, d_v: int, scale: float, biased: bool, layer: int
    ) -> None:
        """To the row's own tokens, which ``ancestors`` names; key and value are written to ``slot`` first."""

    def recur(self, projected: int, out: int, layer: int) -> None:
        """The SSRU's next state from that of the row's token before, by ``ancestors``; it is written to ``slot``."""

    def attend_memory(self, query: int, out: int, heads: int, d_k: int, d_v: int, scale: float, layer: int) -> None:
        """To the row's sentence in ``memory``."""

    def run(
        self,
        result: int,
        out: Floats,
        ids: NDArray[np.int64],
        place: Ints,
        length: Ints,
        first: Ints | None = None,
        slot: Ints | None = None,
        ancestors: Ints | None = None,
        past: list[NDArray[Any]] | None = None,
        memory: list[NDArray[Any]] | None = None,
        memory_first: Ints | None = None,
        memory_length: Ints | None = None,
        positions: Floats | None = None,
        bias: Floats | None = None,
        cos: Floats | None = None,
        sin: Floats | None = None,
        added: Floats | None = None,
        weights: Floats | None = None,
    ) -> None:
        """All calls, and the room ``result`` written to ``out``; what no call needs may be missing.

        ``past`` and ``memory`` hold an array for each layer, of float32, or of uint16, which is bf16. What the rows
        attend to in the memory is written to ``weights``, if given: of each row the heads of all layers, 0 behind its
        sentence.
        """

    def search(
        self,
        result: int,
        hidden: Floats,
        screen: Panels,
        exact: Panels,
        pieces: int,
        without: NDArray[np.uint8] | None,
        end: int,
        width: int,
        steps: int,
        scored: bool,
        count: int,
        slots: Ints,
        token: NDArray[np.int64],
        sentence: NDArray[np.int64],
        origin: NDArray[np.int64],
        length: Ints,
        ancestors: Ints,
        memory_first: Ints,
        memory_length: Ints,
        log_probability: NDArray[np.float64],
        bar: NDArray[np.float64],
        penalty: NDArray[np.float64],
        tokens: NDArray[np.int64],
        log_probabilities: NDArray[np.float64],
        past: list[NDArray[Any]] | None = None,
        memory: list[NDArray[Any]] | None = None,
        positions: Floats | None = None,
        bias: Floats | None = None,
        cos: Floats | None = None,
        sin: Floats | None = None,
    ) -> tuple[int, int, int]:
        """Steps of a search in which no row ends, and one more run, whose result is in ``hidden``.

        Arrays of rows have room for as many as there may be, of which ``count`` are there; they are changed in place.
        ``origin`` says which of the first rows each one continues, ``tokens`` and ``log_probabilities`` by what;
        ``bar`` and ``penalty`` are as in :class:`regard.decoding.step.MultiStepRequest`. Runs write keys and values to
        ``slots``, which must suffice for all rows in all runs.

        Returns:
            The rows, the steps taken and the slots used.
        """
