"""Translation with a trained encoder-decoder: texts in one language → texts in another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from regard.config import Decoding, Recipe
from regard.data.batches.batch import Ids, Packed
from regard.decoding.hypotheses import Hypothesis as TokenHypothesis
from regard.decoding.hypotheses import Symbols, Trace
from regard.decoding.search import sample, search
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.engine import engine_of, step_of, why_torch
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.task import (
    BaseTask,
    Read,
    find_unseen,
    read_as,
    refuse_long,
    refuse_others,
    refuse_unequal,
    sampling_options,
    score_outputs,
    suppressed,
)
from regard.text.confidence import ScoredText, Side, UnseenWord, is_doubted
from regard.text.language_tokens import UNKNOWN_LANGUAGE, Direction
from regard.text.languages import cut, joiner, primary, shorten_words
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

if TYPE_CHECKING:
    from regard.data.alignment.links import Links
    from regard.engine.stack import Texts
    from regard.models.inputs import Tokens
    from regard.models.rnn import Rnn
    from regard.models.transformer import Transformer
    from regard.tasks.metrics.breakdown import DetailedScores
    from regard.tasks.translation.alternatives import WordAlternatives
    from regard.tasks.translation.guard import Attempt, GuardReport
    from regard.tasks.translation.terms import Terminology
    from regard.tasks.translation.word_confidence import Word
    from regard.text.language_ngrams import LanguagePrediction

Begins = list[tuple[int, ...]] | None
"""Tokens that outputs begin with; ``None``: those of the language."""
Found = list[list[TokenHypothesis]]
LONGEST_WORD = 4096
"""Characters of a word, in a text that must be cut, that are translated: no language has a longer one."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a text.

    Args:
        text: the translation, one line.
        tokens: its pieces' ids, without ``</s>``.
        score: length-penalised log-probability, larger is better; summed over the parts of a text that was cut.
        finished: False where the length limit cut it off.
        confidence: the geometric mean of its tokens' probabilities, 0 to 1; of a text that was cut the least of a part.
            NaN where scores were not asked for.
        unsure: whether that is less than usual on the validation texts; ``None`` where the folder does not say.
        guard: what speaks against it, where that was asked for.
        utility: how much it is like the other candidates, 0 to 100, where minimum Bayes risk chose it.
        tried: the searches for it, where it was searched for again.
        parts: what was written for each part of a text that was cut; else one.
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


