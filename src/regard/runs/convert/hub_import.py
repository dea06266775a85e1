"""Import: a folder in Hugging Face's layout → our weights, recipe, tokenizer and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.config import TASKS, Decoding, Recipe, Training, VitSection, merge, recipe_from
from regard.data.batches.patches import Scale
from regard.models import build
from regard.runs.convert.hub import CONFIG, FLAG, NOT_YET, WHOLE, HubFolder, format_value, odd_label
from regard.runs.convert.layouts import FORMATS
from regard.runs.convert.layouts.format import PURPOSE, Format, inward, refuse_other_shapes, refuse_surplus
from regard.runs.convert.layouts.t5 import PREFIXED
from regard.runs.convert.side_files import (
    FILE,
    SENTENCES,
    SentenceTransformersConfig,
    frames_pairs,
    has_own_tokenizer,
    language_codes,
    max_length_of,
    scale_of,
    tokenizer_of,
)
from regard.runs.convert.translator_files import MODEL as UNIGRAMS
from regard.runs.convert.translator_files import vocabularies_of, xlm_roberta_tokenizer
from regard.system.errors import Option, RegardError, UsageError
from regard.text.tags import split_tag
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

LONGEST = 1024
"""Tokens a text may have where the model is not one of ours and could read more; a recipe's batch has as many."""
MOST = 100
"""Hypotheses that a search keeps at most."""
KINDS = {"single_label_classification": "single", "multi_label_classification": "multi", "regression": "regression"}
"""Their word ``problem_type`` to ours."""

SPOKEN_BY_UNIGRAMS = ("xlm-roberta", "roberta")
"""Whose SentencePiece model has fairseq's ids; an XLM-R goes out as RoBERTa."""
SCORES = ("classifier.out_proj.weight", "classifier.weight")
"""What makes scores of labels, a row for each; RoBERTa's classes have the first."""


@dataclass(frozen=True)
class ImportedModel:
    """A model of others in our terms.

    Args:
        recipe: its model section and task; the training sections are the defaults.
        weights: by our names, in float32.
        tokenizer: theirs, or ours if we had written it; of a translator of others two; None for image models.
        labels: the names of classes or tags.
        scale: of pixel values, for a model of images.
        layout: whose layout the folder has, in words.
        file: the file of the folder that tells it from others.
        note: what its users should know.
    """

    recipe: Recipe
    weights: dict[str, Tensor]
    tokenizer: AnyTokenizer | Vocabularies | None
    labels: tuple[str, ...] = ()
    scale: Scale | None = None
    layout: str = "Hugging Face's layout"
    file: str = CONFIG
    note: str = ""


def read_hub_model(folder: Path | str, wanted: str | None = None) -> ImportedModel:
    """The model of a folder in Hugging Face's layout: an encoder, GPT-2, T5, ViT or a translator.

    Args:
        folder: where it lies.
        wanted: the task it is to be for; default: what the folder says.

    Raises:
        UsageError: such a model is not for that task.
        RegardError: it is no such folder, of a kind that is not supported, or a file of it is damaged.
    """
    return read_hub(HubFolder.open(folder), wanted)


