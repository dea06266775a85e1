"""``regard info``: the parameters of a model, part by part, beside the paper's figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.config import Recipe
    from regard.models.presets import Part


WORDS = {
    "attention": "self-attention",
    "cross": "encoder-decoder attention",
    "feedforward": "feed-forward",
    "attention_residual": "norm of self-attention",
    "cross_residual": "norm of encoder-decoder attention",
    "feedforward_residual": "norm of feed-forward",
    "final": "last norm",
}
"""The paper's words for the parts' names."""
MOST_PIECES = 1_000_000_000


def info(
    name: Annotated[str, Parameter(name="DIR|PRESET")],
    /,
    *,
    vocabulary: int | None = None,
    json: bool = False,
) -> int:
    """Show a model's parameters part by part, beside the paper's figure.

    Args:
        name: a model folder, or a preset: tiny, small, base, big, or a row of the paper's Table 3 (A1 ... E).
        vocabulary: pieces of a preset's shared vocabulary; default: the paper's 37,000.
        json: print one JSON object.
    """
    from regard.cli.terminal import result, result_json
    from regard.models import presets

    if vocabulary is not None and not 1 <= vocabulary <= MOST_PIECES:
        raise UsageError(f"{vocabulary} pieces are no vocabulary; give 1 to {MOST_PIECES:,}", "--vocabulary")
    folder = Path(name)
    if folder.is_dir():
        if vocabulary is not None:
            raise UsageError("--vocabulary goes with a preset; a model folder has its own")
        recipe, sizes = _of_folder(folder)
        paper, title = None, f"{name}, a model folder"
    else:
        if folder.exists() or "/" in name:
            raise RegardError("is no model folder; give one, or the name of a preset", name)
        chosen = presets.preset(name)
        recipe, sizes = _of_preset(chosen), (vocabulary or presets.PAPER_VOCABULARY,) * 2
        paper = chosen.parameters if vocabulary is None else None
        title = f"{name}, {chosen.what}" if chosen.what else f"{name}, a preset"
    parts = presets.parts(recipe.model, *sizes)
    if json:
        result_json(_values(name, recipe, sizes, parts, paper))
    else:
        result(table(title, recipe, sizes, parts, paper))
    return 0


def _of_preset(chosen: Any) -> Recipe:
    from regard.config import recipe_from

    return recipe_from({"model": chosen.model})


def _of_folder(folder: Path) -> tuple[Recipe, tuple[int, int]]:
    """A model folder's recipe and the sizes of its vocabularies, without reading its weights."""
    from regard.tasks.bundle import opened

    recipe, vocabularies = opened(folder)
    return recipe, (vocabularies.source.size, vocabularies.target.size)


def _values(name: str, recipe: Recipe, sizes: tuple[int, int], parts: list[Part], paper: int | None) -> dict[str, Any]:
    return {
        "name": name,
        "model": recipe.model.model_dump(),
        "source_pieces": sizes[0],
        "target_pieces": sizes[1],
        "parts": [{"name": part.name, "parameters": part.parameters} for part in parts],
        "total": sum(part.parameters for part in parts),
        "paper_millions": paper,
    }


def table(title: str, recipe: Recipe, sizes: tuple[int, int], parts: list[Part], paper: int | None) -> str:
    """The parts as a table; layers that are alike stand in one line."""
    model = recipe.model
    total = sum(part.parameters for part in parts)
    shared = {"none": "nothing shared", "two": "output shared", "three": "embeddings and output shared"}[model.tie]
    pieces = f"{sizes[0]:,} pieces" if sizes[0] == sizes[1] else f"{sizes[0]:,} and {sizes[1]:,} pieces"
    lines = [
        title,
        f"d_model {model.d_model}, d_ff {model.d_ff}, "
        f"{model.heads} heads (d_k {model.key_size}, d_v {model.value_size})",
        f"{model.positions} positions, {model.norm_place}-norm; {pieces}, {shared}",
        "",
        f"{'part':<46} {'each':>12} {'parameters':>14} {'share':>7}",
    ]
    for name, count, each in grouped(parts):
        times = f"{name} × {count}" if count > 1 else name
        alone = f"{each:,}" if count > 1 else ""
        lines.append(f"{times:<46} {alone:>12} {count * each:>14,} {count * each / max(total, 1):>7.1%}")
    lines.append(f"{'all':<46} {'':>12} {total:>14,} {1:>7.1%}")
    if paper is not None:
        lines += ["", f"{total / 1e6:.1f} million here; the paper says {paper} million"]
    return "\n".join(lines) + "\n"


def grouped(parts: list[Part]) -> list[tuple[str, int, int]]:
    """Parts of equal name and size in all layers as one: (name, how many, parameters of each)."""
    found: dict[tuple[str, int], int] = {}
    for part in parts:
        words = [WORDS.get(word, word) for word in part.name.split(".") if not word.isdigit()]
        key = (" ".join(words), part.parameters)
        found[key] = found.get(key, 0) + 1
    return [(name, count, each) for (name, each), count in found.items() if each]
