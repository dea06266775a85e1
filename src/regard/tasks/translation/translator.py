"""Translation with a trained encoder-decoder: texts in one language → texts in another."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from regard.config import Recipe
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Trace
from regard.system.errors import Option, RegardError, UsageError, notice
from regard.tasks.engine import engine_of, why_torch
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.output_options import OutputOptions, refuse_outside
from regard.tasks.text.task import Read, output_symbols, read_as, refuse_others, refuse_unequal
from regard.tasks.text.writer import ONCE, Hypothesis, Writer
from regard.text.language_tokens import UNKNOWN_LANGUAGE, Direction
from regard.text.languages import cut, joiner, primary, shorten_words
from regard.text.tokenizers.vocabulary import Vocabularies

if TYPE_CHECKING:
    from regard.data.alignment.links import Links
    from regard.models.rnn import Rnn
    from regard.models.transformer import Transformer
    from regard.tasks.metrics.breakdown import DetailedScores
    from regard.tasks.text.terms import Terminology
    from regard.tasks.translation.alternatives import WordAlternatives
    from regard.tasks.translation.guard import GuardReport
    from regard.tasks.translation.word_confidence import Word
    from regard.text.language_ngrams import LanguagePrediction

LONGEST_WORD = 4096
"""Characters of a word, in a text that must be cut, that are translated: no language has a longer one."""


class Translation(Writer[Vocabularies, "Transformer | Rnn"]):
    """A translator, ready to use; its assets are the vocabularies of both languages."""

    assets_class = Vocabularies
    evaluate_options = ("source", "reference", "from_", "to", "with_", "beam", "lowercase")

    def __init__(
        self, recipe: Recipe, assets: Vocabularies, model: Transformer | Rnn | Unloaded[Transformer | Rnn]
    ) -> None:
        super().__init__(recipe, assets, model)
        self.vocabularies = assets
        text, tokens = recipe.text, assets.languages
        self.direction = (text.source_language, text.target_language)
        """The codes of both languages; of a model of several the source's may be unknown, and is then guessed."""
        self.longest = recipe.data.max_tokens + 1  # with its end
        self.before, prefix = tokens.frame(*self.direction) if tokens else (assets.frame.before, assets.frame.prefix)
        """Tokens before each text: of its language, or of that of its translation."""
        self.symbols = output_symbols(assets.target, recipe.decoding, assets.target.start, prefix)

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
            return super().step()
        if self.others:
            raise UsageError("an ensemble chooses among all pieces; leave it out", "decoding.shortlist")
        if (shortlist := self.assets.shortlist) is None:
            message = "the model has no list of likely pieces; put its lex.*.bin beside it and import it again"
            raise UsageError(message, "decoding.shortlist")
        if (engine := engine_of(self)) is None:
            raise UsageError(f"only the engine keeps to it: {why_torch(self.recipe)}", "decoding.shortlist")
        return engine.with_shortlist(lambda source: shortlist.pieces(source, self.assets.joint))

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
            terms: what translations contain and what they do not; default: what the folder says.
        """
        texts, task = [text] if isinstance(text, str) else text, self.between(from_, to)
        best = task.best(texts, beam, terms=terms)
        return best[0] if isinstance(text, str) else best

    def write(
        self,
        texts: Sequence[str],
        options: OutputOptions = ONCE,
        first: int = 1,
        prefixes: Sequence[str] | None = None,
        drafts: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """The translations of each text that are asked for, best first; with the guard where it is.

        A text longer than any in training (``data.max_tokens``) is split into sentences, or windows if one is too
        long; the parts are translated and joined, with a warning.
        """
        found = super().write(texts, replace(options, guard=None), first, prefixes, drafts)
        if options.guard is None:
            return found
        reports = self.guard(texts, [best.text for best, *_ in found])
        found = [[replace(line[0], guard=report), *line[1:]] for line, report in zip(found, reports, strict=True)]
        if options.guard == "warn":
            return found
        from regard.tasks.translation.retry import retry

        return retry(self, texts, found, options, prefixes)

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

    def guard(self, texts: Sequence[str], translations: Sequence[str]) -> list[GuardReport]:
        """What speaks against given translations: omissions, repetitions, copies, lengths, improbable tokens.

        Args:
            texts: any.
            translations: one of each, the model's own or others.

        Raises:
            UsageError: there are not as many.
        """
        from regard.tasks.translation.guard import forced_passes, judge

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
            if text.startswith(" ") and not translation.text.startswith(" ", begin):
                begin -= 1  # the blank before a term is left out
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
        refuse_outside(n, "n")
        sources = self.sources(text)
        if len(sources) > 1:
            raise RegardError(f"is cut into {len(sources)} parts; ask sentence by sentence", "text for alternatives")
        if not sources:
            return []
        own = self.decoding(OutputOptions(beam=beam)), self.symbols, self.target_tokenizer, n
        return alternatives(self.search, self.step(), sources[0], *own, None if best is None else best.tokens)

    def align(self, texts: Sequence[str], translations: Sequence[str], first: int = 1) -> list[Links]:
        """Which words of each text and of its translation belong together, by cross-attention.

        Words are what stands between blanks, counted from 0. The recipe says whose attention it is
        (``decoding.alignment_heads``), else it is the mean of all layers.

        Args:
            texts: each is read as a whole.
            translations: one of each.
            first: line number of the first text, for messages.

        Raises:
            UsageError: there are not as many.
            RegardError: a text is too long to be read as a whole.
        """
        from regard.tasks.translation.align import align

        self.encode_pairs(texts, translations, first, "translations")
        return align(self, texts, translations, first)

    def sources(self, text: str) -> list[Ids]:
        """The ids that the encoder reads of each part of a text; none of an empty one."""
        return self.source_ids(self._parts(text, 1))

    def parts(self, texts: Sequence[str], first: int) -> tuple[list[list[str]], list[Ids]]:
        """Sentences or windows of texts that are too long."""
        groups = [self._parts(text, line) for line, text in enumerate(texts, first)]
        return groups, self.source_ids([part for group in groups for part in group])

    def source_ids(self, texts: Sequence[str]) -> list[Ids]:
        """With the token of a language before each."""
        found = self.vocabularies.source.ids_batch(texts, ended=self.assets.frame.ended)
        return [np.append(self.before, ids) for ids in found] if self.before else found

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
        said = self.best(sources, beam, trace=trace, divide=divide)
        return self.measure(sources, said, references, lowercase)

    def measure(
        self, sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], lowercase: bool = False
    ) -> DetailedScores:
        """BLEU and chrF of translations, and of those of long and short sources, common and rare words."""
        from regard.tasks.metrics.breakdown import break_down
        from regard.tasks.translation.guard import word_faults

        texts, languages = (sources, outputs, references), self.direction
        return break_down(*texts, languages, self.assets.seen, word_faults, lowercase)

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
            notice(f"{longer}{more}: {text[:40] + '…'!r}", stacklevel=5)
        return parts
