"""What terms cost: the share of them in the translations, BLEU, and seconds beside a search without any.

    python benchmarks/terms.py MODEL --source test.en --reference test.de

The terms of a sentence are one to four words drawn from its reference, each for a word drawn from its source; with
``--learn-from PAIRS``, whose last columns are source and target, those of a glossary made of them by rule. By the
engine with one thread; seconds are those of the processor, the less of two rounds.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from regard.data.alignment.hmm import WordAligner
from regard.system import kernels
from regard.tasks.metrics.bleu import score
from regard.tasks.model_folder import open_without_torch
from regard.tasks.text.terms import Terminology, WantedTerm
from regard.text.lines import lines
from regard.text.terms import TermList, count

BONUSES = (1.0, 3.0, 5.0)


@dataclass(frozen=True)
class Drawn(Terminology):
    """Terms of their own for each text."""

    drawn: dict[str, list[WantedTerm]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return True

    def wanted(self, text: str, language: str) -> list[WantedTerm]:
        """Those drawn for it."""
        return self.drawn[text]


def draw(source: str, reference: str, draws: random.Random) -> list[WantedTerm]:
    """One to four words of a reference, as terms of words of its source."""
    sides = [sorted(set(re.findall(r"[^\W\d_]+", text))) for text in (source, reference)]
    number = min(draws.randint(1, 4), *map(len, sides))
    pairs = zip(*(draws.sample(side, number) for side in sides), strict=True)
    return [WantedTerm(one, (two,)) for one, two in pairs]


def glossary(pairs: Path, least: int = 5, share: float = 0.9) -> Iterator[str]:
    """Lines of a glossary: words of four letters or more that are linked to one word, the same in most pairs.

    Args:
        pairs: the last columns are source and target; the first 20,000 of which are aligned by their own statistics.
        least: links of a word at least.
        share: of them to the one word.
    """
    texts = [line.split("\t")[-2:] for line in islice(lines(pairs), 20_000)]
    sides = [[re.findall(r"\w+", text[side]) for text in texts] for side in (0, 1)]
    lowered = [[[word.lower() for word in words] for words in side] for side in sides]
    linked = defaultdict[str, Counter[str]](Counter)
    for links, source, target in zip(WordAligner(*lowered).align(*lowered), lowered[0], sides[1], strict=True):
        for one, two in links:
            linked[source[one]][target[two]] += 1
    for word, found in sorted(linked.items()):
        [(best, often)] = found.most_common(1)
        if len(word) > 3 and word.isalpha() and best.isalpha() and often >= max(least, share * found.total()):
            yield f"{word}\t{best}"


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    for name in ("--source", "--reference"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--learn-from", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("error")  # all terms can be had
    kernels.use_threads(1)
    task, draws = open_without_torch(given.model, "cpu"), random.Random(1)
    pairs = list(zip(lines(given.source), lines(given.reference), strict=True))[: given.sentences]
    sources, references = map(list, zip(*pairs, strict=True))
    drawn = {source: draw(source, reference, draws) for source, reference in pairs}
    if given.learn_from:
        listed = Terminology(TermList(tuple(glossary(given.learn_from))))
        drawn = {source: listed.wanted(source, task.direction[0]) for source in sources}
    own = Drawn(drawn=drawn)
    for name, bonus in {"plain": 0.0, "terms": 0.0, **{f"bonus {bonus:g}": bonus for bonus in BONUSES}}.items():
        searched = task.with_settings([f"decoding.term_bonus={bonus}"])
        seconds, found = list[float](), list[str]()
        for _ in range(2):
            begin = time.process_time()
            found = searched.translate(sources, 5, terms=Terminology() if name == "plain" else own)
            seconds.append(time.process_time() - begin)
        texts = zip(sources, found, strict=True)
        there = [count(one.forms, text) >= one.times for source, text in texts for one in own.drawn[source]]
        bleu = score(found, references, task.direction[1], samples=0).bleu
        print(f"{name:8} {sum(there) / len(there):7.2%} of {len(there):,} BLEU {bleu:5.2f} {min(seconds):6.2f} s")


if __name__ == "__main__":
    main()
