"""Segments translated: sentence by sentence in one batch, what is kept held fast, tags placed by attention."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from regard.decoding.search import Scheduler
from regard.documents.segment import Document, Place, Segment, SegmentTranslation, Tag
from regard.documents.tags.copies import Shares, lacks, put_copies
from regard.documents.tags.placeholders import with_tags, with_written, written_shares
from regard.documents.tags.placement import MOST, diagonal, needs_alignment, place_in_proportion, place_tags
from regard.system.errors import RegardError, collect_notices, notice
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology, WantedTerm
from regard.tasks.translation.align import unit_weights, units_of
from regard.text.counts import counted
from regard.text.languages import WITHOUT_SPACES, primary, sentences
from regard.text.placeholders import plain
from regard.text.terms import PROTECTED

if TYPE_CHECKING:
    from regard.documents.memories.memory import CloseMatch
    from regard.tasks.text.writer import Hypothesis
    from regard.tasks.translation.translator import Translation

ALIKE = 0.8
"""Score from which on a close match is a draft that saves time."""
FEW = 10
"""Segments that are named in a report at most, of each kind."""
WIDE = 4
"""Hypotheses, at least, of a search that must write what is kept."""
_LINE = re.compile(r"[^\n\t]*[^\s][^\n\t]*")
_NUMBERED = re.compile(r"^line (\d+):? ?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LETTER = re.compile(r"[^\W\d_]")


class Memory(Protocol):
    """A memory of translations; one may offer ``close``, as ``TranslationMemory`` does."""

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

    @classmethod
    def read(cls, line: str | bytes) -> SegmentAnswer:
        """The answer whose fields a line has as JSON."""
        found = json.loads(line)
        own = found.pop("output")
        output = own and SegmentTranslation(own["text"], tuple(map(tuple, own["places"])))
        return cls(output, **{**found, "notes": tuple(found["notes"])})


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
class DraftSentence:
    """A sentence of a segment.

    Args:
        begin, end: its characters there.
        text: of them.
        output: its translation.
        notes: what is to be told of it.
        marked: what the model reads, which may have placeholders.
        share_JI: of its units by the placeholders that the model wrote.
        found: what the model wrote, best first; nothing where it was not asked.
    """

    begin: int
    end: int
    text: str
    output: str = ""
    notes: list[str] = field(default_factory=list)
    marked: str = ""
    share_JI: Shares | None = None
    found: Sequence[Hypothesis] = ()

    def write(self, text: str) -> None:
        """Take what the model wrote."""
        said = plain(text) if self.marked != self.text else text
        self.output, self.share_JI = said.strip() or self.text, written_shares(self.marked, text)


@dataclass
class SegmentDraft:
    """A segment with its sentences, and what is protected in it as further tags.

    Args:
        segment: as the document has it.
        tags: its own, then those of what is protected.
        sentences: none where it stays as it is.
        text: the translations of the sentences, joined as they stood.
        begins: where each of them begins there.
    """

    segment: Segment
    tags: tuple[Tag, ...]
    sentences: list[DraftSentence] = field(default_factory=list)
    remembered: bool = False
    unsure: bool = False
    text: str = ""
    begins: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = self.segment.text
        kept = [(tag.begin, source[tag.begin : tag.end].strip()) for tag in self.tags if tag.kept]
        places = [(source.index(text, begin), len(text)) for begin, text in kept if text]
        self.kept = sorted((begin, begin + size) for begin, size in places)
        """The characters of what is kept, in the order of the text."""
        self._edges = sorted(at for tag in self.tags for at in (tag.begin, tag.end))

    @cached_property
    def units_I(self) -> list[Place]:
        """Those of the segment."""
        return units_of(self.segment.text)

    @cached_property
    def units_J(self) -> list[Place]:
        """Those of the translation, once it is joined."""
        return units_of(self.text)

    def divides(self, one: DraftSentence) -> bool:
        """Whether a tag begins or ends inside a sentence; else it is as good as one word."""
        return bisect_left(self._edges, one.end) > bisect_right(self._edges, one.begin)

    def kept_in(self, begin: int, end: int) -> list[Place]:
        """The characters of a part of the text that are kept, in its order."""
        some = self.kept[bisect_left(self.kept, (begin, 0)) : bisect_left(self.kept, (end, 0))]
        return [(first - begin, last - begin) for first, last in some]

    def join(self, direction: tuple[str, str]) -> None:
        """Join the sentences' translations."""
        source, found, at, size = self.segment.text, list[str](), 0, 0
        for place, one in enumerate(self.sentences):
            gap = _gap(source[at : one.begin], direction) if place else source[: one.begin]
            found += [gap, one.output]
            self.begins.append(size + len(gap))
            size, at = self.begins[-1] + len(one.output), one.end
        self.text = "".join([*found, source[at:]])

    @property
    def wants_alignment(self) -> bool:
        """Whether its tags need one, and are few enough for it."""
        if not self.sentences or max(len(self.units_I), len(self.units_J), 2 * len(self.tags)) ** 2 > MOST:
            return False
        return lacks(self.segment.text, self.text, self.kept) or needs_alignment(self.segment.tags, self.units_I)


