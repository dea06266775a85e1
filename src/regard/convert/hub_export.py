"""Export: our model → a folder in Hugging Face's layout, readable by ``transformers`` and CTranslate2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import safetensors.torch
from torch import Tensor

from regard.config import BertSection, Recipe, TransformerSection, VitSection
from regard.convert.exportable import exports
from regard.convert.hub import CONFIG, GENERATION, WEIGHTS, odd_label
from regard.convert.hub_import import KINDS, LABELLED
from regard.convert.layouts import FORMATS
from regard.convert.layouts.format import PAD
from regard.convert.layouts.names import Row, outward
from regard.convert.side_files import PIXELS, pooling_files, processor
from regard.convert.tokenizer_files import as_json, tokenizer_contents
from regard.data.batches.patches import Scale
from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer

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
    format, task, model = FORMATS[found.format], recipe.task, recipe.model
    pieces = tokenizer.size + found.own if tokenizer else 0
    symbols = _symbols(recipe, tokenizer, found.own) if tokenizer else {}
    config = format.config(recipe, pieces) | symbols | _label_config(recipe, labels)
    config["architectures"] = [format.architecture(task)]
    tensors = _rename(format.rows(model, task, None if found.own else PAD), weights) | format.further(model, config)
    if task == "encoding":  # a model without a head has no prefix to tell it from one
        tensors = {name.removeprefix(format.prefix): tensor for name, tensor in tensors.items()}
    files = {CONFIG: as_json(config), WEIGHTS: safetensors.torch.save(tensors, {"format": "pt"})}
    if scale is not None and isinstance(model, VitSection):
        files[PIXELS] = as_json(processor(model, scale))
    if tokenizer is not None:
        pad = found.own and not isinstance(tokenizer, HuggingFaceTokenizer)  # theirs has one, and needs no further name
        text = recipe.text if task == "translation" else None
        longest, framed = recipe.data.max_tokens, task != "language-model"
        files |= tokenizer_contents(tokenizer, longest, framed=framed, pad=pad, text=text)
    if isinstance(model, BertSection) and task == "encoding" and not model.pooler:
        said = pooling_files(model.pool, model.d_model, recipe.data.max_tokens, normalise=recipe.encoding.normalise)
        files |= {name: as_json(values) for name, values in said.items()}
    if isinstance(model, TransformerSection):
        never = {"bad_words_ids": [[tokenizer.size]]} if tokenizer and found.own else {}
        files[GENERATION] = as_json({**symbols, **never, "num_beams": recipe.decoding.beam, "max_length": LONGEST})
    elif tokenizer and task == "language-model":
        files[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return files


def _symbols(recipe: Recipe, tokenizer: AnyTokenizer, own: bool) -> dict[str, Any]:
    """The ids of symbols; ``own``: the symbol that starts a text has a row of its own."""
    pad = tokenizer.pad if isinstance(tokenizer, HuggingFaceTokenizer) else None
    if not isinstance(recipe.model, TransformerSection):
        return {"eos_token_id": tokenizer.end, "bos_token_id": None, "pad_token_id": pad}
    start = tokenizer.size if own else PAD
    pad = start if pad is None else pad
    return {"decoder_start_token_id": start, "pad_token_id": pad, "eos_token_id": tokenizer.end}


def _label_config(recipe: Recipe, labels: Sequence[str]) -> dict[str, Any]:
    """The names of labels by number, and of what kind they are."""
    if recipe.task not in LABELLED:
        return {}
    kind = recipe.classification.kind
    if odd := odd_label(recipe.task, kind, labels):
        raise RegardError(f"the label {odd[0]} {odd[1]}: no model can be imported with it; train with another name")
    named: dict[str, Any] = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    problem = next(theirs for theirs, ours in KINDS.items() if ours == kind)
    return named if recipe.task == "tagging" else {**named, "problem_type": problem}


def _rename(rows: list[Row], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    named = [name for row in rows for name in row.ours]
    if missing := [name for name in named if name not in weights]:
        raise RegardError(f"lacks {missing[0]!r}, which the recipe's model has", WEIGHTS)
    if surplus := sorted(set(weights) - set(named)):
        raise RegardError(f"has {surplus[0]!r}, which the other format has no place for", WEIGHTS)
    return outward(rows, weights)
