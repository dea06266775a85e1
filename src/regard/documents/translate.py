"""Segments translated: sentence by sentence in one batch, what is kept held fast, tags placed by attention."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from regard.documents.segment import Place, Segment, SegmentTranslation, Tag
from regard.documents.tags.copies import lacks, put_copies
from regard.documents.tags.placeholders import with_tags, with_written, written_shares
from regard.documents.tags.placement import MOST, Shares, diagonal, needs_alignment, place_in_proportion, place_tags
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology, WantedTerm
from regard.tasks.translation.align import unit_weights, units_of
from regard.text.languages import WITHOUT_SPACES, primary, sentences
from regard.text.placeholders import plain
from regard.text.terms import PROTECTED

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translation

WIDE = 4
"""Hypotheses, at least, of a search that must write what is kept."""
_LINE = re.compile(r"[^\n\t]*[^\s][^\n\t]*")
_NUMBERED = re.compile(r"^line (\d+):? ?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LETTER = re.compile(r"[^\W\d_]")


class Memory(Protocol):
    """A memory of translations."""

    def exact(self, text: str) -> str | None:
        """That of a text, where it has one."""


@dataclass(frozen=True)
class SegmentAnswer:
    """What became of a segment.

    Args:
        output: its translation; ``None`` where the segment stays as it is.
        protected: how many numbers, placeholders, addresses and kept elements it has.
        notes: what is to be told of it: warnings of the search and of the guard.
        remembered: whether it is of the memory.
        unsure: whether the model is less sure of a sentence than usual.
    """

    output: SegmentTranslation | None = None
    protected: int = 0
    notes: tuple[str, ...] = ()
    remembered: bool = False
    unsure: bool = False


@dataclass(frozen=True)
class SegmentTerms(Terminology):
    """A terminology, and what single texts keep.

    Args:
        kept: of a text, what its translation has as it stands there.
    """

    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return super().__bool__() or bool(self.kept)

    def wanted(self, text: str, language: str) -> list[WantedTerm]:
        """Its terms, and what it keeps."""
        kept, rest = self.kept.get(text, ()), text
        for one in kept:
            rest = rest.replace(one, " ", 1)
        return super().wanted(plain(rest), language) + [
            WantedTerm(one, (one,), kept.count(one)) for one in dict.fromkeys(kept)
        ]


@dataclass
class _Sentence:
    """A sentence of a segment.

    Args:
        begin, end: its characters there.
        text: of them.
        output: its translation.
        notes: what is to be told of it.
        marked: what the model reads, which may have placeholders.
        share_JI: of its units by the placeholders that the model wrote.
    """

    begin: int
    end: int
    text: str
    output: str = ""
    notes: list[str] = field(default_factory=list)
    marked: str = ""
    share_JI: Shares | None = None

    def write(self, text: str) -> None:
        """Take what the model wrote."""
        said = plain(text) if self.marked != self.text else text
        self.output, self.share_JI = said.strip() or self.text, written_shares(self.marked, text)


@dataclass
class _Draft:
    """A segment with its sentences, and what is protected in it as further tags."""

    segment: Segment
    tags: tuple[Tag, ...]
    sentences: list[_Sentence]
    remembered: bool = False
    unsure: bool = False

    @property
    def kept(self) -> list[tuple[Tag, str]]:
        """Tags of what is kept, and its text."""
        return [(tag, self.segment.text[tag.begin : tag.end].strip()) for tag in self.tags if tag.kept]

    def divides(self, one: _Sentence) -> bool:
        """Whether a tag begins or ends inside a sentence; else it is as good as one word."""
        return any(one.begin < at < one.end for tag in self.tags for at in (tag.begin, tag.end))

    def kept_in(self, one: _Sentence) -> list[Place]:
        """The characters of a sentence that are kept, in its order."""
        some = [(tag, text) for tag, text in self.kept if text and one.begin <= tag.begin < one.end]
        begins = [(self.segment.text.index(text, tag.begin) - one.begin, len(text)) for tag, text in some]
        return sorted((begin, begin + size) for begin, size in begins)


@dataclass
class SegmentTranslator:
    """Translates the segments of documents.

    Args:
        task: the translator.
        options: of its search; one output for each text.
        protect: numbers, addresses and placeholders come out as they are.
        memory: translations that are taken where a text, or a sentence of it, is there.
    """

    task: Translation
    options: OutputOptions
    protect: bool = True
    memory: Memory | None = None

    def __call__(self, segments: Sequence[Segment]) -> list[SegmentAnswer]:
        """What becomes of each segment."""
        drafts = list(map(self._draft, segments))
        self._write([(draft, one) for draft in drafts for one in draft.sentences if not one.output])
        joined = list(map(self._join, drafts))
        shares = self._shares([(draft, *one) for draft, one in zip(drafts, joined, strict=True)])
        return [
            self._answer(draft, text, share_JI)
            for draft, (text, _), share_JI in zip(drafts, joined, shares, strict=True)
        ]

    def _draft(self, segment: Segment) -> _Draft:
        tags = segment.tags + (tuple(_protected(segment)) if self.protect else ())
        draft = _Draft(segment, tags, [])
        if _SURROGATE.search(segment.text) or not _LETTER.search(
            _blanked(segment.text, [(tag.begin, tag.end) for tag in tags if tag.kept])
        ):
            return draft
        known = self.memory and self.memory.exact(segment.text.strip())
        lines = [found.span() for found in _LINE.finditer(segment.text)]
        if known:
            begin, end = lines[0][0], lines[-1][1]
            draft.sentences, draft.remembered = [_Sentence(begin, end, segment.text[begin:end], known)], True
            return draft
        draft.sentences = list(self._sentences(segment.text, lines, [(tag.begin, tag.end) for tag, _ in draft.kept]))
        learned = segment.tags if self.task.recipe.text.tags else ()
        for one in draft.sentences:
            one.marked = with_tags(segment.text, learned, (one.begin, one.end))
        return draft

    def _sentences(self, text: str, lines: Sequence[Place], kept: Sequence[Place]) -> Iterator[_Sentence]:
        """The sentences of a text; none ends inside what is kept, and one without a letter stays as it is."""
        for begin, end in lines:
            at, first = begin, -1
            for some in sentences(text[begin:end], self.task.direction[0]):
                start = text.find(some, at, end)
                first, at = (start if first < 0 else first), start + len(some)
                if any(one < at < other for one, other in kept):
                    continue
                alone = not _LETTER.search(_blanked(text[first:at], [(b - first, e - first) for b, e in kept]))
                known = self.memory and self.memory.exact(text[first:at])
                yield _Sentence(first, at, text[first:at], known or (text[first:at] if alone else ""))
                first = -1
            if first >= 0:
                yield _Sentence(first, at, text[first:at])

    def _write(self, given: list[tuple[_Draft, _Sentence]]) -> None:
        """Translate sentences in one batch; again, with a beam, those that lack something that they keep."""
        if given:
            self._write_batch(given, {}, self.options.beam)
        lacking = [(draft, one, own) for draft, one in given if lacks(one.text, one.output, own := draft.kept_in(one))]
        shares = self._unit_weights([(one.text, one.output) for _, one, _ in lacking])
        again, kept = list[tuple[_Draft, _Sentence]](), dict[str, tuple[str, ...]]()
        for draft, one, own in lacking:
            one.marked, one.share_JI = one.text, None
            output = put_copies(one.text, one.output, own, next(shares, None))
            if not lacks(one.text, output, own):
                one.output = output
            else:
                again.append((draft, one))
                kept[one.text] = tuple(one.text[begin:end] for begin, end in own)
        if again:
            self._write_batch(again, kept, max(WIDE, self.options.beam or self.task.recipe.decoding.beam))
        for draft, one in again:
            one.output = put_copies(one.text, one.output, draft.kept_in(one), None)

    def _unit_weights(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Shares | None]:
        """Of each pair how much its units belong together; nothing of a model that attends to no source."""
        attends = pairs and self.task.recipe.model.attention.get("cross")
        return unit_weights(self.task, pairs) if attends else iter(())

    def _write_batch(
        self, given: list[tuple[_Draft, _Sentence]], kept: dict[str, tuple[str, ...]], beam: int | None
    ) -> None:
        own = self.options.terms or self.task.terminology or Terminology()
        terms = SegmentTerms(own.terms, own.protect, own.forbidden, kept)
        options = replace(self.options, beam=beam, terms=terms or None)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = self.task.write([one.marked for _, one in given], options)
        for (draft, one), (best, *_) in zip(given, found, strict=True):
            one.write(best.text)
            draft.unsure = draft.unsure or bool(best.unsure)
            one.notes = [best.guard.sentence] if best.guard and best.guard.sentence else []
        for warning in told:
            self._note(str(warning.message), given, kept)

    def _note(self, sentence: str, given: Sequence[tuple[_Draft, _Sentence]], kept: dict[str, tuple[str, ...]]) -> None:
        """Tell a warning at its segment; what could not be written as a term is put in afterwards."""
        numbered = _NUMBERED.match(sentence)
        if numbered is None:
            warnings.warn(sentence, stacklevel=2)
            return
        _, one = given[int(numbered[1]) - 1]
        if not any(repr(text) in sentence for text in kept.get(one.text, ())):
            one.notes.append(sentence[numbered.end() :])

    def _join(self, draft: _Draft) -> tuple[str, list[int]]:
        """The sentences of a segment as they stood there, and where each begins in the translation."""
        text, found, begins, at = draft.segment.text, list[str](), list[int](), 0
        size = 0
        for place, one in enumerate(draft.sentences):
            gap = _gap(text[at : one.begin], self.task.direction) if place else text[: one.begin]
            found += [gap, one.output]
            begins.append(size + len(gap))
            size, at = begins[-1] + len(one.output), one.end
        return "".join([*found, text[at:]]), begins

    def _shares(self, given: Sequence[tuple[_Draft, str, list[int]]]) -> list[Shares | None]:
        """``share_JI`` of segments that need it, their sentences in one batch; ``None`` of the others."""
        asked, found = list[tuple[str, str]](), list[Shares | None]()
        wants = [bool(draft.sentences) and _wants(draft, text) for draft, text, _ in given]
        for (draft, _, _), one in zip(given, wants, strict=True):
            asked += [(some.text, some.output) for some in draft.sentences if one and draft.divides(some)]
        own = self._unit_weights(asked)
        for (draft, text, begins), one in zip(given, wants, strict=True):
            if not one:
                found.append(None)
                continue
            units_I, units_J = units_of(draft.segment.text), units_of(text)
            share_JI = np.zeros((len(units_J), len(units_I)))
            for sentence, begin in zip(draft.sentences, begins, strict=True):
                rows = _within(units_J, (begin, begin + len(sentence.output)))
                columns = _within(units_I, (sentence.begin, sentence.end))
                part_JI = with_written(next(own, None), sentence.share_JI) if draft.divides(sentence) else None
                fits = part_JI is not None and part_JI.shape == (len(rows), len(columns))
                share_JI[rows.start : rows.stop, columns.start : columns.stop] = (
                    part_JI if fits and part_JI is not None else diagonal(len(rows), len(columns))
                )
            found.append(share_JI)
        return found

    def _answer(self, draft: _Draft, text: str, share_JI: Shares | None) -> SegmentAnswer:
        segment, protected = draft.segment, len(draft.kept)
        if not draft.sentences or (text == segment.text):
            return SegmentAnswer(protected=protected)
        sides = (segment.text, units_of(segment.text)), (text, units_of(text))
        if share_JI is not None:
            found = place_tags(draft.tags, *sides, share_JI, len(segment.tags))
        else:
            found = place_in_proportion(segment.tags, sides[0][1], *sides[1])
        notes = [note for one in draft.sentences for note in one.notes]
        own = replace(found, places=found.places[: len(segment.tags)])
        return SegmentAnswer(own, protected, tuple(notes), draft.remembered, draft.unsure)


def _wants(draft: _Draft, text: str) -> bool:
    """Whether a segment's tags need an alignment, and are few enough for one."""
    units_I, units_J = units_of(draft.segment.text), units_of(text)
    if len(units_J) * max(len(units_I), len(draft.tags)) > MOST:
        return False
    kept = [(tag.begin, tag.end) for tag, literal in draft.kept if literal]
    return lacks(draft.segment.text, text, kept) or needs_alignment(draft.segment.text, draft.segment.tags, units_I)


