"""The tasks: one row for each, where everything that differs by task is found."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

EVERYWHERE = ("text", "data", "model", "training")
"""Sections of the recipe that all tasks have."""


@dataclass(frozen=True)
class TaskInfo:
    """One task.

    Args:
        name: the recipe's word.
        noun: its model, with an article.
        synonyms: what the task is called elsewhere, for hints.
        families: those it can be built with, its usual one first.
        sections: of the recipe, in addition to :data:`EVERYWHERE`.
        learns_from: kind of the training data; prefixed pairs may be made of running text (``text_to_text.spans``).
        reads: what its model takes: text, text with gaps, or an image.
        writes: what its model gives.
        command: the command that uses the model.
        texts: how many texts an example has.
    """

    name: str
    noun: str
    synonyms: str
    families: tuple[str, ...]
    sections: tuple[str, ...]
    learns_from: Literal["pairs", "prefixed", "labels", "tags", "images", "documents", "nothing"]
    reads: Literal["text", "gapped", "image"]
    writes: Literal["text", "continuation", "words", "classes", "tags", "nothing"]
    command: str
    texts: int = 1

    @property
    def title(self) -> str:
        """The noun as a heading, without its article."""
        return self.noun.partition(" ")[2].capitalize()

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that serve the task and not all others."""
        scored = ("evaluate",) if self.learns_from != "nothing" else ()
        encoded = ("encode",) if self.texts == 1 else ()
        return tuple(dict.fromkeys((self.command, *encoded, "attend", *scored)))

    @property
    def has_labels(self) -> bool:
        """Whether its model predicts named labels: classes or tags."""
        return self.writes in ("classes", "tags")

    @property
    def has_bpe_dropout(self) -> bool:
        """Whether the texts it learns from can be segmented anew in every epoch."""
        return self.texts == 1 and self.learns_from in ("pairs", "prefixed", "labels", "tags")

    @property
    def has_word_dropout(self) -> bool:
        """Whether tokens of the texts it learns from can be hidden."""
        return self.learns_from == "labels"


def import_name(name: str) -> Any:
    """What stands behind ``module:name``."""
    module, _, word = name.partition(":")
    return getattr(import_module(module), word)


_ROWS = (
    TaskInfo(
        "translation",
        "a translator",
        synonyms="mt nmt seq2seq",
        families=("transformer", "rnn"),
        sections=("decoding",),
        learns_from="pairs",
        reads="text",
        writes="text",
        command="translate",
    ),
    TaskInfo(
        "text-to-text",
        "a text-to-text model",
        synonyms="text2text instructions summarisation summarization t5 spans denoising",
        families=("transformer",),
        sections=("decoding", "text_to_text"),
        learns_from="prefixed",
        reads="text",
        writes="text",
        command="ask",
    ),
    TaskInfo(
        "classification",
        "a text classifier",
        synonyms="classifier sentiment intent intents",
        families=("bert", "rnn-encoder"),
        sections=("classification",),
        learns_from="labels",
        reads="text",
        writes="classes",
        command="classify",
    ),
    TaskInfo(
        "sentence-pairs",
        "a sentence-pair classifier",
        synonyms="nli entailment paraphrase similarity sts pair_classification",
        families=("bert", "rnn-encoder"),
        sections=("classification",),
        learns_from="labels",
        reads="text",
        writes="classes",
        command="classify",
        texts=2,
    ),
    TaskInfo(
        "tagging",
        "a tagger",
        synonyms="ner pos tag token_classification sequence_labelling",
        families=("bert", "rnn-encoder"),
        sections=("tagging",),
        learns_from="tags",
        reads="text",
        writes="tags",
        command="tag",
    ),
    TaskInfo(
        "language-model",
        "a language model",
        synonyms="lm gpt gpt2 causal_lm language_modelling language_modeling",
        families=("gpt",),
        sections=("decoding",),
        learns_from="documents",
        reads="text",
        writes="continuation",
        command="generate",
    ),
    TaskInfo(
        "masked-lm",
        "a masked language model",
        synonyms="mlm bert masked_words",
        families=("bert",),
        sections=("masking",),
        learns_from="documents",
        reads="gapped",
        writes="words",
        command="fill",
    ),
    TaskInfo(
        "image-classification",
        "an image classifier",
        synonyms="vit images image",
        families=("vit",),
        sections=("classification", "images"),
        learns_from="images",
        reads="image",
        writes="classes",
        command="classify",
    ),
    TaskInfo(
        "encoding",
        "a text encoder",
        synonyms="sentence_transformers embeddings",
        families=("bert",),
        sections=("encoding",),
        learns_from="nothing",
        reads="text",
        writes="nothing",
        command="encode",
    ),
)
TASKS = {row.name: row for row in _ROWS}
"""The word ``task`` of a recipe to its row."""
if TYPE_CHECKING:
    Task = str
else:
    Task = Literal[tuple(TASKS)]
