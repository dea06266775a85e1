import pytest

from regard.serving.core import Key, ServiceError
from regard.serving.store import Store, glossaries
from regard.serving.store.glossaries import Dictionary
from regard.system.errors import RegardError

ANNA, BOB = Key(1, "anna"), Key(2, "bob")
EN_DE = ("en", "de")


@pytest.fixture(autouse=True)
def _keys(store: Store) -> None:
    store.keys.make("anna")
    store.keys.make("bob")


def refuses(status: int, said: str):
    def check(error: BaseException) -> bool:
        return isinstance(error, ServiceError) and error.status == status

    return pytest.raises(ServiceError, match=said, check=check)


def test_a_glossary_is_made_found_and_deleted_by_its_owner_alone(store: Store) -> None:
    pairs = {EN_DE: {"hot dog": "Hotdog", "# sign": "Raute"}, ("DE", "EN-US"): {"Hund": "dog"}}
    made = store.glossaries.create(ANNA, "menu", pairs)
    other = store.glossaries.create(ANNA, "menu", {EN_DE: {"a": "b"}})
    assert made.name == other.name == "menu"
    assert len(made.id) == 36
    assert made.dictionaries == (Dictionary("de", "en", 1), Dictionary("en", "de", 2))
    assert store.glossaries.get(ANNA, made.id) == made
    assert store.glossaries.all(ANNA) == (made, other)
    assert store.glossaries.entries(ANNA, made.id, "EN", "de-AT") == {"hot dog": "Hotdog", "# sign": "Raute"}
    assert store.glossaries.all(BOB) == store.glossaries.all(Key()) == ()
    for owner, id in ((BOB, made.id), (Key(), made.id), (ANNA, "none"), (ANNA, "\ud800"), (ANNA, "\0")):
        with refuses(404, "no such glossary"):
            store.glossaries.get(owner, id)
        with refuses(404, "no such glossary"):
            store.glossaries.delete(owner, id)
        with refuses(404, "no such glossary"):
            store.glossaries.merge(owner, id, {EN_DE: {"a": "b"}})
        with refuses(404, "no such glossary"):
            store.glossaries.replace(owner, id, *EN_DE, {"a": "b"})
    store.glossaries.delete(ANNA, made.id)
    assert store.glossaries.all(ANNA) == (other,)
    store.keys.revoke("anna")
    with store.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM dictionaries").fetchone() == (0,)


def test_dictionaries_are_merged_replaced_and_deleted(store: Store) -> None:
    id = store.glossaries.create(ANNA, "menu", {EN_DE: {"a": "1", "b": "2"}}).id
    found = store.glossaries.merge(ANNA, id, {EN_DE: {"b": "3", "c": "4"}, ("en", "fr"): {"a": "5"}})
    assert found.name == "menu"
    assert found.dictionaries == (Dictionary("en", "de", 3), Dictionary("en", "fr", 1))
    assert store.glossaries.entries(ANNA, id, *EN_DE) == {"a": "1", "b": "3", "c": "4"}
    assert store.glossaries.merge(ANNA, id, {}, "card").name == "card"
    assert store.glossaries.replace(ANNA, id, "EN", "DE", {"z": "9"}) == Dictionary("en", "de", 1)
    assert store.glossaries.entries(ANNA, id, *EN_DE) == {"z": "9"}
    store.glossaries.delete_dictionary(ANNA, id, "en", "fr")
    for act in (store.glossaries.delete_dictionary, store.glossaries.entries):
        with refuses(404, "no dictionary from 'en' to 'fr'"):
            act(ANNA, id, "en", "fr")
    assert store.glossaries.get(ANNA, id).dictionaries == (Dictionary("en", "de", 1),)


