"""Tagging with a trained encoder: a tag for each word, or spans with their character offsets."""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import BertSection, Recipe, RnnEncoderSection
from regard.data.batches.batch import Ids, Packed, batches_by_length, pack_sources
from regard.data.batches.texts import TextBatch, WordMarks, begins_word
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.tagged import open_tagged
from regard.data.prepare.encoders import Sides
from regard.data.prepare.shards import ragged_indices
from regard.data.prepare.windowing import Frame, TagEncoder, word_parts
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import LABELS, LabelsFile, TextAssets, labels_content, read_json
from regard.tasks.engine import engine_of
from regard.tasks.metrics.labels import TagScores, refuse_unknown_labels, tag_scores
from regard.tasks.protocols import Divide, Unloaded, find_at_once
from regard.tasks.text.task import (
    ENGINE_ROOM,
    ROOM,
    Read,
    TextTask,
    finite_numbers,
    inference_mode,
    read_as,
    refuse_others,
)
from regard.text.confidence import read_seen_words
from regard.text.tags import (
    OUTSIDE,
    Place,
    Scheme,
    TaggedWords,
    detect,
    forbidden,
    places_of,
    spans_of,
    split_tag,
    tags_of,
)
from regard.text.tokenizers.vocabulary import TOKENIZER, read_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.engine.readers import HeadShape
    from regard.engine.stack import Texts
    from regard.models.bert import TagHead
    from regard.models.inputs import Tokens
    from regard.models.rnn import Reader
    from regard.nn.heads import Chain

Scores = NDArray[np.float32]
Choose = Callable[[Scores, Ids, float], tuple[Ids, NDArray[np.float64]]]
"""From scores of the words of texts, words of each and a temperature to their tags, and how sure each is."""
CELLS = 1 << 15
"""Words decoded at once, padding included."""
LONGEST = 4096
"""Words of a text that are tagged as one; a longer text is tagged in parts."""
BURST = 1024
"""Texts tagged at once."""


def head_of(model: Reader) -> TagHead:
    """The head of a tagger."""
    from regard.models.bert import TagHead

    assert isinstance(model.head, TagHead)
    return model.head


def word_scores(task: Tagging, batch: TextBatch) -> tuple[Tensor, WordMarks]:
    """``score_RC`` of every tag for the words that a batch's windows count, and which these are."""
    import torch

    from regard.nn.layout import Sequences

    given, marks = task.inputs(batch.text, batch.labels_X), WordMarks.of(batch.text, batch.labels_X)
    starts, lengths = (torch.from_numpy(side).to(task.device) for side in (marks.starts_R, marks.lengths_R))
    longest = int(marks.lengths_R.max(initial=0))
    words = Sequences(starts, lengths, len(starts), longest, given.sequences.size)
    return head_of(task.model).words(task.model.encoder(given), words), marks


@inference_mode
def _scores_of_model(task: Tagging, batch: TextBatch) -> Scores:
    score_RC, _ = word_scores(task, batch)
    return score_RC.float().cpu().numpy()


def read_words(task: Tagging, windows: Sequence[Sides]) -> Scores:
    """``score_RC`` of the words of all windows, in their order; windows of similar length are read together."""
    engine = engine_of(task)
    room = ROOM if engine is None else ENGINE_ROOM
    lengths = np.array([len(ids) for ids, _ in windows], np.int64)
    found: list[Scores] = [np.zeros((0, 0), np.float32)] * len(windows)
    for chosen in batches_by_length(lengths, room):
        marks = np.concatenate([windows[place][1] for place in chosen])
        batch = TextBatch(pack_sources([windows[place][0] for place in chosen]), marks, lengths[chosen], chosen)
        words = WordMarks.of(batch.text, marks)
        if engine:
            score_RC = engine.words(task.texts_of(batch.text, marks), words.starts_R, words.lengths_R)
        else:
            score_RC = _scores_of_model(task, batch)
        split = np.split(score_RC, words.counts_B.cumsum()[:-1])
        for place, rows in zip(chosen.tolist(), split, strict=True):
            found[place] = rows
    return np.concatenate(found) if found else np.zeros((0, 1), np.float32)


