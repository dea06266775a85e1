"""Where inline tags go: exact matches with gold, beside the ways of others with the same model.

    python benchmarks/tags.py MODEL [--choose train.en train.de]
    python benchmarks/tags.py MODEL --choose train.en train.de --texts val.en val.de

Without texts these are pairs of the demonstration's grammar whose translation is the reference; the spans have one to
four words, half of them with another inside, and their words are linked to a run of the translation's words and to no
others. With texts they are 200 texts and their translations by the model, in which one or two nouns are tagged: capital
words of German that a lexical model, learned from these and the pairs of ``--choose``, links to one English word, and
that to them alone; with --references the translations are those of the second file. ``--choose`` chooses the heads
whose attention aligns words, where the model's recipe names none.

Ways: ``attention`` is ours, and ``placeholders``, by which a model with ``text.tags`` writes its translation anew,
maybe another one; ``nodes`` translates each text between tags alone, as LibreTranslate and argos-translate-files do;
``search`` translates what a tag encloses alone, too, and looks for it in the translation, as they mean to; ``order``
puts tags at the same share of the words.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import regard
from regard.data.alignment.hmm import WordAligner
from regard.documents.segment import Segment, SegmentBuilder, render
from regard.documents.tags.placement import place_in_proportion
from regard.documents.translate import SegmentTranslator
from regard.runs.demo.grammar.corpus import Pair, generate, word_spans
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.translation.align import choose_heads, is_known, units_of, words_of
from regard.tasks.translation.translator import Translation
from regard.text.lines import lines

LONGEST = 4
"""Words of a span."""
TAG = re.compile(r"</?[ab]>")


@dataclass(frozen=True)
class Case:
    """A text and its translation, with tags."""

    source: str
    target: str


def tagged(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text with a tag around some of its words, <a>, and <b> where a second span lies in the first."""
    opening = {begin: "".join(f"<{'ab'[n]}>" for n, one in enumerate(spans) if one[0] == begin) for begin, _ in spans}
    closing = {end: "".join(f"</{'ba'[n]}>" for n, one in enumerate(spans[::-1]) if one[1] == end) for _, end in spans}
    if len(spans) == 1:
        closing = {spans[0][1]: "</a>"}
    return "".join(closing.get(at, "") + opening.get(at, "") + text[at : at + 1] for at in range(len(text) + 1))


def parse(text: str) -> Segment:
    """A segment of a text with tags."""
    builder = SegmentBuilder(0)
    for piece in re.split(r"(</?[ab]>)", text):
        if piece.startswith("</"):
            builder.close(piece)
        elif piece.startswith("<"):
            builder.open(piece)
        else:
            builder.add(piece)
    return builder.segment(0, "")


def image(pair: Pair, first: int, last: int) -> tuple[int, int] | None:
    """The target words of a run of source words, if they are a run that belongs to it alone."""
    own = {j for i, j in pair.alignment if first <= i < last}
    if not own or any(i not in range(first, last) for i, j in pair.alignment if j in own):
        return None
    run = min(own), max(own) + 1
    return run if set(range(*run)) == own and {i for i, _ in pair.alignment} >= set(range(first, last)) else None


def grammar_cases(pairs: Sequence[Pair], seed: int = 1) -> Iterator[Case]:
    """One case of each pair that has one."""
    draw = random.Random(seed)
    for pair in pairs:
        words, others = word_spans(pair.source), word_spans(pair.target)
        runs = [
            (first, last)
            for first in range(len(words))
            for last in range(first + 1, min(first + LONGEST, len(words)) + 1)
            if (last - first < len(words)) and image(pair, first, last)
        ]
        if not runs:
            continue
        outer = draw.choice(runs)
        inner = [run for run in runs if outer[0] <= run[0] and run[1] <= outer[1] and run != outer]
        inner = [run for run in inner if image(pair, *run) != image(pair, *outer)]
        chosen = [outer, *([draw.choice(inner)] if inner and draw.random() < 0.5 else [])]
        images = [found for run in chosen if (found := image(pair, *run))]
        yield Case(
            tagged(pair.source, [(words[first][0], words[last - 1][1]) for first, last in chosen]),
            tagged(pair.target, [(others[first][0], others[last - 1][1]) for first, last in images]),
        )


def plain(text: str) -> str:
    """Without tags."""
    return re.sub(r"</?[ab]>", "", text)


def noun_cases(texts: Sequence[list[str]], pairs: Sequence[list[str]]) -> Iterator[Case]:
    """Pairs whose nouns a lexical model links one to one."""
    sides = [list(map(words_of, [*pairs[side], *texts[side]])) for side in (0, 1)]
    every = WordAligner(*sides).align(sides[0][len(pairs[0]) :], sides[1][len(pairs[1]) :])
    for source, target, links in zip(*texts, every, strict=True):
        words, others = ([found.span() for found in re.finditer(r"[^\W\d_]\w+", text)] for text in (source, target))
        places = [[found.start() for found in re.finditer(r"\S+", text)] for text in (source, target)]
        chosen = []
        for i, j in sorted(links):
            one, other = places[0][i], places[1][j]
            alone = sum(i == a for a, _ in links) == 1 == sum(j == b for _, b in links)
            spans = [next((w for w in some if w[0] == at), None) for some, at in ((words, one), (others, other))]
            if alone and all(spans) and j > 0 and target[other].isupper():
                chosen.append(spans)
        if chosen:
            yield Case(*(tagged(text, [one[side] for one in chosen[:2]]) for side, text in enumerate((source, target))))


