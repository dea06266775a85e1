"""Assignment of sentences to splits by a hash of (verb, subject, object) and (noun, noun, adjective).

Every combination is put into train, valid or test by its hash, whatever the seed. A training sentence has training
combinations only; a test sentence has at least one that is held out for testing, and none held out for validation.
So no test combination is ever seen in training, while every word is. A sentence without such a combination is placed
by the hash of its English text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from regard.data.demo.grammar.pair import Pair
from regard.system.keys import key

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")

HELD_OUT_PERCENT = 5
"""Share of the combinations held out for testing, and as much again for validation."""


@lru_cache(maxsize=1 << 20)
def split_of_combination(combination: tuple[str, ...]) -> Split:
    """The split that owns a combination."""
    percent = key(0, "grammar split " + "|".join(combination)) % 100
    if percent < HELD_OUT_PERCENT:
        return "test"
    return "valid" if percent < 2 * HELD_OUT_PERCENT else "train"


def split_of_combinations(combinations: list[tuple[str, str, str]], source: str) -> Split | None:
    """The split of a sentence with these combinations; None where validation and test both claim it."""
    owners = {split_of_combination(combination) for combination in combinations}
    if not combinations:
        owners = {split_of_combination((source,))}
    owners.discard("train")
    if not owners:
        return "train"
    return owners.pop() if len(owners) == 1 else None


def split_of(pair: Pair) -> Split | None:
    """The split of a pair."""
    return split_of_combinations([*pair.verb_subject_object, *pair.noun_noun_adjective], pair.source)
