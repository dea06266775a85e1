import pytest

from regard.serving.core import Key
from regard.serving.store import Store
from regard.serving.store import keys as module
from regard.serving.store.keys import KeyUsage
from regard.system.errors import RegardError, UsageError


def test_a_key_is_found_by_its_secret_which_is_nowhere(store: Store) -> None:
    assert not store.keys.needed
    secret = store.keys.make("anna", 500)
    other = store.keys.make("bob")
    assert store.keys.needed
    assert len(secret) == len(other) == 43
    assert store.keys.find(secret) == Key(1, "anna", 500)
    assert store.keys.find(other) == Key(2, "bob")
    for wrong in ("", secret[:-1], f"{secret} ", "\ud800", "\0"):
        assert store.keys.find(wrong) is None
    with store.database.read() as connection:
        assert secret not in "\n".join(connection.iterdump())


def test_keys_are_listed_with_what_they_had(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(module, "today", lambda: "2026-11-29")
    secret = store.keys.make("bob")
    store.keys.make("anna", 500)
    monkeypatch.setattr(module, "today", lambda: "2026-12-01")
    store.keys.find(secret)
    store.usage.add(1, 7)
    store.usage.flush()
    assert store.keys.all() == [
        KeyUsage("anna", "2026-11-29", None, 500, 0),
        KeyUsage("bob", "2026-11-29", "2026-12-01", None, 7),
    ]


def test_a_key_that_is_revoked_is_gone_with_its_number(store: Store) -> None:
    secret = store.keys.make("anna")
    store.usage.add(1, 7)
    store.keys.revoke("anna")
    assert store.keys.find(secret) is None
    assert not store.keys.needed
    assert store.keys.find(store.keys.make("anna")) == Key(2, "anna")
    with pytest.raises(RegardError, match="there is no key 'bob'"):
        store.keys.revoke("bob")
    with pytest.raises(RegardError, match="there is no key ''"):
        store.keys.revoke("")


@pytest.mark.parametrize("name", ["", "a\n", "a" * 101, "\ud800"])
def test_names_are_short_and_can_be_seen(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="a key's name has 1 to 100 characters"):
        store.keys.make(name)


def test_what_cannot_be_made_is_refused(store: Store) -> None:
    store.keys.make("anna")
    with pytest.raises(UsageError, match="there is a key 'anna'"):
        store.keys.make("anna")
    for wrong in (0, -1, 1 << 63):
        with pytest.raises(UsageError, match="one character a month"):
            store.keys.make("bob", wrong)
