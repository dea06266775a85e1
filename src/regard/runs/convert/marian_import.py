"""Import of Marian's own models: OPUS-MT's releases (``decoder.yml``, ``.npz``) and Firefox's students (``.bin``).

What is computed stands in Marian's ``src/models/transformer.h``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from regard.config import Decoding, TransformerSection, merge, recipe_from
from regard.models.presets import meta_model
from regard.runs.convert.hub import CONFIG, FLAG, TEXTS, WHOLE, Fields
from regard.runs.convert.hub_import import MOST, ImportedModel
from regard.runs.convert.layouts.format import (
    NONE,
    TABLES,
    InitialTensor,
    Row,
    inward,
    refuse_other_shapes,
    refuse_surplus,
    sides,
)
from regard.runs.convert.marian_files import SETTINGS, parse_settings, parse_vocabulary, read_marian_file
from regard.runs.convert.translator_files import SOURCE_MODEL, of_sides
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.text.shortlist import Shortlist
from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer, names_by_id
from regard.text.tokenizers.vocabulary import Vocabularies

TASK = "translation"
LONGEST = 512
"""Tokens of a text; a longer one is cut, as everywhere."""
WEIGHTS = ("*.npz", "*.intgemm*.bin*", "model.?*.bin*")
BESIDE = ("*.yml", "*.spm*")
NAMES = (("srcvocab.*spm*", "trgvocab.*spm*"), ("*src.vocab.yml", "*trg.vocab.yml"), ("vocab.*spm*",), ("*vocab.yml",))
"""Files of pieces where no settings name them: the source's and the target's, or of both."""
PACKED = (".gz", ".xz", ".zst", ".bz2")
ONLY: dict[str, object] = {
    "type": "transformer",
    "transformer-ffn-depth": 2,
    "transformer-no-projection": False,
    "transformer-train-position-embeddings": False,
    "transformer-train-positions": False,
    "transformer-rnn-projection": False,
    "transformer-tied-layers": [],
    "transformer-pool": False,
    "layer-normalization": False,
    "lemma-dim-emb": 0,
    "right-left": False,
    "ulr": False,
}
"""Settings that have one value in all models that can be imported."""
STEPS = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
PLACES = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
"""What is done before and after each sub-layer and after the last one, but for dropout: norm, addition."""
ACTIVATIONS = {"relu": "relu", "swish": "swish", "gelu": "swish"}
QUICK = 1.702
FACTORS = {"gelu": {"ffn_W1": QUICK, "ffn_b1": QUICK, "ffn_W2": 1 / QUICK}}
"""Marian's GELU is ``x σ(1.702 x)``: the swish of ``1.702 x``, divided by that. By ends of names."""
TABLES_THERE, OUTPUT = ("Wemb", "encoder_Wemb", "decoder_Wemb"), "decoder_ff_logit_out_W"
RECURRENT, ATTENTION = "rnn", "self-attention"
EPSILON = 1e-6
_PAIR = re.compile(r"model\.([a-z]{2})([a-z]{2})\..*")


def is_marian(folder: Path) -> bool:
    """Whether a folder holds weights of Marian, and no ``config.json`` of others."""
    held, beside = (any(any(folder.glob(name)) for name in names) for names in (WEIGHTS, BESIDE))
    return held and beside and not (folder / CONFIG).exists()


def read_marian_model(folder: Path, wanted: str | None = None) -> ImportedModel:
    """The translator of a folder that Marian made, as OPUS-MT and Firefox have them.

    Args:
        folder: where it lies; what its settings name elsewhere is looked for in it.
        wanted: the task it is to be for.

    Raises:
        UsageError: it is to be for another task.
        RegardError: a file is missing, packed or damaged, or the model has a setting that is not supported.
    """
    if wanted not in (None, TASK):
        raise UsageError(f"a model of Marian is for {TASK}, not for {wanted}", Option("task"))
    said = _said(folder)
    path, files = _weights(folder, said), _vocabularies(folder, said)
    (held, settings), where = read_marian_file(path), str(path)
    values = _values(settings, said, path)
    model = recipe_from(values, where).model
    assert isinstance(model, TransformerSection)
    rows = [*_tables(settings), *_rows(model)]
    refuse_surplus(rows, held, NONE, where)
    activation = str(settings.get("transformer-ffn-activation"))
    tensors = {name: _as_ours(name, torch.from_numpy(one), activation, where) for name, one in held.items()}
    weights = inward(rows, tensors, where, SETTINGS)
    sizes = len(weights[TABLES[0]]) - 1, len(weights.get(TABLES[1], weights[TABLES[0]])) - 1
    refuse_other_shapes(weights, meta_model(model, *sizes), where, SETTINGS)
    vocabularies = _read(folder, files, sizes)
    vocabularies = replace(vocabularies, shortlist=_shortlist(folder, sizes))
    recipe = recipe_from(merge(values, {"text": {"vocabulary": max(300, *sizes)}}), where)
    return ImportedModel(recipe, weights, vocabularies, layout="Marian's format", file=path.name)


