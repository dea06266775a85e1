"""``regard info``: a model's parameters by part, compared with the paper's figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.terminal import result, result_json
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted
from regard.text.languages import UNKNOWN

if TYPE_CHECKING:
    from regard.config import Attentive, BertSection, GptSection, Model, Recipe, TransformerSection, VitSection
    from regard.models.presets import Part

WORDS = {
    "attention": "self-attention",
    "recurrence": "recurrence",
    "cross": "encoder-decoder attention",
    "feedforward": "feed-forward",
    "attention_residual": "norm of self-attention",
    "recurrence_residual": "norm of recurrence",
    "cross_residual": "norm of encoder-decoder attention",
    "feedforward_residual": "norm of feed-forward",
    "final": "last norm",
}
"""The paper's terms for the parts."""
MOST_PIECES = 1_000_000_000
SHARED = {"none": "nothing shared", "two": "output shared", "three": "embeddings and output shared"}
WAYS = {True: "two ways", False: "one way"}
POOLED = {
    "mean": "a text, or a tagged word, is the mean of its hidden vectors",
    "max": "a text, or a tagged word, is the largest of its hidden vectors, entry by entry",
    "attention": "a text is the mean of its hidden vectors, weighed by attention",
}


def info(
    name: Annotated[str, Parameter(name="DIR|PRESET")], /, *, vocabulary: int | None = None, json: bool = False
) -> None:
    """Show a model's parameters part by part, beside the paper's figure, and what a folder's can be exported to.

    Args:
        name: a model folder, or a preset: tiny, small, base, big, a row of the paper's Table 3 (A1 ... E), bert-base,
            gpt2, t5-small, vit-base and others; a name that is unknown is answered with all.
        vocabulary: pieces of a preset's vocabulary; default: the published one's, in the paper 37,000.
        json: print one JSON object.
    """
    from regard.models import presets

    if vocabulary is not None and not 1 <= vocabulary <= MOST_PIECES:
        raise UsageError(f"{vocabulary} pieces are no vocabulary; give 1 to {MOST_PIECES:,}", "--vocabulary")
    folder = Path(name)
    if folder.is_dir():
        if vocabulary is not None:
            raise UsageError("--vocabulary goes with a preset; a model folder has its own")
        from regard.runs.conversion import exports_of
        from regard.tasks.model_folder import load_recipe_and_assets, outline
        from regard.tasks.model_path import MODEL, model_folder
        from regard.tasks.text.precisions import read

        recipe, assets = load_recipe_and_assets(found := model_folder(folder))
        model, sizes, built = recipe.model, assets.sizes, outline(recipe, assets)  # which hardly reads a weight
        more, said = _folder_facts(found, recipe, assets)
        exported = "".join(f"\n{line}\n" for line in [*said, exports_of(found, recipe, assets).line])
        packed = read(found) if (found / MODEL).exists() else None
        known, title = None, f"{name if found == folder else found}, a model folder"
    else:
        if folder.exists() or "/" in name:
            raise RegardError("is no model folder; give one, or the name of a preset", name)
        chosen = presets.preset(name)
        model, sizes = chosen.section, (vocabulary or chosen.pieces,) * 2
        if vocabulary is not None and model.family == "vit":
            raise UsageError(f"{name} reads images, which have no vocabulary", "--vocabulary")
        built = presets.meta_model(model, *sizes)
        known = chosen.parameters if vocabulary is None else None
        title, exported = f"{name}, {chosen.what}" if chosen.what else f"{name}, a preset", ""
        packed, more = None, {}
    parts = presets.parts_of(built)
    if json:
        values = {
            "name": name,
            "model": model.model_dump(),
            "source_pieces": sizes[0],
            "target_pieces": sizes[1],
            "parts": [{"name": part.name, "parameters": part.parameters} for part in parts],
            "total": sum(part.parameters for part in parts),
            "paper_millions": known,
            **more,
        }
        if packed:
            values["precisions"] = {**packed.model_dump(), "kept": packed.kept}
        result_json(values)
    else:
        measured = "".join(f"{line}\n" for line in ["", *packed.lines()]) if packed else ""
        result(table(title, model, sizes, parts, known) + exported + measured)


