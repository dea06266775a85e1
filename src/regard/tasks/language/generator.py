"""Text generation, scoring and perplexity with a trained decoder-only model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding, GptSection, Recipe
from regard.data.batches.batch import Ids, batches_by_length, pack_sources
from regard.decoding.hypotheses import Hypothesis, Stop
from regard.decoding.search import Scheduler, sample
from regard.decoding.strategies import random_sampling
from regard.system.errors import UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.engine import step_of
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.task import (
    ROOM,
    Read,
    TextTask,
    inference_mode,
    output_symbols,
    read_as,
    refuse_others,
    sampling_values,
)
from regard.text.confidence import ScoredText
from regard.text.counts import counted
from regard.text.stop_strings import Decoder, StopStrings

if TYPE_CHECKING:
    from regard.models.transformer import Gpt

Floats = NDArray[np.float64]
MAX_TOKENS = 256
"""Default number of generated tokens."""
CHUNK = 512
"""Tokens whose scores of every piece are in memory at once."""


@dataclass(frozen=True)
class GeneratedText:
    """Generated continuation of a prompt.

    Args:
        text: without the prompt and without the stop string.
        tokens: the ids of its pieces, stop string included.
        log_probability: natural logarithm, of all tokens, by the model before temperature and limits.
        end: what ended it: the model, a stop string, or the limit of tokens.
    """

    text: str
    tokens: tuple[int, ...]
    log_probability: float
    end: Literal["model", "stop", "limit"]


@dataclass(frozen=True)
class Perplexity:
    """How well a language model knows some texts; of the last two measures no tokenizer decides.

    Args:
        nats: the surprise at all tokens, the ends of the texts among them.
        tokens: how many these are.
        words: of the texts, by the white space between them.
        bytes: of the texts in UTF-8.
    """

    nats: float
    tokens: int
    words: int
    bytes: int

    @property
    def per_token(self) -> float:
        """Of a token; that of another tokenizer is another number."""
        return _exp(self.nats / max(1, self.tokens))

    @property
    def per_word(self) -> float:
        """Of a word, whatever its tokens are."""
        return _exp(self.nats / max(1, self.words))

    @property
    def bits_per_byte(self) -> float:
        """Bits that the model needs to tell a byte."""
        return self.nats / math.log(2) / max(1, self.bytes)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON; an infinite perplexity is null."""
        measures = {
            "perplexity_per_token": self.per_token,
            "perplexity_per_word": self.per_word,
            "perplexity_per_byte": _exp(self.nats / max(1, self.bytes)),
            "bits_per_byte": self.bits_per_byte,
        }
        finite = {name: value if math.isfinite(value) else None for name, value in measures.items()}
        return {"nats_per_token": self.nats / max(1, self.tokens), **finite, **vars(self)}

    def lines(self) -> list[str]:
        """The measures as people read them."""
        nats = self.nats / max(1, self.tokens)
        return [
            f"perplexity of a token {self.per_token:.2f}  ({counted(self.tokens, 'token')}, {nats:.4f} nats each)",
            f"perplexity of a word {self.per_word:.2f}  ({counted(self.words, 'word')})",
            f"bits a byte {self.bits_per_byte:.4f}  ({counted(self.bytes, 'byte')})",
        ]

    @classmethod
    def of(cls, nats: Sequence[Floats], texts: Sequence[str]) -> Perplexity:
        """Of texts, by the surprise at each of their tokens."""
        words, size = sum(len(text.split()) for text in texts), sum(len(text.encode()) for text in texts)
        return cls(sum(float(one.sum()) for one in nats), sum(map(len, nats)), words, size)


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@dataclass(frozen=True)
class _Window:
    """Tokens ``begin`` to before ``end`` of a document, of which those from ``fresh`` on were in no window before."""

    document: int
    begin: int
    fresh: int
    end: int