@dataclass
class SegmentTranslator:
    """Translates the segments of documents.

    Args:
        task: the translator.
        options: of its search; one output for each text.
        protect: numbers, addresses and placeholders come out as they are.
        memory: translations that are taken where a text, or a sentence of it, is there.
        split: sentences are translated one by one; else a line is one.
    """

    task: Translation
    options: OutputOptions
    protect: bool = True
    memory: Memory | None = None
    split: bool = True

    @cached_property
    def _terms(self) -> Terminology:
        return self.options.terms or self.task.terminology or Terminology()

    def __call__(self, segments: Sequence[Segment]) -> list[SegmentAnswer]:
        """What becomes of each segment."""
        drafts = self.drafts(segments)
        return list(map(self._answer, drafts, self._shares(drafts)))

    def drafts(self, segments: Sequence[Segment]) -> list[SegmentDraft]:
        """The segments with their sentences translated and joined, tags not placed yet."""
        drafts = list(map(self._draft, segments))
        self._write([(draft, one) for draft in drafts for one in draft.sentences if not one.output])
        for draft in drafts:
            draft.join(self.task.direction)
        return drafts

    def _draft(self, segment: Segment) -> SegmentDraft:
        draft = SegmentDraft(segment, segment.tags + (tuple(self._tags_to_keep(segment)) if self.protect else ()))
        if _SURROGATE.search(segment.text) or not _LETTER.search(_leave_out(segment.text, draft.kept)):
            return draft
        known = self.memory and self.memory.exact(segment.text.strip())
        lines = [found.span() for found in _LINE.finditer(segment.text)]
        if known:
            begin, end = lines[0][0], lines[-1][1]
            draft.sentences, draft.remembered = [DraftSentence(begin, end, segment.text[begin:end], known)], True
            return draft
        draft.sentences = list(self._sentences(draft, lines))
        learned = segment.tags if self.task.recipe.text.tags else ()
        for one in draft.sentences:
            one.marked = with_tags(segment.text, learned, (one.begin, one.end))
        return draft

    def _tags_to_keep(self, segment: Segment) -> Iterator[Tag]:
        """Numbers, addresses and placeholders of a text as kept tags, but for what is all in a term."""
        found, text = list(find_protected(segment)), segment.text
        if not found or not self._terms:
            yield from found
            return
        kept = [at for at in range(len(text)) if not text[at : at + 2].isspace() or len(text) == at + 1]
        flat = "".join(text[at] for at in kept)  # a run of space as one, as the search has it
        terms = [(kept[one.begin], kept[one.end - 1] + 1) for one in self._terms.find(flat, self.task.direction[0])]
        for tag in found:
            at = bisect_right(terms, (tag.begin, len(text))) - 1
            if at < 0 or terms[at][1] < tag.end:
                yield tag

    def _sentences(self, draft: SegmentDraft, lines: Sequence[Place]) -> Iterator[DraftSentence]:
        """The sentences of a text; none ends inside what is kept, and one without a letter stays as it is."""
        text = draft.segment.text
        for begin, end in lines:
            at, first, line = begin, -1, text[begin:end]
            for some in sentences(line, self.task.direction[0]) if self.split else [line.strip()]:
                start = text.find(some, at, end)
                first, at = (start if first < 0 else first), start + len(some)
                inside = draft.kept_in(first, at)
                if inside and inside[-1][1] > at - first:
                    continue
                alone = not _LETTER.search(_leave_out(text[first:at], inside))
                known = self.memory and self.memory.exact(text[first:at])
                yield DraftSentence(first, at, text[first:at], known or (text[first:at] if alone else ""))
                first = -1
            if first >= 0:
                yield DraftSentence(first, at, text[first:at])

    def _write(self, given: list[tuple[SegmentDraft, DraftSentence]]) -> None:
        """Translate sentences in one batch; again, with a beam, those that lack something that they keep."""
        if given:
            self._write_batch(given, {}, self.options.beam)
        kept_in = [(draft, one, draft.kept_in(one.begin, one.end)) for draft, one in given]
        few = [(draft, one, own) for draft, one, own in kept_in if len(own) * len(one.text + one.output) <= MOST]
        lacking = [(draft, one, own) for draft, one, own in few if lacks(one.text, one.output, own)]
        shares = self._unit_weights([(one.text, one.output) for _, one, _ in lacking])
        again, kept = list[tuple[SegmentDraft, DraftSentence]](), dict[str, tuple[str, ...]]()
        for draft, one, own in lacking:
            one.marked, one.share_JI = one.text, None
            output = put_copies(one.text, one.output, own, next(shares, None))
            if not lacks(one.text, output, own):
                one.output = output
            else:
                again.append((draft, one))
                kept[one.text] = tuple(one.text[begin:end] for begin, end in own)
        if again:
            self._write_batch(again, kept, max(WIDE, self.task.decoding(self.options).beam))
        for draft, one in again:
            one.output = put_copies(one.text, one.output, draft.kept_in(one.begin, one.end), None)

    def _unit_weights(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Shares | None]:
        """Of each pair how much its units belong together; nothing of a model that attends to no source."""
        attends = pairs and self.task.recipe.model.attention.get("cross")
        return unit_weights(self.task, pairs) if attends else iter(())

    def _write_batch(
        self, given: list[tuple[SegmentDraft, DraftSentence]], kept: dict[str, tuple[str, ...]], beam: int | None
    ) -> None:
        own = self._terms
        terms = SegmentTerms(own.terms, own.protect, own.forbidden, kept)
        options = replace(self.options, beam=beam, terms=terms or None)
        with collect_notices() as told:
            found = self.task.write([one.marked for _, one in given], options, drafts=self._drafts(given, options))
        for (draft, one), hypotheses in zip(given, found, strict=True):
            best, one.found = hypotheses[0], hypotheses
            one.write(best.text)
            draft.unsure = draft.unsure or bool(best.unsure)
            one.notes = [best.guard.sentence] if best.guard and best.guard.sentence else []
        for sentence in told:
            self._note(sentence, given, kept)

    def _drafts(self, given: list[tuple[SegmentDraft, DraftSentence]], options: OutputOptions) -> list[str] | None:
        """Close matches of the memory as drafts, where they save time: a greedy search of few, by a model not small."""
        close = getattr(self.memory, "close", None)
        if close is None or len(given) > Scheduler.most_drafted or self.task.decoding(options).beam > 1:
            return None
        if not getattr(self.task.step(), "verifies", False):
            return None
        found: list[CloseMatch | None] = [close(one.text, ALIKE) for _, one in given]
        return [one.target if one else "" for one in found]

    def _note(
        self, sentence: str, given: Sequence[tuple[SegmentDraft, DraftSentence]], kept: dict[str, tuple[str, ...]]
    ) -> None:
        """Tell a warning at its segment; what could not be written as a term is put in afterwards."""
        numbered = _NUMBERED.match(sentence)
        if numbered is None:
            notice(sentence)
            return
        _, one = given[int(numbered[1]) - 1]
        if not any(repr(text) in sentence for text in kept.get(one.text, ())):
            one.notes.append(sentence[numbered.end() :])

    def _shares(self, drafts: Sequence[SegmentDraft]) -> Iterator[Shares | None]:
        """``share_JI`` of segments that need it, their sentences in one batch; ``None`` of the others."""
        wants = [draft.wants_alignment for draft in drafts]
        some = [draft for draft, one in zip(drafts, wants, strict=True) if one]
        own = self._unit_weights([(s.text, s.output) for draft in some for s in draft.sentences if draft.divides(s)])
        for draft, one in zip(drafts, wants, strict=True):
            yield _share(draft, own) if one else None

    def _answer(self, draft: SegmentDraft, share_JI: Shares | None) -> SegmentAnswer:
        segment, text, protected = draft.segment, draft.text, len(draft.kept)
        if not draft.sentences or text == segment.text:
            return SegmentAnswer(protected=protected)
        if share_JI is not None:
            sides = (segment.text, draft.units_I), (text, draft.units_J)
            found = place_tags(draft.tags, *sides, share_JI, len(segment.tags))
        else:
            found = place_in_proportion(segment.tags, draft.units_I, text, draft.units_J)
        notes = [note for one in draft.sentences for note in one.notes]
        own = replace(found, places=found.places[: len(segment.tags)])
        return SegmentAnswer(own, protected, tuple(notes), draft.remembered, draft.unsure)


