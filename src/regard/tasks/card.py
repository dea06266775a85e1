"""``card.md``: what a model is, what it learned from, how well it does; for whoever finds the folder in a year."""

from __future__ import annotations

from pathlib import Path

from regard.config import Recipe
from regard.data.prepared import Prepared
from regard.tasks.metrics import Scores
from regard.training.objective import TITLES, Validation
from regard.training.progress import Best

CARD = "card.md"


def card(recipe: Recipe, prepared: Prepared, parameters: int, lines: list[str]) -> str:
    """The card's text; ``lines`` say how well it does."""
    model, text, training = recipe.model, recipe.text, recipe.training
    return "\n".join(
        [
            f"# A translator: {text.source_language} → {text.target_language}",
            "",
            f"A Transformer of {parameters / 1e6:.1f} million parameters: "
            f"{model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, d_ff {model.d_ff}, "
            f"{model.heads} heads, {model.norm_place}-norm.",
            "",
            "## Data",
            "",
            f"{prepared.pairs:,} sentence pairs to learn from, {prepared.validation_source.count:,} to validate on; "
            f"fingerprint {prepared.fingerprint[:16]}.",
            *left_out(prepared),
            "",
            "## Scores on the validation pairs",
            "",
            *lines,
            "",
            "## Training",
            "",
            f"{training.steps or 'open number of'} steps of up to {training.tokens * training.accumulate:,} "
            f"target tokens, seed {recipe.seed}; everything else stands in recipe.toml.",
            "",
        ]
    )


def final(output: Path) -> bool:
    """Whether a model folder's card holds its final scores; a run killed after its last step has still to make them."""
    path = output / CARD
    return path.exists() and "* BLEU" in path.read_text(encoding="utf-8")


def left_out(prepared: Prepared) -> list[str]:
    """How many pairs were not learned from, and why; nothing where all were."""
    counts = {kind: count for kind, count in prepared.left_out.get("counts", {}).items() if count}
    if not counts:
        return []
    return ["Left out: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + "."]


def validated(best: Best, validation: Validation) -> list[str]:
    """The scores of the validation that made this model the best so far."""
    parts = [f"loss {validation.loss:.3f} nats a token"]
    parts += [f"{TITLES.get(name, name)} {value:.1f}" for name, value in validation.scores.items()]
    return [f"At step {best.step:,}: {', '.join(parts)}."]


def kept(best: Best) -> list[str]:
    """The score by which this model was the best so far, where no more is known of its validation."""
    return [f"At step {best.step:,}: {best.metric} {best.value:.3f}."]


def scored(scores: Scores, beam: int) -> list[str]:
    """Final scores with their signatures."""
    return [
        f"* BLEU {scores.bleu:.2f} (beam {beam}; `{scores.bleu_signature}`)",
        f"* chrF {scores.chrf:.2f} (beam {beam}; `{scores.chrf_signature}`)",
    ]