def _folder_facts(folder: Path, recipe: Recipe, assets: Any) -> tuple[dict[str, object], list[str]]:
    """What only a model folder says, as values and lines: languages of a translator, the base of an adapter."""
    from regard.config.adapter import Base

    values, lines = dict[str, object](), list[str]()
    pair, known = (recipe.text.source_language, recipe.text.target_language), getattr(assets, "languages", None)
    if known:
        values = {"languages": known.codes, "directions": known.directions}
        lines.append(known.sentence)
    elif recipe.info.learns_from == "pairs" and UNKNOWN not in pair:
        values = {"languages": pair, "directions": [pair]}
        lines.append(f"It translates {' → '.join(pair)}.")
    if base := Base.of(folder):
        values["adapter"] = {"base": str(base.folder), "sha256": base.sha256, "rank": recipe.adapt.rank}
        whose = f"whose weights have the sha256 {base.sha256[:16]}"
        lines.append(f"It is an adapter of rank {recipe.adapt.rank} of {base.folder}, {whose}.")
    return values, lines


def table(title: str, model: Model, sizes: tuple[int, int], parts: list[Part], known: int | None) -> str:
    """The parts as a table; identical layers share a row."""
    total = sum(part.parameters for part in parts)
    lines = [title, *describe(model, sizes), "", f"{'part':<46} {'each':>12} {'parameters':>14} {'share':>7}"]
    for name, count, each in group_parts(parts):
        times = f"{name} × {count}" if count > 1 else name
        alone = f"{each:,}" if count > 1 else ""
        lines.append(f"{times:<46} {alone:>12} {count * each:>14,} {count * each / max(total, 1):>7.1%}")
    lines.append(f"{'all':<46} {'':>12} {total:>14,} {1:>7.1%}")
    if known is not None:
        said = "its published weights have" if model.family == "gpt" else "the paper says"
        lines += ["", f"{total / 1e6:.1f} million here; {said} {known} million"]
    return "\n".join(lines) + "\n"


def describe(model: Model, sizes: tuple[int, int]) -> list[str]:
    """A family in two lines: its sizes, then its components and input."""
    if model.family == "rnn-encoder":
        layers = f"{counted(model.layers, 'layer')} of {model.cell} cells"
        first = f"d_model {model.d_model}, {layers}, reading {WAYS[model.two_way]}"
        return [first, f"{sizes[0]:,} pieces, {POOLED[model.pool]}"]
    if model.family == "rnn":
        attention = "no attention" if model.score == "none" else f"{model.score} attention"
        first = f"d_model {model.d_model}, {model.cell} cells, reading {WAYS[model.two_way]}, {attention}"
        return [first, f"{_pieces(sizes)}, {SHARED[model.tie]}"]
    stacks: list[Attentive] = [model]
    if model.family == "transformer" and model.decoder.heads != model.heads:
        stacks.append(model.decoder)
    heads = " + ".join(f"{counted(one.heads, 'head')} (d_k {one.key_size}, d_v {one.value_size})" for one in stacks)
    kinds = f"{model.positions} positions, {model.norm_place}-norm; {_attention_text(model, sizes)}"
    return [f"d_model {model.d_model}, d_ff {model.d_ff}, {heads}", kinds]


def _attention_text(model: TransformerSection | BertSection | GptSection | VitSection, sizes: tuple[int, int]) -> str:
    """The vocabularies or patches of an attention model, and its shared embeddings."""
    if model.family == "transformer":
        return f"{_pieces(sizes)}, {SHARED[model.tie]}"
    if model.family == "gpt":
        return f"{sizes[0]:,} pieces, output shared"
    if model.family == "vit":
        pixels = f"images of {model.height} × {model.width} × {model.channels}"
        return f"{pixels} in {model.patches} patches, {sizes[1]:,} classes"
    return f"{sizes[0]:,} pieces"


def _pieces(sizes: tuple[int, int]) -> str:
    both = sizes[1] not in (0, sizes[0])  # models of running text have one vocabulary and no target side
    return f"{sizes[0]:,} and {sizes[1]:,} pieces" if both else f"{sizes[0]:,} pieces"


def group_parts(parts: list[Part]) -> list[tuple[str, int, int]]:
    """Group parts of equal name and size over all layers: (name, count, parameters of each)."""
    found: dict[tuple[str, int], int] = {}
    for part in parts:
        words = [WORDS.get(word, word) for word in part.name.split(".") if not word.isdigit()]
        key = (" ".join(words), part.parameters)
        found[key] = found.get(key, 0) + 1
    return [(name, count, each) for (name, each), count in found.items() if each]
