"""The whole recipe: the tasks, which sections each uses, and cross-section validation."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from regard.config.families import Model, RnnEncoderSection, RnnSection, TransformerSection
from regard.config.sections import (
    Adapt,
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

EVERYWHERE = ("text", "data", "model", "training", "adapt")
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
        writes: what its model gives.
        command: the command that uses the model.
        reads: what its model takes: text, text with gaps, or an image.
        texts: how many texts an example has.
    """

    name: str
    noun: str
    synonyms: str
    families: tuple[str, ...]
    sections: tuple[str, ...]
    learns_from: Literal["pairs", "prefixed", "labels", "tags", "images", "documents", "nothing"]
    writes: Literal["text", "continuation", "words", "classes", "tags", "nothing"]
    command: str
    reads: Literal["text", "gapped", "image"] = "text"
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
        writes = ("score",) if self.writes in ("text", "continuation") else ()
        aligns = ("align",) if self.learns_from == "pairs" else ()
        return tuple(dict.fromkeys((self.command, *writes, *aligns, *encoded, "attend", *scored)))

    @property
    def has_labels(self) -> bool:
        """Whether its model predicts named labels: classes or tags."""
        return self.writes in ("classes", "tags")


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


class Recipe(Section):
    """Everything that decides a run, but the data."""

    format: Literal[1] = Field(1, description="version of this file")
    task: Task = Field("translation", description="what the model is for")
    seed: int = Field(1, ge=0, description="of every random choice")
    text: Text = Text()
    data: Data = Data()
    model: Model = TransformerSection()
    training: Training = Training()
    adapt: Adapt = Adapt()
    decoding: Decoding = Decoding()
    text_to_text: TextToTextSection = TextToTextSection()
    classification: Classification = Classification()
    images: Images = Images()
    tagging: Tagging = Tagging()
    masking: Masking = Masking()
    encoding: Encoding = Encoding()

    @model_validator(mode="before")
    @classmethod
    def _usual_family(cls, values: object) -> object:
        """A recipe that names no family has its task's usual one."""
        if not isinstance(values, dict):
            return values
        task, model = values.get("task"), values.get("model")
        if not isinstance(task, str) or task not in TASKS or not (model is None or isinstance(model, dict)):
            return values
        return {**values, "model": {"family": TASKS[task].families[0], **(model or {})}}

    @model_validator(mode="after")
    def _fits(self) -> Recipe:
        if self.model.family not in self.info.families:
            can = f"{' and '.join(self.info.families)} can"
            raise ValueError(f'model.family = "{self.model.family}" cannot do task = "{self.task}"; {can}')
        for name, section in self:
            if isinstance(section, Section) and name not in self.sections and section != type(section)():
                raise ValueError(f'the section [{name}] is not for task = "{self.task}"')
        tied = isinstance(self.model, TransformerSection | RnnSection) and self.model.tie == "three"
        if tied and not self.text.joint:
            raise ValueError('model.tie = "three" needs text.joint = true; use "two" with separate vocabularies')
        if self.data.max_tokens > self.training.shard_tokens:
            limit = f"training.tokens {self.training.tokens}"
            limit += f" / training.shards {self.training.shards}" if (self.training.shards or 1) > 1 else ""
            above = f"data.max_tokens {self.data.max_tokens} is above {limit}"
            raise ValueError(f"{above}; lower it, or raise training.tokens")
        if self.info.writes == "tags" and isinstance(self.model, RnnEncoderSection) and self.model.pool == "attention":
            raise ValueError('model.pool = "attention" weighs whole texts; for tags use "mean" or "max"')
        if self.text.bpe_dropout and self.text.units == "characters":
            raise ValueError('text.bpe_dropout leaves merges out; text.units = "characters" has none')
        drawn_anew = self.info.texts == 1 and self.info.learns_from in ("pairs", "prefixed", "labels", "tags")
        if self.text.bpe_dropout and not drawn_anew:
            raise ValueError(f'text.bpe_dropout is not for task = "{self.task}"')
        if self.text.bpe_dropout and self.text_to_text.spans:
            raise ValueError("text.bpe_dropout is for pairs, not for the running text of text_to_text.spans")
        if self.text.tags and self.info.learns_from != "pairs":
            raise ValueError(f'text.tags is not for task = "{self.task}"')
        if self.data.word_dropout and self.info.learns_from != "labels":
            raise ValueError(f'data.word_dropout is not for task = "{self.task}"')
        single = self.info.texts == 1 and self.info.reads == "text"
        if self.classification.ngrams and not (single and self.classification.kind != "regression"):
            instead = "leave it out; a model of before that has n-grams beside it must be trained again"
            raise ValueError(f"classification.ngrams is for labels of single texts; {instead}")
        if self.training.guided_alignment and (self.info.learns_from != "pairs" or self.model.family != "transformer"):
            raise ValueError("training.guided_alignment is for translators of the family transformer")
        if self.training.patience is not None and self.training.schedule in ("cosine", "linear"):
            raise ValueError("training.patience acts only on schedules without an end (noam, inverse_square_root)")
        if self.training.weight_decay and self.training.optimiser == "adam":
            raise ValueError('training.weight_decay acts only with training.optimiser = "adamw" or "muon"')
        return self

    @model_validator(mode="after")
    def _positions_suffice(self) -> Recipe:
        most, said, known = self.data.max_tokens, "data.max_tokens", self.model.known_positions
        if isinstance(self.model, TransformerSection):
            most, said = most + self.decoding.max_extra + 1, "data.max_tokens + decoding.max_extra + 1"
        if self.model.info.reads_pieces and known < most:
            raise ValueError(f"model.max_positions {known} is below {said} = {most}")
        return self

    @property
    def info(self) -> TaskInfo:
        """The row of its task."""
        return TASKS[self.task]

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the sections that this recipe's task has."""
        return EVERYWHERE + self.info.sections
