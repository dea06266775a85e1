"""The whole recipe: its sections, which of them each task uses, and cross-section validation."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from regard.config.families import BertSection, Model, RnnEncoderSection, RnnSection, TransformerSection, VitSection
from regard.config.sections import (
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
from regard.config.tasks import EVERYWHERE, TASKS, Task, TaskInfo


class Recipe(Section):
    """Everything that decides a run, but the data."""

    format: Literal[1] = Field(1, description="version of this file")
    task: Task = Field("translation", description="what the model is for")
    seed: int = Field(1, ge=0, description="of every random choice")
    text: Text = Text()
    data: Data = Data()
    model: Model = TransformerSection()
    training: Training = Training()
    decoding: Decoding = Decoding()
    text_to_text: TextToTextSection = TextToTextSection()
    classification: Classification = Classification()
    images: Images = Images()
    tagging: Tagging = Tagging()
    masking: Masking = Masking()
    encoding: Encoding = Encoding()

    @model_validator(mode="before")
    @classmethod
    def _usual_family(cls, values: Any) -> Any:
        """A recipe that names no family has its task's usual one."""
        task, model = (values.get(name) for name in ("task", "model")) if isinstance(values, dict) else (None, None)
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
        if (
            isinstance(self.model, TransformerSection | RnnSection)
            and self.model.tie == "three"
            and not self.text.joint
        ):
            raise ValueError('model.tie = "three" needs text.joint = true; use "two" with separate vocabularies')
        if self.data.max_tokens > self.training.shard_tokens:
            limit = f"training.tokens {self.training.tokens}"
            limit += f" / training.shards {self.training.shards}" if (self.training.shards or 1) > 1 else ""
            above = f"data.max_tokens {self.data.max_tokens} is above {limit}"
            raise ValueError(f"{above}; lower it, or raise training.tokens")
        self._refuse_too_few_positions()
        if self.info.writes == "tags" and isinstance(self.model, RnnEncoderSection) and self.model.pool == "attention":
            raise ValueError('model.pool = "attention" weighs whole texts; for tags use "mean" or "max"')
        if self.text.bpe_dropout and self.text.units == "characters":
            raise ValueError('text.bpe_dropout leaves merges out; text.units = "characters" has none')
        if self.text.bpe_dropout and not self.info.has_bpe_dropout:
            raise ValueError(f'text.bpe_dropout is not for task = "{self.task}"')
        if self.text.bpe_dropout and self.text_to_text.spans:
            raise ValueError("text.bpe_dropout is for pairs, not for the running text of text_to_text.spans")
        if self.data.word_dropout and not self.info.has_word_dropout:
            raise ValueError(f'data.word_dropout is not for task = "{self.task}"')
        if self.info.texts > 1 and isinstance(self.model, BertSection) and self.model.segments == 1:
            raise ValueError(f'model.segments = 1 has none for the second text of task = "{self.task}"')
        if self.classification.ngrams and (self.task != "classification" or self.classification.kind == "regression"):
            instead = "leave it out; a model of before that has n-grams beside it must be trained again"
            raise ValueError(f"classification.ngrams is for labels of single texts; {instead}")
        if self.training.patience is not None and self.training.schedule in ("cosine", "linear"):
            raise ValueError("training.patience acts only on schedules without an end (noam, inverse_square_root)")
        if self.training.weight_decay and self.training.optimiser == "adam":
            raise ValueError('training.weight_decay acts only with training.optimiser = "adamw"')
        return self

    def _refuse_too_few_positions(self) -> None:
        model = self.model
        if isinstance(model, RnnSection | RnnEncoderSection | VitSection) or model.positions != "learned":
            return
        more, said = 0, ""
        if isinstance(model, TransformerSection):
            more, said = self.decoding.max_extra + 1, " + decoding.max_extra + 1"
        if model.max_positions < self.data.max_tokens + more:
            raise ValueError(
                f"model.max_positions {model.max_positions} is below data.max_tokens{said} = "
                f"{self.data.max_tokens + more}"
            )

    @property
    def info(self) -> TaskInfo:
        """The row of its task."""
        return TASKS[self.task]

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the sections that this recipe's task has."""
        return EVERYWHERE + self.info.sections
