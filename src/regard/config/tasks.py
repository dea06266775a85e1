"""The tasks: one row for each, where everything that differs by task is found."""

from __future__ import annotations

from collections.abc import Callable
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
        learns_from: kind of the training data.
        reads: what its model takes: text, text with gaps, or an image.
        writes: what its model gives.
        command: the command that uses the model.
        model_class, job_class: ``module:class`` of the loaded model and of the training job; the latter is empty where
            there is no training.
        open_corpus: ``module:function`` that opens a file of examples, of a path and its columns; empty where the
            files of a task are opened together.
        scorer: ``module:function`` that scores a loaded model for ``regard evaluate``; empty where there is no score.
        assets_class: ``module:class`` of what its model has besides the weights; imports no torch.
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
    model_class: str
    job_class: str = ""
    open_corpus: str = ""
    scorer: str = ""
    assets_class: str = "regard.tasks.assets:TextAssets"
    texts: int = 1

    @property
    def title(self) -> str:
        """The noun as a heading, without its article."""
        return self.noun.partition(" ")[2].capitalize()

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that serve the task and not all others."""
        scored = ("evaluate",) if self.scorer else ()
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

    def model(self) -> type[Any]:
        """The class of the loaded model; imports torch."""
        found: type[Any] = import_name(self.model_class)
        return found

    def job(self) -> type[Any]:
        """The class of the training job; imports torch."""
        found: type[Any] = import_name(self.job_class)
        return found

    def assets(self) -> type[Any]:
        """The class of the assets."""
        found: type[Any] = import_name(self.assets_class)
        return found

    def score(self, *given: Any) -> Any:
        """The scores of a loaded model, by the task's scorer."""
        return import_name(self.scorer)(*given)

    def corpus(self) -> Callable[..., Any]:
        """The function that opens a file of examples."""
        found: Callable[..., Any] = import_name(self.open_corpus)
        return found


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
        model_class="regard.tasks.translation.translator:Translation",
        job_class="regard.tasks.translation.training:TranslationJob",
        scorer="regard.cli.evaluate:translation",
        assets_class="regard.text.tokenizers.vocabulary:Vocabularies",
    ),
    TaskInfo(
        "text-to-text",
        "a text-to-text model",
        synonyms="text2text instructions summarisation summarization",
        families=("transformer",),
        sections=("decoding", "text_to_text"),
        learns_from="prefixed",
        reads="text",
        writes="text",
        command="ask",
        model_class="regard.tasks.translation.text_to_text.writer:TextToText",
        job_class="regard.tasks.translation.text_to_text.training:TextToTextJob",
        open_corpus="regard.tasks.translation.text_to_text.corpus:open_prefixed",
        scorer="regard.cli.evaluate:answers",
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
        model_class="regard.tasks.classification.classifier:Classification",
        job_class="regard.tasks.classification.training:ClassificationJob",
        open_corpus="regard.data.corpora.labelled:open_labelled",
        scorer="regard.cli.evaluate:labels",
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
        model_class="regard.tasks.classification.pairs.classifier:PairClassification",
        job_class="regard.tasks.classification.pairs.training:PairJob",
        open_corpus="regard.tasks.classification.pairs.corpus:open_labelled_pairs",
        scorer="regard.cli.evaluate:labels",
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
        model_class="regard.tasks.tagging.tagger:Tagging",
        job_class="regard.tasks.tagging.training:TaggingJob",
        scorer="regard.cli.evaluate:tags",
        assets_class="regard.tasks.assets:TagAssets",
        open_corpus="regard.data.corpora.tagged:open_tagged",
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
        model_class="regard.tasks.language.generator:LanguageModel",
        job_class="regard.tasks.language.generator_training:LanguageModelJob",
        scorer="regard.cli.evaluate:running_text",
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
        model_class="regard.tasks.language.masked:MaskedLm",
        job_class="regard.tasks.language.masked_training:MaskedLmJob",
        scorer="regard.cli.evaluate:hidden_tokens",
    ),
    TaskInfo(
        "span-corruption",
        "a span-corruption model",
        synonyms="t5 spans denoising",
        families=("transformer",),
        sections=("masking", "decoding"),
        learns_from="documents",
        reads="gapped",
        writes="text",
        command="fill",
        model_class="regard.tasks.language.spans:SpanCorruption",
        job_class="regard.tasks.language.spans_training:SpanCorruptionJob",
        scorer="regard.cli.evaluate:hidden_tokens",
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
        model_class="regard.tasks.images.classifier:ImageClassification",
        job_class="regard.tasks.images.training:ImageJob",
        scorer="regard.cli.evaluate:labels",
        assets_class="regard.tasks.images.assets:ImageAssets",
        open_corpus="regard.data.corpora.images:open_images",
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
        model_class="regard.tasks.encoding:Encoding",
    ),
)
TASKS = {row.name: row for row in _ROWS}
"""The word ``task`` of a recipe to its row."""
if TYPE_CHECKING:
    Task = str
else:
    Task = Literal[tuple(TASKS)]
