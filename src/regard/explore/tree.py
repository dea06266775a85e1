"""A search as a tree: every prefix that was kept, what else it might have become, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp

from regard.decoding.trace import Fate, TraceStep


@dataclass(frozen=True)
class Node:
    """A token of the tree; the nodes of a tree stand step by step, best first, so that parents come before children.

    Args:
        step: how many tokens the prefix has, this one counted.
        parent: the number of the node it continues; -1: it is the first.
        id, piece: the token.
        probability: of the token behind its prefix.
        log_probability: of the whole prefix.
        fate: live: it went on; finished: it ended; left: it was given up, or cut off.
        others: what else might have come behind the prefix, the chosen one included: pieces and probabilities.
    """

    step: int
    parent: int
    id: int
    piece: str
    probability: float
    log_probability: float
    fate: Fate
    others: tuple[tuple[str, float], ...]


def tree(steps: Sequence[TraceStep], piece: Callable[[int], str]) -> list[Node]:
    """The tree of one sentence's search.

    Args:
        steps: its trace.
        piece: a token as people read it.
    """
    nodes: list[Node] = []
    entering = [-1]
    for number, step in enumerate(steps, 1):
        options = [
            tuple((piece(id), exp(value)) for id, value in zip(ids, values, strict=True))
            for ids, values in zip(step.candidates, step.candidate_log_probabilities, strict=True)
        ]
        going_on: dict[int, int] = {}
        for row, parent, id, own, whole, fate in zip(
            step.rows,
            step.parents,
            step.tokens,
            step.token_log_probabilities,
            step.log_probabilities,
            step.fates,
            strict=True,
        ):
            if fate == "live":
                going_on[row] = len(nodes)
            nodes.append(Node(number, entering[parent], id, piece(id), exp(own), whole, fate, options[parent]))
        entering = [going_on[row] for row in sorted(going_on)]
    return nodes


def branch(nodes: Sequence[Node], last: int) -> list[int]:
    """The numbers of the nodes from the first token to the one numbered ``last``."""
    found = []
    while last >= 0:
        found.append(last)
        last = nodes[last].parent
    return found[::-1]
