"""The model card, ``card.md``: architecture, training data and scores."""

from __future__ import annotations

from pathlib import Path

from regard.config import Model, Recipe, RnnEncoderSection, RnnSection, TransformerSection
from regard.system import disk
from regard.tasks.metrics.bleu import TranslationScores
from regard.tasks.protocols import PreparedData
from regard.training.objective import TITLES, Validation
from regard.training.progress import Best

CARD = "card.md"
TASK_NOUNS = {
    "translation": "A translator",
    "classification": "A text classifier",
    "tagging": "A tagger",
    "language-model": "A language model",
    "masked-lm": "A masked language model",
    "span-corruption": "A span-corruption model",
    "image-classification": "An image classifier",
    "encoding": "A text encoder",
}
FAMILIES = {
    "transformer": "Transformer",
    "rnn": "recurrent encoder-decoder",
    "rnn-encoder": "recurrent encoder",
    "bert": "Transformer encoder",
    "gpt": "Transformer decoder",
    "vit": "vision Transformer",
}


def card(recipe: Recipe, data: list[str], fingerprint: str, parameters: int, lines: list[str]) -> str:
    """The card's text.

    Args:
        recipe: of the model.
        data: lines about the training data; ``fingerprint``: of the data.
        parameters: of the model.
        lines: its scores.
    """
    training = recipe.training
    return "\n".join(
        [
            *_header_lines(recipe, parameters),
            "## Data",
            "",
            f"{data[0]}; fingerprint {fingerprint[:16]}.",
            *data[1:],
            "",
            "## Scores on the validation data",
            "",
            *lines,
            "",
            "## Training",
            "",
            f"{training.steps or 'open number of'} steps of up to {training.tokens * training.accumulate:,} "
            f"tokens, seed {recipe.seed}; everything else is in recipe.toml.",
            "",
        ]
    )


def imported_card(recipe: Recipe, parameters: int, lines: list[str]) -> str:
    """The card of an imported model; ``lines`` give its source."""
    known = ["No scores are known; `regard evaluate` computes them.", ""] if recipe.task in SCORED else []
    return "\n".join([*_header_lines(recipe, parameters), "## Source", "", *lines, "", *known])


SCORED = ("translation", "classification", "tagging", "language-model", "image-classification")
"""Tasks whose models can be scored on user data."""


def _header_lines(recipe: Recipe, parameters: int) -> list[str]:
    text = recipe.text
    languages = f": {text.source_language} → {text.target_language}" if recipe.task == "translation" else ""
    sizes = f"{parameters / 1e6:.1f} million parameters: {_sizes(recipe.model)}"
    return [f"# {TASK_NOUNS[recipe.task]}{languages}", "", f"A {FAMILIES[recipe.model.family]} of {sizes}.", ""]


def _sizes(model: Model) -> str:
    """The sizes of a model in a line."""
    if isinstance(model, RnnSection | TransformerSection):
        layers = f"{model.encoder_layers} + {model.decoder_layers} layers"
    else:
        layers = f"{model.layers} layers"
    if isinstance(model, RnnSection):
        attention = "no attention" if model.score == "none" else f"{model.score} attention"
        return f"{layers}, {model.cell}, d_model {model.d_model}, {attention}"
    if isinstance(model, RnnEncoderSection):
        return f"{layers}, {model.cell}, d_model {model.d_model}, pooled by {model.pool}"
    return f"{layers}, d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads, {model.norm_place}-norm"


def final(output: Path) -> bool:
    """Whether a model folder's card holds its final scores; a run killed after its last step has still to make them."""
    path = output / CARD
    return path.exists() and "\n* " in disk.content(path, kind="card").decode("utf-8", "replace")


def left_out(prepared: PreparedData) -> list[str]:
    """How many examples were not learned from, and why; nothing where all were."""
    counts = {kind: count for kind, count in prepared.left_out.get("counts", {}).items() if count}
    if not counts:
        return []
    return ["Left out: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + "."]


def validation_lines(best: Best, validation: Validation) -> list[str]:
    """Card lines with the scores of the best validation."""
    parts = [f"loss {validation.loss:.3f} nats a token"]
    parts += [f"{TITLES.get(name, name)} {value:.1f}" for name, value in validation.scores.items()]
    return [f"At step {best.step:,}: {', '.join(parts)}."]


def best_lines(best: Best) -> list[str]:
    """Card lines with the best score, if nothing more is known of its validation."""
    return [f"At step {best.step:,}: {best.metric} {best.value:.3f}."]


def score_lines(scores: TranslationScores, beam: int) -> list[str]:
    """Final scores with their signatures."""
    return [
        f"* BLEU {scores.bleu:.2f} (beam {beam}; `{scores.bleu_signature}`)",
        f"* chrF {scores.chrf:.2f} (beam {beam}; `{scores.chrf_signature}`)",
    ]
