"""Models with made-up weights, for their sizes alone, and what Regard's own exporters make of them.

The translator copies its source. Tokens lie in the entries of a vector that turn slowly with the position, positions in
the others; the cross-attention of the last layer looks from a position to the same one of the source and adds what it
finds. All other sub-layers are random and small, so that they cost what they cost in a trained one and do not disturb.
Every token has a near neighbour, so that a beam has something to weigh. An output is as long as its source, for every
tool, which weights without a meaning would not give.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus import DATA

from regard.text.lines import lines

SEED = 7
PIECES = 32_000
TEXTS = {"train": "wmt-train-sample/train.{}.gz", "use": "wmt-news/newstest2012.{}.gz"}
PLACES = 128
"""Entries of a vector that hold the position: the sines and cosines that turn fastest."""
NEIGHBOUR = 0.9
"""How alike the embeddings of a token and of its neighbour are, as a cosine."""
FOUND = 3.0
"""What the cross-attention adds, as a multiple of what was there."""
SHARP = 6.0
"""Queries and keys of the positions are multiplied by it."""
SMALL = 0.1
"""The outputs of the other sub-layers are multiplied by it."""
BASE: dict[str, Any] = {"tie": "three"}
OPUS: dict[str, Any] = {**BASE, "activation": "swish"}
NLLB: dict[str, Any] = {**BASE, "norm_place": "pre", "encoder_layers": 12, "decoder_layers": 12}
NLLB |= {"d_model": 1024, "d_ff": 4096, "heads": 16}
BERT: dict[str, Any] = {"layers": 12, "d_model": 768, "d_ff": 3072, "heads": 12, "positions": "learned"}
GPT: dict[str, Any] = {**BERT, "activation": "gelu_tanh"}


def read(name: str, language: str) -> list[str]:
    """The lines of a text.

    Raises:
        SystemExit: the data is not there.
    """
    path = DATA / TEXTS[name].format(language)
    if not path.exists():
        raise SystemExit(f"this benchmark needs {TEXTS[name].format(language)} below REGARD_DATA; set that variable")
    return lines_of(path)


def lines_of(path: Path) -> list[str]:
    """The lines of a file, plain or gz."""
    return list(lines(path))


def texts(folder: Path, count: int, longest: int = 80) -> list[str]:
    """So many sentences of the news, drawn by seed, of 3 to ``longest`` tokens of a folder's tokenizer."""
    import numpy as np

    from regard.text.tokenizers.tokenizer import Tokenizer

    news = read("use", "en")
    lengths = [len(ids) + 1 for ids in Tokenizer.load(folder / "tokenizer.json").ids_batch(news)]
    fitting = [line for line, length in zip(news, lengths, strict=True) if 3 <= length <= longest]
    return [fitting[place] for place in np.random.default_rng(SEED).permutation(len(fitting))[:count]]


def of_length(folder: Path, lines: list[str], tokens: int) -> str:
    """The first line of so many tokens, ``</s>`` counted; else the nearest."""
    from regard.text.tokenizers.tokenizer import Tokenizer

    lengths = [len(ids) + 1 for ids in Tokenizer.load(folder / "tokenizer.json").ids_batch(lines)]
    return lines[min(range(len(lines)), key=lambda place: (abs(lengths[place] - tokens), place))]


def translator(folder: Path, sizes: dict[str, Any] = BASE, pieces: int = PIECES) -> Path:
    """The base shape of the paper: 6 + 6 layers, d_model 512, d_ff 2,048, 8 heads, 32,000 pieces; or another.

    Pieces beyond those are never read, and cost in the output what others do.
    """
    from regard.text.tokenizers.tokenizer import Tokenizer
    from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies

    pairs = zip(read("train", "en"), read("train", "de"), strict=True)
    learned = learn_vocabularies(pairs, PIECES).source
    assert isinstance(learned, Tokenizer)
    more = [f"zzz{number}zzz" for number in range(pieces - learned.size)]
    tokenizer = Tokenizer([*learned.names, *more], learned.merges, learned.normalisation)
    assets = Vocabularies(tokenizer, tokenizer, joint=True)
    task = _task("translation", assets, sizes, {"text": {"source_language": "en", "target_language": "de"}})
    _copying(task.model, task.recipe.model)
    return _written(folder, task)


def opus(folder: Path) -> Path:
    """The shape of OPUS-MT: the base shape with swish and 58,101 pieces."""
    return translator(folder, OPUS, 58_101)


def nllb(folder: Path) -> Path:
    """The shape of NLLB with 600 million weights: 12 + 12 layers, d_model 1,024, 256,206 pieces, pre-norm."""
    return translator(folder, NLLB, 256_206)


