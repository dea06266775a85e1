"""Facts about a model from its recipe and assets, without loading weights: task, title, stacks, positions."""

from __future__ import annotations

from typing import Any

from regard.config import Recipe
from regard.config.families import Model, VitSection
from regard.explore.folders.examples import GAPPED
from regard.text.languages import UNKNOWN, primary

LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "hi": "Hindi", "hu": "Hungarian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
WRITES = {
    "translation": "text",
    "span-corruption": "text",
    "language-model": "continuation",
    "masked-lm": "words",
    "classification": "classes",
    "image-classification": "classes",
    "tagging": "tags",
    "encoding": "nothing",
}
"""Kind of output, by task."""
TITLES = {
    "classification": "Classifier of texts",
    "tagging": "Tagger",
    "language-model": "Language model",
    "masked-lm": "Model of masked words",
    "span-corruption": "Model of missing spans",
    "image-classification": "Classifier of images",
    "encoding": "Encoder of texts",
}
"""Name of a model, by task; a translator is named by its languages."""
NOTHING: dict[str, Any] = {
    "task": "", "family": "", "title": "Model in training", "kinds": {}, "stacks": [], "d_model": 0, "divisor": 1,
    "positions": False, "masked": [], "max_tokens": 0, "reads": "text", "writes": "nothing", "sides": [],
    "labels": None, "keeps": "best", "image": None, "harder": {},
}  # fmt: skip
"""The same for a model whose recipe is not written yet."""


def facts(recipe: Recipe, assets: Any) -> dict[str, Any]:
    """The facts a page needs about a model, wherever it is stored."""
    section = recipe.model
    return {
        "task": recipe.task,
        "family": section.family,
        "title": title(recipe),
        "kinds": {kind: list(sizes) for kind, sizes in section.attention.items()},
        "stacks": stacks(section),
        "d_model": section.d_model,
        "divisor": section.divisor,
        "positions": positions_of(section) != "none",
        "masked": ["decoder"] if "decoder" in section.attention else [],
        "max_tokens": section.known_positions if isinstance(section, VitSection) else recipe.data.max_tokens,
        "reads": input_kind(recipe),
        "writes": WRITES[recipe.task],
        "sides": sides(recipe),
        "labels": list(assets.labels) if has_labels(recipe) else None,
        "keeps": "newest" if recipe.training.select == "last" else "best",
        "image": _image(section, assets),
        "harder": regularisation(recipe),
    }


def has_labels(recipe: Recipe) -> bool:
    """Whether a model predicts named labels: classes or tags."""
    return WRITES[recipe.task] in ("classes", "tags")


def regularisation(recipe: Recipe) -> dict[str, float]:
    """The regularisation by which the training loss differs from the validation loss; non-zero values by name."""
    several = WRITES[recipe.task] == "classes" and recipe.classification.kind != "single"
    smoothing = 0.0 if several else recipe.training.label_smoothing
    shares = {"label_smoothing": smoothing, "dropout": recipe.model.dropout}
    if WRITES[recipe.task] == "classes":
        shares["adversarial"] = recipe.classification.adversarial
    return {name: share for name, share in shares.items() if share}


def title(recipe: Recipe) -> str:
    """A model in a few words."""
    if recipe.task != "translation":
        return TITLES[recipe.task]
    codes = recipe.text.source_language, recipe.text.target_language
    if UNKNOWN in codes:
        return "Translator"
    return " → ".join(LANGUAGES.get(primary(code), code) for code in codes)


def input_kind(recipe: Recipe) -> str:
    """The kind of input."""
    if recipe.task == "image-classification":
        return "image"
    return "gapped" if recipe.task in GAPPED else "text"


def stacks(section: Model) -> list[str]:
    """The stacks of layers with self-attention, through which token vectors can be followed."""
    return [stack for stack in ("encoder", "decoder") if stack in section.attention]


def positions_of(section: Model) -> str:
    """The kind of positional encoding; none for recurrent models."""
    return getattr(section, "positions", "none")


def sides(recipe: Recipe) -> list[str]:
    """The embedding tables: source, and target if it is another text."""
    if recipe.model.family == "vit":
        return []
    return ["source", "target"] if recipe.model.family in ("transformer", "rnn") else ["source"]


def _image(section: Model, assets: Any) -> dict[str, Any] | None:
    """The size of the images a model reads."""
    if not isinstance(section, VitSection):
        return None
    sizes = {name: getattr(section, name) for name in ("height", "width", "channels", "patch")}
    return {**sizes, "largest": assets.scale.largest}
