"""``regard keys``: made, listed, revoked, in the folder of the server."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from regard.serving.store import Store


def test_a_key_is_made_listed_and_revoked(regard, tmp_path: Path) -> None:
    data = "--data", tmp_path / "data"
    assert "there are no keys; make one" in regard("keys", "list", *data).succeeds().err
    secret = regard("keys", "make", "anna", "--characters", 5000, *data).succeeds().out.strip()
    other = json.loads(regard("keys", "make", "bob", "--json", *data).succeeds().out)
    with closing(Store.open(tmp_path / "data")) as store:
        assert store.keys.find(secret).characters == 5000
        assert store.keys.find(other["secret"]).name == other["name"] == "bob"
        store.usage.add(1, 1200)
    anna, bob = regard("keys", "list", *data).succeeds().out.splitlines()
    assert anna.startswith("anna\t1,200 characters of 5,000 this month\tmade 20")
    assert "last used 20" in anna
    assert bob.startswith("bob\t0 characters this month\tmade 20")
    listed = json.loads(regard("keys", "list", "--json", *data).out)["keys"]
    assert [(key["name"], key["characters"], key["month"]) for key in listed] == [
        ("anna", 5000, 1200),
        ("bob", None, 0),
    ]
    assert regard("keys", "revoke", "anna", *data).succeeds().err == "regard: revoked anna\n"
    assert json.loads(regard("keys", "revoke", "bob", "--json", *data).succeeds().out) == {"revoked": "bob"}
    assert json.loads(regard("keys", "list", "--json", *data).out) == {"keys": []}


def test_the_folder_is_the_servers(regard, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    regard("keys", "make", "anna").succeeds()
    with closing(Store.open(tmp_path / "regard")) as store:
        assert [key.name for key in store.keys.all()] == ["anna"]


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["make"], "regard keys make needs the name of a key", 2),
        (["revoke"], "regard keys revoke needs the name of a key", 2),
        (["list", "anna"], "regard keys list takes no name", 2),
        (["delete", "anna"], "'make', 'list', 'revoke'", 2),
        (["revoke", "anna"], "there is no key 'anna'", 1),
        (["make", "anna", "--characters", "0"], "one character a month", 2),
        (["list", "--characters", "5"], "--characters: is for a key that is made", 2),
    ],
)
def test_what_cannot_be_done_is_one_sentence(regard, tmp_path: Path, words: list[str], said: str, code: int) -> None:
    regard("keys", *words, "--data", tmp_path).refuses(said, code)


def test_a_folder_that_cannot_be_one_is_one_sentence(regard, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    regard("keys", "list", "--data", tmp_path / "file").refuses("cannot be opened", 1)
