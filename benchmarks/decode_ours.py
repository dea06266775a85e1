"""Regard in the benchmark of decoding: a model opened as the commands open it, whatever computes in it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from decode_job import EXTRA, Answers, Job, Missing, Tool, serve

import regard
from regard.tasks.model_folder import open_without_torch


def load(job: Job) -> Tool:
    """The model: by the engine without torch where that can, else as ``regard.load`` gives it."""
    device, precision = job.device, job.precision
    folder = job.folder("regard")
    try:
        model = open_without_torch(folder, device, precision) or regard.load(folder, device, precision=precision)
    except regard.RegardError as error:
        raise Missing(str(error)) from None
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return {do.__name__: partial(do, model) for do in (translate, encode, generate)}


def translate(model: Any, texts: list[str], beam: int, batch: int) -> Answers:
    """The batch is given in source tokens times beam; hypotheses are compared by the sum of their log-probabilities."""
    chosen = {"tokens": batch, "length_penalty": 0.0}
    model.recipe = model.recipe.model_copy(update={"decoding": model.recipe.decoding.model_copy(update=chosen)})
    return [list(found[0].tokens) for found in model.nbest(texts, 1, beam=beam, max_extra=EXTRA, scores=False)]


def encode(model: Any, texts: list[str], batch: int) -> Answers:
    """The mean of a text's vectors; the batches are Regard's own."""
    return [vector.tolist() for vector in model.encode(texts, pool="mean", normalise=False)]


def generate(model: Any, texts: list[str], tokens: int) -> Answers:
    """The most probable token every time."""
    return [list(found[0].tokens) for found in model.generate(texts, max_tokens=tokens, temperature=0.0, scores=False)]


if __name__ == "__main__":
    serve(load, "regard", "numpy")