def read_hub(hub: HubFolder, wanted: str | None = None) -> ImportedModel:
    """The model of an open folder; see :func:`read_hub_model`."""
    if hub.kind in NOT_YET:
        what = f"is {NOT_YET[hub.kind]}, which cannot be imported yet; docs/convert.md lists what can"
        raise RegardError(what, str(hub.path))
    if hub.kind not in FORMATS:
        known = ", ".join(sorted(FORMATS.keys() - NOT_YET))
        raise RegardError(f"model_type {hub.kind!r} is not supported; known: {known}", str(hub.path))
    format, said = FORMATS[hub.kind], SentenceTransformersConfig.of(hub.path)
    task = "encoding" if said.pool else _task(hub, format)
    if wanted not in (None, task):
        raise UsageError(f"this {format.kind} is for {task}, not for {wanted}", Option("task"))
    info = TASKS[task]
    start = format.start_row(hub.config, hub.generation)
    pieces = 0 if info.reads == "image" else hub.config.parse("vocab_size", WHOLE) - (start is None)
    untied = None if hub.config.parse("tie_word_embeddings", FLAG, True) else format.outputs.get(task)
    target_pieces = format.target_pieces(hub.config, pieces)
    tensors = format.canonical_tensors(hub.tensors, hub.where, untied)
    scores = [tensors[name] for name in SCORES if name in tensors and tensors[name].dim()]
    count = len(scores[0]) if info.has_labels and scores else 0
    labels = hub.labels(count) if count else ()
    model = format.section(hub.config, tensors)
    if said.pool:
        model |= {"pool": said.pool, "pooler": False}
    elif info.writes == "nothing" and not model.get("pooler"):
        model["pool"] = "mean"
    values = _recipe(hub, task, model, pieces, labels, said)
    recipe = recipe_from(values, hub.config.where)
    if odd := odd_label(task, recipe.classification.kind, labels):
        raise RegardError(f"the label {odd[0]} of id2label {odd[1]}; write another there", hub.config.where)
    rows = format.rows(recipe.model, task, start)
    refuse_surplus(rows, tensors, format.spare, hub.where)
    weights = inward(rows, tensors, hub.where)
    with torch.device("meta"):
        outline = build.outline(recipe.model, pieces, count, info.writes, target_pieces)
    refuse_other_shapes(weights, outline, hub.where)
    translates = info.learns_from == "pairs" and not has_own_tokenizer(hub.path)
    vocabularies = vocabularies_of(hub, (pieces, target_pieces)) if translates else None
    segments = getattr(recipe.model, "segments", 1)
    # only after the table's rows are known
    tokenizer = _tokenizer(hub, pieces) if pieces and not translates else None
    if vocabularies is not None:
        recipe = recipe_from(merge(values, _of_translator(hub, vocabularies)), hub.config.where)
    elif isinstance(tokenizer, Tokenizer):
        recipe = recipe_from(merge(values, _as_ours(hub, task, model, said, tokenizer, wanted)), hub.config.where)
    elif info.texts > 1 and isinstance(tokenizer, HuggingFaceTokenizer) and not frames_pairs(tokenizer, segments):
        message = "puts two texts together in another way than begin, first, end, second, end; only this one is read"
        raise RegardError(message, str(hub.path))
    elif start is None and info.learns_from == "prefixed":  # only training on spans gives a T5's start a row of its own
        recipe = recipe_from(merge(values, {"text_to_text": {"spans": True}}), hub.config.where)
    if isinstance(tokenizer, HuggingFaceTokenizer):
        around, most = len(tokenizer.begin) + 1 + tokenizer.ends_between * (info.texts - 1), recipe.data.max_tokens
        if around + info.texts > most:
            message = f"puts {around} symbols around a text; of the {most} tokens of the model none is left for it"
            raise RegardError(message, str(hub.path))
    if info.learns_from == "pairs" and (target := vocabularies.target if vocabularies else tokenizer):
        _refuse_other_ends(hub, target.end, target_pieces if start is None else start)
    if said.lowers and tokenizer is not None:
        capital, small = tokenizer.ids_batch(["A B", "a b"])
        if not np.array_equal(capital, small):
            message = "lower-cases texts, but the tokenizer does not: this is not supported"
            raise RegardError(message, str(hub.path / SENTENCES))
    scale = scale_of(hub.path, recipe.model.channels) if isinstance(recipe.model, VitSection) else None
    floats = {name: tensor.float() for name, tensor in weights.items()}
    return ImportedModel(recipe, floats, vocabularies or tokenizer, labels, scale)


def _refuse_other_ends(hub: HubFolder, end: int, start: int) -> None:
    """Refuse a translator whose search begins or ends outputs with other ids than ``start`` and ``end`` there."""
    ends = {"eos_token_id": end, "forced_eos_token_id": end}
    for fields, known in ((hub.config, ends), (hub.generation, {**ends, "decoder_start_token_id": start})):
        for name, id in known.items():
            found = id if fields.get(name) is None else fields.get(name)
            if any(one != id for one in (found if isinstance(found, list) else [found])):
                message = f"{name} {format_value(found)} is not supported, only {id}, as in the vocabulary, is"
                raise RegardError(message, fields.where)


def _tokenizer(hub: HubFolder, pieces: int) -> AnyTokenizer:
    """The one tokenizer of a model that is no translator."""
    if hub.kind in SPOKEN_BY_UNIGRAMS and (hub.path / UNIGRAMS).exists() and not (hub.path / FILE).exists():
        return xlm_roberta_tokenizer(hub.path, pieces)
    return tokenizer_of(hub.path, pieces)


