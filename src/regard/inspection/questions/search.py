"""Text generation for the page: tokens streamed as they are decoded, or the tree of a beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, Strict

from regard.decoding.hypotheses import Choose
from regard.decoding.scheduler import Scheduler
from regard.decoding.search import random_sampling
from regard.decoding.strategies import Greedy
from regard.inspection.folders.models import LoadedModel, Models
from regard.inspection.forward.outputs import (
    SearchInputs,
    SearchNode,
    beam_search,
    branch,
    doubt,
    prepare_search,
    tree,
)
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.payload import Answer
from regard.inspection.requests import Count, Request, Whole, question
from regard.tasks.kinds import continues_text

if TYPE_CHECKING:
    from regard.decoding.hypotheses import Hypothesis
    from regard.decoding.trace import Trace

WIDEST = 32
"""Most hypotheses of a tree."""
AHEAD = 32
"""Most tokens of a tree, for models that could continue forever."""
LONGEST = 1024
"""Most tokens of a continuation by a language model."""


@question
def stream_tokens(
    models: Models,
    asked: Request,
    temperature: Annotated[float, Strict(), Field(ge=0, le=100, allow_inf_nan=False)] = 0.0,
    seed: Annotated[Whole, Field(le=2**63)] = 1,
    most: Annotated[Count, Field(le=LONGEST)] = 64,
) -> Iterator[dict[str, Any]]:
    """Stream each token as it is decoded, with its alternatives; then the whole text and the name of the weights.

    What an encoder-decoder wrote comes with its ``confidence``, and with ``unsure``, whether that is doubted, if known.

    An encoder-decoder takes the most probable token every time, and ends by itself: it knows no
    ``temperature`` and no ``most``. What may be forced elsewhere is not looked at.

    Raises:
        UsageError: the model writes nothing.
        RegardError: the text is empty.
    """
    loaded = models.load_for(asked)
    asked = fit_request(models, loaded, asked).asked
    return _tokens(models, loaded, asked, most, {"temperature": temperature, "seed": seed})


def _tokens(
    models: Models, loaded: LoadedModel, asked: Request, most: int, sampling: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The tokens; ablations are applied only during each decoding step, not while the consumer reads."""
    changes, section = asked.changes.ablations, loaded.task.recipe.model
    start = prepare_search(loaded.task, asked.text, most)
    trace, ids, probabilities = start.trace(), list[int](), list[float]()
    tokens = _scheduler(start, trace, sampling).tokens()
    while True:
        with changes.apply(section):
            chosen = next(tokens, None)
        if chosen is None or chosen.token is None:
            break
        ids.append(chosen.token)
        values = _token_values(start, trace)
        probabilities.append(values["probability"])
        yield values
    ids = ids[:-1] if ids and ids[-1] == start.task.symbols.end else ids
    done: dict[str, Any] = {"done": True, "text": start.text(ids), "weights": loaded.weights}
    if start.task.info.writes != "continuation":
        models.written.put((loaded.key, asked.own), tuple(ids))
        done["confidence"], done["unsure"] = doubt(start.task, probabilities)
    yield done


def _scheduler(start: SearchInputs, trace: Trace, sampling: dict[str, Any]) -> Scheduler:
    """A scheduler for one sentence and one hypothesis."""
    task, decoding = start.task, start.decoding(1)
    choose: Choose = Greedy(task.symbols.without)
    if continues_text(task):
        drawn = task.generation_options(**sampling)
        decoding = drawn.decoding.model_copy(update={"beam": 1})
        choose = random_sampling(decoding, drawn.seed, task.symbols.without)
    scheduler = Scheduler(start.step, choose, decoding, task.symbols, trace)
    scheduler.put(0, start.source, start.limit, first=start.first)
    return scheduler


def _token_values(start: SearchInputs, trace: Trace) -> dict[str, Any]:
    """The last token of a trace with one hypothesis."""
    (node,) = tree(trace[0][-1:], start.piece)
    others = [list(other) for other in node.others]
    return {"id": node.id, "piece": node.piece, "probability": node.probability, "others": others}


@question
def tree_of(models: Models, asked: Request, beam: Annotated[Count, Field(le=WIDEST)] = 4) -> Answer:
    """The tree of a beam search, and its best paths."""
    loaded = models.load_for(asked)
    asked, task = fit_request(models, loaded, asked).asked, loaded.task
    with asked.changes.ablations.apply(task.recipe.model):
        start = prepare_search(task, asked.text, AHEAD)
        trace = start.trace()
        hypotheses = beam_search(start, beam, trace)
    nodes = tree(trace[0], start.piece)
    ways = [_path_values(start, nodes, one) for one in hypotheses]
    penalty = task.recipe.decoding.length_penalty
    return {"nodes": [asdict(node) for node in nodes], "hypotheses": ways, "length_penalty": penalty}, {}


def _path_values(start: SearchInputs, nodes: Sequence[SearchNode], one: Hypothesis) -> dict[str, Any]:
    """A hypothesis as a path of nodes."""
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
