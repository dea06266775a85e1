"""BLEU and chrF by sacreBLEU, with signatures and bootstrap confidence intervals [Papineni02, Popovic15, Post18].

We compute no metric of our own: a score without sacreBLEU's signature cannot be compared with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.system.errors import RegardError
from regard.text.counts import counted
from regard.text.languages import bleu_tokeniser

Interval = tuple[float, float]
SAMPLES = 1000
"""Bootstrap samples of an interval [Koehn04]; sacreBLEU's own number, its seed is in the signature."""


@dataclass(frozen=True)
class TranslationScores:
    """Corpus scores, 0 to 100; intervals have 95 % confidence, and are absent if not requested."""

    bleu: float
    bleu_signature: str
    bleu_interval: Interval | None
    chrf: float
    chrf_signature: str
    chrf_interval: Interval | None
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "und",
    lowercase: bool = False,
    samples: int = SAMPLES,
) -> TranslationScores:
    """Corpus BLEU and chrF2 of hypotheses against one reference each.

    Args:
        hypotheses: translations, in order.
        references: what they should be, as many.
        language: of the target; it chooses sacreBLEU's tokeniser (characters or its own for Chinese and Japanese).
        lowercase: compare without regard to case; the signature says so.
        samples: bootstrap samples for the intervals; 1 or less gives none (and takes a hundredth of the time).

    Raises:
        RegardError: nothing to score, or not one reference per hypothesis.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if len(hypotheses) != len(references):
        ours = counted(len(hypotheses), "hypothesis", "hypotheses")
        raise RegardError(f"{ours} but {counted(len(references), 'reference')}; give one for each line")
    if not hypotheses:
        raise RegardError("nothing to score: there are no sentences")
    # force: no warning on stderr for a corpus that looks tokenised
    bleu = _plain(BLEU)(tokenize=bleu_tokeniser(language), lowercase=lowercase, force=True)
    chrf = _plain(CHRF)(lowercase=lowercase)

    def measure(metric: Any) -> tuple[float, str, Interval | None]:
        """A score, its signature and interval, which sacreBLEU gives as mean ± half its width."""
        result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=max(samples, 1))
        interval = (float(result._mean - result._ci), float(result._mean + result._ci)) if samples > 1 else None
        return result.score, str(metric.get_signature()), interval

    return TranslationScores(*measure(bleu), *measure(chrf), len(hypotheses))


def _plain(metric: type[Any]) -> type[Any]:
    """The metric with plain floats: sacreBLEU mixes them with float32 where a sample scores zero, and fails."""

    class Plain(metric):  # type: ignore[misc]
        def _compute_score_from_stats(self, stats: Any) -> Any:
            result = super()._compute_score_from_stats(stats)
            result.score = float(result.score)
            return result

    return Plain
