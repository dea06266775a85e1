"""Text to text with a trained encoder-decoder: a text, its task named by a prefix → another text [Raffel20 §2.4]."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from regard.config import Recipe, TransformerSection
from regard.data.batches.batch import Ids
from regard.data.checks.findings import excerpt
from regard.data.corpora.corpus import Corpus
from regard.decoding.hypotheses import Trace
from regard.system.errors import Option, RegardError, notice
from regard.tasks.assets import AnswerAssets
from regard.tasks.metrics.bleu import AnswerScores, score_answers
from regard.tasks.metrics.labels import FEW
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.task import Read, output_symbols, refuse_others, sentinel_gaps
from regard.tasks.text.writer import Writer
from regard.tasks.translation.text_to_text.corpus import PrefixedPair, open_prefixed, prefix_list, with_prefix
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import AnyTokenizer, start_of

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


def start_in(recipe: Recipe, tokenizer: AnyTokenizer) -> int:
    """What begins the outputs of a model: where it learned from prefixed pairs with a T5's vocabulary its pad piece."""
    prefixed = recipe.info.learns_from == "prefixed" and not recipe.text_to_text.spans
    return start_of(tokenizer) if prefixed else tokenizer.start


class TextToText(Writer[AnswerAssets, "Transformer"]):
    """A text-to-text model, ready to use.

    Where the vocabulary has sentinels (``<extra_0>``), they are read and written by these names.
    """

    assets_class = AnswerAssets
    open_corpus = staticmethod(open_prefixed)
    evaluate_options = ("test", "columns", "with_", "beam")

    def __init__(self, recipe: Recipe, assets: AnswerAssets, model: Transformer | Unloaded[Transformer]) -> None:
        super().__init__(recipe, assets, model)
        tokenizer = assets.tokenizer
        start = start_in(recipe, tokenizer)
        self.symbols = output_symbols(tokenizer, recipe.decoding, start, also=tokenizer.sentinels)
        self.direction = (recipe.text.source_language, recipe.text.target_language)
        self.longest = recipe.data.max_tokens
        self.gaps = sentinel_gaps(tokenizer)
        self.marks = self.gaps.pattern

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer:
        """The encoder-decoder of a recipe, for n pieces on both sides."""
        from regard.models.build import transformer

        assert isinstance(recipe.model, TransformerSection)
        return transformer(recipe.model, sizes[0], sizes[0], key)

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
        best = self.best([with_prefix(one, prefix) for one in texts], beam)
        return best[0] if isinstance(text, str) else best

    def parts(self, texts: Sequence[str], first: int) -> tuple[list[list[str]], list[Ids]]:
        """Each text behind its prefix, where it is known; of one longer than any in training the end is not read."""
        most, found = self.longest - 1, list[Ids]()
        for number, (text, ids) in enumerate(zip(texts, self.source_ids(texts), strict=True), first):
            if len(ids) > most + 1:
                longer = f"line {number} has {len(ids) - 1:,} tokens; the end is not read, of all but {most:,}"
                notice(f"{longer}: {text[:40] + '…'!r}", stacklevel=4)
            found += [np.append(ids[:-1][:most], ids[-1])] if text.strip() else []
        return [[self._behind_prefix(text)] if text.strip() else [] for text in texts], found

    def source_ids(self, texts: Sequence[str]) -> list[Ids]:
        """With ``</s>``, sentinels by name."""
        return [np.append(ids, self.assets.tokenizer.end) for ids in self.gaps.ids_batch(texts)]

    def target_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Sentinels by name."""
        return self.gaps.ids_batch(texts)

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

        asked = [with_prefix(one.source, one.prefix) for one in examples]
        said = self.best(asked, beam, trace=trace, divide=divide)
        return score_answers(said, [one.target for one in examples], [one.prefix for one in examples])

    def unlearned_prefix(self, text: str, prefix: str = "") -> str | None:
        """The prefix of a text where training never had it, ``""`` where the text lacks one.

        Args:
            text: with its prefix, or without it where ``prefix`` is given.
            prefix: of the text.

        Returns:
            ``None`` where the model learned the prefix, or its folder does not say which it learned.
        """
        known, whole = self.assets.prefixes, with_prefix(text, prefix)
        if not known or self._behind_prefix(whole) != whole or (not prefix and "" in known):
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

    def _behind_prefix(self, text: str) -> str:
        """A text without the prefix that names its task, where the model learned it."""
        fold = str.lower if self.recipe.text.lowercase else str
        begins = (f"{one}: " for one in self.assets.prefixes if one)
        return next((text[len(one) :] for one in begins if fold(text).startswith(fold(one))), text)

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

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The encoder's input for a text and its characters, for inspection; ``</s>`` comes last."""
        found = self.gaps.parse(text)
        return found.text, [*found.read, (self.assets.tokenizer.end, len(found.text), len(found.text))]

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of a text to be written, for inspection; without symbols."""
        found = self.gaps.parse(text)
        return found.text, list(found.read)
