"""Text generation for the page: tokens streamed as they are decoded, what they are drawn from, trees of beam search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Annotated

from pydantic import Field, Strict

from regard.config import Decoding
from regard.decoding.hypotheses import Choose, Trace
from regard.decoding.search import Scheduler
from regard.decoding.strategies import Greedy, random_sampling
from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import (
    CANDIDATES,
    SearchInputs,
    beam_search,
    branch,
    doubt,
    prepare_search,
    scores,
    tree,
)
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import piece
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.requests import Answer, Count, Place, Request, Whole, question
from regard.system.errors import UsageError
from regard.tasks.kinds import continues_text

WIDEST = 32
"""Most hypotheses of a tree."""
AHEAD = 32
"""Most tokens of a tree, for models that could continue forever."""
LONGEST = 1024
"""Most tokens of a continuation by a language model."""
SHOWN = 12
"""Tokens of a distribution."""


@question
def stream_tokens(
    models: Models,
    asked: Request,
    temperature: Annotated[float, Strict(), Field(ge=0, le=100, allow_inf_nan=False)] = 0.0,
    seed: Annotated[Whole, Field(le=2**63)] = 1,
    most: Annotated[Count, Field(le=LONGEST)] = 64,
) -> Iterator[dict[str, object]]:
    """Stream each token as it is decoded, with its alternatives; then the whole text and the name of the weights.

    What an encoder-decoder wrote comes with its ``confidence``, and with ``unsure``, whether that is doubted, if known.

    An encoder-decoder takes the most probable token every time, and ends by itself: it knows no
    ``temperature`` and no ``most``. What may be forced elsewhere is not looked at.

    Raises:
        UsageError: the model writes nothing.
        RegardError: the text is empty.
    """
    loaded, asked = models.load_for(asked), fit_request(models, asked).asked
    changes, section = asked.changes.ablations, loaded.task.recipe.model
    start = prepare_search(loaded.task, asked.text, most)
    trace, ids, probabilities = Trace(CANDIDATES, start.task.symbols.without), list[int](), list[float]()
    tokens = _scheduler(start, trace, temperature, seed).tokens()
    while True:
        with changes.apply(section):  # only during each step, not while the consumer reads
            token = next(tokens, None)
        if token is None:
            break
        ids.append(token)
        (node,) = tree(trace[0][-1:], partial(piece, start.task.target_tokenizer))
        probabilities.append(node.probability)
        others = [list(other) for other in node.others]
        yield {"id": node.id, "piece": node.piece, "probability": node.probability, "others": others}
    ids = ids[:-1] if ids and ids[-1] == start.task.symbols.end else ids
    done: dict[str, object] = {"done": True, "text": start.text(ids), "weights": loaded.weights}
    if start.task.info.writes != "continuation":
        models.written.put((loaded.key, asked.own), tuple(ids))
        done["confidence"], done["unsure"] = doubt(start.task, probabilities)
    yield done


def _scheduler(start: SearchInputs, trace: Trace, temperature: float, seed: int) -> Scheduler:
    """A scheduler for one sentence and one hypothesis."""
    task, decoding = start.task, start.task.recipe.decoding.model_copy(update={"beam": 1})
    choose: Choose = Greedy(task.symbols.without)
    if continues_text(task):
        drawn = task.generation_options(temperature=temperature, seed=seed)
        decoding = drawn.decoding.model_copy(update={"beam": 1})
        choose = random_sampling(decoding, drawn.seed, task.symbols.without)
    scheduler = Scheduler(start.step, choose, decoding, task.symbols, trace)
    scheduler.put(0, start.source, start.limit, first=start.first)
    return scheduler


@question
def tree_of(models: Models, asked: Request, beam: Annotated[Count, Field(le=WIDEST)] = 4) -> Answer:
    """The tree of a beam search, and its best paths."""
    asked, task = fit_request(models, asked).asked, models.load_for(asked).task
    with asked.changes.ablations.apply(task.recipe.model):
        start = prepare_search(task, asked.text, AHEAD)
        trace = Trace(CANDIDATES, start.task.symbols.without)
        hypotheses = beam_search(start, beam, trace)
    nodes = tree(trace[0], partial(piece, start.task.target_tokenizer))
    places = {(node.parent, node.id): number for number, node in enumerate(nodes)}
    ways = []
    for one in hypotheses:
        last = -1
        for id in (*one.tokens, *([start.task.symbols.end] if one.finished else [])):
            last = places[last, id]
        path = {"text": start.text(one.tokens), "score": one.score, "finished": one.finished}
        ways.append({**path, "branch": branch(nodes, last)})
    penalty = task.recipe.decoding.length_penalty
    return {"nodes": [asdict(node) for node in nodes], "hypotheses": ways, "length_penalty": penalty}, {}


@question
def distribution(
    models: Models,
    asked: Request,
    place: Place = 0,
    temperature: Annotated[float, Strict(), Field(gt=0, le=100, allow_inf_nan=False)] = 1.0,
    top_k: Annotated[Whole, Field(le=2**31)] = 0,
) -> Answer:
    """The most probable tokens behind a place of a text, as they are and as they are drawn.

    Args:
        models: the explored models; ``asked``: the input.
        place: of the token that they stand behind.
        temperature: what scores are divided by.
        top_k: tokens that may be drawn; 0: all.

    Raises:
        UsageError: the model draws no tokens, or there is no such place.
    """
    import torch

    from regard.models.decoding.next_token import filter_logits

    task = models.load_for(asked).task
    if not continues_text(task):
        raise UsageError("only a language model draws what it writes", "model")
    seen = inputs_of(models, asked)
    if place >= len(seen.read_ids):
        raise UsageError(f"there is no token {place}; they count from 0 to {len(seen.read_ids) - 1}", "place")
    with torch.inference_mode(), asked.changes.ablations.apply(task.recipe.model):
        score_1V = scores(seen)[place : place + 1]  # of all places, so that the numbers are those of the step beside it
        never = torch.tensor(task.symbols.without, device=score_1V.device)
        drawn_1R, ids_1R = filter_logits(
            score_1V.index_fill(1, never, -torch.inf), Decoding(temperature=temperature, top_k=top_k)
        )
        probability_R, ids_R = drawn_1R.softmax(1)[0], ids_1R[0]
        order = probability_R.argsort(descending=True, stable=True)
        kept = int((probability_R > 0).sum())
        plain_V = score_1V.softmax(1)[0]
        tokens = [
            [piece(task.target_tokenizer, id), plain_V[id].item(), share]
            for id, share in zip(ids_R[order][:SHOWN].tolist(), probability_R[order][:SHOWN].tolist(), strict=True)
            if share > 0
        ]
        covered = plain_V[ids_R[probability_R > 0]].sum().item()
    return {"tokens": tokens, "kept": kept, "covered": covered, "vocabulary": task.target_tokenizer.size}, {}
