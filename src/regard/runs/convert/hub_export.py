"""Export: the folder of a model in Hugging Face's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import safetensors.torch
from torch import Tensor

from regard.config import BertSection, Recipe, TransformerSection, VitSection
from regard.data.batches.patches import Scale
from regard.runs.convert.hub import CONFIG, GENERATION, WEIGHTS, odd_label
from regard.runs.convert.hub_import import KINDS
from regard.runs.convert.layouts import FORMATS, exports
from regard.runs.convert.layouts.format import Row, outward
from regard.runs.convert.side_files import PIXELS, as_json, pooling_files, processor, tokenizer_contents
from regard.runs.convert.translator_files import encoder_contents, translator_contents
from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

LONGEST = 512
"""Tokens their outputs may have."""


def hub_files(
    recipe: Recipe,
    weights: Mapping[str, Tensor],
    tokenizer: AnyTokenizer | None,
    labels: Sequence[str] = (),
    scale: Scale | None = None,
    vocabularies: Vocabularies | None = None,
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
        vocabularies: of a translator.

    Raises:
        UsageError: names the fields for which the format has no form.
        RegardError: the weights are not those of the recipe's model.
    """
    found = exports(recipe, tokenizer, weights)
    found.refuse()
    assert found.format is not None
    format, task, model, info = FORMATS[found.format], recipe.task, recipe.model, recipe.info
    pieces = tokenizer.size + found.own if tokenizer else 0
    start = None if found.own else format.start_piece(tokenizer)
    symbols = _symbols(recipe, tokenizer, start) if tokenizer else {}
    config = symbols | format.config(recipe, pieces) | _label_config(recipe, labels)
    config["architectures"] = [format.architecture(task)]
    if vocabularies is not None and not vocabularies.joint:
        config["decoder_vocab_size"] = vocabularies.target.size + found.own
        config["decoder_start_token_id"] = symbols["decoder_start_token_id"] = vocabularies.target.size
    tensors = _rename(format.rows(model, task, start), weights) | format.further(model, config)
    if info.writes == "nothing":  # a model without a head has no prefix to tell it from one
        tensors = {name.removeprefix(format.prefix): tensor for name, tensor in tensors.items()}
    files = {CONFIG: as_json(config), WEIGHTS: safetensors.torch.save(tensors, {"format": "pt"})}
    if scale is not None and isinstance(model, VitSection):
        files[PIXELS] = as_json(processor(model, scale))
    if vocabularies is not None and vocabularies.source.model is not None:
        files |= translator_contents(vocabularies, recipe, found.own)
    elif tokenizer is not None and tokenizer.model is not None:
        files |= encoder_contents(tokenizer, recipe.data.max_tokens)
    elif tokenizer is not None:
        pad = found.own and not isinstance(tokenizer, HuggingFaceTokenizer)  # theirs has one, and needs no further name
        text = recipe.text if info.learns_from == "pairs" else None
        longest, framed = recipe.data.max_tokens, info.writes != "continuation"
        segments = 0 if info.texts == 1 else min(info.texts, max(1, getattr(model, "segments", 1)))
        files |= tokenizer_contents(tokenizer, longest, framed=framed, pad=pad, segments=segments, text=text)
    if isinstance(model, BertSection) and info.writes == "nothing" and not model.pooler:
        normalise = recipe.encoding.normalise
        files |= pooling_files(model.pool, model.d_model, recipe.data.max_tokens, normalise=normalise)
    if isinstance(model, TransformerSection):
        never = {"bad_words_ids": [[config["decoder_start_token_id"]]]} if tokenizer and found.own else {}
        files[GENERATION] = as_json({**symbols, **never, "num_beams": recipe.decoding.beam, "max_length": LONGEST})
    elif tokenizer and info.writes == "continuation":
        files[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return files


def _symbols(recipe: Recipe, tokenizer: AnyTokenizer, start: int | None) -> dict[str, object]:
    """The ids of symbols; ``start``: of the piece that starts a text, ``None`` where a row of its own does."""
    pad = tokenizer.pad
    if not isinstance(recipe.model, TransformerSection):
        return {"eos_token_id": tokenizer.end, "bos_token_id": None, "pad_token_id": pad}
    start = tokenizer.size if start is None else start
    pad = start if pad is None else pad
    return {"decoder_start_token_id": start, "pad_token_id": pad, "eos_token_id": tokenizer.end}


def _label_config(recipe: Recipe, labels: Sequence[str]) -> dict[str, object]:
    """The names of labels by number, and of what kind they are."""
    if not recipe.info.has_labels:
        return {}
    kind = recipe.classification.kind
    if odd := odd_label(recipe.task, kind, labels):
        raise RegardError(f"the label {odd[0]} {odd[1]}: no model can be imported with it; train with another name")
    named: dict[str, object] = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    problem = next(theirs for theirs, ours in KINDS.items() if ours == kind)
    return named if recipe.info.writes == "tags" else {**named, "problem_type": problem}


def _rename(rows: list[Row], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    named = [name for row in rows for name in row.ours]
    if missing := [name for name in named if name not in weights]:
        raise RegardError(f"lacks {missing[0]!r}, which the recipe's model has", WEIGHTS)
    if surplus := sorted(set(weights) - set(named)):
        raise RegardError(f"has {surplus[0]!r}, which the other format has no place for", WEIGHTS)
    return outward(rows, weights)
