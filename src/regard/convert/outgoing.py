"""Taking out: a model of ours → a folder in Hugging Face's layout that ``transformers`` and CTranslate2 read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.config import Recipe, TransformerSection, VitSection, recipe_from, recipe_values
from regard.convert import pixels, t5, translator
from regard.convert.formats import FORMATS
from regard.convert.hub import CONFIG, WEIGHTS, values_of
from regard.convert.incoming import KINDS, LABELLED, LABELS, MODEL, RECIPE, TOKENIZER, write
from regard.convert.names import Row, outward
from regard.convert.spelling import as_json, files
from regard.data.patches import Scale
from regard.errors import RegardError, UsageError
from regard.text.foreign import ForeignTokenizer
from regard.text.vocabulary import AnyTokenizer, read_tokenizer

GENERATION = "generation_config.json"
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
        raise UsageError(f"{recipe.model.family!r} has no form in Hugging Face's layout", "model.family")
    format = FORMATS[FAMILIES[recipe.model.family]]
    task = recipe.task
    pieces = tokenizer.size if tokenizer else 0
    config = format.config(recipe.model, pieces) | _symbols(tokenizer) | _labelled(recipe, labels)
    config["architectures"] = [next(name for name, known in format.tasks.items() if known == task)]
    tensors = _renamed(format.rows(recipe.model, task), weights)
    found = {CONFIG: as_json(config), WEIGHTS: _bytes(tensors)}
    if scale is not None and isinstance(recipe.model, VitSection):
        found[pixels.THEIRS] = as_json(pixels.processor(recipe.model, scale))
    if tokenizer is not None:
        longest = getattr(recipe.model, "max_positions", recipe.data.max_tokens)
        found |= files(tokenizer, longest, framed=task != "language-model", pad=False)
    if task == "language-model" and tokenizer is not None:
        found[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return found


def export_model(folder: Path | str, output: Path | str) -> None:
    """Write a model folder of ours in Hugging Face's layout; its manifest is not verified here.

    Raises:
        RegardError: as :func:`taken`; it is no model folder; or ``output`` is not empty.
    """
    folder = Path(folder)
    recipe = recipe_from(recipe_values(folder / RECIPE), str(folder / RECIPE))
    try:
        with safe_open(folder / MODEL, "pt") as opened:
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping)
    except (SafetensorError, OSError) as error:
        raise RegardError(f"cannot be read: {error}", str(folder / MODEL)) from None
    if (folder / "tokenizer.source.json").exists():
        raise UsageError("two vocabularies have no form in one tokenizer.json", "text.joint")
    tokenizer = read_tokenizer(folder / TOKENIZER) if (folder / TOKENIZER).exists() else None
    labels = values_of(folder / LABELS).get("labels", []) if (folder / LABELS).exists() else []
    scale = pixels.read(folder / pixels.OURS) if (folder / pixels.OURS).exists() else None
    write(Path(output), taken(recipe, weights, tokenizer, labels, scale))


def _written_texts(
    recipe: Recipe, model: TransformerSection, weights: Mapping[str, Tensor], tokenizer: AnyTokenizer | None
) -> dict[str, bytes]:
    """An encoder-decoder: T5 where it is made like one, else Marian or Pegasus."""
    assert tokenizer is not None
    like_t5 = all(getattr(model, name) == value for name, value in t5.FIXED.items())
    own = not like_t5 or _starts_on_its_own(weights)
    if own and isinstance(tokenizer, ForeignTokenizer):
        raise UsageError("a foreign tokenizer has no room for the start symbol of this model", TOKENIZER)
    pieces = tokenizer.size
    start = pieces if own else t5.PAD
    symbols = {"decoder_start_token_id": start, "pad_token_id": start, "eos_token_id": tokenizer.end}
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
        **files(tokenizer, recipe.data.max_tokens, framed=True, pad=own),
    }


def _starts_on_its_own(weights: Mapping[str, Tensor]) -> bool:
    """Whether the row of the start symbol is another than that of T5's pad piece: a model that was trained here."""
    table = weights.get("encoder.input.tokens.weight")
    return table is not None and not torch.equal(table[-1], table[t5.PAD])


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
