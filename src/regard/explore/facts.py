"""What a model is, as its recipe and its assets tell it to a page; the weights are not asked."""

from __future__ import annotations

from typing import Any

from regard.config import Recipe
from regard.config.families import Model, VitSection
from regard.explore.examples import GAPPED
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
"""What comes of it, by task."""
TITLES = {
    "classification": "Classifier of texts",
    "tagging": "Tagger",
    "language-model": "Language model",
    "masked-lm": "Model of masked words",
    "span-corruption": "Model of missing spans",
    "image-classification": "Classifier of images",
    "encoding": "Encoder of texts",
}
"""What a model is; a translator is named by its languages."""
NOTHING: dict[str, Any] = {
    "task": "", "family": "", "title": "Model in training", "kinds": {}, "stacks": [], "d_model": 0, "divisor": 1,
    "positions": False, "masked": [], "max_tokens": 0, "reads": "text", "writes": "nothing", "sides": [],
    "labels": None, "keeps": "best", "image": None, "harder": {},
}  # fmt: skip
"""The same of a model whose training has not written yet what it is."""


def facts(recipe: Recipe, assets: Any) -> dict[str, Any]:
    """What a page has to know of a model wherever it lies."""
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
        "reads": reads(recipe),
        "writes": WRITES[recipe.task],
        "sides": sides(recipe),
        "labels": list(assets.labels) if labelled(recipe) else None,
        "keeps": "newest" if recipe.training.select == "last" else "best",
        "image": _image(section, assets),
        "harder": harder(recipe),
    }


def labelled(recipe: Recipe) -> bool:
    """Whether a model says names: of classes, or of tags."""
    return WRITES[recipe.task] in ("classes", "tags")


def harder(recipe: Recipe) -> dict[str, float]:
    """What makes the loss of training another than that of validation: what is more than nothing, by name."""
    several = WRITES[recipe.task] == "classes" and recipe.classification.kind != "single"
    smoothing = 0.0 if several else recipe.training.label_smoothing
    shares = {"label_smoothing": smoothing, "dropout": recipe.model.dropout}
    if WRITES[recipe.task] == "classes":
        shares["adversarial"] = recipe.classification.adversarial
    return {name: share for name, share in shares.items() if share}


def title(recipe: Recipe) -> str:
    """What a model is, in a few words."""
    if recipe.task != "translation":
        return TITLES[recipe.task]
    codes = recipe.text.source_language, recipe.text.target_language
    if UNKNOWN in codes:
        return "Translator"
    return " → ".join(LANGUAGES.get(primary(code), code) for code in codes)


def reads(recipe: Recipe) -> str:
    """What is put before a model."""
    if recipe.task == "image-classification":
        return "image"
    return "gapped" if recipe.task in GAPPED else "text"


def stacks(section: Model) -> list[str]:
    """The stacks of layers through which a vector can be followed: those in which tokens attend to each other."""
    return [stack for stack in ("encoder", "decoder") if stack in section.attention]


def positions_of(section: Model) -> str:
    """The kind of positions; a recurrence needs none."""
    return getattr(section, "positions", "none")


def sides(recipe: Recipe) -> list[str]:
    """The tables of embeddings: what is read, and where it is another text what is written."""
    if recipe.model.family == "vit":
        return []
    return ["source", "target"] if recipe.model.family in ("transformer", "rnn") else ["source"]


def _image(section: Model, assets: Any) -> dict[str, Any] | None:
    """The sizes of the images that a model reads."""
    if not isinstance(section, VitSection):
        return None
    sizes = {name: getattr(section, name) for name in ("height", "width", "channels", "patch")}
    return {**sizes, "largest": assets.scale.largest}
