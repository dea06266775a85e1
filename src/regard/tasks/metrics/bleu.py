"""Scores of texts that a model writes: BLEU and chrF by sacreBLEU, exact match, ROUGE-L [Papineni02, Popovic15, Lin04].

We compute no BLEU of our own: a score without sacreBLEU's signature cannot be compared with others [Post18].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def measures(self) -> tuple[tuple[str, float, Interval | None, str], ...]:
        """Each measure by its name: value, interval, signature."""
        return (
            ("BLEU", self.bleu, self.bleu_interval, self.bleu_signature),
            ("chrF", self.chrf, self.chrf_interval, self.chrf_signature),
        )

    def lines(self) -> list[str]:
        """The scores as people read them."""
        lines = []
        for name, value, interval, signature in self.measures:
            span = f"  (95 %: {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
            lines.append(f"{name} {value:5.2f}{span}  {signature}")
        return lines


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
    if len(hypotheses) != len(references):
        ours = counted(len(hypotheses), "hypothesis", "hypotheses")
        raise RegardError(f"{ours} but {counted(len(references), 'reference')}; give one for each line")
    if not hypotheses:
        raise RegardError("nothing to score: there are no sentences")
    bleu, chrf = metrics_of(language, lowercase).values()

    def measure(metric: Any) -> tuple[float, str, Interval | None]:
        """A score, its signature and interval, which sacreBLEU gives as mean ± half its width."""
        result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=max(samples, 1))
        interval = (float(result._mean - result._ci), float(result._mean + result._ci)) if samples > 1 else None
        return result.score, str(metric.get_signature()), interval

    return TranslationScores(*measure(bleu), *measure(chrf), len(hypotheses))


def metrics_of(language: str, lowercase: bool = False) -> dict[str, Any]:
    """BLEU and chrF2 of sacreBLEU for outputs in a language."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    # force: no warning on stderr for a corpus that looks tokenised
    bleu = _plain(BLEU)(tokenize=bleu_tokeniser(language), lowercase=lowercase, force=True)
    return {"BLEU": bleu, "chrF": _plain(CHRF)(lowercase=lowercase)}


def _plain(metric: type[Any]) -> type[Any]:
    """The metric with plain floats: sacreBLEU mixes them with float32 where a sample scores zero, and fails."""

    class Plain(metric):  # type: ignore[misc]
        def _compute_score_from_stats(self, stats: Any) -> Any:
            result = super()._compute_score_from_stats(stats)
            result.score = float(result.score)
            return result

    return Plain


@dataclass(frozen=True)
class AnswerScores:
    """Scores of texts against one reference each, 0 to 100.

    Args:
        exact: share of texts that are the reference, but for white space around it.
        bleu: of sacreBLEU, with its signature and 95 % interval; a corpus score, so not the mean over prefixes.
        rouge: ROUGE-L, the mean F-measure of the longest common subsequence of words [Lin04].
        texts: how many.
        prefixes: the same for each prefix, where there are several.
    """

    exact: float
    bleu: float
    bleu_signature: str
    bleu_interval: Interval | None
    rouge: float
    texts: int
    prefixes: Mapping[str, AnswerScores] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The scores as people read them, a line for all texts and one for each prefix."""
        said = [_line("", self), *(_line(f"{prefix or '(no prefix)'}: ", one) for prefix, one in self.prefixes.items())]
        return [*said, f"BLEU is {self.bleu_signature}; ROUGE-L is the mean F-measure of words in lower case"]


def _line(name: str, scores: AnswerScores) -> str:
    parts = f"exact match {scores.exact:.2f} %, BLEU {scores.bleu:.2f}, ROUGE-L {scores.rouge:.2f}"
    return f"{name}{parts}  ({counted(scores.texts, 'text')})"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share of texts, in percent, that are their reference, but for white space around it."""
    same = sum(one.strip() == other.strip() for one, other in zip(hypotheses, references, strict=True))
    return 100 * same / max(1, len(references))


def rouge_l(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The mean ROUGE-L F-measure, in percent; words are those of :class:`Words` [Lin04 §3.2]."""
    from rapidrouge import RougeScorer

    scorer = RougeScorer(["rougeL"], tokenizer=Words())
    found = (scorer.score(other, one)["rougeL"].fmeasure for one, other in zip(hypotheses, references, strict=True))
    return 100 * sum(map(float, found)) / max(1, len(references))


class Words:
    """The words of a text for ROUGE: letters and digits of any script, in lower case.

    Of ASCII text these are the words of the ``rouge-score`` package without stemming.
    """

    def tokenize(self, text: str) -> list[str]:
        """The words in order."""
        return re.findall(r"[^\W_]+", text.lower())


def score_answers(
    hypotheses: Sequence[str], references: Sequence[str], prefixes: Sequence[str], samples: int = SAMPLES
) -> AnswerScores:
    """The scores of all texts, and of those of each prefix where there are several.

    Args:
        hypotheses: what was written, in order.
        references: what should be, as many.
        prefixes: of each text.
        samples: bootstrap samples for the interval of BLEU of all texts; 1 or less gives none.

    Raises:
        RegardError: nothing to score.
    """
    if not references:
        raise RegardError("nothing to score: there are no texts")
    groups: dict[str, list[int]] = {}
    for place, prefix in enumerate(prefixes):
        groups.setdefault(prefix, []).append(place)

    def of(places: Sequence[int], samples: int) -> AnswerScores:
        said, wanted = ([texts[place] for place in places] for texts in (hypotheses, references))
        found = score(said, wanted, samples=samples)
        return AnswerScores(
            exact_match(said, wanted),
            found.bleu,
            found.bleu_signature,
            found.bleu_interval,
            rouge_l(said, wanted),
            len(wanted),
        )

    each = {prefix: of(places, 1) for prefix, places in groups.items()} if len(groups) > 1 else {}
    return replace(of(range(len(references)), samples), prefixes=each)