def _said(folder: Path) -> Fields:
    """What the folder says of its files and of search."""
    for path in (*sorted(folder.glob("*decoder.yml")), *sorted(folder.glob("config*.yml"))):
        return parse_settings(disk.content(path), str(path))
    return Fields({}, str(folder))


def _weights(folder: Path, said: Fields) -> Path:
    """The file of weights: what the settings name, or the only one there is."""
    named = {folder / Path(name).name for name in said.parse("models", TEXTS, [])}
    paths = named or {path for name in WEIGHTS for path in folder.glob(name)}
    if len(paths) > 1:
        names = ", ".join(sorted(path.name for path in paths))
        raise RegardError(f"has several models, which are not read as one: {names[:200]}; keep one", str(folder))
    return _refuse_packed(paths.pop())


def _vocabularies(folder: Path, said: Fields) -> tuple[Path, Path]:
    """The files of pieces of source and target, which may be one."""
    found = [folder / Path(name).name for name in said.parse("vocabs", TEXTS, [])]
    for names in NAMES:
        there = [path for name in names for path in sorted(folder.glob(name))[:1]]
        found = found or (there if len(there) == len(names) else [])
    if not found:
        raise RegardError("has no vocabulary: a .spm or .vocab.yml is needed", str(folder))
    return _refuse_packed(found[0]), _refuse_packed(found[-1])


def _shortlist(folder: Path, sizes: tuple[int, int]) -> Shortlist | None:
    """The list of likely pieces, where there is one."""
    every = sorted(folder.glob("lex.*bin*"))
    paths = [path for path in every if path.suffix not in PACKED] or every
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise RegardError(f"has several lists of likely pieces: {names[:200]}; keep one", str(folder))
    return Shortlist.of(disk.content(_refuse_packed(paths[0])), sizes, str(paths[0])) if paths else None


def _refuse_packed(path: Path) -> Path:
    if path.suffix in PACKED:
        raise RegardError("is packed; unpack it first", str(path))
    return path


def _read(folder: Path, files: tuple[Path, Path], sizes: tuple[int, int]) -> Vocabularies:
    """The vocabularies: SentencePiece models whose ids are the rows, or tables of ids and such models."""
    if {path.suffix for path in files} == {".spm"}:
        source = SentencePieceTokenizer.read(files[0])
        target = source if files[0] == files[1] else SentencePieceTokenizer.read(files[1])
        for path, found, size in zip(files, (source.size, target.size), sizes, strict=True):
            if found != size:
                raise RegardError(f"has {found:,} pieces, the model's table {size:,} rows", str(path))
        return Vocabularies(source, target, joint=source.content == target.content)
    if {path.suffix for path in files} != {".yml"} or not (folder / SOURCE_MODEL).exists():
        message = "has no SentencePiece model (source.spm) with it; words, BPE codes and factors are not supported"
        raise RegardError(message, str(files[0]))
    names, other = (names_by_id(parse_vocabulary(disk.content(path), str(path)), str(path)) for path in files)
    return of_sides(folder, names, other, sizes)


def _values(settings: Fields, said: Fields, path: Path) -> dict[str, object]:
    """The values of a recipe; the languages are in the names that Firefox gives its files."""
    section = _section(settings)
    text: dict[str, object] = {"joint": section["tie"] == "three"}
    if pair := _PAIR.fullmatch(path.name):
        text |= {"source_language": pair[1], "target_language": pair[2]}
    beam = said.parse("beam-size", WHOLE, 1 if "decoder_cell" in section else Decoding().beam)
    found: dict[str, object] = {"task": TASK, "model": section, "text": text, "data": {"max_tokens": LONGEST}}
    return found | {"decoding": {"beam": min(beam, MOST)}}


