"""A model folder told without its weights: recipe, assets, the header of the weights, and how its run goes.

Nothing here needs torch, so that a page has all this while torch is still being loaded.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

from regard.config import Recipe, recipe_from, recipe_values
from regard.config.families import Model, VitSection
from regard.errors import RegardError
from regard.explore.course import LOG
from regard.explore.examples import GAPPED, examples
from regard.explore.runs import running, snapshots
from regard.text.languages import UNKNOWN, primary

Stamp = tuple[int, int, int]
"""When a file was written, its size, and which one it is: another stamp, another file."""

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
RECIPE, MODEL = "recipe.toml", "model.safetensors"
WAITING = "training has not validated yet, so there are no weights to look at; wait for it"
STOPPED = "training stopped before its first validation, so there are no weights; go on with it by the same command"


class Folder:
    """A model folder, told again and again while a training may be at work in it.

    Args:
        path: of the folder; or of one that ``regard demo`` made, which has the model inside.

    Raises:
        RegardError: it is no model folder, or a file of it is damaged.
    """

    def __init__(self, path: Path | str) -> None:
        given = Path(path)
        inner = given / "model"
        self.path = inner if not (given / RECIPE).exists() and (inner / RECIPE).exists() else given
        whole = given.resolve()
        self.name = whole.parent.name if whole.name == "model" else whole.name
        self.given = str(path)
        self._examples: list[str] = []
        self._stamp: Stamp | None = None
        self._open()

    def _open(self) -> None:
        """Recipe and assets, read anew where the recipe was written anew."""
        stamp = stamp_of(self.path / RECIPE)
        if stamp is None:
            raise RegardError(_missing(self.path), self.given)
        if stamp != self._stamp:
            self.recipe = recipe_from(recipe_values(self.path / RECIPE), str(self.path / RECIPE))
            self.assets = assets(self.path, self.recipe.task)
            self._stamp = stamp

    @property
    def weights(self) -> Path:
        """The file of the best weights, which may not be there yet."""
        return self.path / MODEL

    @property
    def why(self) -> str | None:
        """Why the model cannot be looked at yet; ``None`` where it can."""
        if self.weights.exists():
            return None
        return WAITING if running(self.path) else STOPPED

    def state(self, number: int) -> dict[str, Any]:
        """What a page has to know of it."""
        why = self.why
        try:
            self._open()
        except RegardError as error:
            why = str(error)
        recipe, section = self.recipe, self.recipe.model
        return {
            "number": number,
            "name": self.name,
            "folder": self.given,
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
            "parameters": parameters(self.weights),
            "reads": reads(recipe),
            "writes": WRITES[recipe.task],
            "sides": sides(recipe),
            "labels": list(self.assets.labels) if WRITES[recipe.task] in ("classes", "tags") else None,
            "ready": why is None,
            "why": why,
            "snapshots": list(snapshots(self.path)),
            "course": (self.path / LOG).exists(),
            "running": running(self.path),
            "image": self._image(section),
            "examples": self.examples,
        }

    @property
    def examples(self) -> list[str]:
        """Texts to begin with; looked for until there are some."""
        if not self._examples:
            self._examples = examples(self.path, self.recipe)
        return self._examples

    def _image(self, section: Model) -> dict[str, Any] | None:
        if not isinstance(section, VitSection):
            return None
        sizes = {name: getattr(section, name) for name in ("height", "width", "channels", "patch")}
        return {**sizes, "largest": self.assets.scale.largest}


def _missing(path: Path) -> str:
    """What is said of a folder without a recipe."""
    if not path.exists():
        return "no such folder"
    if (path / "training").is_dir():
        return "has no recipe yet: its training still prepares the data; wait for it"
    return f"is no model folder: it has no {RECIPE}"


def assets(path: Path, task: str) -> Any:
    """What the model of a folder needs beside its weights; as its task has it, which would load torch."""
    from regard.tasks.image_assets import ImageAssets
    from regard.tasks.tag_assets import TagAssets
    from regard.tasks.text_assets import TextAssets
    from regard.text.vocabulary import Vocabularies

    kinds: dict[str, Any] = {"translation": Vocabularies, "tagging": TagAssets, "image-classification": ImageAssets}
    return kinds.get(task, TextAssets).load(path)


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


def parameters(path: Path) -> int | None:
    """How many numbers a file of weights holds, by its header; ``None`` where there is none yet."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            return sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError):
        return None


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; ``None`` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
