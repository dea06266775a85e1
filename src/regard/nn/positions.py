"""Positional encodings. Each kind acts at one of three places, and leaves the others alone.

``embed`` adds to the embeddings: sinusoidal, learned, and the grid of an image. ``bias`` adds to the scores of
attention: relative, and linear biases. ``rotate`` turns queries and keys: rotary.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from regard.nn.attention.backends import Bias
from regard.nn.init import Vectors, draw, refuse_sizes
from regard.nn.layout import Sequences

STEEPEST, SPREAD, FAINTEST = 2.0, 4.0, -4.0
"""Of the scores that relative positions begin with: the first pair's slope, by what it falls to the next, the least."""


class Positions(nn.Module):
    """What every kind of positions offers: one of three methods that does something, and two that do nothing."""

    turns: ClassVar[bool] = False
    """Whether it turns queries and keys."""

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` with positions added; ``positions_T`` count from 0, all below ``longest``."""
        return x_TD

    def bias(self) -> Bias | None:
        """What attention adds to its scores, evaluated from positions."""
        return None

    def rotate(self, x_THK: Tensor, sequences: Sequences) -> Tensor:
        """Queries or keys of the tokens of ``sequences``, turned by their positions."""
        return x_THK


class EmbeddingPositions(Positions, ABC):
    """Kinds that add to the embeddings only."""

    @abstractmethod
    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` with positions added; ``positions_T`` count from 0, all below ``longest``."""


class ScorePositions(Positions, ABC):
    """Kinds that add to the scores of attention only: :meth:`forward` gives the addend."""

    @final
    def bias(self) -> Bias:
        """The part itself."""
        return self

    @abstractmethod
    def forward(self, query_positions_L: Tensor, key_positions_M: Tensor) -> Tensor:
        """The scores' addend ``bias_HLM`` of queries and keys at given positions."""


class NoPositions(Positions):
    """Nothing is added: without positions the encoder commutes with any permutation of its tokens."""


