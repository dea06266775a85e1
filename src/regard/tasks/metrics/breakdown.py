"""Where a score comes from: long and short texts, common and rare words, and outputs that translate nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.tasks.metrics.bleu import TranslationScores, score
from regard.text.confidence import SeenWords
from regard.text.languages import WITHOUT_SPACES, primary
from regard.text.terminal import Table

LENGTHS = (8, 12, 16, 20)
"""The longest source, in words, of each part of a test set but the last."""
COUNTS = (1, 10, 100, 1000)
"""How often training read the rarest word of a source, at least, of each part but the first."""


@dataclass(frozen=True)
class Group:
    """The scores of some sentences.

    Args:
        name: of the sentences: words of the source, or how often training read the rarest of them.
        sentences: how many.
        scores: of them; none where there are no sentences.
    """

    name: str
    sentences: int
    scores: TranslationScores | None = None


@dataclass(frozen=True)
class Breakdown:
    """The scores of a test set by kinds of its sentences.

    Args:
        by_length: by words of the source (characters where words are not separated).
        by_rarest_word: by how often training read the rarest word of the source; empty where that is not known.
        empty, copied, looped: shares of the outputs, in percent, that are empty, repeat the source, repeat themselves.
    """

    by_length: tuple[Group, ...]
    by_rarest_word: tuple[Group, ...]
    empty: float
    copied: float
    looped: float

    @property
    def shares(self) -> str:
        """The outputs that are no translations, in a line."""
        return f"outputs: empty {self.empty:.1f} %, copied {self.copied:.1f} %, looped {self.looped:.1f} %"

    def tables(self, head: str = "") -> Iterator[Table]:
        """The parts as people read them; ``head`` begins their titles."""
        named = {"words of the source": self.by_length, "its rarest word, times in training": self.by_rarest_word}
        for title, groups in named.items():
            rows = []
            for one in groups:
                spans = [(value, *span) for _, value, span, _ in one.scores.measures if span] if one.scores else []
                cells = [f"{value:.1f} ({low:.1f} to {high:.1f})" for value, low, high in spans] or ["–", "–"]
                rows.append((one.name, f"{one.sentences:,}", *cells))
            if groups:
                yield Table((head + title, "sentences", "BLEU (95 %)", "chrF (95 %)"), tuple(rows))


@dataclass(frozen=True)
class DetailedScores(TranslationScores):
    """The scores of a test set, and where they come from."""

    breakdown: Breakdown

    def lines(self) -> list[str]:
        """The scores as people read them."""
        return [
            *super().lines(),
            self.breakdown.shares,
            *(f"\n{one.terminal()}"[:-1] for one in self.breakdown.tables()),
        ]


def length(text: str, language: str = "und") -> int:
    """Words between spaces; of a language written without them, characters."""
    return len("".join(text.split())) if primary(language) in WITHOUT_SPACES else len(text.split())


def by_length(lengths: Sequence[int]) -> Iterator[tuple[int, int | None, list[int]]]:
    """The shortest and the longest length of each part of :data:`LENGTHS`, and the places of its sentences."""
    for first, last in pairwise((1, *(end + 1 for end in LENGTHS), None)):
        assert first is not None
        inside = [place for place, words in enumerate(lengths) if first <= words and (last is None or words < last)]
        yield first, None if last is None else last - 1, inside


def break_down(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    languages: tuple[str, str],
    seen: SeenWords | None,
    faults: Callable[[str, str], Collection[str]],
    lowercase: bool = False,
) -> DetailedScores:
    """The scores of a test set, and of its sentences by kinds.

    Args:
        sources, outputs, references: line by line.
        languages: codes of source and target.
        seen: the words that training read.
        faults: of a source and its output: ``copy`` and ``repetition``, where it is one.
        lowercase: compare without regard to case.

    Raises:
        RegardError: nothing to score, or not one reference per output.
    """
    whole = score(outputs, references, languages[1], lowercase)

    def group(name: str, places: Sequence[int]) -> Group:
        chosen = [outputs[place] for place in places], [references[place] for place in places]
        return Group(name, len(places), score(*chosen, languages[1], lowercase) if places else None)

    lengths = [length(source, languages[0]) for source in sources]
    long = [
        group(f"{first} or more" if last is None else f"{first} to {last}", places)
        for first, last, places in by_length(lengths)
    ]
    rare = []
    if seen is not None:
        counts = [seen.rarest(source) for source in sources]
        for least, more in pairwise((0, *COUNTS, None)):
            assert least is not None
            name = "never" if not least else f"{least:,} or more" if more is None else f"{least:,} to {more - 1:,}"
            rare.append(
                group(name, [i for i, count in enumerate(counts) if count >= least and (more is None or count < more)])
            )
    found = [faults(source, output) for source, output in zip(sources, outputs, strict=True)]
    percent = 100 / max(1, len(outputs))
    parts = Breakdown(
        tuple(long),
        tuple(rare),
        percent * sum(not output.strip() for output in outputs),
        percent * sum("copy" in one for one in found),
        percent * sum("repetition" in one for one in found),
    )
    return DetailedScores(**vars(whole), breakdown=parts)