class Translation(BaseTask[Vocabularies, "Transformer | Rnn"]):
    """A translator, ready to use; its assets are the vocabularies of both languages."""

    assets_class = Vocabularies
    reverse: Translation | None = None
    """A model of the reverse direction (:meth:`with_reverse`)."""
    evaluate_options = ("source", "reference", "from_", "to", "with_", "beam", "lowercase")

    def __init__(
        self, recipe: Recipe, assets: Vocabularies, model: Transformer | Rnn | Unloaded[Transformer | Rnn]
    ) -> None:
        super().__init__(recipe, assets, model)
        target = assets.target
        never = np.setdiff1d(np.arange(target.size), [*target.ordinary.tolist(), target.end])
        self.vocabularies = assets
        text, tokens = recipe.text, assets.languages
        self.direction: Direction = (text.source_language, text.target_language)
        """The codes of both languages; of a model of several the source's may be unknown, and is then guessed."""
        self.before, prefix = tokens.frame(*self.direction) if tokens else (assets.frame.before, assets.frame.prefix)
        """Tokens before each text: of its language, or of that of its translation."""
        self.symbols = Symbols(
            target.start, target.end, (*never.tolist(), *suppressed(target, recipe.decoding)), prefix
        )
        self.terminology: Terminology | None = None
        """What translations that are searched for contain and what they do not; default: what its folder says."""
        self.source_tokenizer: AnyTokenizer = assets.source
        self.target_tokenizer: AnyTokenizer = assets.target

    def between(self, from_: str | None = None, to: str | None = None) -> Translation:
        """This translator for another pair of languages, of the same weights.

        Args:
            from_, to: codes that the model's folder names, or usual ones such as ``de``; default: the recipe's, and of
                the source of a model that learned several that which each text is guessed to be in.

        Raises:
            UsageError: the model does not know one of them.
        """
        if from_ is to is None:
            return self
        tokens, arguments = self.assets.languages, (Option("from_"), Option("to"))
        fixed = 2 if tokens is None else 0 if tokens.has_sources else 1  # how many of both languages have no tokens
        for said, known, argument in list(zip((from_, to), self.direction, arguments, strict=True))[:fixed]:
            if said is not None and primary(said) != primary(known):
                knows = (
                    "one language, which its folder does not name" if known == UNKNOWN_LANGUAGE else f"{known} alone"
                )
                verb = "writes" if argument.name == "to" else "reads"
                raise UsageError(f"the model {verb} {knows}, not {said!r}; leave it out", argument)
        if tokens is None:
            return self
        found = zip(
            tokens.find(from_ or UNKNOWN_LANGUAGE, to or UNKNOWN_LANGUAGE, arguments), self.direction, strict=True
        )
        source, target = (usual if code == UNKNOWN_LANGUAGE else code for code, usual in found)
        return self.in_direction((source, target))

    def in_direction(self, direction: Direction) -> Translation:
        """This translator for two languages of which it has the tokens that it needs."""
        other = copy(self)
        other.direction = direction
        if self.assets.languages:
            other.before, prefix = self.assets.languages.frame(*direction)
            other.symbols = replace(other.symbols, prefix=prefix)
        return other

    def step(self) -> Any:
        """The step of search, which keeps to the shortlist where that is asked for.

        Raises:
            UsageError: the model has none, is not computed by the engine, or is an ensemble.
        """
        if not self.recipe.decoding.shortlist:
            return step_of(self)
        if self.others:
            raise UsageError("an ensemble chooses among all pieces; leave it out", "decoding.shortlist")
        if (shortlist := self.assets.shortlist) is None:
            message = "the model has no list of likely pieces; put its lex.*.bin beside it and import it again"
            raise UsageError(message, "decoding.shortlist")
        from regard.engine.shortlist import ShortlistTransformer

        if (engine := engine_of(self)) is None:
            raise UsageError(f"only the engine keeps to it: {why_torch(self.recipe)}", "decoding.shortlist")
        return ShortlistTransformer(engine, lambda source: shortlist.pieces(source, self.assets.joint))

    @property
    def is_zero_shot(self) -> bool:
        """Whether training, as far as is known, had no pairs of these two languages in this direction."""
        tokens = self.assets.languages
        known = tokens.directions if tokens and UNKNOWN_LANGUAGE not in self.direction else ()
        return bool(known) and self.direction not in known

    def guess_language(self, text: str) -> LanguagePrediction | None:
        """The language of a text among those of the training, and how probable it is; ``None`` where it was told.

        ``None`` too of a model of one language each way, and of one that was brought in.
        """
        ngrams = self.assets.ngrams if self.direction[0] == UNKNOWN_LANGUAGE else None
        return ngrams.guess(text) if ngrams else None

    def inputs(self, packed: Packed) -> Tokens:
        """The encoder's input."""
        from regard.models.inputs import tokens

        return tokens(packed, self.device)

    def texts_of(self, packed: Packed) -> Texts:
        """The encoder's input, as its engine reads it."""
        from regard.engine.stack import Texts

        return Texts(packed.ids_T, packed.lengths_B)

    def engine_sizes(self) -> tuple[int, int]:
        """What the engine's builder asks for: source and target pieces."""
        return self.assets.sizes

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer | Rnn:
        """The encoder-decoder of a recipe, for n source and target pieces."""
        from regard.models.build import encoder_decoder

        return encoder_decoder(recipe.model, *sizes, key)

    @overload
    def translate(
        self,
        text: str,
        beam: int | None = None,
        *,
        from_: str | None = None,
        to: str | None = None,
        terms: Terminology | None = None,
    ) -> str: ...
    @overload
    def translate(
        self,
        text: list[str],
        beam: int | None = None,
        *,
        from_: str | None = None,
        to: str | None = None,
        terms: Terminology | None = None,
    ) -> list[str]: ...
    def translate(
        self,
        text: str | list[str],
        beam: int | None = None,
        *,
        from_: str | None = None,
        to: str | None = None,
        terms: Terminology | None = None,
    ) -> str | list[str]:
        """The best translation of a text, or of each text of a list.

        Args:
            text: one text or several; an empty one stays empty.
            beam: hypotheses kept while searching; 1 is greedy; default: the recipe's.
            from_, to: as :meth:`between` has them.
            terms: as :meth:`nbest` has them.
        """
        texts, task = [text] if isinstance(text, str) else text, self.between(from_, to)
        best = [hypotheses[0].text for hypotheses in task.nbest(texts, 1, beam, scores=False, terms=terms)]
        if terms or task.terminology:  # a term may stand first as pieces spell it behind a space
            best = [text.removeprefix(" ") for text in best]
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
        prefixes: Sequence[str] | None = None,
        terms: Terminology | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first.

        A text longer than any in training (``data.max_tokens``) is split into sentences, or windows if one is too
        long; the parts are translated and joined, with a warning.

        Args:
            texts: in any order and of any length; empty ones stay empty.
            n: at most the beam, if one is given.
            beam: hypotheses kept while searching; default: the recipe's, or ``n`` where that is more.
            max_extra: tokens an output may have more than its source; default: the recipe's.
            trace: told of every step of the search, numbered by part.
            first: line number of the first text, for warnings.
            scores: whether they are wanted; a greedy search is faster without, and they may be NaN.
            prefixes: what the translation of each text begins with, of a text that is cut that of its first part; it
                counts as certain.
            terms: what translations contain and what they do not; what cannot be had is told by a warning. Default:
                :attr:`terminology`.

        Raises:
            UsageError: ``texts`` is no list of texts, or ``n`` and ``beam`` do not fit.
        """
        decoding = self.decoding(n, beam)
        if max_extra is not None:
            decoding = decoding.model_copy(update={"max_extra": max_extra})

        own = self._terminology() if terms is None else terms

        def write(sources: list[Ids], begins: Begins, numbers: list[int], parts: list[str]) -> Found:
            step, symbols = self.step(), self.symbols

            def some(places: Sequence[int], **rules: Any) -> Found:
                given = [sources[place] for place in places]
                rules["prefixes"] = begins and [begins[place] for place in places]
                if self.reverse or (n > 1 and decoding.distinct):
                    return self._search_wider(given, rules, n, decoding)
                return search(step, given, decoding, symbols, nbest=n, trace=trace, scores=scores, **rules)

            if not own:
                return some(range(len(sources)))
            from regard.tasks.translation.terms import TermSearch

            given = self.recipe, symbols, self.target_tokenizer, self.direction
            return TermSearch(own, *given)(sources, parts, numbers, some)

        return self._outputs(texts, n, first, prefixes, write)

    def sample(
        self,
        texts: Sequence[str],
        n: int = 1,
        *,
        seed: int | None = None,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        """``n`` translations drawn for each text: a pure function of the seed, the text's number and the output's.

        Args:
            texts: as :meth:`nbest` has them, and ``first`` and ``prefixes``.
            n: outputs of each.
            seed: another seed, other outputs; default: the recipe's.
            options: temperature, top_k, top_p, min_p, typical, repetition_penalty; default: the recipe's.

        Raises:
            UsageError: as :meth:`nbest`; or an option that is none of these, or a value that does not fit.
        """
        if not isinstance(n, int) or not 1 <= n <= 100:
            raise UsageError(f"{n!r} translations cannot be drawn; ask for 1 to 100", "n")
        decoding = sampling_options(self.recipe.decoding, options, "sample")

        def write(sources: list[Ids], begins: Begins, numbers: list[int], parts: list[str]) -> Found:
            found = sample(
                self.step(),
                sources,
                decoding,
                self.symbols,
                seed=self.recipe.seed if seed is None else seed,
                samples=n,
                numbers=numbers,
                prefixes=begins,
            )
            return self._rank_by_reverse(sources, found)

        return self._outputs(texts, n, first, prefixes, write)

    def mbr(
        self,
        texts: Sequence[str],
        n: int = 32,
        beam: int | None = None,
        *,
        seed: int | None = None,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        """Minimum Bayes risk: of ``n`` candidates for each text that which is most like the others [Eikema22].

        Args:
            texts: as :meth:`nbest` has them, and ``first`` and ``prefixes``.
            n: candidates of each: drawn as by :meth:`sample`, with ``seed`` and ``options``; with a beam the n best.
            beam: hypotheses kept while searching for candidates.

        Returns:
            Every different candidate with its ``utility``, the best first: the mean of its sentence scores against the
            others, chrF or BLEU as ``decoding.utility`` says.

        Raises:
            UsageError: as both.
        """
        from regard.tasks.metrics.utility import by_utility

        if beam is None:
            found = self.sample(texts, n, seed=seed, first=first, prefixes=prefixes, **options)
        else:
            found = self.nbest(texts, n, beam, first=first, prefixes=prefixes)
        utility, language = self.recipe.decoding.utility, self.direction[1]
        ranked = [by_utility([one.text for one in line], utility, language) for line in found]
        return [
            [replace(line[place], utility=mean) for place, mean in order]
            for line, order in zip(found, ranked, strict=True)
        ]

    def with_reverse(self, reverse: Translation) -> Translation:
        """This translator, whose n-best lists and samples are ranked by a model of the reverse direction, too.

        The score of an output is ``log p(y|x) + decoding.reverse_weight · log p(x|y)``; of a search all hypotheses of
        the beam are ranked, so a wider one gives more to choose from.

        Args:
            reverse: reads the language that this one writes, and writes that which it reads.

        Raises:
            UsageError: it does not.
        """
        from regard.tasks.translation.reverse import facing

        other = copy(self)
        other.reverse = reverse
        facing(other, reverse)
        return other

    def score(self, texts: Sequence[str], translations: Sequence[str], first: int = 1) -> list[ScoredText]:
        """How probable given translations are, token by token.

        Args:
            texts: each is read as a whole.
            translations: one of each.
            first: line number of the first text, for messages.

        Raises:
            UsageError: there are not as many.
            RegardError: a text is too long to be read as a whole.
        """
        sources, outputs = self._encode_pairs(texts, translations, first)
        room = self.recipe.decoding.tokens
        return score_outputs(self.step(), sources, outputs, self.symbols, self.target_tokenizer, room)

    def _encode_pairs(
        self, texts: Sequence[str], translations: Sequence[str], first: int
    ) -> tuple[list[Ids], list[Ids]]:
        """The ids of both sides; one with more tokens than are read or written at once is refused."""
        refuse_unequal(translations, texts, "translations")
        sources, outputs = self._encode(texts), self.target_tokenizer.ids_batch(translations)
        most = self.recipe.data.max_tokens
        refuse_long(sources, most + 1, first, "texts")
        refuse_long(outputs, most + self.recipe.decoding.max_extra, first, "translations")
        return sources, outputs

    def guard(self, texts: Sequence[str], translations: Sequence[str]) -> list[GuardReport]:
        """What speaks against given translations: omissions, repetitions, copies, lengths, improbable tokens.

        Args:
            texts: any.
            translations: one of each, the model's own or others.

        Raises:
            UsageError: there are not as many.
        """
        from regard.tasks.translation.forced_pass import forced_passes
        from regard.tasks.translation.guard import judge

        refuse_unequal(translations, texts, "translations")
        usual = self.assets.calibration.guard
        return [judge(*read, usual) for read in forced_passes(self, texts, translations)]

    def words(self, translation: Hypothesis) -> list[Word]:
        """The words of a translation that was searched for with scores, each with its confidence.

        It is the probability that the word stands in a reference, as fitted on the validation texts; where nothing was
        fitted (``assets.calibration.words`` is empty), the product of its pieces' probabilities.
        """
        from regard.tasks.translation.word_confidence import confidences

        return confidences(self.word_log_probabilities(translation), self.assets.calibration.words)

    def word_log_probabilities(self, translation: Hypothesis) -> list[Word]:
        """The same words, each with the sum of the log-probabilities of its pieces."""
        from regard.tasks.translation.word_confidence import log_probabilities

        found: list[Word] = []
        begin, between = 0, len(joiner(self.direction[1]))
        for part in translation.parts:
            text, words = log_probabilities(self.target_tokenizer, part, len(self.symbols.prefix))
            found += [replace(word, begin=begin + word.begin, end=begin + word.end) for word in words]
            begin += len(text) + between
        return found

    def alternatives(
        self, text: str, n: int = 3, beam: int | None = None, best: Hypothesis | None = None
    ) -> list[WordAlternatives]:
        """Other words for each word of the best translation, each with the best rest of the translation behind it.

        Args:
            text: one that the model reads at once.
            n: alternatives of a word at most.
            beam: hypotheses kept while searching; default: the recipe's.
            best: the best translation, where it is known already.

        Raises:
            RegardError: the text is longer than that.
        """
        from regard.tasks.translation.alternatives import alternatives

        refuse_others([text])
        if not isinstance(n, int) or not 1 <= n <= 100:
            raise UsageError(f"{n!r} alternatives cannot be given; ask for 1 to 100", "n")
        sources = self.sources(text)
        if len(sources) > 1:
            raise RegardError(f"is cut into {len(sources)} parts; ask sentence by sentence", "text for alternatives")
        own = self.decoding(1, beam), self.symbols, self.target_tokenizer, n
        return alternatives(self.step(), sources[0], *own, None if best is None else best.tokens) if sources else []

    def _rank_by_reverse(self, sources: list[Ids], found: Found) -> Found:
        """Outputs in the order of the reverse model, where there is one."""
        if not self.reverse:
            return found
        from regard.tasks.translation.reverse import rerank

        return rerank(self, sources, found)

    def _search_wider(
        self, sources: list[Ids], rules: dict[str, Any], n: int, decoding: Decoding
    ) -> list[list[TokenHypothesis]]:
        """All hypotheses of the beam, ranked by the reverse model; or the n best distinct ones."""
        step, skip = self.step(), len(self.symbols.prefix)

        def find(places: Sequence[int], width: int) -> list[list[TokenHypothesis]]:
            own, asked = decoding.model_copy(update={"beam": width}), [sources[place] for place in places]
            each: dict[str, Any] = {name: given and [given[place] for place in places] for name, given in rules.items()}
            found = search(step, asked, own, self.symbols, nbest=width, **each)
            return self._rank_by_reverse(asked, found)

        if n == 1 or not decoding.distinct:
            return find(range(len(sources)), decoding.beam)
        decode = self.target_tokenizer.decode
        from regard.tasks.text.distinct import search_distinct

        return search_distinct(find, len(sources), n, decoding.beam, lambda tokens: decode(tokens[skip:]))

    def align(self, texts: Sequence[str], translations: Sequence[str], first: int = 1) -> list[Links]:
        """Which words of each text and of its translation belong together, by cross-attention.

        Words are what stands between blanks, counted from 0. The recipe says whose attention it is
        (``decoding.alignment_heads``), else it is the mean of the last layer but one.

        Args:
            texts: each is read as a whole.
            translations: one of each.
            first: line number of the first text, for messages.

        Raises:
            UsageError: there are not as many.
            RegardError: a text is too long to be read as a whole.
        """
        from regard.tasks.translation.align import align

        self._encode_pairs(texts, translations, first)
        return align(self, texts, translations, first)

    def decoding(self, n: int, beam: int | None) -> Decoding:
        """The recipe's decoding options with a beam for ``n`` outputs.

        Raises:
            UsageError: both do not fit.
        """
        width = max(n, self.recipe.decoding.beam) if beam is None else beam
        if not isinstance(n, int) or not isinstance(width, int):
            raise UsageError(f"n and beam are whole numbers, not {n!r} and {width!r}")
        if not 1 <= n <= width <= 100:
            raise UsageError(f"{n} best of a beam of {width}: n must lie between 1 and the beam, the beam below 101")
        return self.recipe.decoding.model_copy(update={"beam": width})

    def sources(self, text: str, line: int = 1) -> list[Ids]:
        """The ids that the encoder reads of each part of a text; none of an empty one."""
        return self._encode(self._parts(text, line))

    def _terminology(self) -> Terminology | None:
        if self.terminology is None and self.assets.terms:
            from regard.tasks.translation.terms import Terminology

            self.terminology = Terminology(self.assets.terms)
        return self.terminology

    def _encode(self, parts: Sequence[str]) -> list[Ids]:
        found = self.vocabularies.source.ids_batch(parts, ended=self.assets.frame.ended)
        return [np.append(self.before, ids) for ids in found] if self.before else found

    def _outputs(
        self,
        texts: Sequence[str],
        n: int,
        first: int,
        prefixes: Sequence[str] | None,
        write: Callable[[list[Ids], Begins, list[int], list[str]], Found],
    ) -> list[list[Hypothesis]]:
        """What is written for the parts of texts, joined.

        Args:
            texts: the texts.
            n: outputs of each at most.
            first: number of the first.
            prefixes: what the translation of each begins with.
            write: from the sources of all parts, what these begin with, a number and the text of each to outputs.

        Raises:
            UsageError: ``texts`` is no list of texts, or there are not as many prefixes.
        """
        refuse_others(texts)
        if prefixes is not None:
            refuse_unequal(prefixes, texts, "prefixes")
        parts = [self._parts(text, line) for line, text in enumerate(texts, first)]
        every = [part for group in parts for part in group]
        sources = self._encode(every)
        begins: Begins = None
        if prefixes is not None:
            said = self.target_tokenizer.ids_batch([one.rstrip() for one in prefixes])  # a word brings its space
            own = self.symbols.prefix
            refuse_long(said, self.recipe.data.max_tokens, first, "prefixes")
            firsts = [(*own, *ids.tolist()) for ids in said]
            begins = [
                own if place else begin
                for begin, group in zip(firsts, parts, strict=True)
                for place in range(len(group))
            ]
        numbers = [line + (place << 40) for line, group in enumerate(parts, first) for place in range(len(group))]
        results = iter(write(sources, begins, numbers, every) if sources else [])
        return [self._nbest_of([next(results) for _ in group], n) for group in parts]

    def evaluate(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        beam: int | None = None,
        lowercase: bool = False,
        trace: Trace | None = None,
        divide: Divide = find_at_once,
    ) -> DetailedScores:
        """BLEU and chrF of the translations of ``sources`` against ``references``, and where they come from."""

        def best(some: Sequence[str], begin: int) -> list[str]:
            return [found[0].text for found in self.nbest(some, 1, beam, trace=trace, first=begin + 1, scores=False)]

        return self.measure(sources, divide(best, sources), references, lowercase)

    def measure(
        self, sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], lowercase: bool = False
    ) -> DetailedScores:
        """BLEU and chrF of translations, and of those of long and short sources, common and rare words."""
        from regard.tasks.metrics.breakdown import break_down
        from regard.tasks.translation.guard import word_faults

        texts, languages = (sources, outputs, references), self.direction
        return break_down(*texts, languages, self.assets.seen, word_faults, lowercase)

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        """The words of a text that training never saw, in order; None where the model folder does not say.

        A word that training read in any letter case is seen, unless a piece of it occurs in no training text: it was
        never spelled so. Of rare words of very large corpora a few unseen ones are missed; none is named wrongly.
        """
        found = self.unseen_words_batch([text])
        return None if found is None else found[0]

    def unseen_words_batch(self, texts: Sequence[str]) -> list[list[UnseenWord]] | None:
        """The same for each text; faster than one by one."""
        if self.assets.seen is None:
            return None
        return find_unseen(self.assets.seen, self.assets.source, texts, self.unseen_pieces("source"))

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces of a vocabulary that no training text has, of a joint one on neither side; None if not known."""
        seen = self.assets.seen
        if seen is None or not seen.unseen_pieces:
            return None
        source, target = map(frozenset, seen.unseen_pieces)
        return source & target if self.assets.joint else (source if side == "source" else target)

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The encoder's input for a sentence and its characters, for inspection; ``</s>`` comes last."""
        end = (self.assets.source.end,) if self.assets.frame.ended else ()
        return read_as(self.assets.source, text, self.before, end)

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of a translation, for inspection; without symbols."""
        return read_as(self.assets.target, text, self.symbols.prefix)

    def _parts(self, text: str, line: int) -> list[str]:
        if not text.strip():
            return []
        limit, left = self.recipe.data.max_tokens - len(self.before), 0

        def shorten(sentence: str) -> str:
            nonlocal left
            kept, lost = shorten_words(sentence, LONGEST_WORD)
            left += lost
            return kept

        guess = self.guess_language(text)
        language = guess.language if guess else self.direction[0]
        parts = [part for part in cut(text, self.vocabularies.source, limit, language, shorten) if part]
        if len(parts) > 1:
            longer = f"line {line} is longer than {limit} tokens and is cut into {len(parts):,} parts"
            more = f"; of words with more than {LONGEST_WORD:,} characters {left:,} are left out" if left else ""
            warnings.warn(f"{longer}{more}: {text[:40] + '…'!r}", stacklevel=5)
        return parts

    def _nbest_of(self, parts: list[list[TokenHypothesis]], n: int) -> list[Hypothesis]:
        """The i-th best of every part of a text, joined; a part with fewer gives its last."""
        if not parts:
            return [Hypothesis("", (), 0.0)]
        found, target = [], self.vocabularies.target
        for place in range(min(n, max(map(len, parts)))):
            chosen = [part[min(place, len(part) - 1)] for part in parts]
            texts = [" ".join(target.decode(one.tokens).split("\n")) for one in chosen]
            confidence = min(one.confidence for one in chosen)
            found.append(
                Hypothesis(
                    joiner(self.direction[1]).join(texts) if len(texts) > 1 else texts[0],
                    tuple(token for one in chosen for token in one.tokens[len(self.symbols.prefix) :]),
                    sum(one.score for one in chosen),
                    all(one.finished for one in chosen),
                    confidence,
                    is_doubted(confidence, self.assets.doubted_below),
                    parts=tuple(chosen),
                )
            )
        return found
