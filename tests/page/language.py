"""A little language, a part of the embedded corpus, and little images: what the page's models are taught and tested on.

*The fox didn't cross the river because it was too deep.* No combination of nouns, verb and adjective that is tested was
seen in training.
"""

from functools import cache
from itertools import product
from random import Random

import numpy as np

from regard.runs.demo.grammar import Pair, word_spans, words_of
from regard.runs.demo.grammar.complex_sentences import frames_of, sentence_of
from regard.runs.demo.grammar.corpus import SPLITS, Split, finish, split_of
from regard.runs.demo.grammar.draw import Draw
from regard.runs.demo.grammar.lexicon import noun
from regard.runs.demo.images import GLYPHS, LARGEST

NOUNS = {
    "animal": "animal dog cat horse mouse cow duck pig fox wolf".split(),
    "jumper": "animal dog cat horse mouse fox wolf".split(),
    "road": "street path bridge track".split(),
    "stream": "river brook".split(),
    "meadow": "meadow field".split(),
    "hurdle": "wall fence gate hedge".split(),
}
REASONS = set("tired weak sick hungry young wide deep high busy icy muddy".split())
VALID, TEST = 100, 200
IMAGES, SIDE = {"train": 3_000, "valid": 100, "test": 300}, 8


@cache
def language() -> dict[str, Pair]:
    """Every English sentence of the little language, in an order drawn by seed."""
    draw, found = Draw(Random(1)), []
    for verb in ("cross", "jump"):
        for frame in frames_of(verb):
            reasons = [word for word in f"{frame.of_subject} {frame.of_object}".split() if word in REASONS]
            choices = product(NOUNS[frame.subjects], NOUNS[frame.objects], reasons, dict.fromkeys(frame.tenses))
            for subject, thing, reason, tense in choices:
                draw.noun_links = []
                draft = sentence_of(draw, verb, noun(subject), noun(thing), reason, tense=tense)
                found.append(finish(draft, f"pronoun-{verb}"))
    Random(1).shuffle(found)
    return {pair.source: pair for pair in found}


@cache
def pairs(split: Split) -> list[Pair]:
    """Those of one split, no more than are needed."""
    most = {"train": None, "valid": VALID, "test": TEST}[split]
    found = language().values()
    return [pair for pair in found if split_of(pair.combinations) == split][:most]


def antecedent(pair: Pair) -> str:
    """What *it* refers to: ``subject`` or ``object``."""
    assert pair.pronoun is not None
    return "subject" if pair.pronoun.antecedent_words < pair.pronoun.rival_words else "object"


def spans(pair: Pair) -> list[tuple[int, int, str]]:
    """The characters of each noun phrase, and what it is: ``animal``, ``place``, ``thing`` or ``plant``."""
    places, words = word_spans(pair.source), words_of(pair.source)
    return [(places[word - 1][0], places[word][1], noun(words[word]).group) for word in pair.nouns]


def hidden(pair: Pair) -> str:
    """The sentence with a gap for its object."""
    begin, end = word_spans(pair.source)[pair.nouns[-1]]
    return f"{pair.source[:begin]}[MASK]{pair.source[end:]}"


def hidden_twice(pair: Pair) -> str:
    """The sentence with a gap for its object's noun phrase, and one for its end: the adjective and the full stop."""
    (begin, end, _), (last, _) = spans(pair)[-1], word_spans(pair.source)[-1]
    return f"{pair.source[:begin]}<extra_0>{pair.source[end:last]}<extra_1>"


@cache
def digits(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Images of 8 × 8 pixels and the digit in each, somewhere, more or less bright, in noise."""
    draw = np.random.default_rng(SPLITS.index(split))
    labels = draw.integers(len(GLYPHS), size=IMAGES[split])
    images = draw.normal(0.0, 0.08, (len(labels), SIDE, SIDE))
    for image, digit in zip(images, labels, strict=True):
        ink = GLYPHS[digit] * draw.uniform(0.55, 1.0)
        top, left = (draw.integers(SIDE - size, endpoint=True) for size in ink.shape)
        image[top : top + len(ink), left : left + len(ink[0])] += ink
    return np.clip(np.rint(images * LARGEST), 0, LARGEST).astype(np.uint8), labels
