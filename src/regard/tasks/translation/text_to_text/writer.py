"""Text to text with a trained encoder-decoder: a text, its task named by a prefix → another text [Raffel20 §2.4]."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from regard.config import Decoding, Recipe, TransformerSection, check_value
from regard.data.batches.batch import Ids
from regard.data.checks.findings import excerpt
from regard.data.corpora.corpus import Corpus
from regard.decoding.hypotheses import Hypothesis, Symbols, Trace
from regard.decoding.search import sample, search
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.assets import AnswerAssets
from regard.tasks.engine import step_of
from regard.tasks.metrics.bleu import AnswerScores, score_answers
from regard.tasks.metrics.labels import FEW
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.task import (
    Read,
    TextTask,
    decode_with_symbols,
    refuse_long,
    refuse_others,
    refuse_unequal,
    sampling_options,
    score_outputs,
    sentinel_gaps,
    suppressed,
)
from regard.tasks.translation.text_to_text.corpus import PrefixedPair, open_prefixed, prefix_list, with_prefix
from regard.text.confidence import ScoredText, Side, is_doubted
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import AnyTokenizer, start_of

if TYPE_CHECKING:
    from regard.models.transformer import Transformer

MOST = 100
"""Outputs of a text, at most."""


@dataclass(frozen=True)
class Answer:
    """What is written for a text.

    Args:
        text: on one line.
        tokens: its pieces' ids, without ``</s>``.
        probability: of the whole output, given the text; by the model, before temperature and limits.
        score: what a search compares by, larger is better.
        finished: False where the length limit cut it off.
        confidence: the geometric mean of its tokens' probabilities, 0 to 1; NaN where scores were not asked for.
        unsure: whether that is less than usual on the validation texts; ``None`` where the folder does not say.
    """

    text: str
    tokens: tuple[int, ...]
    probability: float
    score: float
    finished: bool = True
    confidence: float = 1.0
    unsure: bool | None = None


NOTHING = Answer("", (), 1.0, 0.0)
"""For a blank text."""


def start_in(recipe: Recipe, tokenizer: AnyTokenizer) -> int:
    """What begins the outputs of a model: where it learned from prefixed pairs with a T5's vocabulary its pad piece."""
    prefixed = recipe.info.learns_from == "prefixed" and not recipe.text_to_text.spans
    return start_of(tokenizer) if prefixed else tokenizer.start


