"""Export: what a recipe's model can become, known before training; and its folder in Hugging Face's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import safetensors.torch
import torch
from torch import Tensor

from regard.config import FAMILIES, BertSection, GptSection, Recipe, TransformerSection, VitSection
from regard.data.batches.patches import Scale
from regard.runs.convert.hub import CONFIG, GENERATION, WEIGHTS, odd_label
from regard.runs.convert.hub_import import KINDS
from regard.runs.convert.layouts import FORMATS
from regard.runs.convert.layouts.encoder_decoder import TABLES
from regard.runs.convert.layouts.format import PAD, Obstacle, Row, outward, word
from regard.runs.convert.side_files import PIXELS, as_json, pooling_files, processor, tokenizer_contents
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer, start_of

LONGEST = 512
"""Tokens their outputs may have."""
EPSILON = 1e-5
"""The largest ε of the norms of a GPT-2 or T5 with which CTranslate2, which has one of its own, computes the same."""

TO = "--to ctranslate2"
"""The cause where it is not a value of the recipe."""
SETTINGS = "the settings of docs/convert.md"
"""Where another family has to be taken, what else it needs."""
DECIDING = TABLES
"""The weights that matter besides the recipe."""


@dataclass(frozen=True)
class Exports:
    """Formats that a model can be exported to, and obstacles.

    Args:
        format: the nearest in Hugging Face's layout, of ``layouts.FORMATS``; ``None``: there is
            none for the family.
        obstacles: what the format cannot express; empty: the model can be exported.
        further: what else CTranslate2 cannot express.
        own: the symbol that starts a text has a row of its own in the table of embeddings there.
    """

    format: str | None
    obstacles: tuple[Obstacle, ...]
    further: tuple[Obstacle, ...] = ()
    own: bool = False

    @property
    def name(self) -> str:
        """The name of the nearest format."""
        return FORMATS[self.format].kind if self.format else "Hugging Face's layout"

    @property
    def line(self) -> str:
        """The available formats; if there are none, the changes needed for the nearest format."""
        if self.obstacles:
            changes = ", ".join(f"{each.field} = {each.fits} instead of {word(each.value)}" for each in self.obstacles)
            more = "" if self.format else f", with {SETTINGS}"
            return f"this model cannot be exported as it is: {self.name} needs {changes}{more}"
        fast = "CTranslate2 (the encoder alone)" if self.format == "bert" else "CTranslate2"
        return f"this model can be exported to: Hugging Face ({self.name})" + ("" if self.further else f", {fast}")

    def refuse(self, to: str = "huggingface") -> None:
        """Raise a UsageError that names the fields that stand in the way, if any does.

        Args:
            to: ``huggingface`` or ``ctranslate2``.
        """
        _refuse(self.obstacles, self.name)
        if to == "ctranslate2":
            _refuse(self.further, "CTranslate2")


def exports(
    recipe: Recipe, tokenizer: AnyTokenizer | None = None, weights: Mapping[str, Tensor] | None = None
) -> Exports:
    """Formats that the model of a recipe can be exported to.

    Args:
        recipe: what it is made by.
        tokenizer: of the model, or of the one it begins from; ``None``: it will be one of ours.
        weights: by our names, those of :data:`DECIDING` at least; ``None``: they are still to be trained.
    """
    family = recipe.model.family
    obstacles = {name: each.obstacles(recipe, weights) for name, each in FORMATS.items() if each.family == family}
    if not obstacles:
        return Exports(None, tuple(_other_family(recipe)))
    nearest = min(obstacles, key=lambda name: len(obstacles[name]))  # of those that need as many changes the first
    own = recipe.model.info.encoder_decoder and (nearest != "t5" or not _starts_with_pad(recipe, tokenizer, weights))
    further = _not_for_ctranslate2(recipe, nearest, own, tokenizer)
    return Exports(nearest, tuple(obstacles[nearest]), tuple(further), own)


def _other_family(recipe: Recipe) -> list[Obstacle]:
    """The obstacle of an unsupported family, and obstacles outside the model section."""
    family = recipe.model.family
    (fits,) = set(recipe.info.families) & {each.family for each in FORMATS.values()}
    why = (
        f"a model of the family {family!r} has no form in Hugging Face's layout; one of the family {fits!r} has, with "
        f"{SETTINGS}"
    )
    other = recipe.model_copy(update={"model": FAMILIES[fits]()})
    beside = [each for each in exports(other).obstacles if not each.field.startswith("model.")]
    return [Obstacle("model.family", family, fits, why), *beside]


def _starts_with_pad(recipe: Recipe, tokenizer: AnyTokenizer | None, weights: Mapping[str, Tensor] | None) -> bool:
    """Whether T5's pad piece starts a text, so that the start symbol needs no row, which could be generated.

    It does where the task begins with it, and where both rows are the same: where the model was not trained here.
    """
    prefixed = recipe.info.learns_from == "prefixed" and not recipe.text_to_text.spans
    if prefixed and tokenizer is not None and start_of(tokenizer) == PAD:
        return True
    table = (weights or {}).get(TABLES[0])
    return table is not None and torch.equal(table[-1], table[PAD])


def _not_for_ctranslate2(recipe: Recipe, format: str, own: bool, tokenizer: AnyTokenizer | None) -> list[Obstacle]:
    """Obstacles of CTranslate2 that Hugging Face's layout does not have."""
    model, found = recipe.model, []
    if not model.info.reads_pieces:
        found.append(Obstacle("model.family", model.family, "", "CTranslate2 knows no models of images"))
    if isinstance(tokenizer, HuggingFaceTokenizer):
        if format == "t5" and own:
            why = "CTranslate2 needs a name for the symbol that a text starts with, and a tokenizer of others has none"
            found.append(Obstacle(TO, "", "", why))
        if format == "gpt2" and not all(tokenizer.names):
            named = sum(map(bool, tokenizer.names))
            why = f"CTranslate2 needs a name for every piece; the tokenizer names {named:,} of {tokenizer.size:,}"
            found.append(Obstacle(TO, "", "", why))
    if isinstance(model, TransformerSection) and model.decoder.heads != model.heads:
        why = "CTranslate2 reads one number of heads for encoder and decoder; train without model.decoder_heads for it"
        found.append(Obstacle("model.decoder_heads", model.decoder_heads, str(model.heads), why))
    if isinstance(model, TransformerSection | GptSection) and format in ("gpt2", "t5") and model.norm_epsilon > EPSILON:
        found.append(Obstacle("model.norm_epsilon", model.norm_epsilon, f"{EPSILON:g} and less"))
    return found