@dataclass(frozen=True)
class References:
    """A memory of the references."""

    texts: dict[str, str]

    def exact(self, text: str) -> str | None:
        """That of a text."""
        return self.texts.get(text)


def nodes(task: Translation, cases: Sequence[Case]) -> list[str]:
    """Each text between tags translated alone."""
    pieces = [re.split(r"(</?[ab]>)", one.source) for one in cases]
    texts = [piece for some in pieces for piece in some if piece.strip() and piece[0] != "<"]
    found = dict(zip(texts, task.translate(texts, 1), strict=True))
    return ["".join(found.get(piece, piece) for piece in some) for some in pieces]


def search(task: Translation, cases: Sequence[Case]) -> list[str]:
    """What a tag encloses translated alone, and looked for in the translation; a tag that is not found is lost."""
    found = list[str]()
    for one in cases:
        text = plain(one.target)
        inner = [(tag, plain(inside)) for tag, inside in re.findall(r"(?=<([ab])>(.*?)</\1>)", one.source)]
        said = task.translate([inside for _, inside in inner], 1)
        at = [text.lower().find(piece.strip(" .").lower()) for piece in said]
        spans = [(begin, begin + len(piece.strip(" ."))) for begin, piece in zip(at, said, strict=True) if begin >= 0]
        found.append(tagged(text, spans) if len(spans) == len(inner) else text)
    return found


def attention(task: Translation, cases: Sequence[Case]) -> list[str]:
    """Our way."""
    segments = [parse(one.source) for one in cases]
    memory = References({plain(one.source): plain(one.target) for one in cases})
    return _rendered(task, segments, memory)


def placeholders(task: Translation, cases: Sequence[Case]) -> list[str]:
    """Ours of a model that has learned them."""
    return _rendered(task, [parse(one.source) for one in cases])


def _rendered(task: Translation, segments: Sequence[Segment], memory: References | None = None) -> list[str]:
    answers = SegmentTranslator(task, OutputOptions(beam=1), protect=False, memory=memory)(segments)
    return [render(s, one.output) if one.output else "" for s, one in zip(segments, answers, strict=True)]


def order(task: Translation, cases: Sequence[Case]) -> list[str]:
    """Tags at the same share of the words."""
    found = list[str]()
    for one in cases:
        segment, text = parse(one.source), plain(one.target)
        places = place_in_proportion(segment.tags, units_of(segment.text), text, units_of(text))
        found.append(render(segment, places))
    return found


WAYS = (attention, nodes, search, order)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--choose", type=Path, nargs=2)
    parser.add_argument("--texts", type=Path, nargs=2)
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--skip", type=int, default=0, help="cases")
    parser.add_argument("--show", type=int, default=0, help="wrong ones of ours")
    asked = parser.parse_args()
    task = regard.load(asked.model)
    assert isinstance(task, Translation)
    pairs = [list(lines(path)) for path in asked.choose or ()]
    if pairs and not is_known(task.recipe):
        names = [str(one) for one in choose_heads(task, *pairs)[0]]
        print("heads:", ", ".join(names))
        task = task.with_settings([f"decoding.alignment_heads={json.dumps(names)}"])
    if asked.texts:
        source, target = (list(lines(path)) for path in asked.texts)
        target = target if asked.references else task.translate(source, 1)
        cases = list(islice(noun_cases([source, target], pairs), asked.skip, asked.skip + 200))
    else:
        every = list(grammar_cases(list(generate("test", 2000))))
        said = task.translate([plain(one.source) for one in every], 1)
        cases = [case for case, text in zip(every, said, strict=True) if text == plain(case.target)]
        print(f"{len(cases):,} of {len(every):,} translations are the reference")
    for way in (placeholders, *WAYS) if task.recipe.text.tags else WAYS:
        found = way(task, cases)
        wrong = [(one, text) for one, text in zip(cases, found, strict=True) if text != one.target]
        whole = sum(
            TAG.sub("", text) != text and sorted(TAG.findall(text)) == sorted(TAG.findall(one.source))
            for one, text in zip(cases, found, strict=True)
        )
        print(f"{way.__name__:12} exact {1 - len(wrong) / len(cases):6.1%}, all tags {whole / len(cases):6.1%}", end="")
        same = [pair for pair in zip(cases, found, strict=True) if TAG.sub("", pair[1]) == plain(pair[0].target)]
        right = sum(text == one.target for one, text in same)
        print(f"; same text {len(same) / len(cases):6.1%}, of it exact {right / max(len(same), 1):6.1%}")
        for one, text in wrong[: asked.show if way is attention else 0]:
            print("", one.source, one.target, text, sep="\n    ")


if __name__ == "__main__":
    main()
