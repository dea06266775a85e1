"""Attribution: how much each token contributes to an output, or to one output instead of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from regard.inspection.forward.record import Token, words
from regard.inspection.questions.attribution import FEWEST, Method, attribute, integrate
from regard.inspection.requests import AblationRequest, check_finite
from regard.library.attention import TokenLabels
from regard.library.outputs import OutputScore
from regard.system.errors import UsageError

LEAST, MOST = FEWEST, 100_000
FOR, AGAINST = "31,79,214", "176,68,24"
"""Colours, as red, green and blue."""


@dataclass(frozen=True, eq=False)
class TokenShares:
    """The shares of the tokens of one text.

    Args:
        labels: the tokens.
        shares: of each; negative where the token speaks against the output.
    """

    labels: TokenLabels
    shares: NDArray[np.float64]

    def by_word(self) -> tuple[tuple[str, float], ...]:
        """Each word with the sum over its tokens."""
        return tuple((word, float(self.shares[list(places)].sum())) for word, places in self.labels.words)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """What an output rests on.

    Args:
        method: ``gradient_x_input`` or ``integrated_gradients``.
        output: what is explained: a text, a word, a piece, a label.
        against: what it is compared with; ``None``: nothing.
        score: the log-probability of the output, or the number of a regression; with ``against`` the difference of
            the two log-probabilities.
        baseline: of integrated gradients, the score where all embeddings are zero.
        source: the tokens read; ``target``: those written before, of a model that reads and writes.
    """

    method: Method
    output: str
    against: str | None
    score: float
    baseline: float | None
    source: TokenShares
    target: TokenShares | None

    @property
    def delta(self) -> float | None:
        """The error of integrated gradients: what all shares lack of ``score - baseline``."""
        if self.baseline is None:
            return None
        total = sum(float(side.shares.sum()) for side in (self.source, self.target) if side is not None)
        return self.score - self.baseline - total

    def __repr__(self) -> str:
        what = repr(self.output) if self.against is None else f"{self.output!r} instead of {self.against!r}"
        best = sorted(self.source.by_word(), key=lambda one: -abs(one[1]))[:3]
        most = ", ".join(f"{word} {share:+.3f}" for word, share in best)
        return f"<Attribution of {what} by {self.method}: score {self.score:.4f}; most: {most}>"

    def _repr_html_(self) -> str:
        """The tokens, coloured by their shares: blue for the output, brown against it."""
        sides = [side for side in (self.source, self.target) if side is not None]
        largest = max(float(np.abs(side.shares).max(initial=0)) for side in sides) or 1.0
        what = escape(self.output) if self.against is None else f"{escape(self.output)} − {escape(self.against)}"
        rows = "".join(f"<p style='line-height:2'>{_coloured(side, largest)}</p>" for side in sides)
        return f"<div><b>{what}</b>: {self.score:.4f} ({self.method.replace('_', ' ')}){rows}</div>"


def attribution(explained: OutputScore, changes: AblationRequest, method: Method, passes: int) -> Attribution:
    """The attribution of an output.

    Args:
        explained: the output.
        changes: the model's ablations.
        method: how.
        passes: of integrated gradients, at most.

    Raises:
        UsageError: there is no such method, or the passes are too few or too many.
        RegardError: the model computes NaN or infinite values.
    """
    if method not in get_args(Method):
        raise UsageError(f"{method!r} is no method; there are {' and '.join(get_args(Method))}", "method")
    if isinstance(passes, bool) or not isinstance(passes, int) or not LEAST <= passes <= MOST:
        raise UsageError(f"{passes!r} is no number from {LEAST} to {MOST:,}", "passes")
    seen, baseline = explained.seen, None
    if method == "integrated_gradients":
        score, baseline, shares = integrate(seen, changes, explained.score, passes)
    else:
        score, shares = attribute(seen, changes, explained.score)
    check_finite(np.array([score, baseline or 0.0]), *shares.values())
    image = seen.task.info.reads == "image"
    source = _labelled(seen.source, seen.source_text, shares["source"], image)
    target = _labelled(seen.target, seen.target_text, shares["target"], image) if "target" in shares else None
    return Attribution(method, explained.output, explained.against, score, baseline, source, target)


def _labelled(tokens: Sequence[Token], text: str, shares: NDArray[np.floating], image: bool) -> TokenShares:
    found = [(token.text, [place]) for place, token in enumerate(tokens)] if image else words(tokens, text)
    return TokenShares(TokenLabels.of(tokens, found, text), np.asarray(shares, np.float64))


def _coloured(side: TokenShares, largest: float) -> str:
    found = []
    for token, share in zip(side.labels.tokens, side.shares.tolist(), strict=True):
        colour = f"rgba({FOR if share > 0 else AGAINST},{0.6 * abs(share) / largest:.2f})"
        style = f"padding:2px 3px;border-radius:3px;background:{colour}"
        found.append(f"<span title='{share:+.4f}' style='{style}'>{escape(token)}</span>")
    return " ".join(found)
