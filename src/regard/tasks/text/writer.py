"""What models of texts write for texts: outputs searched for, drawn, and chosen among several; terms; scores."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from regard.config import Decoding
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis as TokenHypothesis
from regard.decoding.hypotheses import Trace
from regard.decoding.search import sample, search
from regard.system.errors import Option, UsageError
from regard.tasks.assets import AnswerAssets
from regard.tasks.engine import step_of
from regard.tasks.protocols import Divide, find_at_once
from regard.tasks.text.output_options import MOST, OutputOptions
from regard.tasks.text.task import (
    LINES,
    AnyModel,
    TextTask,
    decode_with_symbols,
    refuse_long,
    refuse_others,
    refuse_unequal,
    sampling_values,
)
from regard.text.confidence import ScoredText, is_doubted
from regard.text.language_tokens import Direction
from regard.text.languages import joiner
from regard.text.tokenizers.vocabulary import Vocabularies

if TYPE_CHECKING:
    from regard.tasks.text.terms import Terminology
    from regard.tasks.translation.guard import Attempt, GuardReport

AnyWriterAssets = TypeVar("AnyWriterAssets", bound=Vocabularies | AnswerAssets)
Found = list[list[TokenHypothesis]]
Search = Callable[..., Found]
ONCE = OutputOptions()


@dataclass(frozen=True)
class Hypothesis:
    """One output for a text: a translation, or an answer.

    Args:
        text: the output, one line.
        tokens: its pieces' ids, without ``</s>``.
        score: length-penalised log-probability, larger is better; summed over the parts of a text that was cut.
        finished: False where the length limit cut it off.
        confidence: the geometric mean of its tokens' probabilities, 0 to 1; of a text that was cut the least of a part.
            NaN where scores were not asked for.
        unsure: whether that is less than usual on the validation texts; ``None`` where the folder does not say.
        guard: what speaks against it, where that was asked for.
        utility: how much it is like the other candidates, 0 to 100, where minimum Bayes risk chose it.
        tried: the searches for it, where it was searched for again.
        parts: what was written for each part of a text that was cut; else one, and none for a blank text.
    """

    text: str
    tokens: tuple[int, ...]
    score: float
    finished: bool = True
    confidence: float = 1.0
    unsure: bool | None = None
    guard: GuardReport | None = field(default=None, compare=False)
    utility: float | None = None
    tried: tuple[Attempt, ...] = field(default=(), compare=False)
    parts: tuple[TokenHypothesis, ...] = field(default=(), compare=False, repr=False)

    @property
    def probability(self) -> float:
        """Of the whole output, given the text; by the model, before temperature and limits."""
        return math.exp(sum(one.log_probability for one in self.parts))


NOTHING = Hypothesis("", (), 0.0)
"""For a blank text."""


class Writer(TextTask[AnyWriterAssets, AnyModel]):
    """A task whose model reads a text and writes another."""

    direction: Direction
    """The codes of the languages that it reads and writes."""
    longest: int
    """Tokens of a text that is read as a whole, at most."""
    parts: Callable[..., tuple[list[list[str]], list[Ids]]]
    """From texts and the line number of the first, for warnings, to the parts of each text, none of a blank one, and
    the ids that the encoder reads of each part."""
    source_ids: Callable[..., list[Ids]]
    """The ids that the encoder reads of texts, each as a whole."""
    reverse: Any = None
    """A model of the reverse direction, of a translator."""
    search: Search = staticmethod(search)
    """What finds the best outputs; a server searches for those of all its clients together."""

    @cached_property
    def terminology(self) -> Terminology | None:
        """What outputs that are searched for contain and what they do not; default: the terms of the folder."""
        if not (self.assets.terms and self.assets.terms.entries):
            return None
        from regard.tasks.text.terms import Terminology

        return Terminology(self.assets.terms)

    def engine_sizes(self) -> tuple[int, int]:
        """What the engine's builder asks for: source and target pieces."""
        return self.source_tokenizer.size, self.target_tokenizer.size

    def step(self) -> Any:
        """The step of search."""
        return step_of(self)

    def target_ids(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of texts that are to be written, without symbols."""
        return list(self.target_tokenizer.ids_batch(texts))

    def write(
        self,
        texts: Sequence[str],
        options: OutputOptions = ONCE,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        drafts: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """The outputs for each text that are asked for, best first.

        Args:
            texts: in any order; blank ones have one empty output.
            options: what is asked for.
            first: line number of the first text, on which draws depend, for warnings too.
            prefixes: what the output for each text begins with, of a text that is cut that for its first part; it
                counts as certain.
            drafts: what the output for each text may be like, empty where nothing is known, of a text that is cut that
                of its first part; a greedy search of few texts is faster where it is right, outputs are the same.

        Raises:
            UsageError: ``texts`` is no list of texts, there are not as many prefixes or drafts, or the model does not
                do what is asked.
        """
        refuse_others(texts)
        if options.guard is not None:
            raise UsageError(f"judges translations, but this is {self.info.noun}", Option("guard"))
        if prefixes is not None:
            refuse_unequal(prefixes, texts, "prefixes")
        if drafts is not None:
            refuse_unequal(drafts, texts, "drafts")
        groups, ids = self.parts(texts, first)
        begins = None if prefixes is None else self._begins(prefixes, groups, first)
        numbers = [line + place * LINES for line, group in enumerate(groups, first) for place in range(len(group))]
        ahead = self._drafts(drafts, groups) if drafts is not None and any(drafts) else None
        given = _Parts([part for group in groups for part in group], ids, numbers, begins, ahead)
        own = None if options.draws else self.terminology if options.terms is None else options.terms
        found = iter(self._find(given, options, own or None) if ids else [])
        lead = " " if own else ""  # a term may stand first as pieces spell it behind a space
        lines = [self._join([next(found) for _ in group], options.candidates, lead) for group in groups]
        return lines if options.mbr is None else [self._by_utility(line)[: options.n] for line in lines]

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
        prefixes: Sequence[str] | None = None,
        terms: Terminology | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best outputs for each text, best first: of :meth:`write`, a search by some of its options."""
        options = OutputOptions(n, beam, scores=scores, max_extra=max_extra, trace=trace, terms=terms)
        return self.write(texts, options, first, prefixes)

    def sample(
        self,
        texts: Sequence[str],
        n: int = 1,
        *,
        seed: int | None = None,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        **drawing: float | None,
    ) -> list[list[Hypothesis]]:
        """``n`` outputs drawn for each text: a pure function of the seed, the text's number and the output's.

        Args:
            texts: as :meth:`write` has them, and ``first`` and ``prefixes``.
            n: outputs of each.
            seed: another seed, other outputs; default: the recipe's.
            drawing: temperature, top_k, top_p, min_p, typical, repetition_penalty; default: the recipe's.
        """
        return self.write(texts, OutputOptions(n, sample=True, seed=seed, drawing=drawing), first, prefixes)

    def mbr(
        self,
        texts: Sequence[str],
        n: int = 32,
        beam: int | None = None,
        *,
        seed: int | None = None,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        **drawing: float | None,
    ) -> list[list[Hypothesis]]:
        """Minimum Bayes risk: of ``n`` candidates for each text that which is most like the others [Eikema22].

        Args:
            texts: as :meth:`write` has them, and ``first`` and ``prefixes``.
            n: candidates of each: drawn as by :meth:`sample`, with ``seed`` and ``drawing``; with a beam the n best.
            beam: hypotheses kept while searching for candidates.

        Returns:
            Every different candidate with its ``utility``, the best first: the mean of its sentence scores against the
            others, chrF or BLEU as ``decoding.utility`` says.
        """
        return self.write(texts, OutputOptions(n, beam, mbr=n, seed=seed, drawing=drawing), first, prefixes)

    def best(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        *,
        trace: Trace | None = None,
        terms: Terminology | None = None,
        divide: Divide = find_at_once,
    ) -> list[str]:
        """The best output for each text, perhaps found in several processes."""
        options = OutputOptions(1, beam, scores=False, trace=trace, terms=terms)
        return divide(lambda some, begin: [line[0].text for line in self.write(some, options, begin + 1)], texts)

    def score(self, texts: Sequence[str], outputs: Sequence[str], first: int = 1) -> list[ScoredText]:
        """How probable given outputs are, token by token, without what every output begins with.

        Args:
            texts: each is read as a whole.
            outputs: one of each.
            first: line number of the first text, for messages.

        Raises:
            UsageError: there are not as many.
            RegardError: a text is too long to be read as a whole.
        """
        from regard.decoding.scoring import score

        sources, said = self.encode_pairs(texts, outputs, first)
        symbols, skip, found = self.symbols, len(self.symbols.prefix), list[ScoredText]()
        whole = [np.array([*symbols.prefix, *ids.tolist(), symbols.end]) for ids in said]
        scored = score(self.step(), sources, whole, symbols.start, self.recipe.decoding.tokens)
        for ids, log_probability_T in zip(whole, scored, strict=True):
            pieces = tuple(map(self.target_tokenizer.piece, ids[skip:].tolist()))
            found.append(ScoredText(pieces, tuple(log_probability_T[skip:].tolist())))
        return found

    def encode_pairs(
        self, texts: Sequence[str], outputs: Sequence[str], first: int, name: str = "outputs"
    ) -> tuple[list[Ids], list[Ids]]:
        """The ids of both sides; one with more tokens than are read or written at once is refused."""
        refuse_unequal(outputs, texts, name)
        sources, ids = self.source_ids(texts), self.target_ids(outputs)
        refuse_long(sources, self.longest, first, "texts")
        refuse_long(ids, self.recipe.data.max_tokens + self.recipe.decoding.max_extra, first, name)
        return sources, ids

    def decoding(self, options: OutputOptions) -> Decoding:
        """The section of the recipe as a search for these outputs has it."""
        beam = max(options.candidates, self.recipe.decoding.beam) if options.beam is None else options.beam
        changed = {"beam": beam} if options.max_extra is None else {"beam": beam, "max_extra": options.max_extra}
        return self.recipe.decoding.model_copy(update=changed)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of an output, on one line."""
        sentinels = self.target_tokenizer.sentinels
        return decode_with_symbols(self.target_tokenizer, tokens, sentinels).replace("\n", " ")

    def _begins(self, prefixes: Sequence[str], groups: list[list[str]], first: int) -> list[tuple[int, ...]]:
        """The tokens that the output of every part begins with."""
        said, own = self.target_ids([one.rstrip() for one in prefixes]), self.symbols.prefix  # a word brings its space
        refuse_long(said, self.recipe.data.max_tokens, first, "prefixes")
        return [
            own if place else (*own, *ids.tolist())
            for ids, group in zip(said, groups, strict=True)
            for place in range(len(group))
        ]

    def _drafts(self, drafts: Sequence[str], groups: list[list[str]]) -> list[list[int]]:
        """The tokens that the output of every part may be like."""
        own = [[*self.symbols.prefix, *ids.tolist()] if len(ids) else [] for ids in self.target_ids(drafts)]
        return [[] if place else ids for ids, group in zip(own, groups, strict=True) for place in range(len(group))]

    def _find(self, given: _Parts, options: OutputOptions, own: Terminology | None) -> Found:
        """What is drawn or searched for, of every part."""
        n, step, symbols, seed = options.candidates, self.step(), self.symbols, options.seed
        if options.draws:
            decoding = self.recipe.decoding.model_copy(update=sampling_values(options.drawing, "sample"))
            asked = step, given.ids, decoding, symbols
            own_seed, numbers = self.recipe.seed if seed is None else seed, given.numbers
            drawn = sample(*asked, seed=own_seed, samples=n, numbers=numbers, prefixes=given.begins)
            return self._rank(given.ids, drawn)
        decoding, scores = self.decoding(options), options.scores or self.reverse is not None

        def some(places: Sequence[int], **rules: Any) -> Found:
            rules["prefixes"] = given.begins and [given.begins[place] for place in places]
            if given.drafts:
                rules["drafts"] = [given.drafts[place] for place in places]

            def find(chosen: Sequence[int], width: int, kept: int | None = None) -> Found:
                sources = [given.ids[places[one]] for one in chosen]
                each: dict[str, Any] = {name: some and [some[one] for one in chosen] for name, some in rules.items()}
                each |= {"nbest": kept or width, "trace": options.trace, "scores": scores}
                beam = decoding.model_copy(update={"beam": width})
                return self._rank(sources, self.search(step, sources, beam, symbols, **each))

            if n == 1 or not decoding.distinct:
                return find(range(len(places)), decoding.beam, None if self.reverse else n)
            text, skip = self.decode, len(symbols.prefix)
            return search_distinct(find, len(places), n, decoding.beam, lambda tokens: text(tokens[skip:]))

        if own is None:
            return some(range(len(given.ids)))
        from regard.tasks.text.terms import TermSearch

        keep = TermSearch(own, self.recipe, symbols, self.target_tokenizer, self.direction)
        return keep(given.ids, given.texts, given.numbers, some)

    def _rank(self, sources: list[Ids], found: Found) -> Found:
        """Outputs in the order of the reverse model, where there is one."""
        if not self.reverse:
            return found
        from regard.tasks.translation.reverse import rerank

        return rerank(self, sources, found)

    def _by_utility(self, line: list[Hypothesis]) -> list[Hypothesis]:
        """Different candidates, those first that are most like the others."""
        from regard.tasks.metrics.utility import by_utility

        order = by_utility([one.text for one in line], self.recipe.decoding.utility, self.direction[1])
        return [replace(line[place], utility=mean) for place, mean in order]

    def _join(self, parts: list[list[TokenHypothesis]], n: int, lead: str) -> list[Hypothesis]:
        """The i-th best of every part of a text, joined without what leads each; a part with fewer gives its last."""
        if not parts:
            return [NOTHING]
        found, skip = [], len(self.symbols.prefix)
        for place in range(min(n, max(map(len, parts)))):
            chosen = tuple(part[min(place, len(part) - 1)] for part in parts)
            texts = [self.decode(one.tokens).removeprefix(lead) for one in chosen]
            confidence = min(one.confidence for one in chosen)
            found.append(
                Hypothesis(
                    joiner(self.direction[1]).join(texts) if len(texts) > 1 else texts[0],
                    tuple(token for one in chosen for token in one.tokens[skip:]),
                    sum(one.score for one in chosen),
                    all(one.finished for one in chosen),
                    confidence,
                    is_doubted(confidence, self.assets.doubted_below),
                    parts=chosen,
                )
            )
        return found


@dataclass(frozen=True)
class _Parts:
    """The parts of several texts.

    Args:
        texts, ids: what each is, and what is read of it.
        numbers: all different: the line of each, and its place there (:data:`~regard.tasks.text.task.LINES`).
        begins: tokens that the output of each begins with; ``None``: those of the language.
        drafts: tokens that it may be like.
    """

    texts: list[str]
    ids: list[Ids]
    numbers: list[int]
    begins: list[tuple[int, ...]] | None
    drafts: list[list[int]] | None


def core(text: str) -> str:
    """What makes a text another: all but case, punctuation, spaces and control characters."""
    return "".join(one for one in text.casefold() if unicodedata.category(one)[0] not in "PZC")


def search_distinct(
    find: Callable[[Sequence[int], int], Found],
    sources: int,
    n: int,
    beam: int,
    text: Callable[[tuple[int, ...]], str],
) -> Found:
    """The n best outputs of each source of which no two have the same :func:`core`; fewer where no beam has more.

    A source with fewer is searched again with twice the beam; how wide it becomes depends on the source alone.

    Args:
        find: from places of sources and the width of a beam to all hypotheses of the beam for each.
        sources: how many there are.
        n: outputs of each.
        beam: of the first search.
        text: of an output's tokens.
    """
    found, places = [list[TokenHypothesis]() for _ in range(sources)], [*range(sources)]
    while places:
        for place, line in zip(places, find(places, beam), strict=True):
            first = dict[str, TokenHypothesis]()
            for one in line:
                first.setdefault(core(text(one.tokens)), one)
            found[place] = [*first.values()]
        beam *= 2
        places = [place for place in places if len(found[place]) < n and beam <= MOST]
    return [line[:n] for line in found]