def _within(units: Sequence[Place], place: Place) -> range:
    """The units that lie in a place."""
    begins = [begin for begin, _ in units]
    return range(int(np.searchsorted(begins, place[0])), int(np.searchsorted(begins, place[1])))


def _gap(gap: str, direction: tuple[str, str]) -> str:
    """The white space between two sentences, as the other language has it."""
    source, target = (primary(code) in WITHOUT_SPACES for code in direction)
    if target and not gap.strip(" "):
        return ""
    return " " if source and not target and not gap else gap


def _blanked(text: str, places: Sequence[Place]) -> str:
    """A text without some of its characters."""
    found, at = list[str](), 0
    for begin, end in sorted(places):
        if begin >= at:
            found.append(text[at:begin])
            at = max(at, end)
    return "".join([*found, text[at:]])


def _protected(segment: Segment) -> Iterator[Tag]:
    """Numbers, addresses and placeholders of a text as kept tags; none that a tag begins or ends in."""
    edges = sorted({at for tag in segment.tags for at in (tag.begin, tag.end)})
    kept = [(tag.begin, tag.end) for tag in segment.tags if tag.kept]
    for found in PROTECTED.finditer(segment.text):
        begin, end = found.span()
        inside = np.searchsorted(edges, end) - np.searchsorted(edges, begin, "right")
        if inside or any(one < end and begin < other for one, other in kept):
            continue
        around = [
            n for n, tag in enumerate(segment.tags) if tag.begin <= begin and end <= tag.end and tag.begin < tag.end
        ]
        yield Tag(begin, end, segment.escape(found[0]), parent=around[-1] if around else -1, kept=True)
