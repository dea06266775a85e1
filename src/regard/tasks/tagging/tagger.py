"""Tagging with a trained encoder: a tag for each word, or spans with their character offsets."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, overload

import numpy as np
import torch

from regard.config import BertSection, Recipe, RnnEncoderSection
from regard.data.corpora.pairs import Corpus
from regard.data.prepare.encoders import TagEncoder, word_parts
from regard.data.prepare.windowing import Frame
from regard.models.build import reader, tags
from regard.models.rnn import Reader
from regard.system.errors import UsageError
from regard.tasks.metrics.tags import TagScores, tag_scores
from regard.tasks.metrics.unknown_labels import refuse_unknown_labels
from regard.tasks.protocols import device_of
from regard.tasks.tagging.assets import TagAssets
from regard.tasks.tagging.word_scores import decode_tags, head_of, read_words
from regard.tasks.text.task import Read, read_as, refuse_others
from regard.text.tags import OUTSIDE, Place, TaggedWords, forbidden, places_of, spans_of, split_tag, tags_of

BURST = 1024
"""Texts tagged at once."""


@dataclass(frozen=True)
class TaggedSpan:
    """Characters ``start`` to before ``end`` of a text, counted from 0, and what they are.

    ``probability`` is that of the least certain of its words' tags.
    """

    start: int
    end: int
    label: str
    text: str
    probability: float


@dataclass(frozen=True)
class TaggedText:
    """A text with the tags of its words.

    Args:
        text: as it was given.
        places: the characters of each word: from the first to before the last.
        tags: one a word; span tags are written as BIO.
        probabilities: of the tags.
        spans: none if tags do not form spans.
    """

    text: str
    places: tuple[Place, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[TaggedSpan, ...]

    @property
    def words(self) -> list[str]:
        """The words themselves."""
        return [self.text[begin:end] for begin, end in self.places]


class Tagging:
    """A tagger, ready to use.

    Args:
        recipe: of the model.
        assets: tokenizer, tags and their scheme.
        model: the trained encoder with its head, on its device.
    """

    name: ClassVar[str] = "tagging"

    def __init__(self, recipe: Recipe, assets: TagAssets, model: Reader) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        frame = Frame.of(assets.tokenizer, recipe.data.max_tokens, recipe.tagging.stride)
        self.coding = TagEncoder(assets.tokenizer, frame, assets.scheme, assets.labels)
        head_of(model).chain.limit(forbidden(assets.labels, assets.scheme))

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for n tags."""
        assert isinstance(recipe.model, BertSection | RnnEncoderSection)
        chain = "crf" if recipe.tagging.crf else "alone"
        return reader(recipe.model, sizes[0], tags(recipe.model, max(1, sizes[1]), chain), key)

    @staticmethod
    def load_assets(folder: Path) -> TagAssets:
        """Tokenizer and tags of a model folder."""
        return TagAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @overload
    def tag(self, text: str) -> TaggedText: ...
    @overload
    def tag(self, text: list[str]) -> list[TaggedText]: ...
    def tag(self, text: str | list[str]) -> TaggedText | list[TaggedText]:
        """The words of a text, or of each text of a list, and their tags.

        A word is letters and digits together, or any other sign alone. A text longer than the model ever saw is read in
        windows that overlap; each word takes its scores from the window in which it is most central.
        """
        if isinstance(text, str):
            return self.tag_all([TaggedWords(text, tuple(places_of(text)))])[0]
        refuse_others(text)
        return self.tag_all([TaggedWords(one, tuple(places_of(one))) for one in text])

    def tag_words(self, texts: Sequence[Sequence[str]]) -> list[TaggedText]:
        """The tags of texts that are cut into words already; the text of each is its words with blanks between.

        Raises:
            UsageError: something else than lists of words that are not empty.
        """
        for number, words in enumerate(texts):
            refuse_others(words)
            if empty := [place for place, word in enumerate(words) if not word.strip()]:
                raise UsageError("a word is empty", f"texts[{number}][{empty[0]}]")
        return self.tag_all([TaggedWords.from_words(words, ()) for words in texts])

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text and its characters, word by word, for inspection."""
        words = TaggedWords(text, tuple(places_of(text)))
        frame, read = self.coding.frame, list[Read]()
        for part, (_, end) in zip(word_parts(words), words.places, strict=True):
            known, inner = read_as(self.assets.tokenizer, part, ())
            first = end - len(known)
            read += [(id, first + start, first + stop) for id, start, stop in inner]
        last = len(text)
        return text, [*((id, 0, 0) for id in frame.begin), *read, (frame.end, last, last)]

    def tag_all(self, texts: Sequence[TaggedWords]) -> list[TaggedText]:
        """Tags of texts given with the character positions of their words."""
        return [found for begin in range(0, len(texts), BURST) for found in self._burst(texts[begin : begin + BURST])]

    def _burst(self, texts: Sequence[TaggedWords]) -> Iterator[TaggedText]:
        windows = [window for coded in self.coding.encode_texts(texts) for window in coded]
        lengths_B = np.array([len(words.places) for words in texts], np.int64)
        score_RC = read_words(self.model, windows, self.device)
        heat = self.assets.fitted.temperature
        tags_R, probability_R = decode_tags(head_of(self.model).chain, score_RC, lengths_B, self.device, heat)
        names = iter(self.assets.labels[tag] for tag in tags_R)
        sure = iter(probability_R.tolist())
        for words, length in zip(texts, lengths_B.tolist(), strict=True):
            yield self._one(words, list(itertools.islice(names, length)), tuple(itertools.islice(sure, length)))

    def _one(self, words: TaggedWords, names: list[str], sure: tuple[float, ...]) -> TaggedText:
        """The result for a text; span tags become BIO, whatever the training scheme."""
        if self.assets.scheme == "none":
            return TaggedText(words.text, words.places, tuple(names), sure, ())
        found = spans_of(names, self.assets.scheme)
        spans = []
        for first, last, label in found:
            begin, end = words.places[first][0], words.places[last - 1][1]
            spans.append(TaggedSpan(begin, end, label, words.text[begin:end], min(sure[first:last])))
        return TaggedText(words.text, words.places, tuple(tags_of(found, len(names))), sure, tuple(spans))

    def evaluate(self, corpus: Corpus) -> TagScores:
        """The scores of this model on tagged texts.

        Raises:
            RegardError: the corpus cannot be read, or holds no words, or no tag that the model knows.

        Warns:
            UserWarning: the model knows fewer than a tenth of the tags, or there are no spans to find.
        """
        texts = [TaggedWords.parse(*pair) for pair in corpus.pairs()]
        self._refuse_unknown_tags(texts, corpus.name)
        found = [one.tags for one in self.tag_all(texts)]
        return tag_scores([one.tags for one in texts], found, self.assets.scheme, [one.words for one in texts])

    def _refuse_unknown_tags(self, texts: Sequence[TaggedWords], where: str) -> None:
        """See to it that the model knows the tags; one that its scheme does not explain, it would read as O."""
        taught = set(self.assets.labels)
        there = Counter(tag for one in texts for tag in one.tags if tag != OUTSIDE or OUTSIDE not in taught)
        if not there and any(one.tags for one in texts):
            warnings.warn(f"{where}: there is nothing to find: the tag of every word is {OUTSIDE}", stacklevel=3)
        spans = {split_tag(tag)[1] for tag in taught - {OUTSIDE}}

        def is_known(tag: str) -> bool:
            letter, label = split_tag(tag)
            return tag in taught if self.assets.scheme == "none" else letter != OUTSIDE and label in spans

        shown = [tag for tag in self.assets.labels if tag != OUTSIDE]
        refuse_unknown_labels(there, is_known, shown, "tag", where)