def decode_tags(
    chain: Chain, score_RC: Scores, lengths_B: Ids, device: torch.device, heat: float = 1.0
) -> tuple[Ids, NDArray[np.float64]]:
    """``(tags_R, probability_R)``: the best tags of each text's words, and how sure each is.

    Args:
        chain: chooses.
        score_RC: of the words of all texts, end to end.
        lengths_B: words of each text.
        device: where to choose.
        heat: the temperature of the probabilities.
    """
    import torch

    from regard.nn.layout import Sequences

    def choose(score_RC: Scores, lengths_B: Ids, heat: float) -> tuple[Ids, NDArray[np.float64]]:
        score, sequences = torch.from_numpy(score_RC).to(device), Sequences.end_to_end(lengths_B.tolist(), device)
        tags = chain.decode(score, sequences)
        sure = chain.probabilities(score / heat, sequences).gather(1, tags[:, None])[:, 0]
        return tags.cpu().numpy(), sure.double().cpu().numpy()

    return choose_tags(choose, score_RC, lengths_B, heat)


def choose_tags(choose: Choose, score_RC: Scores, lengths_B: Ids, heat: float = 1.0) -> tuple[Ids, NDArray[np.float64]]:
    """The same by a function of scores, lengths and temperature, which is given texts of similar length."""
    tags_R, probability_R = np.zeros(len(score_RC), np.int64), np.zeros(len(score_RC), np.float64)
    whole = [[LONGEST] * (int(length) // LONGEST) + [int(length) % LONGEST] for length in lengths_B]
    lengths_B = np.array([length for parts in whole for length in parts if length], np.int64)
    starts_B = lengths_B.cumsum() - lengths_B
    order, begin = np.argsort(-lengths_B, kind="stable"), 0
    while begin < len(order):  # texts of similar length, few enough to be filled up to the longest
        group = order[begin : begin + max(1, CELLS // max(1, int(lengths_B[order[begin]])))]
        begin += len(group)
        rows = ragged_indices(starts_B[group], lengths_B[group])
        tags_R[rows], probability_R[rows] = choose(score_RC[rows], lengths_B[group], heat)
    return tags_R, probability_R


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


@dataclass(frozen=True)
class TagAssets(TextAssets):
    """Tokenizer and labels, and the tag scheme, also kept in ``labels.json``."""

    scheme: Scheme = "none"

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, ``labels.json`` with the scheme."""
        return {**super().contents, LABELS: labels_content(self.labels, self.fitted, scheme=self.scheme)}

    @property
    def sha256(self) -> str:
        """One fingerprint of tokenizer, tags and scheme."""
        return hashlib.sha256(f"{super().sha256} {self.scheme}".encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> TagAssets:
        """Those of a model folder; where no scheme is named, as in one from elsewhere, spans are read leniently.

        Raises:
            RegardError: a file is missing or damaged.
        """
        tokenizer, path = read_tokenizer(folder / TOKENIZER), folder / LABELS
        if not path.exists():
            raise RegardError("is missing; it names the tags", str(path))
        read = read_json(path, LabelsFile)
        lenient: Scheme = "none" if detect([[label] for label in read.labels]) == "none" else "io"
        return cls(tokenizer, read.labels, read.fitted, read.scheme or lenient, seen=read_seen_words(folder))


class Tagging(TextTask[TagAssets, "Reader"]):
    """A tagger, ready to use."""

    assets_class = TagAssets
    open_corpus = staticmethod(open_tagged)
    evaluate_options = ("test", "columns")

    def __init__(self, recipe: Recipe, assets: TagAssets, model: Reader | Unloaded[Reader]) -> None:
        super().__init__(recipe, assets, model)
        frame = Frame.of(assets.tokenizer, recipe.data.max_tokens, recipe.tagging.stride)
        self.coding = TagEncoder(assets.tokenizer, frame, assets.scheme, assets.labels)
        if not isinstance(model, Unloaded):
            head_of(model).chain.limit(forbidden(assets.labels, assets.scheme))

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Reader:
        """The encoder of a recipe with a head for n tags."""
        from regard.models.build import reader, tags

        assert isinstance(recipe.model, BertSection | RnnEncoderSection)
        chain = "crf" if recipe.tagging.crf else "alone"
        return reader(recipe.model, sizes[0], tags(recipe.model, max(1, sizes[1]), chain), key)

    def inputs(self, packed: Packed, marks_X: Ids | None = None) -> Tokens:
        """The model's input.

        Args:
            packed: texts.
            marks_X: the marks of their pieces, which say where words begin; else they are those of running text.
        """
        from regard.models.inputs import tokens

        if (first_T := self._first_T(packed, marks_X)) is None:
            return super().inputs(packed)
        return tokens(packed, self.device, self.word_features, first_T)

    def texts_of(self, packed: Packed, marks_X: Ids | None = None) -> Texts:
        """The same, as the model's engine reads it."""
        return self._texts(packed, self._first_T(packed, marks_X))

    def _first_T(self, packed: Packed, marks_X: Ids | None) -> NDArray[np.bool_] | None:
        """Which tokens begin a word, where the model steps over words."""
        if getattr(self.recipe.model, "units", None) != "words":
            return None
        first_T = np.zeros(len(packed.ids_T), np.bool_)
        if marks_X is None:
            for begin, length in zip(packed.starts_B.tolist(), packed.lengths_B.tolist(), strict=True):
                first_T[begin : begin + length] = self._word_starts(packed.ids_T[begin : begin + length])
        else:
            first_T[: len(marks_X)] = begins_word(marks_X)
        return first_T

    def engine_sizes(self) -> tuple[int, HeadShape]:
        """What the engine's builder asks for: pieces, and what the head gives."""
        from regard.engine.readers import HeadShape

        pieces, labels = self.assets.sizes
        limits = forbidden(self.assets.labels, self.assets.scheme)
        return pieces, HeadShape("tags", max(1, labels), self.recipe.tagging.crf, limits)

    def _word_starts(self, ids: Ids) -> NDArray[np.bool_]:
        """Which pieces of running text begin a word or the white space before it."""
        *begun, text = self.assets.tokenizer.decode_batch(ids[:count].tolist() for count in range(len(ids) + 1))
        offsets = np.array([len(before) for before in begun], np.int64)
        offsets = np.minimum.accumulate(offsets[::-1])[::-1]  # a part of a character is decoded as several
        starts = [0, *(end for _, end in places_of(text)[:-1])]
        found = np.zeros(len(ids), np.bool_)
        found[np.searchsorted(offsets, starts, "right")[: len(ids)] - 1] = True
        return found

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
            return self.tag([text])[0]
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
        if len(texts) > BURST:
            return [one for at in range(0, len(texts), BURST) for one in self.tag_all(texts[at : at + BURST])]
        windows = [window for coded in self.coding.encode_texts(texts) for window in coded]
        lengths_B = np.array([len(words.places) for words in texts], np.int64)
        score_RC = finite_numbers(read_words(self, windows))
        engine, heat = engine_of(self), self.assets.fitted.temperature
        if engine:
            tags_R, probability_R = choose_tags(engine.chain.choose, score_RC, lengths_B, heat)
        else:
            tags_R, probability_R = decode_tags(head_of(self.model).chain, score_RC, lengths_B, self.device, heat)
        names = iter(self.assets.labels[tag] for tag in tags_R)
        sure = iter(finite_numbers(probability_R).tolist())
        return [
            self._one(words, list(itertools.islice(names, length)), tuple(itertools.islice(sure, length)))
            for words, length in zip(texts, lengths_B.tolist(), strict=True)
        ]

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

    def evaluate(self, corpus: Corpus[TaggedWords], divide: Divide = find_at_once) -> TagScores:
        """The scores of this model on tagged texts.

        Raises:
            RegardError: the corpus cannot be read, or holds no words, or no tag that the model knows.

        Warns:
            UserWarning: the model knows fewer than a tenth of the tags, or there are no spans to find.
        """
        texts = list(corpus.examples())
        self._refuse_unknown_tags(texts, corpus.name)
        found = divide(lambda some, begin: [one.tags for one in self.tag_all(some)], texts)
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
