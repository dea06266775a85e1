"""Taking out: a model of ours → a folder in Hugging Face's layout that ``transformers`` and CTranslate2 read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from regard.config import BUILT, BertSection, Model, Recipe, TransformerSection, VitSection
from regard.convert import pixels, sentences, t5, translator
from regard.convert.formats import FORMATS
from regard.convert.hub import CONFIG, WEIGHTS
from regard.convert.incoming import KINDS, LABELLED
from regard.convert.names import Row, outward
from regard.convert.spelling import as_json, files
from regard.data.patches import Scale
from regard.errors import RegardError, UsageError
from regard.text.foreign import ForeignTokenizer
from regard.text.vocabulary import AnyTokenizer

GENERATION, MODEL = "generation_config.json", "model.safetensors"
LONGEST = 512
"""Tokens their outputs may have."""
FAMILIES = {"bert": "bert", "gpt": "gpt2", "vit": "vit"}
"""The families of ours that one format of theirs is for."""


def taken(
    recipe: Recipe,
    weights: Mapping[str, Tensor],
    tokenizer: AnyTokenizer | None,
    labels: Sequence[str] = (),
    scale: Scale | None = None,
) -> dict[str, bytes]:
    """The files of a folder in Hugging Face's layout, by name.

    A translator becomes a Marian or, with pre-norm, a Pegasus; or a T5 where it is made like one. What only we have (a
    fitted temperature, a threshold, places of dropout that they do not tell apart) is not in it. A T5 trained here has
    a start symbol of its own, ``<pad>``, that nothing but ``generation_config.json`` keeps from being written: tell
    CTranslate2 to suppress it.

    Args:
        recipe: what the model was made by.
        weights: by our names.
        tokenizer: of texts; a model of images has none.
        labels: the names of classes or tags.
        scale: of pixel values, for a model of images.

    Raises:
        UsageError: names the field for which the format has no form.
        RegardError: the weights are not those of the recipe's model.
    """
    if isinstance(recipe.model, TransformerSection):
        return _written_texts(recipe, recipe.model, weights, tokenizer)
    if recipe.model.family not in FAMILIES:
        others = [name for name in BUILT[recipe.task] if name in FAMILIES]
        instead = f"; one of the family {others[0]!r} has, with the settings of docs/convert.md" if others else ""
        message = f"a model of the family {recipe.model.family!r} has no form in Hugging Face's layout{instead}"
        raise UsageError(message, "model.family")
    format = FORMATS[FAMILIES[recipe.model.family]]
    task = recipe.task
    if recipe.tagging.crf:
        raise UsageError(f"{format.kind} has no form for tags that are scored as whole sequences", "tagging.crf")
    pieces = tokenizer.size if tokenizer else 0
    config = format.config(recipe.model, pieces) | _symbols(tokenizer) | _labelled(recipe, labels)
    config["architectures"] = [next(name for name, known in format.tasks.items() if known == task)]
    tensors = _renamed(format.rows(recipe.model, task), weights)
    if task == "encoding":  # a model without a head has no prefix to tell it from one
        tensors = {name.removeprefix(format.prefix): tensor for name, tensor in tensors.items()}
    found = {CONFIG: as_json(config), WEIGHTS: _bytes(tensors)}
    if scale is not None and isinstance(recipe.model, VitSection):
        found[pixels.THEIRS] = as_json(pixels.processor(recipe.model, scale))
    if tokenizer is not None:
        longest = getattr(recipe.model, "max_positions", recipe.data.max_tokens)
        found |= files(tokenizer, longest, framed=task != "language-model", pad=False)
    if task == "encoding":
        found |= _around(recipe)
    if task == "language-model" and tokenizer is not None:
        found[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return found


def _written_texts(
    recipe: Recipe, model: TransformerSection, weights: Mapping[str, Tensor], tokenizer: AnyTokenizer | None
) -> dict[str, bytes]:
    """An encoder-decoder: T5 where it is made like one, else Marian or Pegasus."""
    assert tokenizer is not None
    like_t5 = _like_t5(model)
    own = not like_t5 or starts_alone(recipe, weights)
    pieces = tokenizer.size
    start = pieces if own else t5.PAD
    foreign = isinstance(tokenizer, ForeignTokenizer)  # it has a pad of its own, and no text needs the start's name
    pad = tokenizer.pad if isinstance(tokenizer, ForeignTokenizer) and tokenizer.pad is not None else start
    symbols = {"decoder_start_token_id": start, "pad_token_id": pad, "eos_token_id": tokenizer.end}
    if like_t5:
        config = t5.config(model, pieces + own) | symbols
        tensors = _renamed(t5.rows(model, recipe.task, own=own), weights)
    else:
        config = translator.config(model, pieces, recipe.data.max_tokens + recipe.decoding.max_extra + 1)
        tensors = _renamed(translator.rows(model, recipe.task), weights) | translator.further(model, config)
    never = {"bad_words_ids": [[start]]} if own else {}
    generation = {**symbols, **never, "num_beams": recipe.decoding.beam, "max_length": LONGEST}
    return {
        CONFIG: as_json(config),
        GENERATION: as_json(generation),
        WEIGHTS: _bytes(tensors),
        **files(tokenizer, recipe.data.max_tokens, framed=True, pad=own and not foreign),
    }


def _around(recipe: Recipe) -> dict[str, bytes]:
    """What makes a folder that of an encoder of sentences; one with BERT's dense layer is none."""
    model = recipe.model
    assert isinstance(model, BertSection)
    if model.pooler:
        return {}
    said = sentences.files(model.pool, model.d_model, recipe.data.max_tokens, normalise=recipe.encoding.normalise)
    return {name: as_json(values) for name, values in said.items()}


def starts_alone(recipe: Recipe, weights: Mapping[str, Tensor]) -> bool:
    """Whether a model becomes a T5 with a start symbol of its own, which nothing in its weights keeps from being said.

    It has one where its row is another than that of T5's pad piece: where the model was trained here.
    """
    table = weights.get("encoder.input.tokens.weight")
    return _like_t5(recipe.model) and table is not None and not torch.equal(table[-1], table[t5.PAD])


def _like_t5(model: Model) -> bool:
    return isinstance(model, TransformerSection) and all(
        getattr(model, name) == value for name, value in t5.FIXED.items()
    )


def _symbols(tokenizer: AnyTokenizer | None) -> dict[str, Any]:
    """The ids of symbols that ``config.json`` tells."""
    if tokenizer is None:
        return {}
    pad = tokenizer.pad if isinstance(tokenizer, ForeignTokenizer) else None
    return {"eos_token_id": tokenizer.end, "bos_token_id": None, "pad_token_id": pad}


def _labelled(recipe: Recipe, labels: Sequence[str]) -> dict[str, Any]:
    """The names of labels by number, and of what kind they are."""
    if recipe.task not in LABELLED:
        return {}
    named = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if recipe.task == "classification":
        kind = recipe.classification.kind
        named["problem_type"] = next(theirs for theirs, ours in KINDS.items() if ours == kind)
    return named


def _renamed(rows: list[Row], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for row in rows:
        for name in row.ours:
            if name not in weights:
                raise RegardError(f"lacks {name!r}, which the recipe's model has", MODEL)
    if surplus := sorted(set(weights) - {name for row in rows for name in row.ours}):
        raise RegardError(f"has {surplus[0]!r}, which the other format has no place for", MODEL)
    return outward(rows, weights)


def _bytes(tensors: dict[str, Tensor]) -> bytes:
    return safetensors.torch.save(tensors, {"format": "pt"})
