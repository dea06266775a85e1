"""CTranslate2: its translator, encoder and generator of a model that Regard exported."""

from __future__ import annotations

from functools import partial
from typing import Any

import ctranslate2
import numpy as np
from tokenizers import Tokenizer
from worker import EXTRA, Answers, Job, Missing, longest_first, serve

TYPES = {"fp32": "float32", "int8": "int8"}


def load(job: Job) -> dict[str, Any]:
    """The model on one thread."""
    kind = TYPES[job.precision]
    if kind not in ctranslate2.get_supported_compute_types("cpu"):
        raise Missing(f"no {kind} on this processor")
    kinds = {"translate": ctranslate2.Translator, "encode": ctranslate2.Encoder, "generate": ctranslate2.Generator}
    folder = job.folders["ctranslate2"]
    model = kinds[job.kind](folder, device="cpu", compute_type=kind, intra_threads=1, inter_threads=1)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    return {do.__name__: partial(do, model, tokenizer) for do in (translate, encode, generate)}


def translate(model: Any, tokenizer: Tokenizer, texts: list[str], beam: int, batch: int) -> Answers:
    """It sorts the texts by itself, and adds ``</s>`` to each."""
    sources = [one.tokens for one in tokenizer.encode_batch(texts)]
    options = {"beam_size": beam, "max_batch_size": batch, "length_penalty": 0.0}
    found = model.translate_batch(sources, max_decoding_length=max(map(len, sources)) + 1 + EXTRA, **options)
    return written(tokenizer, [one.hypotheses[0] for one in found])


def encode(model: Any, tokenizer: Tokenizer, texts: list[str], batch: int) -> Answers:
    """The mean of a text's vectors."""

    def means(some: list[list[int]]) -> Answers:
        found_BLD = np.array(model.forward_batch(some).last_hidden_state)
        return [rows_LD[: len(ids)].mean(0).tolist() for rows_LD, ids in zip(found_BLD, some, strict=True)]

    return longest_first([one.ids for one in tokenizer.encode_batch(texts)], batch, means)


def generate(model: Any, tokenizer: Tokenizer, texts: list[str], tokens: int) -> Answers:
    """All texts side by side."""
    # A document begins after the end of another; what follows the prompt is no part of it.
    prompts = [["</s>", *(piece for piece in one.tokens if piece != "</s>")] for one in tokenizer.encode_batch(texts)]
    options = {"beam_size": 1, "max_length": tokens, "min_length": tokens, "include_prompt_in_result": False}
    return written(tokenizer, [one.sequences[0] for one in model.generate_batch(prompts, **options)])


def written(tokenizer: Tokenizer, outputs: list[list[str]]) -> Answers:
    """Ids of outputs, which are decoded as every tool does."""
    found = [[tokenizer.token_to_id(piece) for piece in pieces] for pieces in outputs]
    tokenizer.decode_batch(found)
    return found


if __name__ == "__main__":
    serve(load)
