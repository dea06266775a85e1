"""Small tasks that can be exported; their recipes say nothing that the other layout cannot hold."""

from pathlib import Path
from typing import Any

from regard.config import TASKS, recipe_from
from regard.data.batches.patches import Scale
from regard.runs.conversion import export_model
from regard.tasks import model_class
from regard.tasks.assets import AnswerAssets, ImageAssets, TextAssets
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.tagging.tagger import TagAssets
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import Vocabularies
from tests.models.small_models import stir
from tests.runs.convert.random_recipes import T5 as T5_LIKE
from tests.runs.convert.small_folders import LABELS, TAGS, TEXTS
from tests.tasks.small_tasks import put

SIZES = {"d_model": 12, "d_ff": 20, "heads": 3}
ONE = {**SIZES, "layers": 2, "max_positions": 40}
TWO = {**SIZES, "encoder_layers": 2, "decoder_layers": 1}
T5 = {**TWO, **T5_LIKE, "norm_epsilon": 1e-6, "relative_buckets": 8, "relative_distance": 16}
T5 |= {"dropout": 0.2, "attention_dropout": 0.2, "feedforward_dropout": 0.2}
DROPS = {"dropout": 0.2, "attention_dropout": 0.1, "feedforward_dropout": 0.05}
SPOKEN = {"source_language": "de", "target_language": "en-GB"}
LONG = {"data": {"max_tokens": 1500}, "training": {"tokens": 1500}}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "marian": ("translation", {**TWO, **DROPS}, {"text": SPOKEN, "decoding": {"beam": 3}}),
    "marian-odd": ("translation", {**TWO, "d_model": 15, "activation": "gelu_tanh", "scale_embedding": False}, {}),
    "marian-heads": ("translation", {**TWO, "decoder_heads": 2}, {}),
    "pegasus": ("translation", {**TWO, "norm_place": "pre"}, {"text": {**SPOKEN, "lowercase": True}}),
    "pegasus-characters": ("translation", {**TWO, "norm_place": "pre"}, {"text": {"units": "characters"}}),
    "t5": ("translation", T5, {"text": {**SPOKEN, "normalisation": "nfkc"}}),
    "t5-long": ("translation", {**T5, "d_k": 5, "d_v": 5}, LONG),
    "t5-gated": ("text-to-text", {**T5, "activation": "gated_gelu"}, {"decoding": {"beam": 2}}),
    "marian-sentinels": ("text-to-text", TWO, {}),
    "classes": ("classification", {**ONE, "activation": "relu"}, {}),
    "several": ("classification", ONE, {"classification": {"kind": "multi"}}),
    "number": ("classification", ONE, {"classification": {"kind": "regression"}}),
    "pairs": ("sentence-pairs", ONE, {}),
    "pairs-several": ("sentence-pairs", {**ONE, "segments": 3}, {"classification": {"kind": "multi"}}),
    "pairs-number": ("sentence-pairs", ONE, {"classification": {"kind": "regression"}}),
    "tags": ("tagging", ONE, {"tagging": {"scheme": "bio"}, "text": {"normalisation": "none"}}),
    "words": ("masked-lm", {**ONE, "segments": 1}, {"data": {"max_tokens": 30}}),
    "gpt": ("language-model", ONE, {"data": {"max_tokens": 30}}),
    "images": ("image-classification", {**SIZES, "layers": 2, "height": 4, "width": 6, "channels": 1, "patch": 2}, {}),
    "images-several": (
        "image-classification",
        {**SIZES, "layers": 1, "height": 4, "width": 4, "channels": 3, "patch": 2},
        {"classification": {"kind": "multi"}},
    ),
    "vector": ("encoding", ONE, {}),
    "vector-mean": ("encoding", {**ONE, "pool": "mean", "pooler": False}, {"encoding": {"normalise": True}}),
}


def tokenizer_for(task: str, text: dict[str, Any]) -> Tokenizer:
    symbols = {"translation": (), "language-model": (), "text-to-text": ("<extra_0>", "<extra_1>")}
    made = {name: text[name] for name in ("normalisation", "units", "lowercase") if name in text}
    return learn(TEXTS * 3, 290, symbols=symbols.get(task, ("[CLS]", "[MASK]")), **made)


def assets_for(task: str, sections: dict[str, Any]) -> Any:
    labels = LABELS[:1] if sections.get("classification") == {"kind": "regression"} else LABELS
    if task == "image-classification":
        channels = 3 if "classification" in sections else 1
        return ImageAssets(Scale(9.0, (0.5,) * channels, (0.25,) * channels), labels)
    tokenizer = tokenizer_for(task, sections.get("text", {}))
    if task == "translation":
        return Vocabularies(tokenizer, tokenizer, joint=True)
    if task == "tagging":
        return TagAssets(tokenizer, TAGS, scheme="bio")
    if TASKS[task].learns_from == "prefixed":
        return AnswerAssets(tokenizer)
    return ClassAssets(tokenizer, labels) if TASKS[task].writes == "classes" else TextAssets(tokenizer)


def task_of(name: str) -> Any:
    """A task with a random model; its recipe says nothing that the other layout does not hold."""
    task, model, sections = CASES[name]
    text = {"vocabulary": 300, **sections.get("text", {})}
    read = {} if task == "image-classification" else {"data": {"max_tokens": 40}, **sections, "text": text}
    recipe = recipe_from({"task": task, "model": model, **sections, **read})
    assets = assets_for(task, sections)
    built = model_class(task).build(recipe, assets.sizes)
    stir(built)
    return model_class(task)(recipe, assets, built.eval().requires_grad_(False))


def written(name: str, folder: Path) -> Path:
    put(folder / "ours", task_of(name))
    export_model(folder / "ours", folder / "theirs")
    return folder / "theirs"
