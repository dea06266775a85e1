"""Terms that outputs contain, and what an output has of them: a function of its tokens.

A term is met by any of its forms, each a sequence of tokens. A form that begins or ends with a letter counts only where
no letter stands beside it: one that ends so is met unless the next token goes on with the word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Form = tuple[int, ...]
Begun = tuple[int, int, int]
"""A term, one of its forms, and how many of its tokens the row ends with."""


@dataclass(frozen=True)
class Term:
    """One of the forms, each a sequence of tokens, must occur, ``times`` times without sharing a token."""

    forms: tuple[Form, ...]
    times: int = 1


@dataclass(frozen=True, eq=False)
class Letters:
    """Which tokens begin with a letter (``begin_V``), and which end with one.

    No token does where words have no space between them.
    """

    begin_V: NDArray[np.bool_]
    end_V: NDArray[np.bool_]

    @cached_property
    def kind_V(self) -> NDArray[np.int64]:
        """Both as one number, 0 to 3."""
        return self.begin_V + 2 * self.end_V.astype(np.int64)


@dataclass(frozen=True)
class Progress:
    """What a row has of its sentence's terms.

    Args:
        met: how often each is met.
        ended: terms of which a form has just ended with a letter: met unless the word goes on.
        begun: forms that the row may be within.
        inside: the row ends with a letter.
    """

    met: tuple[int, ...]
    ended: frozenset[int] = frozenset()
    begun: frozenset[Begun] = frozenset()
    inside: bool = False


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a sentence."""

    terms: tuple[Term, ...]
    letters: Letters

    @property
    def start(self) -> Progress:
        """Nothing is met."""
        return Progress((0,) * len(self.terms))

    @cached_property
    def banks(self) -> int:
        """How many there can be."""
        return self.need(self.start) + 1

    @cached_property
    def _shortest(self) -> tuple[int, ...]:
        """Tokens of each term's shortest form, of those that can stand behind any token where there are some."""
        begin_V, found = self.letters.begin_V, list[int]()
        for term in self.terms:
            free = [len(form) for form in term.forms if not begin_V[form[0]]]
            found.append(min(free or map(len, term.forms)))
        return tuple(found)

    def left(self, progress: Progress) -> list[int]:
        """How often each term is still to be met, should the row end here."""
        pairs = zip(self.terms, progress.met, strict=True)
        return [term.times - met - (place in progress.ended) for place, (term, met) in enumerate(pairs)]

    def _goes_on(self, term: int, progress: Progress) -> bool:
        """Whether a form that is begun is of use: not where the term is met, or shares tokens with what has ended."""
        return progress.met[term] < self.terms[term].times and term not in progress.ended

    def need(self, progress: Progress) -> int:
        """So many more tokens are enough to meet them all; one of :meth:`watched` makes them fewer."""
        left, shortest = self.left(progress), self._shortest
        total, least = sum(times * tokens for times, tokens in zip(left, shortest, strict=True)), 0
        lost = sum(shortest[term] for term in progress.ended)  # should the word go on
        for term, form, place in progress.begun:
            if self._goes_on(term, progress):
                rest = self.terms[term].forms[form][place:]
                least = min(least, len(rest) - shortest[term] + lost * int(self.letters.begin_V[rest[0]]))
        return total + least

    def watched(self, progress: Progress) -> tuple[list[int], int]:
        """The tokens that matter, since all others of a kind lead to the same; and how many of them are wanted.

        These are the first ones: they begin or go on with what is not met.
        """
        left, begin_V = self.left(progress), self.letters.begin_V
        wanted, others = dict[int, None](), dict[int, None]()
        for term, form, place in sorted(progress.begun):
            going = wanted if self._goes_on(term, progress) else others
            going[self.terms[term].forms[form][place]] = None
        for times, met, one in zip(left, progress.met, self.terms, strict=True):
            for first in (form[0] for form in one.forms if met < one.times):
                if not (progress.inside and begin_V[first]):
                    (wanted if times else others)[first] = None
        return list(dict.fromkeys([*wanted, *others])), len(wanted)

    def after(self, progress: Progress, token: int, kind: int) -> Progress:
        """The progress with one more token, of a kind; -1 is a token that is not watched."""
        begins, ends = bool(kind & 1), bool(kind & 2)
        sure = frozenset[int]() if begins else progress.ended
        met = [times + (place in sure) for place, times in enumerate(progress.met)]
        if token < 0:
            return Progress(tuple(met), inside=ends)
        open_ = [place for place, term in enumerate(self.terms) if met[place] < term.times]
        going = {(t, f, k + 1) for t, f, k in progress.begun if t not in sure and self.terms[t].forms[f][k] == token}
        if not (progress.inside and begins):
            forms = ((t, f, form[0]) for t in open_ for f, form in enumerate(self.terms[t].forms))
            going |= {(t, f, 1) for t, f, first in forms if first == token}
        whole = {t for t, f, k in going if k == len(self.terms[t].forms[f])}
        if not ends:
            met = [times + (place in whole) for place, times in enumerate(met)]
        done = frozenset() if ends else whole
        begun = {(t, f, k) for t, f, k in going if t not in done and k < len(self.terms[t].forms[f])}
        return Progress(tuple(met), frozenset(whole) if ends else frozenset(), frozenset(begun), ends)
