"""What rows have of their sentences' terms, as states of one automaton, for all rows at once.

A state is made when a row reaches it for the first time; afterwards rows follow it by a look into tables.
"""

from __future__ import annotations

import numpy as np

from regard.decoding.hypotheses import Ints, Rows
from regard.decoding.terms import Letters, Progress, Terms


class Automaton:
    """The states of many rows as numbers, which follow tokens by tables; 0 is that of a sentence without terms."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self._made: list[tuple[Terms, Progress] | None] = [None]
        self._numbers: dict[tuple[Terms, Progress], int] = {}
        self._need_S = np.zeros(1, np.int64)
        self._wanted_S = np.zeros(1, np.int64)  # how many of the watched tokens are wanted, the first ones
        self._watched_SF = np.full((1, 1), -1)
        self._next_SX = np.zeros((1, 5), np.int64)  # behind others by their kind, and behind watched ones; -1: unknown

    def start(self, terms: Terms | None) -> int:
        """The state of a row without tokens."""
        return 0 if terms is None else self._number(terms, terms.start)

    def need(self, state_X: Ints) -> Ints:
        """What :meth:`Terms.need` says of each state."""
        return self._need_S[state_X]

    def wanted(self, state_N: Ints) -> Ints:
        """The wanted tokens of each state, ``token_NF``; -1 where there are fewer."""
        count_N = self._wanted_S[state_N]
        watched_NF = self._watched_SF[state_N, : int(count_N.max(initial=0))]
        return np.where(np.arange(watched_NF.shape[1]) < count_N[:, None], watched_NF, -1)

    def after(self, state_N: Ints, token_NC: Ints) -> Ints:
        """The states behind one more token each, for several of them; one below 0 leads anywhere."""
        hit_NCF = (token_NC[:, :, None] == self._watched_SF[state_N][:, None]) & (token_NC >= 0)[:, :, None]
        place_NC = np.where(hit_NCF.any(2), 4 + hit_NCF.argmax(2), self._letters.kind_V[token_NC])
        state_NC = np.broadcast_to(state_N[:, None], place_NC.shape)
        next_NC = self._next_SX[state_NC, place_NC]
        if (unknown_NC := next_NC < 0).any():
            pairs = zip(state_NC[unknown_NC].tolist(), place_NC[unknown_NC].tolist(), strict=True)
            for state, place in set(pairs):
                number = self._follow(state, place)
                self._next_SX[state, place] = number
            next_NC = self._next_SX[state_NC, place_NC]
        return next_NC

    def of(self, rows: Rows) -> Ints:
        """The state of each row, of all its tokens."""
        tokens_NT = rows.with_histories().tokens_NT
        state_N = np.array([self.start(sentence.terms) for sentence in rows.sentences])[rows.sentence_N]
        for place in range(rows.longest):
            live_N = place < rows.length_N
            next_N1 = self.after(state_N, np.where(live_N, tokens_NT[:, place], -1)[:, None])
            state_N = np.where(live_N, next_N1[:, 0], state_N)
        return state_N

    def _follow(self, state: int, place: int) -> int:
        made = self._made[state]
        assert made is not None  # all of state 0 is known
        terms, progress = made
        token = -1 if place < 4 else int(self._watched_SF[state, place - 4])
        kind = place if place < 4 else int(self._letters.kind_V[token])
        return self._number(terms, terms.after(progress, token, kind))

    def _number(self, terms: Terms, progress: Progress) -> int:
        """The number of a state, a new one where a row is there for the first time."""
        known = self._numbers.get((terms, progress))
        if known is not None:
            return known
        number = self._numbers[terms, progress] = len(self._made)
        self._made.append((terms, progress))
        watched, wanted = terms.watched(progress)
        self._make_room(number + 1, len(watched))
        self._need_S[number] = terms.need(progress)
        self._wanted_S[number] = wanted
        self._watched_SF[number, : len(watched)] = watched
        return number

    def _make_room(self, states: int, tokens: int) -> None:
        """Wider and longer tables, twice as long as before, where they are too small."""
        had, wide = self._watched_SF.shape
        if states <= had and tokens <= wide:
            return
        more, wider = had if states > had else 0, max(0, tokens - wide)
        self._need_S = np.pad(self._need_S, (0, more))
        self._wanted_S = np.pad(self._wanted_S, (0, more))
        self._watched_SF = np.pad(self._watched_SF, ((0, more), (0, wider)), constant_values=-1)
        self._next_SX = np.pad(self._next_SX, ((0, more), (0, wider)), constant_values=-1)
