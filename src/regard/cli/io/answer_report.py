"""What is told of texts beside their answers: words that training never saw, unsure answers, and empty ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

from regard.cli.io.terminal import say
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.tasks.text.writer import Hypothesis
    from regard.text.confidence import UnseenWord
    from regard.text.language_ngrams import LanguagePrediction

    Unseen = Sequence[Sequence[UnseenWord]] | None

FEW = 5
"""Words of a text, and texts of many, that are named at most."""
TUNE = "regard tune finds a length penalty by which short outputs are not preferred"
LONGEST = 40
"""Characters of a word that are shown at most."""


@dataclass
class _Tally:
    """How many texts there are of a kind, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Count one."""
        self.count += 1
        if self.count <= FEW:
            self.first.append(name)

    def names(self, between: str) -> str:
        """The first of them."""
        return between.join([*self.first, "…"] if self.count > FEW else self.first)

    def lines(self) -> str:
        """The first of them, which are numbers of lines."""
        return f"{'line' if self.count == 1 else 'lines'} {self.names(', ')}"


class AnswerReport:
    """Notes on texts that are answered in groups, by this process or by copies of it.

    Args:
        below: the confidence below which answers are doubted; ``None``: not known.
        each: whether every text is told of, once its group is answered; else all are at the end.
        tell: receives each sentence.
    """

    def __init__(self, below: float | None, each: bool, tell: Callable[[str], None] = say) -> None:
        self.below, self._each, self._tell = below, each, tell
        self._group: list[tuple[int, list[str], float | None, bool, tuple[str, float] | None]] = []
        self._damaged: list[tuple[int, str]] = []
        self._languages: dict[str, _Tally] = {}
        self._texts, self._unseen, self._unsure, self._empty = 0, _Tally(), _Tally(), _Tally()
        self.before = 0
        """Texts that an earlier start of the command answered, whose notes are not known any more."""

    def add(
        self,
        first: int,
        texts: Sequence[str],
        unseen: Unseen,
        answers: Sequence[Hypothesis],
        guesses: Sequence[LanguagePrediction | None] = (),
    ) -> None:
        """Note what is to be told of texts.

        Args:
            first: the number of the first.
            texts: they themselves.
            unseen: the words of each that training never saw; ``None``: not known.
            answers: the best of each.
            guesses: the language of each, where it was guessed.
        """
        each = zip(texts, unseen or repeat(()), answers, guesses or repeat(None), strict=False)
        for number, (text, words, answer, guess) in enumerate(each, first):
            empty = bool(text.strip()) and not answer.text.strip()
            guess = guess if text.strip() else None
            if words or answer.unsure or empty or guess:
                known = dict.fromkeys(one.word for one in words)
                shown = [word if len(word) <= LONGEST else f"{word[:LONGEST]}…" for word in [*known][:FEW]]
                shown += ["…"] if len(known) > FEW else []
                self._group.append((number, shown, answer.confidence if answer.unsure else None, empty, guess))

    def warn(self, first: int, sentences: Sequence[str]) -> None:
        """Note what speaks against each answer, nothing where it is empty; all of it is told."""
        self._damaged += [(number, sentence) for number, sentence in enumerate(sentences, first) if sentence]

    def pack(self, answers: bytes | memoryview) -> bytes:
        """The answers of a group behind a line of what was noted of it, from a copy of this process."""
        noted, self._group, self._damaged = json.dumps([self._group, self._damaged]).encode(), [], []
        return b"".join([noted, b"\n", answers])

    def unpack(self, packed: bytes) -> bytes:
        """The answers, once the notes of another process are taken over."""
        noted, _, answers = packed.partition(b"\n")
        group, self._damaged = json.loads(noted)
        self._group = [(*rest, guess and (guess[0], guess[1])) for *rest, guess in group]
        return answers

    def close_group(self, texts: int) -> None:
        """Tell of a group of so many texts, or keep count, now that it is answered."""
        for number, words, confidence, empty, guess in self._group:
            told = []
            if guess:
                self._languages.setdefault(guess[0], _Tally()).add(f"{number}")
                told.append(f"taken for {guess[0]} ({guess[1]:.0%} sure; --from says another)")
            if words:
                quoted = ", ".join(word if word == "…" else f"“{word}”" for word in words)
                self._unseen.add(f"line {number} {quoted}")
                told.append(f"{quoted} {'is' if len(words) == 1 else 'are'} in no training text")
            if confidence is not None:
                self._unsure.add(f"{number}")
                sure = f"probability {confidence:.3f} a token, where {self.below:.3f} or more is usual"
                told.append(f"the model is unsure ({sure})")
            if empty:
                self._empty.add(f"{number}")
                told.append(f"the model wrote nothing ({TUNE})")
            for sentence in told if self._each else ():
                self._tell(f"line {number}: {sentence}")
        for number, sentence in self._damaged:
            self._tell(f"line {number} may be damaged: {sentence}")
        self._group, self._damaged, self._texts = [], [], self._texts + texts

    def tell_all(self) -> None:
        """Tell of all texts in a line or two, where they were not told of one by one."""
        if self._each:
            return
        if self._languages:
            most = sorted(self._languages.items(), key=lambda one: -one[1].count)
            known = [
                f"{code} {each.count:,}{f' ({each.lines()})' if place else ''}"
                for place, (code, each) in enumerate(most)
            ]
            self._tell(f"lines taken for each language: {', '.join(known)}; --from says which they are in")
        of = f"of {counted(self._texts, 'line')}" + (f" after line {self.before:,}" if self.before else "")
        if self._unseen.count:
            have = "has" if self._unseen.count == 1 else "have"
            what = f"{have} words or signs that no training text has"
            self._tell(f"{self._unseen.count:,} {of} {what}: {self._unseen.names('; ')}")
        if self._unsure.count:
            sure = f"the model is unsure of {self._unsure.count:,} {of} (probability below {self.below:.3f} a token)"
            self._tell(f"{sure}: {self._unsure.lines()}")
        if self._empty.count:
            self._tell(f"the model wrote nothing for {self._empty.count:,} {of} ({TUNE}): {self._empty.lines()}")
