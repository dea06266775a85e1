"""Optional trace of a search: the candidates of each step, with those kept and pruned, to draw the search tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.decoding.hypotheses import Choice, Rows
from regard.decoding.step import Answer

Fate = Literal["live", "finished", "left"]
"""live: a row of the next step; finished: it ended in ``</s>``; left: cut off by the limit, or unable to improve."""


@dataclass(frozen=True)
class TraceStep:
    """One step of one sentence.

    ``candidates`` belong to the rows that entered the step, the rest to the rows it chose, best first. The rows that
    enter the next step are those of fate ``live``, in order; the first step enters with one empty row.
    """

    candidates: tuple[tuple[int, ...], ...]
    """For each entering row its k most probable next tokens."""
    candidate_log_probabilities: tuple[tuple[float, ...], ...]
    rows: tuple[int, ...]
    """For each chosen row its number among the rows of the next step; -1 if it is not live."""
    parents: tuple[int, ...]
    """For each chosen row the number of the entering row that it continues."""
    tokens: tuple[int, ...]
    token_log_probabilities: tuple[float, ...]
    log_probabilities: tuple[float, ...]
    """Of the whole row, the chosen token included."""
    fates: tuple[Fate, ...]


@dataclass
class Trace:
    """Give one to a search; afterwards ``trace[index]`` are the steps of that sentence, with ``k`` candidates a row."""

    k: int = 5
    without: tuple[int, ...] = ()
    _steps: dict[int, list[TraceStep]] = field(default_factory=dict, init=False)

    def __getitem__(self, index: int) -> tuple[TraceStep, ...]:
        return tuple(self._steps[index])

    def to_dict(self, index: int) -> dict[str, Any]:
        """The steps of one sentence as plain values for JSON."""
        return {"index": index, "steps": [asdict(step) for step in self[index]]}

    def record(
        self, rows: Rows, answer: Answer, choice: Choice, ended_M: NDArray[np.bool_], live_M: NDArray[np.bool_]
    ) -> None:
        """Record one step of every sentence: its rows, their candidates, and the choice."""
        ids_Nk, log_probability_Nk = answer.best(self.k, self.without)
        parent_M = choice.parents()
        total_M = rows.log_probability_N[parent_M] + choice.token_log_probability_M
        for place, sentence in enumerate(rows.sentences):
            entering = np.flatnonzero(rows.sentence_N == place)
            chosen = np.flatnonzero(rows.sentence_N[parent_M] == place)
            live = live_M[chosen]
            step = TraceStep(
                candidates=tuple(tuple(line) for line in ids_Nk[entering].tolist()),
                candidate_log_probabilities=tuple(tuple(line) for line in log_probability_Nk[entering].tolist()),
                rows=tuple(np.where(live, np.cumsum(live) - 1, -1).tolist()),
                parents=tuple((parent_M[chosen] - entering[0]).tolist()),
                tokens=tuple(choice.token_M[chosen].tolist()),
                token_log_probabilities=tuple(choice.token_log_probability_M[chosen].tolist()),
                log_probabilities=tuple(total_M[chosen].tolist()),
                fates=tuple(map(_fate, ended_M[chosen].tolist(), live.tolist())),
            )
            self._steps.setdefault(sentence.index, []).append(step)


def _fate(ended: bool, live: bool) -> Fate:
    return "finished" if ended else "live" if live else "left"
