"""The recipe: frozen sections of plain values; no behaviour, no torch.

A recipe is a TOML file. Every field has a default that works, a unit and a reason; an unknown key is answered with the
nearest known one. Recipes hold no paths: data comes from the command line.
"""

from regard.config.families import (
    FAMILIES,
    Attentive,
    BertSection,
    GptSection,
    Model,
    RnnEncoderSection,
    RnnSection,
    TransformerSection,
    VitSection,
)
from regard.config.reading import (
    check_value,
    did_you_mean,
    dump_toml,
    known_keys,
    merge,
    nearest,
    override,
    recipe_from,
    recipe_toml,
    recipe_values,
    saved_recipe,
    toml_values,
)
from regard.config.recipe import Recipe
from regard.config.sections import (
    FORMAT,
    LANGUAGE,
    Classification,
    Data,
    Decoding,
    Encoding,
    Images,
    Masking,
    Section,
    Tagging,
    Text,
    TextToTextSection,
    Training,
)
from regard.config.tasks import TASKS, Task, TaskInfo

__all__ = [
    "FAMILIES",
    "FORMAT",
    "LANGUAGE",
    "Attentive",
    "BertSection",
    "Classification",
    "Data",
    "Decoding",
    "Encoding",
    "GptSection",
    "Images",
    "Masking",
    "Model",
    "Recipe",
    "RnnEncoderSection",
    "RnnSection",
    "TASKS",
    "Section",
    "Tagging",
    "Task",
    "TaskInfo",
    "Text",
    "TextToTextSection",
    "Training",
    "TransformerSection",
    "VitSection",
    "check_value",
    "dump_toml",
    "known_keys",
    "did_you_mean",
    "merge",
    "nearest",
    "override",
    "recipe_from",
    "recipe_toml",
    "recipe_values",
    "saved_recipe",
    "toml_values",
]