def encoder(folder: Path) -> Path:
    """BERT's base size, with 32,000 pieces."""
    return _single_stack(folder, "encoding", BERT, ("[CLS]", "[MASK]"))


def language_model(folder: Path) -> Path:
    """GPT-2's smallest size, with 32,000 pieces; ``</s>`` is never the most probable."""
    return _single_stack(folder, "language-model", GPT, ())


def _single_stack(folder: Path, name: str, sizes: dict[str, Any], symbols: tuple[str, ...]) -> Path:
    from regard.tasks.assets import TextAssets
    from regard.text.tokenizers.tokenizer import learn

    tokenizer = learn(read("train", "en") + read("train", "de"), PIECES, symbols=symbols)
    task = _task(name, TextAssets(tokenizer), sizes, {})
    for weight in task.model.parameters():
        if len(weight) == tokenizer.size:
            weight[tokenizer.end] = 0.0
    return _written(folder, task)


def _task(name: str, assets: Any, model: dict[str, Any], sections: dict[str, Any]) -> Any:
    from regard.config import TASKS, recipe_from
    from regard.tasks import model_class

    recipe = recipe_from({"task": name, "model": {**model, "family": TASKS[name].families[0]}, **sections})
    built = model_class(name).build(recipe, assets.sizes, SEED)
    return model_class(name)(recipe, assets, built.float().eval().requires_grad_(False))


def _written(folder: Path, task: Any) -> Path:
    from regard.config import recipe_toml
    from regard.models import store
    from regard.tasks.model_folder import MODEL, RECIPE
    from regard.training.checkpoints import manifest
    from regard.training.checkpoints.files import Files

    contents = {RECIPE: [recipe_toml(task.recipe).encode()], **{n: [c] for n, c in task.assets.contents.items()}}
    contents[MODEL] = [store.to_bytes(store.weights(task.model))]
    folder.mkdir(parents=True)
    manifest.replace(folder, contents, Files())
    return folder


def _copying(model: Any, section: Any) -> None:
    """Weights by which the model copies; ``model`` is drawn already."""
    import torch

    generator, d_model = torch.Generator().manual_seed(SEED), section.d_model
    table = model.encoder.input.tokens.weight
    pieces, free = len(table) - 1, d_model - PLACES
    own = torch.randn(pieces // 2, free, generator=generator).repeat_interleave(2, 0) * NEIGHBOUR**0.5
    own += torch.randn(pieces // 2 * 2, free, generator=generator) * (1 - NEIGHBOUR) ** 0.5
    table.zero_()
    table[: len(own), PLACES:] = own * free**-0.5
    for name, weight in model.named_parameters():
        if name.endswith(("output.weight", "outer.weight")) and weight is not table:
            weight.mul_(SMALL)
    cross = model.decoder.layers[-1].cross
    for part in (cross.query, cross.key, cross.value, cross.output):
        part.weight.zero_()
    turning = torch.eye(section.key_size, d_model) * SHARP  # every head looks at the fastest entries
    cross.query.weight.copy_(turning.repeat(section.heads, 1))
    cross.key.weight.copy_(turning.repeat(section.heads, 1))
    cross.value.weight.copy_(torch.eye(d_model))
    cross.output.weight[PLACES:, PLACES:] = torch.eye(free) * FOUND


def forms(folder: Path, wanted: Sequence[str] = ("huggingface", "ctranslate2")) -> dict[str, str]:
    """The model in the form of every tool, made where it is not there: beside the folder, by Regard's exporters."""
    from regard.runs.conversion import export_model

    found = {"regard": folder, "onnx": folder.with_name(f"{folder.name}-onnx")}
    for form in wanted:
        found[form] = folder.with_name(f"{folder.name}-{form}")
        if not found[form].exists():
            export_model(folder, found[form], form)  # type: ignore[arg-type]
    return {form: str(place.resolve()) for form, place in found.items()}


def packed(folder: Path, precision: str) -> Path:
    """The model with its weights packed in a precision (``regard pack``), as other tools have theirs converted."""
    place = folder.with_name(f"{folder.name}-{precision}")
    if not place.exists():
        from regard.runs.pack import pack_weights

        shutil.copytree(folder, place, copy_function=os.link, ignore=shutil.ignore_patterns("training"))
        pack_weights(place, precision)  # type: ignore[arg-type]
    return place.resolve()


def copied(folder: Path, beside: Path) -> Path:
    """A model folder's files without those of its training, below another folder, so that its forms can lie there."""
    from regard.tasks.model_path import fingerprint

    place = beside / f"{folder.resolve().name}-{(fingerprint(folder) or '')[:12]}"
    if not place.exists():
        shutil.copytree(folder, place, ignore=shutil.ignore_patterns("training"))
    return place
