"""A model writing: token by token as it is decided, or as the tree of all that a beam considers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from regard.explore.asked import Asked, Fields
from regard.explore.fitting import fitted
from regard.explore.models import Loaded, Models
from regard.explore.payload import Answer
from regard.explore.searches import GOES_ON, Begun, begun, found
from regard.explore.tree import Node, branch, tree

if TYPE_CHECKING:
    from regard.decoding.hypotheses import Hypothesis
    from regard.decoding.scheduler import Scheduler
    from regard.decoding.trace import Trace

WIDEST = 32
"""Hypotheses of a tree."""
AHEAD = 32
"""Tokens of a tree, where a model would go on without end."""
LONGEST = 1024
"""Tokens that a language model may be asked to go on with."""


def written(models: Models, given: Fields) -> Iterator[dict[str, Any]]:
    """Each token as it is decided, with what else might have come; then the whole text and the name of its weights.

    Translations and missing spans take the most probable token every time, and end by themselves: they know no
    ``temperature`` and no ``most``. What may be forced elsewhere is not looked at.

    Raises:
        UsageError: the model writes nothing.
        RegardError: the text is empty.
    """
    asked = Asked.read(given)
    temperature, seed = given.number("temperature", 0, 100, 0), given.whole("seed", 0, 2**63, 1)
    most = given.whole("most", 1, LONGEST, 64)
    given.end()
    loaded = models.asked(asked)
    asked = fitted(models, loaded, asked).asked
    return _tokens(models, loaded, asked, most, {"temperature": temperature, "seed": seed})


def _tokens(
    models: Models, loaded: Loaded, asked: Asked, most: int, sampling: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The tokens; the model does without something only while a step is made, not while somebody reads what it gave."""
    changes, section = asked.without.changes, loaded.task.recipe.model
    start = begun(loaded.task, asked.text, most)
    trace, ids = start.trace(), list[int]()
    tokens = _scheduler(start, trace, sampling).tokens()
    while True:
        with changes.made(section):
            chosen = next(tokens, None)
        if chosen is None or chosen.token is None:
            break
        ids.append(chosen.token)
        yield _told(start, trace)
    ids = ids[:-1] if ids and ids[-1] == start.task.symbols.end else ids
    if start.task.name != GOES_ON:
        models.written.put((loaded.key, asked.own), tuple(ids))
    yield {"done": True, "text": start.text(ids), "weights": loaded.weights}


def _scheduler(start: Begun, trace: Trace, sampling: dict[str, Any]) -> Scheduler:
    """A search of one sentence with one hypothesis."""
    from regard.decoding.sampling import sampled
    from regard.decoding.scheduler import Scheduler
    from regard.decoding.search import greedy

    task, decoding = start.task, start.decoding(1)
    choose = greedy(task.symbols.without)
    if task.name == GOES_ON:
        drawn = task.asked(**sampling)
        decoding = drawn.decoding.model_copy(update={"beam": 1})
        choose = sampled(decoding, drawn.seed, task.symbols.without)
    scheduler = Scheduler(start.step, choose, decoding, task.symbols, trace)
    scheduler.put(0, start.source, start.limit, first=start.first)
    return scheduler


def _told(start: Begun, trace: Trace) -> dict[str, Any]:
    """The last token of a trace of one hypothesis."""
    (node,) = tree(trace[0][-1:], start.piece)
    others = [list(other) for other in node.others]
    return {"id": node.id, "piece": node.piece, "probability": node.probability, "others": others}


def tree_of(models: Models, given: Fields) -> Answer:
    """The tree of a beam search, and the ways through it that were best."""
    asked, beam = Asked.read(given), given.whole("beam", 1, WIDEST, 4)
    given.end()
    loaded = models.asked(asked)
    asked, task = fitted(models, loaded, asked).asked, loaded.task
    with asked.without.changes.made(task.recipe.model):
        start = begun(task, asked.text, AHEAD)
        trace = start.trace()
        hypotheses = found(start, beam, trace)
    nodes = tree(trace[0], start.piece)
    ways = [_way(start, nodes, one) for one in hypotheses]
    penalty = task.recipe.decoding.length_penalty
    return {"nodes": [asdict(node) for node in nodes], "hypotheses": ways, "length_penalty": penalty}, {}


def _way(start: Begun, nodes: Sequence[Node], one: Hypothesis) -> dict[str, Any]:
    """A hypothesis as a way from node to node."""
    ids = [*one.tokens, *([start.task.symbols.end] if one.finished else [])]
    places = {(node.parent, node.id): number for number, node in enumerate(nodes)}
    last = -1
    for id in ids:
        last = places[last, id]
    return {
        "text": start.text(one.tokens),
        "score": one.score,
        "finished": one.finished,
        "branch": branch(nodes, last),
    }
