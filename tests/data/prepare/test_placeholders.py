"""Placeholders in prepared pairs: in the share that was asked for, balanced, around words that belong together."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.corpora.corpus import TextPair
from regard.data.prepare.folder import DataMismatch, PreparedPairs
from regard.data.prepare.placeholders import PairPlaceholders
from regard.system.errors import RegardError
from regard.text.placeholders import SIGNS, plain
from tests.data.prepare.preparing import prepare_pairs, written
from tests.refusals import refused

WORDS = {"dog": "Hund", "cat": "Katze", "house": "Haus", "green": "grün", "old": "alt", "tree": "Baum", "sea": "Meer"}
VALUES = {"data": {"validation": 20, "max_tokens": 64}, "model": {"d_model": 8, "d_ff": 16, "heads": 2}}


@pytest.fixture(scope="module")
def pairs() -> list[TextPair]:
    """Translated word by word, the last word first."""
    draw = np.random.default_rng(1)
    found = list[TextPair]()
    for number in range(600):
        words = [*draw.permutation(list(WORDS))[: draw.integers(3, 7)].tolist(), str(number)]
        found.append(TextPair(" ".join(words), " ".join(WORDS.get(one, one) for one in [words[-1], *words[:-1]])))
    return found


def prepared(pairs: Sequence[TextPair], folder: Path, share: float = 0.0) -> PreparedPairs:
    text = {"vocabulary": 400, "sample": 1_000_000} | ({"tags": share} if share else {})
    corpus = written(folder, "a", *zip(*pairs, strict=True))
    return prepare_pairs([corpus], recipe_from({**VALUES, "text": text}), folder / f"data{share}")


def texts(found: PreparedPairs) -> list[tuple[str, str]]:
    sides = (found.source, found.vocabularies.source), (found.target, found.vocabularies.target)
    every = [[one.decode(side.gather(0, np.array([n]))[0].tolist()) for n in range(found.pairs)] for side, one in sides]
    return list(zip(*every, strict=True))


def signs(text: str) -> dict[str, set[str]]:
    """The words of each sign, as they are in German."""
    found = dict[str, set[str]]()
    for word in text.split():
        for sign in set(word) & set(SIGNS):
            found.setdefault(sign, set()).add(WORDS.get(plain(word), plain(word)))
    return found


def test_a_share_has_them_around_words_that_belong_together(pairs: list[TextPair]) -> None:
    found = PairPlaceholders(0.5, 1, pairs)(pairs)
    changed = [(one, was) for one, was in zip(found, pairs, strict=True) if one != was]
    assert len(changed) == pytest.approx(300, abs=40)
    assert [tuple(map(plain, one)) for one in found] == pairs
    for one, _ in changed:
        assert signs(one.source) == signs(one.target)
    assert any(len(signs(one.source)) > 1 for one, _ in changed)


def test_they_are_a_pure_function_of_seed_and_pair(pairs: list[TextPair]) -> None:
    put = PairPlaceholders(0.3, 1, pairs)
    assert put(pairs)[100:200] == put(pairs[100:200])
    assert PairPlaceholders(0.3, 2, pairs)(pairs) != put(pairs)
    assert PairPlaceholders(0.0, 1, pairs)(pairs) == pairs


def test_prepared_pairs_have_them_as_pieces_and_are_else_as_before(pairs: list[TextPair], tmp_path: Path) -> None:
    found = prepared(pairs, tmp_path, 0.2)
    source = found.vocabularies.source
    assert [len(source.encode(sign).ids) for sign in SIGNS] == [1] * len(SIGNS)
    marked = [one for one in texts(found) if any(map(signs, one))]
    assert len(marked) == pytest.approx(0.2 * found.pairs, abs=35)
    before = prepared(pairs, tmp_path)
    assert [tuple(map(plain, one)) for one in texts(found)] == texts(before)
    assert found.validation_pairs() == before.validation_pairs()
    held = found.vocabularies.source.decode(found.validation_source.gather(0, np.arange(20))[0].tolist())
    assert plain(held) == held
    assert "text.tags" not in before.index["inputs"]
    found.folder.rename(tmp_path / "data0.3")
    with refused(DataMismatch, "data0.3", "text.tags"):
        prepared(pairs, tmp_path, 0.3)


def test_a_share_is_for_translators() -> None:
    with pytest.raises(RegardError, match=r"text\.tags is not for"):
        recipe_from({"task": "classification", "text": {"tags": 0.1}})
