"""A request for translations, answered in the thread of its call: languages, tags, sentences, hops, details."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regard.documents.segment import Segment, unchanged
from regard.documents.translate import SegmentAnswer, SegmentDraft, SegmentTranslator
from regard.serving.core import (
    Call,
    DocumentRequest,
    Key,
    SentenceDetail,
    ServiceError,
    TextTranslation,
    TranslationRequest,
    WordDetail,
)
from regard.serving.languages import guess_languages
from regard.serving.markup import read
from regard.serving.models import Hop, ServedModels
from regard.serving.search.request import CALL, SharedSearch
from regard.system.errors import collect_notices
from regard.tasks.kinds import translates
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology
from regard.tasks.translation.align import unit_weights, units_of

if TYPE_CHECKING:
    from regard.documents.translate import Memory
    from regard.tasks.text.writer import Hypothesis
    from regard.tasks.translation.translator import Translation

LINKED = 0.25
"""Least share of a word's attention that counts as a link."""


@dataclass(frozen=True)
class Languages:
    """The languages of a text: its own, how probable that is where it was guessed, and what is written."""

    source: str
    target: str
    guessed: float | None = None


class Translator:
    """Translates with the models of a server.

    Args:
        models: of the server.
        searching: that all calls share.
        memory: that of a key for one direction.
    """

    def __init__(
        self, models: ServedModels, searching: SharedSearch, memory: Callable[[Key, str, str], Memory]
    ) -> None:
        self.models, self._searching, self._memory = models, searching, memory

    def languages(self, text: str, source: str | None, target: str) -> Languages:
        """Those of a text; the source is guessed among all that are read, where it is not given."""
        goal = self.models.find_target(target)
        if source is not None:
            return Languages(self.models.find_source(source, goal), goal)
        among = self.models.sources
        able = [one for one in among if self.models.leads(one, goal)]
        some = dict.fromkeys([*able, goal])
        guesses = guess_languages(text, list(some)) if len(some) > 1 else []
        if not guesses or not guesses[0].confidence:
            return Languages(able[0] if len(able) == 1 else goal, goal, 0.0)
        return Languages(guesses[0].language, goal, guesses[0].confidence)

    def route(self, source: str, target: str, terms: Terminology | None) -> tuple[Hop, ...]:
        """The hops from one language to another.

        Raises:
            ServiceError: there is no way (400), or terms are given for two hops, neither of which reads and writes both
                sides of a term.
        """
        hops = self.models.route(source, target)
        if terms and len(hops) > 1:
            (source, middle), (_, target) = (hop.direction for hop in hops)
            raise ServiceError(400, f"terms need one model; {source} is translated into {target} through {middle}")
        return hops

    def translate(self, request: TranslationRequest) -> list[TextTranslation]:
        """The translation of each text; those of one language side by side."""
        each = [self.languages(text, request.source, request.target) for text in request.texts]
        found = dict[int, TextTranslation]()
        for pair in dict.fromkeys((one.source, one.target) for one in each):
            places = [place for place, one in enumerate(each) if (one.source, one.target) == pair]
            texts = [request.texts[place] for place in places]
            prefixes = tuple(request.prefixes[place] for place in places) if request.prefixes else ()
            own = replace(request, prefixes=prefixes)
            for place, one in zip(places, self._translate(texts, own, pair), strict=True):
                found[place] = replace(one, guessed=each[place].guessed)
        return [found[place] for place in range(len(each))]

    def _translate(
        self, texts: Sequence[str], request: TranslationRequest, pair: tuple[str, str]
    ) -> Iterator[TextTranslation]:
        if pair[0] == pair[1]:
            return (TextTranslation(text, pair[0]) for text in texts)
        hops = self.route(*pair, request.terms)
        through = hops[0].direction[1] if len(hops) > 1 else None
        if request.prefixes:
            return self._steer(texts, request, hops, through)
        if request.markup != "text":
            return self._with_tags(texts, request, hops, through)
        return self._plain(texts, request, hops, through)

    def _plain(
        self, texts: Sequence[str], request: TranslationRequest, hops: tuple[Hop, ...], through: str | None
    ) -> Iterator[TextTranslation]:
        n, details = 1 + request.alternatives, request.details
        options = OutputOptions(n, request.beam, guard="warn" if details else None, terms=request.terms, scores=details)
        with ExitStack() as stack:
            for hop in hops[:-1]:
                first = self._translator(hop, OutputOptions(scores=False), stack, request.split, request.memory)
                texts = [draft.text for draft in first.drafts([Segment(0, len(text), text) for text in texts])]
            last = self._translator(hops[-1], options, stack, request.split, request.memory)
            with collect_notices() as notices:
                drafts = last.drafts([Segment(0, len(text), text) for text in texts])
            for draft in drafts:
                warnings = [note for one in draft.sentences for note in one.notes] + notices
                others = _alternatives(draft, request.alternatives, last.task.direction)
                sentences = _details(last.task, draft) if details and not through else ()
                source = hops[0].direction[0]
                yield TextTranslation(draft.text, source, None, through, others, sentences, tuple(warnings))

    def _with_tags(
        self, texts: Sequence[str], request: TranslationRequest, hops: tuple[Hop, ...], through: str | None
    ) -> Iterator[TextTranslation]:
        sets = request.ignore_tags, request.splitting_tags, request.non_splitting_tags
        documents = [read(text, request.markup, *sets, request.outline) for text in texts]
        segments = [segment for document in documents for segment in document.segments]
        options = OutputOptions(beam=request.beam, terms=request.terms, scores=False)
        answers = iter(self._answers(segments, hops, options, request.split, request.memory))
        for document in documents:
            own = [next(answers) for _ in document.segments]
            text = document.splice({n: one.output for n, one in enumerate(own) if one.output})
            notes = tuple(note for one in own for note in one.notes)
            yield TextTranslation(text, hops[0].direction[0], None, through, warnings=notes)

    def guess(self, text: str, request: DocumentRequest) -> str:
        """The language of the beginning of a document."""
        return self.languages(text, None, request.target).source

    def segments(self, request: DocumentRequest, segments: Sequence[Segment], call: Call) -> list[SegmentAnswer]:
        """What becomes of segments of a document; in the thread of its job."""
        token = CALL.set(call)
        try:
            found = self.languages("", request.source, request.target)
            if found.source == found.target:
                return [SegmentAnswer() for _ in segments]
            hops = self.route(found.source, found.target, request.terms)
            with collect_notices():
                options = OutputOptions(terms=request.terms, scores=False)
                return self._answers(segments, hops, options, split=True, memory=False)
        finally:
            CALL.reset(token)

    def _answers(
        self, segments: Sequence[Segment], hops: tuple[Hop, ...], options: OutputOptions, split: bool, memory: bool
    ) -> list[SegmentAnswer]:
        """By each hop in turn; the tags of a hop's translation are those that the next one places."""
        with ExitStack() as stack:
            answers = self._translator(hops[0], options, stack, split, memory)(segments)
            for hop in hops[1:]:
                between = [_after(*pair) for pair in zip(segments, answers, strict=True)]
                last = self._translator(hop, options, stack, split, memory)(between)
                answers = [_both(*both) for both in zip(answers, last, strict=True)]
        return answers

    def _steer(
        self, texts: Sequence[str], request: TranslationRequest, hops: tuple[Hop, ...], through: str | None
    ) -> Iterator[TextTranslation]:
        """Each text as one sentence whose translation begins as it is told; through a third language its last hop."""
        options = OutputOptions(1 + request.alternatives, request.beam, guard="warn", terms=request.terms)
        with ExitStack() as stack:
            for hop in hops[:-1]:
                texts = self.task(hop, stack).best(texts)
            task = self.task(hops[-1], stack)
            with collect_notices() as notices:
                found = task.write(texts, options, prefixes=request.prefixes)
            pairs = [(text, best.text) for text, (best, *_) in zip(texts, found, strict=True)]
            shares = list(unit_weights(task, pairs))
            for (text, output), hypotheses, share_JI in zip(pairs, found, shares, strict=True):
                best, others = hypotheses[0], tuple(dict.fromkeys(one.text for one in hypotheses[1:]))
                warning = best.guard.sentence if best.guard else ""
                warnings = (*([warning] if warning else []), *notices)
                details: tuple[SentenceDetail, ...] = ()
                if not through:
                    details = (_detail(task, (text, 0), (output, 0), best, share_JI, warning),)
                yield TextTranslation(output, hops[0].direction[0], None, through, others, details, warnings)

    def task(self, hop: Hop, stack: ExitStack) -> Translation:
        """The translator of a hop, which searches in the batch of all calls."""
        opened = stack.enter_context(self.models.use(hop.model))
        assert translates(opened)
        found: Translation = opened.in_direction(hop.direction)
        found.search = self._searching.of(opened)
        return found

    def _translator(
        self, hop: Hop, options: OutputOptions, stack: ExitStack, split: bool, memory: bool
    ) -> SegmentTranslator:
        CALL.get().check()
        own = self._memory(CALL.get().key, *hop.direction) if memory else None
        return SegmentTranslator(self.task(hop, stack), options, memory=own, split=split)