def _section(settings: Fields) -> dict[str, object]:
    """The settings as values of our model section."""
    d_ff, known = settings.parse("transformer-dim-ffn", WHOLE), settings.fill(**ONLY)
    known.only(**ONLY)
    for name, usual in (("transformer-decoder-dim-ffn", d_ff), ("transformer-decoder-ffn-depth", 2)):
        if settings.get(name):
            settings.only(**{name: usual})
    steps = tuple(str(settings.get(name) or "").replace("d", "") for name in STEPS)
    if steps not in PLACES:
        raise RegardError(f"{', '.join(STEPS)} are {steps}, dropout left out; known: {[*PLACES]}", settings.where)
    section: dict[str, object] = {
        "family": "transformer",
        "encoder_layers": settings.parse("enc-depth", WHOLE),
        "decoder_layers": settings.parse("dec-depth", WHOLE),
        "d_model": settings.parse("dim-emb", WHOLE),
        "d_ff": d_ff,
        "heads": settings.parse("transformer-heads", WHOLE),
        "activation": settings.word("transformer-ffn-activation", ACTIVATIONS),
        "positions": "timing_signal",
        "norm_place": PLACES[steps],
        "norm_epsilon": EPSILON,
        "dropout": 0.0,  # which the files do not say; a student that learned without would be spoiled
        "tie": {(True, True): "three", (False, True): "two"}.get(_ties(settings), "none"),
    }
    if not settings.parse("output-omit-bias", FLAG, False):
        section["output_bias"] = True
    if settings.word("transformer-postprocess-emb", {"": "", "d": "", "n": "n", "nd": "n", "dn": "n"}, ""):
        section["embedding_norm"] = True
    if settings.word("transformer-decoder-autoreg", {ATTENTION: "", RECURRENT: RECURRENT}, ATTENTION):
        section["decoder_cell"] = settings.word("dec-cell", {"ssru": "ssru"})
    return section


def _ties(settings: Fields) -> tuple[bool, bool]:
    """Whether the tables of both sides are one, and whether the target's is the output too."""
    whole, source, target = (settings.parse(f"tied-embeddings{name}", FLAG, False) for name in ("-all", "-src", ""))
    return whole or source, whole or target


def _as_ours(name: str, tensor: Tensor, activation: str, where: str) -> Tensor:
    """A tensor in our form: there a matrix is of what is read by what is written, and a vector has one row."""
    if tensor.dim() != 2:
        raise RegardError(f"{name!r} has the shape {list(tensor.shape)}; two sizes are expected", where)
    factors = FACTORS.get(activation, {})
    if factor := factors.get(name[-6:]):
        tensor = tensor * factor
    if len(tensor) == 1:
        return tensor.flatten()
    return tensor if name in TABLES_THERE else tensor.t()


def _tables(settings: Fields) -> Iterator[Row]:
    """The rows of tables; each gets one more row, of zeros, which starts a text."""
    shared, output = _ties(settings)
    both, source, target = TABLES_THERE
    if shared:
        yield Row(both, *TABLES[: 2 - output], form=InitialTensor(None, 2 - output, zeros=True))
    else:
        for theirs, ours in zip((source, target), TABLES, strict=True):
            yield Row(theirs, ours, form=InitialTensor(None, zeros=True))
    if not output:
        yield Row(OUTPUT, "output.weight", form=InitialTensor(None, zeros=True))


def _rows(model: TransformerSection) -> Iterator[Row]:
    """The rows of all other tensors."""
    pre = "_pre" if model.norm_place == "pre" else ""

    def affine(theirs: str, end: str, ours: str) -> Iterator[Row]:
        yield Row(f"{theirs}_W{end}", f"{ours}.weight")
        yield Row(f"{theirs}_b{end}", f"{ours}.bias")

    def norm(theirs: str, ours: str, end: str = pre) -> Iterator[Row]:
        yield Row(f"{theirs}_ln_scale{end}", f"{ours}.weight")
        yield Row(f"{theirs}_ln_bias{end}", f"{ours}.bias")

    for side, layers, sublayers in sides(model):
        for layer in range(layers):
            theirs, ours = f"{side}_l{layer + 1}", f"{side}.layers.{layer}"
            for name in sublayers:
                if model.decoder_cell and (side, name) == ("decoder", "attention"):
                    yield Row(f"{theirs}_rnn_W", f"{ours}.recurrence.value.weight")
                    yield from affine(f"{theirs}_rnn", "f", f"{ours}.recurrence.forget_gate")
                    yield from norm(f"{theirs}_rnn" if pre else f"{theirs}_rnn_ffn", f"{ours}.recurrence_residual.norm")
                    continue
                part = f"{theirs}_{'context' if name == 'cross' else 'self'}"
                for our in ("query", "key", "value", "output"):
                    yield from affine(part, our[0], f"{ours}.{name}.{our}")
                yield from norm(f"{part}_Wo", f"{ours}.{name}_residual.norm")
            yield from affine(f"{theirs}_ffn", "1", f"{ours}.feedforward.inner")
            yield from affine(f"{theirs}_ffn", "2", f"{ours}.feedforward.outer")
            yield from norm(f"{theirs}_ffn_ffn", f"{ours}.feedforward_residual.norm")
        if pre:
            yield from norm(f"{side}_top", f"{side}.final", "")
        if model.embedding_norm:
            yield from norm(f"{side}_emb", f"{side}.input.norm", "_pre")
    if model.output_bias:
        yield Row("decoder_ff_logit_out_b", "output_bias")
