"""Small tasks of every family, untaught, and their model folders, written without any training."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import recipe_from, recipe_toml
from regard.data.batches.patches import Scale
from regard.models import store
from regard.tasks import JOBS, job_class, model_class
from regard.tasks.assets import AnswerAssets, FittedValues, ImageAssets, TextAssets
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.model_folder import MODEL, RECIPE
from regard.tasks.tagging.tagger import TagAssets
from regard.tasks.training.defaults import SizeDefaults
from regard.text.language_tokens import LanguageTokens
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import learn_vocabularies
from regard.training.checkpoints import checkpoint, manifest
from tests.models.small_models import stir
from tests.training.toy import Fast

SOURCE = "The animal didn't cross the street because it was too tired."
TARGET = "Das Tier überquerte die Straße nicht, weil es zu müde war."
GAPPED = "The [MASK] didn't cross the [MASK] because it was too tired."
SPANNED = "The <extra_0> didn't cross the <extra_1> because it was too tired."
SIZES: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 3, "dropout": 0.0}
ONE: dict[str, Any] = {**SIZES, "layers": 2, "max_positions": 64}
BOTH: dict[str, Any] = {**SIZES, "encoder_layers": 2, "decoder_layers": 3, "tie": "three"}
DATA = {"max_tokens": 40}
DECODING = {"max_extra": 4}
LABELS = ("bad", "fair", "good")
IMAGE: dict[str, Any] = {"height": 6, "width": 4, "channels": 1, "patch": 2}


def tokenizer() -> Tokenizer:
    """Of one text, with the symbols of all tasks."""
    return learn([SOURCE] * 3, 320, symbols=("[CLS]", "[MASK]", "<extra_0>", "<extra_1>"))


def _task(name: str, assets: Any, model: dict[str, Any], key: int = 5, **sections: Any) -> Any:
    recipe = recipe_from({"task": name, "data": DATA, "model": model, **sections})
    built = model_class(name).build(recipe, assets.sizes, key)
    stir(built, key)
    return model_class(name)(recipe, assets, built.float().eval().requires_grad_(False))


def translator(key: int = 5, **model: Any) -> Any:
    languages = {"source_language": "en", "target_language": "de"}
    vocabularies = learn_vocabularies([(SOURCE, TARGET)] * 3, 400)
    return _task("translation", vocabularies, {**BOTH, **model}, key, text=languages, decoding=DECODING)


def polyglot(begins: bool = True) -> Any:
    """A translator of three languages; its outputs begin with the target's, or its texts alone."""
    found = translator()
    languages = LanguageTokens({"eng_Latn": 330, "deu_Latn": 331, "fra_Latn": 332}, begins)
    return type(found)(found.recipe, replace(found.assets, languages=languages), found.model)


def recurrent(**model: Any) -> Any:
    vocabularies = learn_vocabularies([(SOURCE, TARGET)] * 3, 400)
    chosen = {"family": "rnn", "d_model": 12, "dropout": 0.0, **model}
    return _task("translation", vocabularies, chosen, decoding=DECODING)


def classifier(kind: str = "single", **model: Any) -> Any:
    labels = LABELS[:1] if kind == "regression" else LABELS
    assets = ClassAssets(tokenizer(), labels, FittedValues(1.5))
    return _task("classification", assets, {**ONE, **model}, classification={"kind": kind})


def pairs() -> Any:
    """A classifier of sentence pairs."""
    assets = ClassAssets(tokenizer(), LABELS, FittedValues(1.5))
    return _task("sentence-pairs", assets, {**ONE, "segments": 2})


def reader() -> Any:
    """A recurrent classifier with attention."""
    chosen = {"family": "rnn-encoder", "pool": "attention", "d_model": 12, "dropout": 0.0}
    return _task("classification", ClassAssets(tokenizer(), LABELS, FittedValues(1.5)), chosen)


def tagger(crf: bool = False) -> Any:
    return _task("tagging", TagAssets(tokenizer(), LABELS, FittedValues(1.5), scheme="none"), ONE, tagging={"crf": crf})


