"""Files of word links: line i has those of pair i, as fast_align and ``regard align`` write them: ``0-0 1-2``.

Words are what stands between blanks, counted from 0. Between the words of a tokenizer, which divides further, are the
links of those that stand in the word; of punctuation only where the word is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from regard.data.alignment.hmm import LONGEST
from regard.data.alignment.links import Links, piece_words, read_gold
from regard.data.corpora.corpus import Corpus, TextPair
from regard.data.corpora.pairs import MISALIGNED, Files
from regard.data.prepare.encoders import PairEncoder
from regard.data.prepare.split import TRAIN, SplitCorpora
from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import lines
from regard.text.tokenizers.vocabulary import AnyTokenizer

SIDES = "source", "target"


def open_links(files: Files, source: Files, pairs: Files) -> list[Path]:
    """The files of links, one for each two files of pairs.

    Raises:
        UsageError: there are more or fewer of them, or one is no file.
    """
    option = Option("alignment")
    if files and pairs:
        raise UsageError(f"goes with {Option('source')} and {Option('target')}; leave {Option('pairs')} out", option)
    if files and len(files) != len(source):
        raise UsageError(f"{len(files)} given, but of {Option('source')} {len(source)}; they go together", option)
    for path in map(Path, files):
        if not path.is_file():
            raise UsageError("is no file" if path.exists() else "no such file", str(path))
    return [Path(path) for path in files]


def check_links(corpus: Corpus[TextPair], path: Path) -> None:
    """Read the links of every pair of a corpus.

    Raises:
        RegardError: there are more or fewer lines than pairs, or a line holds something else, or a word that is not
            there; with its number.
    """
    number = 0
    for number, (pair, line) in enumerate(zip_longest(corpus.examples(), lines(path)), 1):
        if pair is None or line is None:
            break
        for link in read_gold(line, f"{path}:{number}")[1]:
            for name, text, word in zip(SIDES, pair, link, strict=True):
                if word >= (words := len(text.split())):
                    message = f"links {name} word {word}, counted from 0, but there are {counted(words, 'word')}"
                    raise RegardError(message, f"{path}:{number}")
    else:
        return
    found, wanted = sum(1 for _ in lines(path)), sum(1 for _ in corpus.examples())
    raise RegardError(f"has {counted(found, 'line')}, but {corpus.name} have {wanted:,}; {MISALIGNED}", str(path))


def read_links(examples: SplitCorpora[TextPair], files: Sequence[Path], encoder: PairEncoder) -> Iterator[Links]:
    """The links of every pair that is prepared to be learned from, between the words of its tokenizers.

    A pair with a longer side than :data:`LONGEST`, or which is normalised to other words, has none.

    Args:
        examples: of which some are left out.
        files: of the links of each corpus.
        encoder: with which the pairs were prepared.
    """
    every = {id(corpus): lines(path) for corpus, path in zip(examples.corpora, files, strict=True)}
    for block in examples.train_blocks(encoder.characters):
        pairs, _ = block.read()
        here = list(islice(every[id(block.corpus)], block.content.count))
        between = encoder.between(block.languages)
        refused = between.encode_flat(pairs, "validation").refused  # for the same reasons, without any dropout
        learned = np.flatnonzero(block.marks_B[: len(pairs)] == TRAIN).tolist()
        kept = [place for place in learned if place not in refused]
        both = (between.vocabularies.source, between.vocabularies.target)
        sides = [
            _words(tokenizer, [pairs[place][side] for place in kept], len(before))
            for side, (tokenizer, before) in enumerate(zip(both, between.frame, strict=True))
        ]
        for place, sources, targets in zip(kept, *sides, strict=True):
            links = read_gold(here[place])[1] if sources and targets else ()
            yield frozenset((i, j) for source, target in links for i in sources[source] for j in targets[target])


def _words(tokenizer: AnyTokenizer, texts: Sequence[str], before: int) -> Iterator[list[set[int]]]:
    """Of each text the tokenizer's words in each of its words; nothing where there are too many, or others.

    Args:
        tokenizer: of the side.
        texts: of the side.
        before: symbols that stand before a text.
    """
    for text, found in zip(texts, tokenizer.encode_batch(texts), strict=True):
        inner = before - 1 + tokenizer.word_starts(found.ids).cumsum()
        words: list[set[int]] = [set() for _ in text.split()]
        if len(inner) and inner[-1] < LONGEST and len(words) == len(found.text.split()):
            for number, word in zip(inner.tolist(), piece_words(found.text, found.offsets), strict=True):
                if word >= 0:
                    words[word].add(number)
            yield words
        else:
            yield []