def test_its_terms_are_those_of_the_search(store: Store) -> None:
    first = store.glossaries.create(ANNA, "a", {EN_DE: {"hot dog": "Hotdog", "# 1": "Nummer eins", "bun": "Brot"}}).id
    last = store.glossaries.create(ANNA, "b", {EN_DE: {"bun": "Brötchen|Semmel", "IBM": "="}}).id
    found = store.glossaries.terminology(ANNA, [first, last], "en-GB", "de")
    wanted = [(term.source, term.forms) for term in found.wanted("A hot dog in a bun by IBM is # 1.", "en")]
    expected = [("hot dog", ("Hotdog",)), ("bun", ("Brötchen", "Semmel")), ("IBM", ("IBM",)), ("# 1", ("Nummer eins",))]
    assert wanted == expected
    store.glossaries.merge(ANNA, last, {EN_DE: {"hot dog": "Würstchen"}})
    found = store.glossaries.terminology(ANNA, [first, last], "en", "de")
    assert [term.forms for term in found.wanted("A hot dog.", "en")] == [("Würstchen",)]
    with refuses(400, "'a' has no terms from de to en"):
        store.glossaries.terminology(ANNA, [first], "de", "en")
    with refuses(404, "no such glossary"):
        store.glossaries.terminology(BOB, [first], "en", "de")


@pytest.mark.parametrize(
    ("name", "dictionaries", "said"),
    [
        (" ", {EN_DE: {"a": "b"}}, "the name of a glossary has 1 to 1,024 characters"),
        ("a" * 1025, {EN_DE: {"a": "b"}}, "the name of a glossary has 1 to 1,024 characters"),
        ("a", {}, "one dictionary at least"),
        ("a", {EN_DE: {}}, "one term at least"),
        ("a", {EN_DE: {"a": "b"}, ("EN", "de"): {"a": "b"}}, "one dictionary of each direction"),
        ("a", {("en", ""): {"a": "b"}}, "'' is no code of a language"),
        ("a", {("en", "\ud800"): {"a": "b"}}, "is no code of a language"),
        ("a", {EN_DE: {"a": "b", "c": " "}}, "entries:2: has an empty source or form"),
        ("a", {EN_DE: {"a\tb": "c"}}, "has a character that is none of a text"),
        ("a", {EN_DE: {"a": "\ud800"}}, "has a character that is none of a text"),
        ("a", {EN_DE: {"a": "b\nc"}}, "has the control character"),
    ],
)
def test_what_is_no_glossary_is_refused(store: Store, name: str, dictionaries: dict, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        store.glossaries.create(ANNA, name, dictionaries)
    assert store.glossaries.all(ANNA) == ()


def test_a_name_may_have_any_character(store: Store) -> None:
    assert store.glossaries.create(ANNA, "a\0\ud800\n", {EN_DE: {"a": "b"}}).name == "a\0?\n"


def test_there_are_limits(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(glossaries, "ENTRIES", 3)
    with refuses(413, "a dictionary has 4 terms; 3 and"):
        store.glossaries.create(ANNA, "a", {EN_DE: dict(zip("abcd", "efgh", strict=True))})
    id = store.glossaries.create(ANNA, "a", {EN_DE: dict(zip("abc", "efg", strict=True))}).id
    with refuses(413, "a dictionary has 4 terms"):
        store.glossaries.merge(ANNA, id, {EN_DE: {"d": "h"}})
    monkeypatch.setattr(glossaries, "CHARACTERS", 10)
    with refuses(413, "and 10 characters are the most"):
        store.glossaries.replace(ANNA, id, *EN_DE, {"a": "b" * 10})
    monkeypatch.setattr(glossaries, "GLOSSARIES", 1)
    with refuses(456, "there are 1 glossaries, the most"):
        store.glossaries.create(ANNA, "a", {EN_DE: {"a": "b"}})
    store.glossaries.create(BOB, "a", {EN_DE: {"a": "b"}})
    monkeypatch.setattr(glossaries, "STORED", 20)
    with refuses(456, "all glossaries have 0 MB at most"):
        store.glossaries.merge(ANNA, id, {("en", "fr"): {"a": "b"}})
    assert store.glossaries.get(ANNA, id).dictionaries == (Dictionary("en", "de", 3),)