def _of_translator(hub: HubFolder, vocabularies: Vocabularies) -> dict[str, object]:
    """Further recipe values of a translator of others: its languages, where its folder names them."""
    languages, text = vocabularies.languages, language_codes(hub.path)
    if languages is not None:
        known = {key: code for key, code in text.items() if code in languages.ids}
        forced = [code for code, id in languages.ids.items() if id == hub.generation.get("forced_bos_token_id")]
        text = {**known, **({"target_language": forced[0]} if forced else {})}
    return {"text": text, "decoding": {"refill": True}}


def _task(hub: HubFolder, format: Format) -> str:
    """The task of the model, by its architecture."""
    architecture = hub.architecture or [*format.tasks][-1]  # files without a word hold the bare model
    if architecture not in format.tasks:
        known = ", ".join(format.tasks)
        raise RegardError(f"{architecture} is not supported; known: {known}", hub.config.where)
    return format.task(architecture, hub.config)


def _recipe(
    hub: HubFolder,
    task: str,
    model: dict[str, object],
    pieces: int,
    labels: Sequence[str],
    said: SentenceTransformersConfig,
) -> dict[str, object]:
    """The values of a recipe: what is known of the model, and defaults."""
    values: dict[str, object] = {"task": task, "model": model}
    longest = LONGEST
    if pieces:
        values["text"] = {"vocabulary": max(300, pieces)}
        places = model.get("max_positions")
        longest = min([places if isinstance(places, int) else 512, LONGEST, *_longest(hub, said)])
        values["data"] = {"max_tokens": longest}
    info = TASKS[task]
    if info.writes == "classes":
        values["classification"] = {"kind": _kind(hub, len(labels))}
    elif info.writes == "tags":
        values["tagging"] = {"scheme": _scheme(labels)}
    elif info.writes == "nothing":
        values["encoding"] = {"normalise": said.normalise}
    elif info.writes == "text":
        beam = min(hub.generation.parse("num_beams", WHOLE, Decoding().beam), MOST)
        values["decoding"] = {"beam": beam}
        if model.get("positions") == "learned":  # of a text and of what is written there are as many
            half = longest // 2
            values |= {"data": {"max_tokens": half}, "decoding": {"beam": beam, "max_extra": half - 1}}
    return values


def _longest(hub: HubFolder, said: SentenceTransformersConfig) -> list[int]:
    """Maximum text lengths in tokens given by the folder's files."""
    return [longest for longest in (max_length_of(hub.path), said.longest) if longest is not None]


def _as_ours(
    hub: HubFolder,
    task: str,
    model: dict[str, object],
    said: SentenceTransformersConfig,
    tokenizer: Tokenizer,
    wanted: str | None,
) -> dict[str, object]:
    """Further recipe values of a folder that we exported (its tokenizer is ours).

    An encoder-decoder is a translator, unless the folder or the caller says otherwise, or the tokenizer, by sentinels;
    a text may be as long as it was.
    """
    text: dict[str, object] = {
        "units": tokenizer.units,
        "normalisation": tokenizer.normalisation,
        "lowercase": tokenizer.lowercase,
    }
    values: dict[str, object] = {"text": text}
    if told := _longest(hub, said):
        places = model.get("max_positions")
        longest = min([*told, places] if isinstance(places, int) else told)
        values |= {"data": {"max_tokens": longest}, "training": {"tokens": max(longest, Training().tokens)}}
    if TASKS[task].writes == "text":
        prefixed = bool(tokenizer.sentinels) or PREFIXED in (wanted, hub.config.get(PURPOSE))
        values["task"] = PREFIXED if prefixed else "translation"
        text |= {} if prefixed else language_codes(hub.path)
    return values


def _kind(hub: HubFolder, count: int) -> str:
    """What kind of labels there are; a single label is binary unless the config says otherwise.

    Raises:
        RegardError: a word that is unknown, or several numbers at once.
    """
    if hub.config.get("problem_type") is None:
        return "multi" if count == 1 else "single"
    kind = hub.config.word("problem_type", KINDS)
    if kind == "regression" and count != 1:
        raise RegardError(f"is a regression of {count} numbers; here it is of one", hub.config.where)
    return kind


def _scheme(labels: Sequence[str]) -> str:
    """The tag scheme that the names of tags show."""
    letters = {split_tag(label)[0] for label in labels if label != "O"}
    if "O" in letters or not letters:
        return "none"
    if letters & {"L", "U"}:
        return "bilou"
    return "bio" if "B" in letters else "io"