class LanguageModel(TextTask[TextAssets, "Gpt"]):
    """A language model, ready to use.

    A document begins after ``</s>``, as in training, so a prompt is read as the beginning of one. A token sees at most
    ``data.max_tokens`` before it; a longer text is written all the same, in a window that slides.
    """

    evaluate_options = ("test", "columns", "stride")

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Gpt | Unloaded[Gpt]) -> None:
        super().__init__(recipe, assets, model)
        self.symbols = output_symbols(assets.tokenizer, recipe.decoding, assets.tokenizer.start)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Gpt:
        """The decoder-only model of a recipe, for n pieces."""
        from regard.models.build import gpt

        assert isinstance(recipe.model, GptSection)
        return gpt(recipe.model, sizes[0], key)

    @overload
    def generate(self, prompt: str = "", n: int = 1, *, scores: bool = True, **options: Any) -> list[GeneratedText]: ...
    @overload
    def generate(
        self, prompt: list[str], n: int = 1, *, scores: bool = True, **options: Any
    ) -> list[list[GeneratedText]]: ...
    def generate(
        self, prompt: str | list[str] = "", n: int = 1, *, scores: bool = True, **options: Any
    ) -> list[GeneratedText] | list[list[GeneratedText]]:
        """``n`` continuations of a prompt, or of each of a list.

        Samples are a pure function of the seed, the prompt's place in the list and the text's number, whatever else is
        in the batch.

        Args:
            prompt: one text or several; an empty one is the beginning of a document.
            n: texts drawn for each.
            scores: whether log-probabilities are wanted; at temperature 0 it is faster without, and they may be NaN.
            max_tokens: most tokens of a text, its end counted; default 256.
            stop: stop strings; not part of the output.
            seed: another seed, other texts; default: the recipe's.
            temperature, top_k, top_p, min_p, typical, repetition_penalty: default: the recipe's section ``decoding``;
                a temperature of 0 takes the most probable token every time.

        Raises:
            UsageError: an option that is none of these, or a value that does not fit.
        """
        if isinstance(prompt, str):
            return self.generate([prompt], n, scores=scores, **options)[0]
        asked = self.generation_options(**options)
        refuse_others(prompt)
        found = self.continue_ids([self._ids(text) for text in prompt], n, asked, scores)
        return [[self._generated_text(one, asked) for one in group] for group in found]

    def stream(self, prompt: str = "", number: int = 0, **options: Any) -> Iterator[str]:
        """A continuation of a prompt as a stream of parts, each as soon as it is final.

        Args:
            prompt: a text, or none.
            number: of the text, where several are drawn: that which :meth:`generate` gives at this place.
            options: as for :meth:`generate`.
        """
        asked = self.generation_options(**options)
        refuse_others([prompt])
        source, first = self._prompt(self._ids(prompt))
        choose = random_sampling(asked.decoding, asked.seed, self.symbols.without, scores=False)
        decoding = asked.decoding.model_copy(update={"beam": 1})
        scheduler = Scheduler(
            step_of(self, window=self.recipe.data.max_tokens), choose, decoding, self.symbols, stop=asked.stop
        )
        scheduler.put(0, source, asked.max_tokens, first=first, sample=number)
        return self._parts(scheduler, asked.stops)

    def _parts(self, scheduler: Scheduler, stops: StopStrings) -> Iterator[str]:
        reader = Decoder(self.assets.tokenizer, stops)
        for token in scheduler.tokens():
            if token != self.symbols.end and (part := reader.feed(token)):
                yield part
        if rest := reader.finish():
            yield rest

    def perplexity(
        self, texts: str | list[str], stride: int | None = None, divide: Divide = find_at_once
    ) -> Perplexity:
        """Perplexity of texts, each a document with its end.

        Args:
            texts: one or several.
            stride: a longer text is read in windows of ``data.max_tokens``, each with so many new tokens; default: all
                are new, so that the first tokens of a window have little before them.
            divide: computes the batches, perhaps in several processes.
        """
        texts = [texts] if isinstance(texts, str) else texts
        refuse_others(texts)
        nats = self.surprise([np.append(self._ids(text), self.symbols.end) for text in texts], stride, divide)
        return Perplexity.of(nats, texts)

    def score(self, text: str, ended: bool = True) -> ScoredText:
        """The pieces of a text and how probable each was.

        Args:
            text: read as a whole document.
            ended: whether its end is guessed too.
        """
        refuse_others([text])
        ids = self._ids(text)
        ids = np.append(ids, self.symbols.end) if ended else ids
        (nats,) = self.surprise([ids], max(1, self.recipe.data.max_tokens // 2))
        tokenizer = self.assets.tokenizer
        return ScoredText(tuple(map(tokenizer.piece, ids.tolist())), tuple((-nats).tolist()))

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a document and its characters, for inspection; ``</s>`` comes first."""
        return read_as(self.assets.tokenizer, text, (self.assets.tokenizer.end,))

    def surprise(
        self, documents: Sequence[Ids], stride: int | None = None, divide: Divide = find_at_once
    ) -> list[NDArray[np.float64]]:
        """Nats of every token of documents that are ids already; see :func:`surprisals`."""
        length = self.recipe.data.max_tokens
        stride = length if stride is None else stride
        return surprisals(self.model, documents, length, stride, self.symbols.end, divide=divide)

    def continue_ids(
        self, prompts: Sequence[Ids], n: int, asked: GenerationOptions, scores: bool = True
    ) -> list[list[Hypothesis]]:
        """Continuations of prompts given as ids."""
        if not prompts:
            return []
        parts = [self._prompt(ids) for ids in prompts]
        return sample(
            step_of(self, window=self.recipe.data.max_tokens),
            [source for source, _ in parts],
            asked.decoding,
            self.symbols,
            seed=asked.seed,
            samples=n,
            firsts=[first for _, first in parts],
            limits=[asked.max_tokens] * len(parts),
            stop=asked.stop,
            scores=scores,
        )

    def generation_options(
        self, max_tokens: int = MAX_TOKENS, seed: int | None = None, stop: str | Sequence[str] = (), **sampling: Any
    ) -> GenerationOptions:
        decoding = self.recipe.decoding.model_copy(update=sampling_values(sampling, "generate"))
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise UsageError(f"{max_tokens!r} tokens cannot be written; give 1 or more", "max_tokens")
        stops = StopStrings([stop] if isinstance(stop, str) else stop, self.assets.tokenizer)
        return GenerationOptions(decoding, max_tokens, self.recipe.seed if seed is None else seed, stops)

    def _generated_text(self, found: Hypothesis, asked: GenerationOptions) -> GeneratedText:
        text = self.assets.tokenizer.decode(found.tokens)
        stopped = not found.finished and asked.stops(found.tokens)
        end: Literal["model", "stop", "limit"] = "model" if found.finished else "stop" if stopped else "limit"
        return GeneratedText(asked.stops.cut(text) if stopped else text, found.tokens, found.log_probability, end)

    def engine_sizes(self) -> tuple[int, int]:
        """What the engine's builder asks for: pieces, and the tokens that a token sees."""
        return self.assets.sizes[0], self.recipe.data.max_tokens

    def _ids(self, text: str) -> Ids:
        return self.assets.tokenizer.ids_batch([text])[0]

    def _prompt(self, ids: Ids) -> tuple[Ids, int]:
        """The tokens to prefill, and the token of the first step."""
        whole = np.append(np.int64(self.symbols.end), ids)
        return whole[:-1], int(whole[-1])


@dataclass(frozen=True)
class GenerationOptions:
    """How texts are to be written."""

    decoding: Decoding
    max_tokens: int
    seed: int
    stops: StopStrings

    @property
    def stop(self) -> Stop | None:
        """The stopping criterion, if there are stop strings."""
        return (lambda tokens: self.stops(tokens.tolist())) if self.stops.texts else None


def windows(lengths: Sequence[int], length: int, stride: int) -> Iterator[_Window]:
    """Windows of at most ``length`` tokens; each but a document's first holds at most ``stride`` new ones, at its end.

    Raises:
        UsageError: the stride is no part of a window.
    """
    if not 1 <= stride <= length:
        raise UsageError(f"a stride of {stride} must lie between 1 and a window's {length} tokens", "stride")
    for document, count in enumerate(lengths):
        yield _Window(document, 0, 0, min(count, length))
        for fresh in range(length, count, stride):
            end = min(fresh + stride, count)
            yield _Window(document, max(0, fresh + stride - length), fresh, end)


@inference_mode
def surprisals(
    model: Gpt,
    documents: Sequence[Ids],
    length: int,
    stride: int,
    begin: int,
    asked: Callable[[], None] = lambda: None,
    divide: Divide = find_at_once,
) -> list[Floats]:
    """Negative log-likelihood of every token of each document, in nats.

    Args:
        model: predicts the next token.
        documents: ids, ``</s>`` last where the end is to be guessed too.
        length: tokens of a window.
        stride: new tokens of each window but the first; with fewer, each token has more before it, and it takes longer.
        begin: tokens before a document.
        asked: called before each forward pass; may raise.
        divide: computes the batches, perhaps in several processes.
    """
    found = [np.zeros(len(document)) for document in documents]
    every = [window for window in windows(list(map(len, documents)), length, stride) if window.end > window.begin]
    lengths = np.array([window.end - window.begin for window in every], np.int64)
    batches = list(batches_by_length(lengths, ROOM))

    def nats_of(some: Sequence[Ids], first: int) -> list[list[float]]:
        sums = []
        for part in some:
            asked()
            chosen = [every[place] for place in part]
            labels = [documents[window.document][window.begin : window.end] for window in chosen]
            before = [documents[window.document][window.begin - 1] if window.begin else begin for window in chosen]
            read = [np.append(np.int64(id), ids[:-1]) for id, ids in zip(before, labels, strict=True)]
            sums.append(_nats(model, read, np.concatenate(labels)).tolist())
        return sums

    for part, nats_T in zip(batches, divide(nats_of, batches), strict=True):
        parts = np.split(np.array(nats_T), lengths[part].cumsum()[:-1])
        for window, nats in zip((every[place] for place in part), parts, strict=True):
            found[window.document][window.fresh : window.end] = nats[window.fresh - window.begin :]
    return found


def _nats(model: Gpt, read: Sequence[Ids], labels: Ids) -> Floats:
    import torch

    from regard.models.inputs import tokens

    device = model.output.weight.device
    hidden_TD = model(tokens(pack_sources(read), device))
    labels_T, parts = torch.from_numpy(labels).to(device), []
    for hidden_ND, labels_N in zip(hidden_TD.split(CHUNK), labels_T.split(CHUNK), strict=True):
        score_NV = model.scores(hidden_ND)
        score_NV = score_NV if score_NV.dtype == torch.float64 else score_NV.float()
        parts.append(score_NV.logsumexp(1) - score_NV.gather(1, labels_N[:, None])[:, 0])
    return torch.cat(parts).double().cpu().numpy()