def _refuse(obstacles: Sequence[Obstacle], kind: str) -> None:
    """Raise a UsageError that names the field of the first obstacle, and after it all others.

    Args:
        obstacles: any number.
        kind: the name of the format, e.g. ``"BERT"``.
    """
    if not obstacles:
        return
    first, others = obstacles[0], [f"{each.field} = {word(each.value)}, only for {each.fits}" for each in obstacles[1:]]
    why = first.why or f"{kind} has no form for {first.value!r}, only for {first.fits}"
    more = f"; nor has {kind} one for {', nor for '.join(others)}" if others else ""
    how = "" if first.why else f": train with {'these' if others else 'that'} to take a model out"
    raise UsageError(f"{why}{more}{how}", first.field)


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
    format, task, model, info = FORMATS[found.format], recipe.task, recipe.model, recipe.info
    pieces = tokenizer.size + found.own if tokenizer else 0
    symbols = _symbols(recipe, tokenizer, found.own) if tokenizer else {}
    config = format.config(recipe, pieces) | symbols | _label_config(recipe, labels)
    config["architectures"] = [format.architecture(task)]
    tensors = _rename(format.rows(model, task, None if found.own else PAD), weights) | format.further(model, config)
    if info.writes == "nothing":  # a model without a head has no prefix to tell it from one
        tensors = {name.removeprefix(format.prefix): tensor for name, tensor in tensors.items()}
    files = {CONFIG: as_json(config), WEIGHTS: safetensors.torch.save(tensors, {"format": "pt"})}
    if scale is not None and isinstance(model, VitSection):
        files[PIXELS] = as_json(processor(model, scale))
    if tokenizer is not None:
        pad = found.own and not isinstance(tokenizer, HuggingFaceTokenizer)  # theirs has one, and needs no further name
        text = recipe.text if info.learns_from == "pairs" else None
        longest, framed = recipe.data.max_tokens, info.writes != "continuation"
        files |= tokenizer_contents(tokenizer, longest, framed=framed, pad=pad, texts=info.texts, text=text)
    if isinstance(model, BertSection) and info.writes == "nothing" and not model.pooler:
        said = pooling_files(model.pool, model.d_model, recipe.data.max_tokens, normalise=recipe.encoding.normalise)
        files |= {name: as_json(values) for name, values in said.items()}
    if isinstance(model, TransformerSection):
        never = {"bad_words_ids": [[tokenizer.size]]} if tokenizer and found.own else {}
        files[GENERATION] = as_json({**symbols, **never, "num_beams": recipe.decoding.beam, "max_length": LONGEST})
    elif tokenizer and info.writes == "continuation":
        files[GENERATION] = as_json({"eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end})
    return files


def _symbols(recipe: Recipe, tokenizer: AnyTokenizer, own: bool) -> dict[str, object]:
    """The ids of symbols; ``own``: the symbol that starts a text has a row of its own."""
    pad = tokenizer.pad if isinstance(tokenizer, HuggingFaceTokenizer) else None
    if not isinstance(recipe.model, TransformerSection):
        return {"eos_token_id": tokenizer.end, "bos_token_id": None, "pad_token_id": pad}
    start = tokenizer.size if own else PAD
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
