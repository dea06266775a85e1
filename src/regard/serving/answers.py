"""What single models say, beside translations: of each kind of request its fields and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from regard.serving.core import ServiceError
from regard.serving.translate import Translator
from regard.tasks.kinds import continues_text, fills_words, labels_texts, tags_words
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.align import unit_weights, units_of

if TYPE_CHECKING:
    from regard.tasks.classification.classifier import Prediction
    from regard.tasks.protocols import Task
    from regard.tasks.translation.translator import Translation

MOST_TEXTS = 128
MOST_CHARACTERS, MOST_OF_SENTENCE = 20_000, 2_000
"""Of a text; of one whose every word is searched for again."""
MOST_FILLED = 5_000_000
"""Characters of filled texts, of which each gap has as many as guesses."""
LimitedText = Annotated[str, Field(max_length=MOST_CHARACTERS)]
LimitedTexts = Annotated[list[LimitedText], Field(min_length=1, max_length=MOST_TEXTS)]


class _Asked(BaseModel):
    """Fields of a request; unknown fields are ignored, as those of the interfaces are."""

    model_config = ConfigDict(frozen=True)

    @property
    def characters(self) -> int:
        """Of all its texts."""
        values = self.model_dump(exclude={"source", "target", "model"}).values()
        return sum(len("".join(value)) for value in values if isinstance(value, str | list))


class PairsRequest(_Asked):
    """Texts and translations of them."""

    texts: LimitedTexts
    translations: LimitedTexts
    source: str | None = None
    target: str


class OwnPairRequest(_Asked):
    """A text, and a translation of it; without one the model's own is taken."""

    text: LimitedText
    translation: LimitedText | None = None
    source: str | None = None
    target: str


class WordsRequest(OwnPairRequest):
    """A sentence whose translation's words are to be replaced by others."""

    text: str = Field(max_length=MOST_OF_SENTENCE)
    n: int = Field(default=3, ge=1, le=10)


class TextsRequest(_Asked):
    """Texts for a model, by its name where there are several."""

    texts: LimitedTexts
    model: str | None = None


class FillRequest(TextsRequest):
    """Texts with gaps: ``[MASK]``."""

    k: int = Field(default=5, ge=1, le=50)


