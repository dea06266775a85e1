"""From what a language model draws its next token: the probabilities at a place, with temperature and top-k."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

from regard.config import Decoding
from regard.inspection.folders.models import Models
from regard.inspection.forward.inputs import piece
from regard.inspection.forward.outputs import scores
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.payload import Answer
from regard.inspection.requests import Place, Request, Whole, question
from regard.system.errors import UsageError
from regard.tasks.kinds import continues_text

SHOWN = 12
"""Tokens in an answer."""


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

    from regard.models.decoding.logits_filters import filter_logits

    loaded = models.load_for(asked)
    task = loaded.task
    if not continues_text(task):
        raise UsageError("only a language model draws what it writes", "model")
    asked = fit_request(models, loaded, asked).asked
    seen = inputs_of(models, loaded, asked)
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
