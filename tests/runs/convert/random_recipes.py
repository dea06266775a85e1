"""Recipes of every task and family with a few of their fields at random, to try what a format has a form for."""

import random
from typing import Any, get_args

from regard.config import FAMILIES, TASKS, Recipe, recipe_from
from regard.system.errors import UsageError

SIZES = {"d_model": 12, "d_ff": 16, "heads": 3, "norm_groups": 3, "relative_buckets": 8, "relative_distance": 16}
SMALL: dict[str, dict[str, Any]] = {
    "transformer": {**SIZES, "encoder_layers": 1, "decoder_layers": 1},
    "bert": {**SIZES, "layers": 1},
    "gpt": {**SIZES, "layers": 1},
    "vit": {**SIZES, "layers": 1, "height": 4, "width": 4, "channels": 1, "patch": 2},
    "rnn": {"d_model": 12},
    "rnn-encoder": {"d_model": 12},
}
KINDS = [(info.name, family) for info in TASKS.values() for family in info.families]
T5 = {
    "norm": "rms",
    "norm_place": "pre",
    "positions": "relative",
    "biases": False,
    "scale_scores": False,
    "scale_embedding": False,
    "scale_output": True,
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "d_k": (3, 4),
    "d_v": (3, 4),
    "heads": (3, 4, 5),
    "decoder_heads": (3, 4, 5),
    "segments": (0, 1, 3),
    "norm_epsilon": (1e-5, 1e-3),
    "decoder_cell": (None, "ssru"),
    "decoder_norm": ("layer", "rms", "batch"),
}
"""What is tried of fields that are no words and no switches."""
BEGINNINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "transformer": ({}, {"norm_place": "pre"}, T5, {**T5, "tie": "none", "scale_output": False})
}
"""Models that can be exported, or nearly, which a draw changes in a few fields."""


def fields_of(family: str) -> dict[str, tuple[Any, ...]]:
    """The fields of a family that change what is computed, and what each may be."""
    found = {}
    for name, field in FAMILIES[family].model_fields.items():
        words = [each for each in get_args(field.annotation) if isinstance(each, str)]
        if name in CHOICES:
            found[name] = CHOICES[name]
        elif field.annotation is bool:
            found[name] = (False, True)
        elif words and name != "family":
            found[name] = tuple(words)
        elif family == "transformer" and name == "positions":
            found[name] = ("sinusoidal", "learned", "relative", "none")
    return found


def drawn(number: int) -> Recipe | None:
    """A recipe with one to four of its fields at random; ``None``: no recipe can be so."""
    draw = random.Random(number)
    task, family = KINDS[number % len(KINDS)]
    model = {"family": family, **SMALL[family], **draw.choice(BEGINNINGS.get(family, ({},)))}
    every = fields_of(family)
    model |= {name: draw.choice(every[name]) for name in draw.sample(sorted(every), draw.randint(1, 4))}
    values: dict[str, Any] = {"task": task, "model": model}
    if task == "translation":
        values["text"] = {"joint": draw.random() < 0.8}
    elif task == "tagging":
        values["tagging"] = {"crf": draw.random() < 0.3}
    try:
        return recipe_from(values)
    except UsageError:
        return None