def _share(draft: SegmentDraft, own: Iterator[Shares | None]) -> Shares:
    """``share_JI`` of a segment: of each sentence what comes next, if a tag divides it; else its words in order."""
    share_JI = np.zeros((len(draft.units_J), len(draft.units_I)))
    for one, begin in zip(draft.sentences, draft.begins, strict=True):
        rows = _within(draft.units_J, (begin, begin + len(one.output)))
        columns = _within(draft.units_I, (one.begin, one.end))
        part_JI = with_written(next(own, None), one.share_JI) if draft.divides(one) else None
        if part_JI is None or part_JI.shape != (len(rows), len(columns)):
            part_JI = diagonal(len(rows), len(columns))
        share_JI[rows.start : rows.stop, columns.start : columns.stop] = part_JI
    return share_JI


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


def _leave_out(text: str, places: Sequence[Place]) -> str:
    """A text without some of its characters."""
    found, at = list[str](), 0
    for begin, end in sorted(places):
        if begin >= at:
            found.append(text[at:begin])
            at = max(at, end)
    return "".join([*found, text[at:]])


def find_protected(segment: Segment) -> Iterator[Tag]:
    """Numbers, addresses and placeholders of a text as kept tags; none that a tag begins or ends in."""
    tags, around, at = segment.tags, list[int](), 0
    edges = sorted(at for tag in tags for at in (tag.begin, tag.end))
    for found in PROTECTED.finditer(segment.text):
        begin, end = found.span()
        while at < len(tags) and tags[at].begin <= begin:
            while around and tags[around[-1]].end <= tags[at].begin:
                around.pop()
            around += [at] if tags[at].begin < tags[at].end else []
            at += 1
        while around and tags[around[-1]].end <= begin:
            around.pop()
        parent = around[-1] if around else -1
        if bisect_left(edges, end) == bisect_right(edges, begin) and not (around and tags[parent].kept):
            yield Tag(begin, end, segment.escape(found[0]), parent=parent, kept=True)