def _alternatives(draft: SegmentDraft, n: int, direction: tuple[str, str]) -> tuple[str, ...]:
    """Other translations: of each sentence the next best, of one that has no more its last."""
    found = dict[str, None]()
    for place in range(1, n + 1):
        other = replace(draft, sentences=[replace(one) for one in draft.sentences], begins=[], text="")
        for one in other.sentences:
            if len(one.found) > 1:
                one.write(one.found[min(place, len(one.found) - 1)].text)
        other.join(direction)
        found[other.text] = None
    found.pop(draft.text, None)
    return tuple(found)


def _details(task: Translation, draft: SegmentDraft) -> tuple[SentenceDetail, ...]:
    """Of each sentence of a text that was translated."""
    some = [(one, begin) for one, begin in zip(draft.sentences, draft.begins, strict=True) if one.found]
    shares = unit_weights(task, [(one.text, one.output) for one, _ in some])
    found = []
    for (one, begin), share_JI in zip(some, shares, strict=True):
        sides = (one.text, one.begin), (one.output, begin)
        found.append(_detail(task, *sides, one.found[0], share_JI, " ".join(one.notes)))
    return tuple(found)


def _detail(
    task: Translation,
    source: tuple[str, int],
    target: tuple[str, int],
    best: Hypothesis,
    share_JI: object,
    warning: str,
) -> SentenceDetail:
    """Of a sentence and its translation, each with the place where it begins."""
    import numpy as np

    (text, at), (output, begin) = source, target
    own, other = [(b + at, e + at) for b, e in units_of(text)], [(b + begin, e + begin) for b, e in units_of(output)]
    words: tuple[WordDetail, ...] = ()
    if best.text.strip() == output:
        left = begin - (len(best.text) - len(best.text.lstrip()))
        words = tuple(WordDetail(one.begin + left, one.end + left, one.confidence) for one in task.words(best))
    weights = np.zeros((0, 0)) if share_JI is None else np.asarray(share_JI)
    links = [(int(row.argmax()), j) for j, row in enumerate(weights) if row.size and row.max() >= LINKED]
    return SentenceDetail(
        (at, at + len(text)),
        (begin, begin + len(output)),
        words,
        tuple(own),
        tuple(other),
        tuple(links),
        tuple(tuple(round(share, 4) for share in row) for row in weights.tolist()),
        None if best.confidence != best.confidence else round(best.confidence, 6),
        best.unsure,
        warning,
    )


def _after(segment: Segment, answer: SegmentAnswer) -> Segment:
    """A segment as its translation has it, for the next hop."""
    output = answer.output or unchanged(segment)
    tags = [replace(tag, begin=b, end=e) for tag, (b, e) in zip(segment.tags, output.places, strict=True)]
    return replace(segment, text=output.text, tags=tuple(tags))


def _both(first: SegmentAnswer, second: SegmentAnswer) -> SegmentAnswer:
    """What became of a segment by two hops."""
    notes = first.notes + second.notes
    return replace(second, output=second.output or first.output, protected=first.protected, notes=notes)
