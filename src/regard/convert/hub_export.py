"""Export: our model → a folder in Hugging Face's layout, readable by ``transformers`` and CTranslate2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import safetensors.torch
from torch import Tensor

from regard.config import BertSection, Recipe, TransformerSection, VitSection
from regard.convert import pixels, sentence_transformers
from regard.convert.exportable import Exports, exports
from regard.convert.formats import FORMATS
from regard.convert.hub import CONFIG, GENERATION, WEIGHTS
from regard.convert.hub_import import KINDS, LABELLED
from regard.convert.labels import odd_label
from regard.convert.layouts import t5
from regard.convert.layouts.names import Row, outward
from regard.convert.tokenizer_files import as_json
from regard.convert.tokenizer_files import files as spelled
from regard.data.batches.patches import Scale
from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer

MODEL = "model.safetensors"
LONGEST = 512
"""Tokens their outputs may have."""


def hub_files(
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
        tokenizer: None for image models.
        labels: the names of classes or tags.
        scale: of pixel values, for a model of images.

    Raises:
        UsageError: names the fields for which the format has no form.
        RegardError: the weights are not those of the recipe's model.
    """
    found = exports(recipe, tokenizer, weights)
    found.refuse()
    assert found.format is not None
    if isinstance(recipe.model, TransformerSection):
        return _written_texts(recipe, found, weights, tokenizer)
    format, task = FORMATS[found.format], recipe.task
    pieces = tokenizer.size if tokenizer else 0
    config = format.config(recipe, pieces) | _symbols(tokenizer) | _label_config(recipe, labels)
    config["architectures"] = [next(name for name, known in format.tasks.items() if known == task)]
    tensors = _rename(format.rows(recipe.model, task), weights)
    if task == "encoding":  # a model without a head has no prefix to tell it from one
        tensors = {name.removeprefix(format.prefix): tensor for name, tensor in tensors.items()}
    files = {CONFIG: as_json(config), WEIGHTS: _bytes(tensors)}
    if scale is not None and isinstance(recipe.model, VitSection):
        files[pixels.THEIRS] = as_json(pixels.processor(recipe.model, scale))
    if tokenizer is not None:
        files |= spelled(tokenizer, recipe.data.max_tokens, framed=task != "language-model", pad=False)
    if task == "encoding":
        files |= _around(recipe)
    if task == "language-model" and tokenizer is not None:
        files[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return files


def _written_texts(
    recipe: Recipe, found: Exports, weights: Mapping[str, Tensor], tokenizer: AnyTokenizer | None
) -> dict[str, bytes]:
    """An encoder-decoder: T5 where it is made like one, else Marian or Pegasus."""
    assert tokenizer is not None
    assert found.format is not None
    format, own = FORMATS[found.format], found.own
    start = tokenizer.size if own else t5.PAD
    foreign = isinstance(tokenizer, HuggingFaceTokenizer)  # it has a pad of its own, and no text needs the start's name
    pad = tokenizer.pad if isinstance(tokenizer, HuggingFaceTokenizer) and tokenizer.pad is not None else start
    symbols = {"decoder_start_token_id": start, "pad_token_id": pad, "eos_token_id": tokenizer.end}
    config = format.config(recipe, tokenizer.size + own) | symbols
    tensors = _rename(format.rows(recipe.model, recipe.task, own=own), weights) | format.further(recipe.model, config)
    never = {"bad_words_ids": [[start]]} if own else {}
    text = recipe.text if recipe.task == "translation" else None
    generation = {**symbols, **never, "num_beams": recipe.decoding.beam, "max_length": LONGEST}
    return {
        CONFIG: as_json(config),
        GENERATION: as_json(generation),
        WEIGHTS: _bytes(tensors),
        **spelled(tokenizer, recipe.data.max_tokens, framed=True, pad=own and not foreign, text=text),
    }


def _around(recipe: Recipe) -> dict[str, bytes]:
    """Files that make the folder a sentence encoder; none with BERT's pooler."""
    model = recipe.model
    assert isinstance(model, BertSection)
    if model.pooler:
        return {}
    said = sentence_transformers.files(
        model.pool, model.d_model, recipe.data.max_tokens, normalise=recipe.encoding.normalise
    )
    return {name: as_json(values) for name, values in said.items()}


def _symbols(tokenizer: AnyTokenizer | None) -> dict[str, Any]:
    """The ids of symbols that ``config.json`` tells."""
    if tokenizer is None:
        return {}
    pad = tokenizer.pad if isinstance(tokenizer, HuggingFaceTokenizer) else None
    return {"eos_token_id": tokenizer.end, "bos_token_id": None, "pad_token_id": pad}


def _label_config(recipe: Recipe, labels: Sequence[str]) -> dict[str, Any]:
    """The names of labels by number, and of what kind they are."""
    if recipe.task not in LABELLED:
        return {}
    if odd := odd_label(recipe.task, recipe.classification.kind, labels):
        raise RegardError(f"the label {odd[0]} {odd[1]}: no model can be imported with it; train with another name")
    named = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if recipe.task != "tagging":
        kind = recipe.classification.kind
        named["problem_type"] = next(theirs for theirs, ours in KINDS.items() if ours == kind)
    return named


def _rename(rows: list[Row], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for row in rows:
        for name in row.ours:
            if name not in weights:
                raise RegardError(f"lacks {name!r}, which the recipe's model has", MODEL)
    if surplus := sorted(set(weights) - {name for row in rows for name in row.ours}):
        raise RegardError(f"has {surplus[0]!r}, which the other format has no place for", MODEL)
    return outward(rows, weights)


def _bytes(tensors: dict[str, Tensor]) -> bytes:
    return safetensors.torch.save(tensors, {"format": "pt"})