OPTIONS = {"max_tokens", "stop", "seed", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"}
"""Fields of a request to a language model that it takes by their names."""


class GenerateRequest(_Asked):
    """A beginning that a language model goes on with; the sampling is as ``regard generate`` has it."""

    prompt: LimitedText
    model: str | None = None
    max_tokens: int = Field(default=256, ge=1, le=4096)
    stop: list[str] = Field(default=[], max_length=8)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    temperature: float | None = Field(default=None, ge=0, le=100)
    top_k: int | None = Field(default=None, ge=0, le=1 << 20)
    top_p: float | None = Field(default=None, gt=0, le=1)
    min_p: float | None = Field(default=None, ge=0, lt=1)
    repetition_penalty: float | None = Field(default=None, ge=1, le=10)


class Answers:
    """Answers in the thread of a call.

    Args:
        translator: of the server.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self.kinds: dict[str, tuple[type[_Asked], Callable[[Any], Any]]] = {
            "score": (PairsRequest, self._score),
            "align": (PairsRequest, self._align),
            "attention": (OwnPairRequest, self._attention),
            "words": (WordsRequest, self._words),
            "classify": (TextsRequest, self._classify),
            "tag": (TextsRequest, self._tag),
            "fill": (FillRequest, self._fill),
        }

    @contextmanager
    def _direct(self, source: str | None, target: str, text: str) -> Iterator[Translation]:
        """The translator that one hop has."""
        found = self._translator.languages(text, source, target)
        hops = self._translator.models.route(found.source, found.target)
        if len(hops) > 1:
            raise ServiceError(400, f"{found.source} is translated into {found.target} through another language only")
        with ExitStack() as stack:
            yield self._translator.task(hops[0], stack)

    def _model(self, command: str, name: str | None) -> AbstractContextManager[Task]:
        models = self._translator.models
        return models.use(models.of_command(command, name))

    def _pairs(self, asked: PairsRequest) -> AbstractContextManager[Translation]:
        """The translator of texts, each of which has a translation."""
        if len(asked.texts) != len(asked.translations):
            raise ServiceError(400, f"there are {len(asked.translations)} translations of {len(asked.texts)} texts")
        return self._direct(asked.source, asked.target, " ".join(asked.texts))

    def _score(self, asked: PairsRequest) -> object:
        with self._pairs(asked) as task:
            found = task.score(asked.texts, asked.translations)
        return {
            "scores": [
                {
                    "log_probability": round(one.log_probability, 6),
                    "confidence": round(one.confidence, 6),
                    "pieces": list(one.pieces),
                    "log_probabilities": [round(p, 6) for p in one.log_probabilities],
                }
                for one in found
            ]
        }

    def _align(self, asked: PairsRequest) -> object:
        with self._pairs(asked) as task:
            found = task.align(asked.texts, asked.translations)
        return {"links": [sorted(one) for one in found]}

    def _attention(self, asked: OwnPairRequest) -> object:
        with self._direct(asked.source, asked.target, asked.text) as task:
            written = asked.translation
            if written is None:
                written = task.best([asked.text])[0]
            [share_JI] = (
                unit_weights(task, [(asked.text, written)]) if asked.text.strip() and written.strip() else [None]
            )
        return {
            "target": written,
            "source_words": units_of(asked.text),
            "target_words": units_of(written),
            "weights": [] if share_JI is None else share_JI.round(4).tolist(),
        }

    def _words(self, asked: WordsRequest) -> object:
        with self._direct(asked.source, asked.target, asked.text) as task:
            best = None
            if asked.translation is not None:
                _, [ids] = task.encode_pairs([asked.text], [asked.translation], 1, "translations")
                best = Hypothesis(asked.translation, tuple(ids.tolist()), 0.0)
            found = task.alternatives(asked.text, asked.n, best=best)
        return {
            "words": [
                {"begin": one.begin, "end": one.end, "others": [asdict(other) for other in one.alternatives]}
                for one in found
            ]
        }

    def _classify(self, asked: TextsRequest) -> object:
        from regard.tasks.classification.classifier import Predictor

        with self._model("classify", asked.model) as task:
            assert labels_texts(task)
            judge = Predictor(task.recipe.classification, task.assets.labels, task.assets.fitted, None)
            lines = [task.parse_line(text, number) for number, text in enumerate(asked.texts, 1)]
            given = [line for line in lines if line is not None]
            found = iter(judge.predictions(task.scores(given)) if given else [])
            kind = task.recipe.classification.kind
            return {"predictions": [None if line is None else _prediction(next(found), kind) for line in lines]}

    def _tag(self, asked: TextsRequest) -> object:
        with self._model("tag", asked.model) as task:
            assert tags_words(task)
            found = task.tag(list(asked.texts))
            spans = task.assets.scheme != "none"
        return {
            "texts": [
                {"spans": [{**vars(span), "probability": round(span.probability, 6)} for span in one.spans]}
                if spans
                else {"words": one.words, "offsets": one.places, "tags": list(one.tags)}
                for one in found
            ]
        }

    def _fill(self, asked: FillRequest) -> object:
        with self._model("fill", asked.model) as task:
            assert fills_words(task)
            gaps = [len(task.gaps.pattern.findall(text)) for text in asked.texts]  # however the model writes them
            if sum(n * asked.k * len(text) for n, text in zip(gaps, asked.texts, strict=True)) > MOST_FILLED:
                raise ServiceError(413, "too much would be written: send fewer gaps at once, or a smaller k")
            found = task.fill(list(asked.texts), asked.k)
        return {"texts": [{"gaps": [[asdict(guess) for guess in gap] for gap in gaps]} for gaps in found]}

    def generate(self, asked: GenerateRequest) -> Iterator[str]:
        """Parts of what a language model writes, as they are decoded."""
        options = asked.model_dump(include=OPTIONS, exclude_none=True)
        with self._model("generate", asked.model) as task:
            assert continues_text(task)
            yield from task.stream(asked.prompt, **options)


def _prediction(one: Prediction, kind: str) -> dict[str, object]:
    if kind == "regression":
        return {"value": one.value}
    labels: dict[str, object] = {"labels": list(one.labels)} if kind == "multi" else {"label": one.label}
    every = {label: round(p, 6) for label, p in (one.probabilities or {}).items()}
    return {**labels, "probability": round(one.probability, 6), "probabilities": every}
