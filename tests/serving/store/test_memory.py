from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpora.corpus import TextPair
from regard.documents.memories.memory import TranslationMemory
from regard.serving.core import NO_KEY, Key, ServiceError
from regard.serving.store import Store, memory

if TYPE_CHECKING:
    from regard.documents.translate import Memory


def test_texts_are_remembered_by_direction_and_owner(store: Store) -> None:
    store.keys.make("anna")
    mine = store.memory(NO_KEY, "en-GB", "DE")
    mine.add([("A  man\nsleeps.", " Ein Mann schläft. "), ("A dog.", "Ein Hund.")])
    mine.add([("A dog.", "Der Hund.")])
    fits: Memory = store.memory(NO_KEY, "en", "de-AT")
    assert fits.exact(" A man sleeps. ") == "Ein Mann schläft."
    assert fits.exact("A dog.") == "Der Hund."
    assert fits.exact("a dog.") is None
    assert mine.count() == 2
    others = store.memory(NO_KEY, "de", "en"), store.memory(Key(1), "en", "de")
    for other in others:
        assert (other.exact("A dog."), other.count()) == (None, 0)
        other.add([("A dog.", "x")])
    mine.delete()
    assert (mine.count(), mine.exact("A dog.")) == (0, None)
    assert [other.exact("A dog.") for other in others] == ["x", "x"]


def test_there_is_a_limit(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(memory, "MOST", 2)
    mine = store.memory(NO_KEY, "en", "de")
    mine.add([("a", "b"), ("c", "d")])
    with pytest.raises(ServiceError, match="has 2 texts, the most") as raised:
        mine.add([("e", "f")])
    assert raised.value.status == 507
    mine.add([("a", "z")])
    assert (mine.count(), mine.exact("a"), mine.exact("e")) == (2, "z", None)


TEXTS = st.text(st.sampled_from("aÄé\u0301 \n\t\u00a0\0'%"), max_size=6)


@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), max_size=6), asked=TEXTS)
def test_texts_are_the_same_as_those_of_a_file(pairs: list[tuple[str, str]], asked: str) -> None:
    whole = TranslationMemory(TextPair(*pair) for pair in pairs)
    store = Store.open(None)
    mine = store.memory(NO_KEY, "en", "de")
    mine.add(pairs)
    assert mine.count() == len(whole)
    assert [mine.exact(text) for text in (asked, *dict(pairs))] == [whole.exact(t) for t in (asked, *dict(pairs))]
    store.close()


def test_half_a_character_is_no_fault(store: Store) -> None:
    mine = store.memory(NO_KEY, "en", "de")
    assert mine.exact("\ud800") is None
    mine.add([("a\ud800", "b\ud800")])
    assert mine.exact("a\ud800") == "b?"