def stepper() -> Any:
    """A tagger that steps over words."""
    model = {"family": "rnn-encoder", "d_model": 16, "units": "words", "word_features": 50}
    return _task(
        "tagging", TagAssets(tokenizer(), LABELS, FittedValues(1.5), scheme="none"), model, tagging={"crf": True}
    )


def filler() -> Any:
    """A model of masked words."""
    return _task("masked-lm", TextAssets(tokenizer()), ONE)


def encoder(**model: Any) -> Any:
    return _task("encoding", TextAssets(tokenizer()), {**ONE, **model})


def speaker(key: int = 5) -> Any:
    """A language model."""
    return _task("language-model", TextAssets(tokenizer()), ONE, key)


def spanner(**model: Any) -> Any:
    """A text-to-text model of running text, as T5: relative positions, no scaling."""
    relative = {"positions": "relative", "scale_scores": False, "relative_buckets": 8, "relative_distance": 16}
    sections: dict[str, Any] = {"decoding": DECODING, "text_to_text": {"spans": True}}
    return _task("text-to-text", AnswerAssets(tokenizer()), {**BOTH, **relative, **model}, **sections)


def asker(**model: Any) -> Any:
    """A text-to-text model."""
    return _task("text-to-text", AnswerAssets(tokenizer()), {**BOTH, **model}, decoding=DECODING)


def viewer(kind: str = "single", **model: Any) -> Any:
    """A classifier of images."""
    assets = ImageAssets(Scale(9.0), LABELS[:1] if kind == "regression" else LABELS)
    sizes = {**SIZES, "layers": 2, **IMAGE, **model}
    return _task("image-classification", assets, sizes, classification={"kind": kind})


_EVERY = (translator, recurrent, classifier, pairs, reader, tagger, filler, speaker, spanner, asker, viewer, encoder)
EVERY: dict[str, Callable[[], Any]] = {make.__name__: make for make in _EVERY}
"""A task of every family and every kind of answer."""
PLACELESS = ("recurrent", "reader")
"""Those without positions."""
BOTH_TEXTS = "The animal didn't cross the street [SEP] it was too tired."
TEXTS = {"filler": GAPPED, "spanner": SPANNED, "pairs": BOTH_TEXTS}
"""What is put before them, where it is not :data:`SOURCE`."""
PIXELS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 9, 0, 5, 5]


def before(name: str) -> dict[str, Any]:
    """What is put before a model: a text or an image, as a page asks for it."""
    return {"image": {"pixels": PIXELS}} if name == "viewer" else {"text": TEXTS.get(name, SOURCE)}


def put(folder: Path, task: Any, weights: bool = True) -> Path:
    """A task as a model folder; one without weights is that of a training that has not validated yet."""
    contents = {RECIPE: [recipe_toml(task.recipe).encode()], **{n: [c] for n, c in task.assets.contents.items()}}
    if weights:
        contents[MODEL] = [store.to_bytes(store.weights(task.model))]
    folder.mkdir(parents=True, exist_ok=True)
    manifest.replace(folder, contents, Fast())
    return folder


def keep(folder: Path, task: Any, step: int, kind: str = "snapshots") -> Path:
    """The weights of a task as those that the run in a folder kept at a step."""
    place = folder / "training" / kind / checkpoint.name(step)
    place.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_folder(place, {"weights.safetensors": [store.to_bytes(store.weights(task.model))]}, Fast())
    return place


def log(folder: Path, lines: list[dict[str, Any]]) -> Path:
    """A training's log."""
    path = folder / "training" / "metrics.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def shares(teaching: Any, generate: bool = False) -> list[float]:
    """The shares of the work that are told of."""
    told: list[float] = []
    teaching.model.eval()
    teaching.trial(generate, told.append)
    return told


def evenly(count: int) -> list[float]:
    """The shares of so many batches."""
    return [number / count for number in range(1, count + 1)]


def size_tables() -> dict[str, Sequence[SizeDefaults]]:
    """The defaults by size of each task that has its own; others have those of the task that they derive from."""
    found: dict[str, Sequence[SizeDefaults]] = {}
    for task in JOBS:
        if (sizes := job_class(task).training.sizes) not in found.values():
            found[task] = sizes
    return found
