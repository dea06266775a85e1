"""The seeded split: no sentence, case and outer space aside, is on both sides."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpora.corpus import TextPair, text_hash
from regard.data.corpora.scan import DataScan
from regard.data.prepare.split import SHARED, TRAIN, VALIDATION, split_each, split_pairs, split_texts
from regard.system.errors import RegardError
from regard.text.lines import InvalidLines
from tests.refusals import refused


@dataclass
class InMemory:
    held: list[tuple[str, str]]
    name: str = "memory"
    notes: tuple[InvalidLines, ...] = ()

    def examples(self) -> Iterator[TextPair]:
        return (TextPair(*pair) for pair in self.held)

    def where(self, number: int, side: int = 0) -> str:
        return f"memory:{number + 1}"


def test_sameness_ignores_case_and_outer_space() -> None:
    assert text_hash(" Straße ") == text_hash("STRASSE")
    assert text_hash("a b") != text_hash("a  b")


def scanned(*corpora: list[tuple[str, str]]) -> DataScan:
    return DataScan.of([InMemory(pairs) for pairs in corpora])


WORDS = st.sampled_from(["a", "A ", "b", "c", "d", "e", "", " ", "f g", "h"])


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40), st.integers(1, 10), st.integers(0, 5))
def test_no_sentence_is_on_both_sides(pairs: list[tuple[str, str]], count: int, seed: int) -> None:
    try:
        parts = split_pairs(scanned(pairs).hashes_B2, count, seed)
    except RegardError as error:
        assert "valid_source" in str(error)  # noqa: PT017
        return
    for side in (0, 1):
        train = {pairs[i][side].strip().casefold() for i in np.flatnonzero(parts == TRAIN)}
        validation = {pairs[i][side].strip().casefold() for i in np.flatnonzero(parts == VALIDATION)}
        assert not train & validation
        assert "" not in validation
    assert 1 <= (parts == VALIDATION).sum() <= max(1, min(count, len(pairs) // 10))


CORPUS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30)


@given(st.lists(CORPUS, min_size=2, max_size=3), st.integers(1, 10), st.integers(0, 5))
def test_of_several_languages_no_sentence_is_on_either_side(
    corpora: list[list[tuple[str, str]]], count: int, seed: int
) -> None:
    sizes, pairs = [*map(len, corpora)], [pair for corpus in corpora for pair in corpus]
    try:
        parts = split_each(scanned(*corpora).hashes_B2, sizes, count, seed)
    except RegardError as error:
        assert "valid_source" in str(error)  # noqa: PT017
        return
    held = {text.strip().casefold() for i in np.flatnonzero(parts == VALIDATION) for text in pairs[i]}
    learned = {text.strip().casefold() for i in np.flatnonzero(parts == TRAIN) for text in pairs[i]}
    assert not held & learned
    assert "" not in held
    for some, size in zip(np.split(parts == VALIDATION, np.cumsum(sizes)[:-1]), sizes, strict=True):
        assert some.sum() <= max(1, min(count // len(sizes), size // 10))


def test_unique_pairs_are_preferred_so_none_is_lost() -> None:
    pairs = [("same", "gleich")] * 50 + [(f"s{i}", f"t{i}") for i in range(50)]
    parts = split_pairs(scanned(pairs).hashes_B2, 10, seed=1)
    assert [(parts == mark).sum() for mark in (VALIDATION, SHARED)] == [10, 0]
    assert (parts[:50] == TRAIN).all()
    other = split_pairs(scanned(pairs).hashes_B2, 10, seed=2)
    assert (other != parts).any()


def test_too_few_are_counted_in_a_sentence() -> None:
    rest = "to split a validation part off; give valid="
    with refused(RegardError, "a.tsv", f"1 pair is too few {rest}"):
        split_texts(np.array([7], np.uint64), 5, 1, "pairs", "a.tsv")
    with refused(RegardError, "a.tsv", f"2 texts are too few, or too alike, {rest}"):
        split_texts(np.array([7, 7], np.uint64), 5, 1, where="a.tsv")


def test_the_fingerprint_is_of_the_content() -> None:
    one, two = [("a", "b")], [("c", "d")]
    assert scanned(one).fingerprint == DataScan.of([InMemory(list(one), name="elsewhere")]).fingerprint
    every = ([one], [two], [one, two], [two, one], [one + two], [[("a", "b "), ("c", "d")]])
    assert len({scanned(*corpora).fingerprint for corpora in every}) == 6


def test_an_empty_corpus_is_refused() -> None:
    with refused(RegardError, "memory", "sentence pairs"):
        scanned([]).refuse_unreadable("sentence pairs")