class TextToText(TextTask[AnswerAssets, "Transformer"]):
    """A text-to-text model, ready to use.

    Where the vocabulary has sentinels (``<extra_0>``), they are read and written by these names.
    """

    assets_class = AnswerAssets
    open_corpus = staticmethod(open_prefixed)
    evaluate_options = ("test", "columns", "beam")

    def __init__(self, recipe: Recipe, assets: AnswerAssets, model: Transformer | Unloaded[Transformer]) -> None:
        super().__init__(recipe, assets, model)
        tokenizer = assets.tokenizer
        written = [*tokenizer.ordinary.tolist(), *tokenizer.sentinels, tokenizer.end]
        never = np.setdiff1d(np.arange(tokenizer.size), written)
        self.symbols = Symbols(
            start_in(recipe, tokenizer), tokenizer.end, (*never.tolist(), *suppressed(tokenizer, recipe.decoding))
        )
        self.gaps = sentinel_gaps(tokenizer)
        self.marks = self.gaps.pattern

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer:
        """The encoder-decoder of a recipe, for n pieces on both sides."""
        from regard.models.build import transformer

        assert isinstance(recipe.model, TransformerSection)
        return transformer(recipe.model, sizes[0], sizes[0], key)

    def engine_sizes(self) -> tuple[int, int]:
        """What the engine's builder asks for: source and target pieces, those of the one vocabulary."""
        return self.assets.sizes[0], self.assets.sizes[0]

    @overload
    def ask(self, text: str, prefix: str = "", beam: int | None = None) -> str: ...
    @overload
    def ask(self, text: list[str], prefix: str = "", beam: int | None = None) -> list[str]: ...
    def ask(self, text: str | list[str], prefix: str = "", beam: int | None = None) -> str | list[str]:
        """What is written for a text, or for each text of a list.

        Args:
            text: one or several; an empty one stays empty.
            prefix: of the task, as the training files name it; none if the texts begin with theirs.
            beam: hypotheses kept while searching; 1 is greedy; default: the recipe's.
        """
        texts = [text] if isinstance(text, str) else text
        refuse_others(texts)
        best = [
            found[0].text for found in self.nbest([with_prefix(one, prefix) for one in texts], 1, beam, scores=False)
        ]
        return best[0] if isinstance(text, str) else best

    def nbest(
        self,
        texts: Sequence[str],
        n: int = 1,
        beam: int | None = None,
        *,
        max_extra: int | None = None,
        trace: Trace | None = None,
        first: int = 1,
        scores: bool = True,
    ) -> list[list[Answer]]:
        """The ``n`` best outputs for each text, best first.

        Args:
            texts: with their prefixes; blank ones have an empty output. Of a text longer than any in training
                (``data.max_tokens``) the end is not read, with a warning.
            n: outputs of each.
            beam: hypotheses kept while searching, ``n`` at least; default: the recipe's.
            max_extra: tokens an output may have more than its source; default: the recipe's.
            trace: told of every step of the search.
            first: line number of the first text, for warnings.
            scores: whether they are wanted; a greedy search is faster without, and they may be NaN.

        Raises:
            UsageError: ``texts`` is no list of texts, or ``n`` is not in 1 … ``MOST``.
        """
        sources = self._sources(texts, n, first)
        found = iter(self.search([one for one in sources if one is not None], n, beam, max_extra, trace, scores))
        return [[NOTHING] if one is None else list(map(self._answer, next(found))) for one in sources]

    def sample(
        self, texts: Sequence[str], n: int = 1, *, seed: int | None = None, first: int = 1, **options: Any
    ) -> list[list[Answer]]:
        """``n`` outputs drawn for each text: a pure function of the seed, the text's number and the output's.

        Args:
            texts: as :meth:`nbest` has them.
            n: outputs of each.
            seed: another seed, other outputs; default: the recipe's.
            first: number of the first text.
            options: temperature, top_k, top_p, min_p, typical, repetition_penalty; default: the recipe's.

        Raises:
            UsageError: as :meth:`nbest`; or an option that is none of these, or a value that does not fit.
        """
        decoding = sampling_options(self.recipe.decoding, options, "sample")
        sources, seed = self._sources(texts, n, first), self.recipe.seed if seed is None else seed
        asked = {number: one for number, one in enumerate(sources, first) if one is not None}
        if not asked:
            return [[NOTHING] for _ in sources]
        drawn = sample(step_of(self), [*asked.values()], decoding, self.symbols, seed=seed, samples=n, numbers=[*asked])
        found = iter(drawn)
        return [[NOTHING] if one is None else list(map(self._answer, next(found))) for one in sources]

    def score(self, texts: Sequence[str], outputs: Sequence[str], first: int = 1) -> list[ScoredText]:
        """How probable given outputs are, token by token.

        Args:
            texts: each is read as a whole.
            outputs: one of each.
            first: number of the first text.

        Raises:
            UsageError: there are not as many.
            RegardError: a text is too long to be read as a whole.
        """
        refuse_unequal(outputs, texts, "outputs")
        tokenizer, most = self.assets.tokenizer, self.recipe.data.max_tokens
        sources = [np.append(ids, tokenizer.end) for ids in self.gaps.ids_batch(texts)]
        ids = self.gaps.ids_batch(outputs)
        refuse_long(sources, most, first, "texts")
        refuse_long(ids, most + self.recipe.decoding.max_extra, first, "outputs")
        return score_outputs(step_of(self), sources, ids, self.symbols, tokenizer, self.recipe.decoding.tokens)

    def evaluate(
        self,
        given: Corpus[PrefixedPair] | Sequence[PrefixedPair],
        beam: int | None = None,
        trace: Trace | None = None,
        divide: Divide = find_at_once,
    ) -> AnswerScores:
        """Exact match, BLEU and ROUGE-L of the best outputs, for each prefix and overall.

        Args:
            given: a corpus, or examples; those that lack a text are left out.
            beam: hypotheses kept while searching; default: the recipe's.
            trace: told of every step of the search.
            divide: answers the texts, perhaps in several processes.

        Raises:
            RegardError: there are none, or a corpus has only prefixes that the model never learned; names the corpus.

        Warns:
            UserWarning: the model learned the prefixes of fewer than a tenth of a corpus.
        """
        every, where = (given, None) if isinstance(given, Sequence) else (given.examples(), given.name)
        if not (examples := [example for example in every if not example.is_empty]):
            raise RegardError("nothing to score: there are no texts", where)
        if where is not None:
            self._refuse_unlearned(examples, where)

        def best(some: Sequence[str], begin: int) -> list[str]:
            return [found[0].text for found in self.nbest(some, 1, beam, trace=trace, first=begin + 1, scores=False)]

        said = divide(best, [with_prefix(one.source, one.prefix) for one in examples])
        return score_answers(said, [one.target for one in examples], [one.prefix for one in examples])

    def unlearned_prefix(self, text: str, prefix: str = "") -> str | None:
        """The prefix of a text where training never had it, ``""`` where the text lacks one.

        Args:
            text: with its prefix, or without it where ``prefix`` is given.
            prefix: of the text.

        Returns:
            ``None`` where the model learned the prefix, or its folder does not say which it learned.
        """
        known, fold = self.assets.prefixes, str.lower if self.recipe.text.lowercase else str
        begins = tuple(fold(f"{one}: ") for one in known if one)
        if not known or fold(with_prefix(text, prefix)).startswith(begins) or (not prefix and "" in known):
            return None
        found, colon, _ = text.partition(": ")
        return prefix or (found if colon else "")

    def prefix_warning(self, text: str, prefix: str = "") -> str:
        """A sentence where :meth:`unlearned_prefix` finds one; empty elsewhere."""
        strange = self.unlearned_prefix(text, prefix)
        if strange is None:
            return ""
        known = prefix_list(self.assets.prefixes)
        if not strange:
            return f"a text begins with no prefix: {excerpt(text)!r}; the model knows: {known}"
        return f"the model has not learned the prefix {excerpt(strange)!r}; it knows: {known}"

    def _refuse_unlearned(self, examples: Sequence[PrefixedPair], where: str) -> None:
        """Raise where the model learned no prefix of a test set, and warn where it learned few.

        Raises:
            RegardError: it learned none.
        """
        found = (self.unlearned_prefix(one.source, one.prefix) for one in examples)
        strange = Counter(prefix for prefix in found if prefix is not None)
        learned = len(examples) - strange.total()
        if learned >= FEW * len(examples):
            return
        theirs = prefix_list(prefix for prefix, _ in strange.most_common())
        compared = f"they are {theirs}; it knows: {prefix_list(self.assets.prefixes)}"
        instead = f"if prefix, source and target are in other columns, name them by {Option('columns')}, as in training"
        if not learned:
            raise RegardError(f"the model has learned none of the prefixes: {compared}; {instead}", where)
        said = f"the model has learned the prefixes of {learned:,} of {counted(len(examples), 'text')}"
        warnings.warn(f"{where}: {said}: of the others {compared}; {instead}", stacklevel=3)

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces that training has on neither side; None where the model folder does not say."""
        unseen = self.assets.seen.unseen_pieces if self.assets.seen else None
        return frozenset.intersection(*map(frozenset, unseen)) if unseen else None

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The encoder's input for a text and its characters, for inspection; ``</s>`` comes last."""
        found = self.gaps.parse(text)
        return found.text, [*found.read, (self.assets.tokenizer.end, len(found.text), len(found.text))]

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of a text to be written, for inspection; without symbols."""
        found = self.gaps.parse(text)
        return found.text, list(found.read)

    def decoding(self, k: int, beam: int | None) -> Decoding:
        """The recipe's decoding options with a beam of at least ``k``.

        Raises:
            UsageError: the beam is none.
        """
        if beam is not None:
            check_value("decoding.beam", beam, "beam")
        decoding = self.recipe.decoding
        return decoding.model_copy(update={"beam": max(k, decoding.beam if beam is None else beam)})

    def search(
        self,
        sources: Sequence[Ids],
        k: int,
        beam: int | None,
        max_extra: int | None = None,
        trace: Trace | None = None,
        scores: bool = True,
    ) -> list[list[Hypothesis]]:
        """The ``k`` best outputs of each source, best first.

        Args:
            sources: ids with ``</s>``.
            k: outputs of each.
            beam: hypotheses kept while searching, ``k`` at least; default: the recipe's.
            max_extra: tokens an output may have more than its source; default: the recipe's.
            trace: told of every step.
            scores: whether they are wanted; greedy search is faster without.
        """
        if not sources:
            return []
        decoding = self.decoding(k, beam)
        if max_extra is not None:
            decoding = decoding.model_copy(update={"max_extra": max_extra})
        if k > 1 and decoding.distinct:
            return self._search_distinct(sources, k, decoding)
        return search(step_of(self), sources, decoding, self.symbols, nbest=k, trace=trace, scores=scores)

    def _search_distinct(self, sources: Sequence[Ids], k: int, decoding: Decoding) -> list[list[Hypothesis]]:
        """The ``k`` best outputs that differ in more than case, punctuation and spaces."""
        step, tokenizer = step_of(self), self.assets.tokenizer

        def text(tokens: tuple[int, ...]) -> str:
            return decode_with_symbols(tokenizer, tokens, tokenizer.sentinels)

        def find(places: Sequence[int], width: int) -> list[list[Hypothesis]]:
            own = decoding.model_copy(update={"beam": width})
            return search(step, [sources[place] for place in places], own, self.symbols, nbest=width)

        from regard.tasks.text.distinct import search_distinct

        return search_distinct(find, len(sources), k, decoding.beam, text)

    def _sources(self, texts: Sequence[str], n: int, first: int) -> list[Ids | None]:
        """The ids of each text with ``</s>``, cut to those of training; None for a blank one."""
        refuse_others(texts)
        if not isinstance(n, int) or not 1 <= n <= MOST:
            raise UsageError(f"{n!r} outputs cannot be given; ask for 1 to {MOST}", "n")
        tokenizer, room = self.assets.tokenizer, self.recipe.data.max_tokens - 1
        found: list[Ids | None] = []
        for number, (text, ids) in enumerate(zip(texts, self.gaps.ids_batch(texts), strict=True), first):
            if len(ids) > room:
                longer = f"line {number} has {len(ids):,} tokens; the end is not read, of all but {room:,}"
                warnings.warn(f"{longer}: {text[:40] + '…'!r}", stacklevel=3)
            found.append(np.append(ids[:room], tokenizer.end) if text.strip() else None)
        return found

    def _answer(self, found: Hypothesis) -> Answer:
        sentinels = self.assets.tokenizer.sentinels
        text = " ".join(decode_with_symbols(self.assets.tokenizer, found.tokens, sentinels).split("\n"))
        return Answer(
            text,
            found.tokens,
            math.exp(found.log_probability),
            found.score,
            found.finished,
            found.confidence,
            is_doubted(found.confidence, self.assets.doubted_below),
        )