def report(segments: Sequence[Segment], answers: Sequence[SegmentAnswer]) -> Iterator[str]:
    """What became of a document's segments, in sentences: the last ones name places."""
    if not segments:
        yield "nothing in it is text to translate; code is none, nor what has the style Preformatted Text"
    done = sum(one.output is not None for one in answers)
    remembered = sum(one.remembered for one in answers)
    told = f"{counted(done, 'segment')} translated" + (f", {remembered:,} of them by the memory" if remembered else "")
    protected = sum(one.protected for one in answers if one.output)
    yield (
        f"{told}; {len(answers) - done:,} left as they are; "
        f"{counted(protected, 'number, placeholder or the like', 'numbers, placeholders and the like')} kept"
    )
    for kind, named in (
        ("the model is unsure of", [s.where for s, one in zip(segments, answers, strict=True) if one.unsure]),
        ("warnings:", [f"{s.where}: {note}" for s, one in zip(segments, answers, strict=True) for note in one.notes]),
    ):
        if named:
            more = f"; and {len(named) - FEW:,} more" if len(named) > FEW else ""
            yield f"{kind} {'; '.join(one or 'the text' for one in named[:FEW])}{more}"


def write_document(document: Document, answers: Sequence[SegmentAnswer], name: str) -> bytes:
    """A document with the translations of its segments.

    Args:
        document: that was read.
        answers: of each of its segments.
        name: of the file, for messages.

    Raises:
        RegardError: it cannot be written so.
    """
    try:
        return document.write({number: one.output for number, one in enumerate(answers) if one.output})
    except RegardError as error:
        raise RegardError(error.message, error.where or name) from None