class Sinusoidal(EmbeddingPositions):
    """``PE(pos, 2i) = sin(pos / 10000^(2i / d_model))``, ``PE(pos, 2i+1) = cos(…)``, added [Vaswani17 §3.5].

    Sine and cosine are interleaved as in the paper. The table grows when a longer sequence comes.
    """

    table_SD: Tensor

    def __init__(self, d_model: int, length: int = 512) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table_SD", self.rows(length), persistent=False)

    def rows(self, length: int) -> Tensor:
        """The table of the first ``length`` positions."""
        return sinusoids(length, self.d_model)

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` plus each position's sinusoids; ``positions_T`` from 0, all below ``longest``."""
        if longest > len(self.table_SD):
            self.table_SD = self.rows(2 * longest).to(self.table_SD)
        return x_TD + self.table_SD[positions_T].to(x_TD.dtype)


def sinusoids(length: int, d_model: int) -> Tensor:
    """The table ``PE_SD`` of the first ``length`` positions, computed in float64 on the host [Vaswani17 §3.5].

    On the host also for an outline: a range without memory would load torch's compiler, a second for nothing.
    """
    position = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    dimension = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = position / 10000 ** (dimension / d_model)
    interleaved = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    return interleaved[:, :d_model].to(torch.get_default_device(), torch.get_default_dtype())


class TimingSignal(Sinusoidal):
    """Sinusoids as Tensor2Tensor's code has them [Vaswani18], and fairseq, M2M-100 and CTranslate2 after it.

    The sines stand before the cosines, and the slowest wave is exactly ``10000`` times as long as the fastest:
    ``PE(pos, i) = sin(pos / 10000^(i / (d_model/2 - 1)))``, ``PE(pos, d_model/2 + i) = cos(…)``.

    Args:
        first: the position of the first token; 2 in fairseq, after those of other symbols.
    """

    def __init__(self, d_model: int, first: int = 0, length: int = 512) -> None:
        self.first = first
        super().__init__(d_model, length)

    def rows(self, length: int) -> Tensor:
        """The table of the first ``length`` positions; in an odd size the last entry is zero."""
        half = self.d_model // 2
        position = torch.arange(self.first, self.first + length, dtype=torch.float64, device="cpu")[:, None]
        angle = position / 10000 ** (torch.arange(half, dtype=torch.float64, device="cpu") / max(1, half - 1))
        table_SD = torch.cat([angle.sin(), angle.cos(), angle.new_zeros(length, self.d_model % 2)], 1)
        return table_SD.to(torch.get_default_device(), torch.get_default_dtype())


class Learned(Vectors, EmbeddingPositions):
    """One learned vector a position, added: row E of the paper's Table 3 [Vaswani17 §3.5].

    Args:
        d_model: entries of a vector.
        length: of the longest sequence.
        first: the position of the first token; those before it are of none.
    """

    def __init__(self, d_model: int, length: int, first: int = 0) -> None:
        super().__init__()
        self.first = first
        self.weight = nn.Parameter(torch.empty(first + length, d_model))
        draw(self)

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` plus each position's vector.

        Raises:
            ValueError: a sequence is longer than the table.
        """
        if longest > (known := len(self.weight) - self.first):
            raise ValueError(f"a sequence of {longest} tokens is longer than the {known} learned positions")
        return x_TD + self.weight[positions_T + self.first if self.first else positions_T]


class Grid(Vectors, EmbeddingPositions):
    """The place of a patch in an image: half of a vector for its row, half for its column [Dosovitskiy21 §D.4].

    Position 0 is the class token's, which has no place and a separate vector.
    """

    def __init__(self, d_model: int, rows: int, columns: int) -> None:
        super().__init__()
        half = d_model // 2
        self.columns = columns
        self.row = nn.Parameter(torch.empty(rows, half))
        self.column = nn.Parameter(torch.empty(columns, d_model - half))
        self.first = nn.Parameter(torch.empty(d_model))
        draw(self)

    def embed(self, x_TD: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD`` plus each patch's row and column; patches are numbered from 1, row by row."""
        place_T = (positions_T - 1).clamp(min=0)
        grid_TD = torch.cat([self.row[place_T // self.columns], self.column[place_T % self.columns]], dim=1)
        return x_TD + torch.where(positions_T[:, None] > 0, grid_TD, self.first)


class LinearBias(ScorePositions):
    """``-m_h · |distance|`` added to the scores of head *h*: nothing is learned (ALiBi) [Press22 §3].

    In a causal stack it is the paper's; where tokens also see what comes after them it is symmetric.
    """

    slope_H: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        refuse_sizes(self, heads=heads)
        self.register_buffer("slope_H", torch.tensor(slopes(heads)), persistent=False)

    def forward(self, query_positions_L: Tensor, key_positions_M: Tensor) -> Tensor:
        """The scores' addend ``bias_HLM``."""
        return -self.slope_H[:, None, None] * (key_positions_M - query_positions_L[:, None]).abs()


def slopes(heads: int) -> list[float]:
    """``m_h = 2^(-8h / heads)``; beyond a power of two, every second slope of twice as many heads [Press22 §3]."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    return first + [2 ** (-4 * (head + 1) / power) for head in range(0, 2 * (heads - power), 2)]


class Rotary(Positions):
    """Queries and keys are turned by their positions; a score then depends on their distance only [Su24 §3.4.2].

    Entries *i* and *i* + K/2 of each head are turned together, by the angle ``position · base^(-2i / K)``: the order of
    entries that Hugging Face's models have.

    Args:
        size: K, even.
        base: the larger, the slower the last entries turn.
        scaling: positions are divided by it, so that longer texts turn as far as those of training [Chen23].
    """

    turns = True

    def __init__(self, size: int, base: float, scaling: float = 1.0) -> None:
        super().__init__()
        if size % 2:
            raise ValueError(f"rotary positions turn pairs of entries; {size} is odd")
        self.size = size
        self.base = base
        self.scaling = scaling

    def rotate(self, x_THK: Tensor, sequences: Sequences) -> Tensor:
        """``x · cos + (-x_second, x_first) · sin``, with the angles of each token's position."""
        key = ("rotary", self.size, self.base, self.scaling, x_THK.dtype)
        cos_TK, sin_TK = sequences.once(key, lambda: self._turns(sequences.positions_T, x_THK.dtype))
        first, second = x_THK.chunk(2, dim=-1)
        return x_THK * cos_TK[:, None] + torch.cat([-second, first], dim=-1) * sin_TK[:, None]

    def _turns(self, positions_T: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each token's angles, computed in float64."""
        entry = torch.arange(0, self.size, 2, dtype=torch.float64, device=positions_T.device)
        angle_TK = (positions_T[:, None] / self.scaling * self.base ** (-entry / self.size)).repeat(1, 2)
        return angle_TK.cos().to(dtype), angle_TK.sin().to(dtype)


class Relative(ScorePositions):
    """A learned number for each head and distance, added to the scores [Raffel20 §2.1].

    Distances fall into buckets: small ones each have their own, larger ones share one in logarithmic steps, and from
    ``distance`` on all are alike. One table serves all layers of a stack.

    Args:
        two_way: keys after and before the query have separate buckets, half of them each; else only keys before
            the query.
    """

    def __init__(self, heads: int, buckets: int, distance: int, two_way: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.distance = distance
        self.two_way = two_way
        draw(self)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Nothing is drawn: they begin by looking near."""
        with torch.no_grad():
            self.weight.copy_(self.nearby())

    def nearby(self) -> Tensor:
        """Initial biases that make heads attend to nearby tokens, each pair less sharply than the one before.

        They fall by a slope a token, as in [Press22 §3], but not below :data:`FAINTEST`: nothing is out of reach. The
        first head of a pair begins to fall at the token before the query, the second at the one behind it (or, looking
        back only, at the query itself). Numbers near zero would have to grow first, by about the rate in a step.
        """
        count, heads = self.weight.shape
        ahead_LM = torch.arange(-self.distance, self.distance + 1 if self.two_way else 1, device="cpu")[None, :]
        buckets_and_distances = zip(self._bucket(ahead_LM)[0].tolist(), ahead_LM[0].tolist(), strict=True)
        nearest = dict(sorted(buckets_and_distances, key=lambda pair: -abs(pair[1])))
        nearest_C = torch.tensor([nearest.get(bucket, 0) for bucket in range(count)], device="cpu")
        pair_H = torch.arange(heads, device="cpu") // 2
        middle_H = torch.where(torch.arange(heads, device="cpu") % 2 == 0, -1, 1 if self.two_way else 0)
        return (-STEEPEST / SPREAD**pair_H * (nearest_C[:, None] - middle_H).abs()).clamp(min=FAINTEST)

    def forward(self, query_positions_L: Tensor, key_positions_M: Tensor) -> Tensor:
        """The scores' addend ``bias_HLM``: each head's number for the bucket of each distance."""
        ahead_LM = key_positions_M - query_positions_L[:, None]
        return self.weight[self._bucket(ahead_LM)].movedim(2, 0)

    def _bucket(self, ahead_LM: Tensor) -> Tensor:
        """Which bucket each distance falls into, as the paper's published code draws the borders."""
        count, first_LM = len(self.weight), torch.zeros_like(ahead_LM)
        if self.two_way:
            count //= 2
            first_LM, far_LM = count * (ahead_LM > 0), ahead_LM.abs()
        else:
            far_LM = (-ahead_LM).clamp(min=0)
        exact = count // 2
        steps_LM = (far_LM.clamp(min=1).float() / exact).log() / math.log(self.distance / exact) * (count - exact)
        rough_LM = (exact + steps_LM.long()).clamp(max=count - 1)
        return first_LM + torch.where(far_LM < exact, far_LM, rough_LM)
