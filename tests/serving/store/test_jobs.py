"""What is stored of documents: who sees them, who works on them, what is written of them and deleted."""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from regard.serving.core import NO_KEY, DocumentRequest, Job, JobName, Key, ServiceError
from regard.serving.store import Store, jobs
from regard.serving.store.jobs import Lease, LeaseLost
from regard.system.errors import UsageError
from regard.tasks.text.terms import Terminology
from regard.text.terms import TermList

REQUEST = DocumentRequest("letter.md", b"A dog.\n\nA cat.\n", "de", "en")
TERMS = Terminology(TermList(("dog\tHund",)), True, ("Katze",))
SECONDS = 60.0


def take(store: Store, seconds: float = SECONDS) -> Lease:
    found = store.jobs.take(seconds)
    assert found is not None
    return found


def owned(store: Store, name: str = "anna", characters: int | None = None) -> Key:
    """A new key."""
    key = store.keys.find(store.keys.make(name, characters))
    assert key is not None
    return key


def stored(store: Store) -> list[tuple[int, ...]]:
    """Rows of each table that documents are in, and their bytes."""
    query = (
        "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM files), (SELECT count(*) FROM answers), sum(size)"
    )
    with store.database.read() as connection:
        return connection.execute(f"{query} FROM jobs").fetchall()


def test_a_document_goes_its_way(store: Store) -> None:
    key = owned(store)
    name = store.jobs.put(replace(REQUEST, terms=TERMS), key)
    assert store.jobs.find(name) == Job("queued", "letter.de.md")
    lease = take(store)
    assert (lease.request, lease.key) == (replace(REQUEST, terms=TERMS, kind="markdown"), key)
    assert (lease.done, lease.segments) == (0, 0)
    assert store.jobs.take(SECONDS) is None
    store.jobs.begin(lease, 3, 18, "en")
    assert store.jobs.find(name) == Job("translating", "letter.de.md", 0, 3, 18)
    store.jobs.add(lease, 0, ["a", "b"], 5.0)
    assert store.jobs.find(name) == Job("translating", "letter.de.md", 2, 3, 18, 3)
    with pytest.raises(ServiceError, match="not translated yet") as raised:
        store.jobs.result(name)
    assert (raised.value.status, raised.value.retry_after) == (503, 3)
    store.jobs.release(lease)
    lease = take(store)
    assert (lease.done, lease.segments, lease.request.source) == (2, 3, "en")
    store.jobs.add(lease, 2, ["c"], 2.5)
    assert store.jobs.answers(lease) == ["a", "b", "c"]
    store.jobs.finish(lease, b"Ein Hund.", ["3 segments"])
    assert store.jobs.find(name) == Job("done", "letter.de.md", 3, 3, 18, 0, None, ("3 segments",))
    assert store.jobs.result(name) == b"Ein Hund."
    assert store.usage.of(1) == 18
    assert stored(store) == [(1, 1, 0, 9)]
    assert store.jobs.take(0) is None


def test_who_has_not_the_secret_sees_nothing(store: Store) -> None:
    name = store.jobs.put(REQUEST, NO_KEY)
    other = store.jobs.put(REQUEST, NO_KEY)
    with store.database.read() as connection:
        assert name.secret not in "\n".join(connection.iterdump())
    for wrong in (JobName(name.id, other.secret), JobName(name.id, ""), JobName("\ud800", "\ud800"), JobName("", "")):
        for act in (store.jobs.find, store.jobs.result, store.jobs.delete):
            with pytest.raises(ServiceError, match="there is no such document") as raised:
                act(wrong)
            assert raised.value.status == 404
    store.jobs.delete(name)
    with pytest.raises(ServiceError, match="there is no such document"):
        store.jobs.find(name)
    assert store.jobs.find(other).status == "queued"


def test_owners_take_turns(store: Store) -> None:
    """A key's many documents, and its long one, let those of others through; its own take turns too."""
    anna, bob = owned(store), owned(store, "bob")
    for number in range(3):
        store.jobs.put(replace(REQUEST, name=f"anna {number}.md"), anna)
    store.jobs.put(replace(REQUEST, name="bob.md"), bob)
    book = take(store)
    assert book.request.name == "anna 0.md"
    assert take(store).request.name == "bob.md"
    store.jobs.put(replace(REQUEST, name="bob again.md"), bob)
    store.jobs.release(book)
    names = [lease.request.name for lease in iter(lambda: store.jobs.take(SECONDS), None)]
    assert names == ["anna 1.md", "bob again.md", "anna 2.md", "anna 0.md"]


def test_a_lease_that_is_not_renewed_is_lost(store: Store) -> None:
    name = store.jobs.put(REQUEST, NO_KEY)
    first = take(store)
    store.jobs.begin(first, 2, 12, "en")
    store.jobs.add(first, 0, ["a"], 1.0)
    set_back(store, 100.0)
    store.jobs.renew([first])
    assert store.jobs.take(SECONDS) is None
    set_back(store, 100.0)
    second = take(store)
    assert (second.done, second.segments) == (1, 2)
    late = [
        lambda: store.jobs.begin(first, 2, 12, "en"),
        lambda: store.jobs.add(first, 1, ["b"], 1.0),
        lambda: store.jobs.finish(first, b"x", []),
        lambda: store.jobs.fail(first, "x"),
    ]
    for act in late:
        with pytest.raises(LeaseLost):
            act()
    store.jobs.release(first)
    store.jobs.renew([first])
    assert store.jobs.take(SECONDS) is None
    store.jobs.add(second, 1, ["b"], 1.0)
    assert store.jobs.answers(second) == ["a", "b"]
    store.jobs.delete(name)
    with pytest.raises(LeaseLost):
        store.jobs.finish(second, b"x", [])
    assert (stored(store), store.usage.of(0)) == ([(0, 0, 0, None)], 0)


def set_back(store: Store, seconds: float) -> None:
    """Let time have passed since the last sign of each runner."""
    with store.database.write() as connection:
        connection.execute("UPDATE jobs SET beat = beat - ?", (seconds,))


def test_a_clock_that_was_set_back_holds_no_document(store: Store) -> None:
    store.jobs.put(REQUEST, NO_KEY)
    take(store)
    set_back(store, -3600.0)
    assert take(store)


def test_a_document_that_ends_every_server_is_given_up(store: Store) -> None:
    name = store.jobs.put(REQUEST, NO_KEY)
    leases = [take(store, 0.0) for _ in range(3)]
    store.jobs.begin(leases[-1], 2, 12, "en")
    store.jobs.add(leases[-1], 0, ["a"], 1.0)
    for _ in range(3):
        take(store, 0.0)
    other = store.jobs.put(REQUEST, NO_KEY)
    assert take(store, 0.0).request.name == "letter.md"
    found = store.jobs.find(name)
    assert (found.status, found.error) == ("error", "the server failed again and again at this document")
    assert store.jobs.find(other).status == "translating"
    with pytest.raises(ServiceError, match="again and again") as raised:
        store.jobs.result(name)
    assert raised.value.status == 409


def test_a_reading_that_finds_other_segments_begins_anew(store: Store) -> None:
    store.jobs.put(REQUEST, NO_KEY)
    lease = take(store)
    store.jobs.begin(lease, 2, 12, "en")
    store.jobs.add(lease, 0, ["a"], 1.0)
    store.jobs.begin(lease, 3, 13, "en")
    assert store.jobs.answers(lease) == []
    store.jobs.add(lease, 0, ["a", "b", "c"], 1.0)


def test_a_document_is_done_and_counted_at_once_or_not_at_all(store: Store, monkeypatch) -> None:
    name = store.jobs.put(REQUEST, NO_KEY)
    lease = take(store)
    store.jobs.begin(lease, 1, 12, "en")
    store.jobs.add(lease, 0, ["a"], 1.0)
    before = stored(store)
    for what in ("count", "_end"):
        with monkeypatch.context() as patch:
            patch.setattr(jobs, what, lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                store.jobs.finish(lease, b"x", [])
        assert (stored(store), store.usage.of(0)) == (before, 0)
        assert store.jobs.find(name).status == "translating"
    store.jobs.finish(lease, b"x", [])
    assert store.usage.of(0) == 12


def test_what_is_in_work_is_its_keys_until_it_ends(store: Store) -> None:
    """A document keeps the characters that it will count; who cannot be translated gives them back."""
    key = owned(store, characters=20)
    for end in (lambda lease: store.jobs.fail(lease, "no"), lambda lease: store.jobs.finish(lease, b"x", [])):
        store.jobs.put(REQUEST, key)
        store.jobs.begin(take(store), 2, 12, "en")
        set_back(store, 100.0)
        lease = take(store)  # of the next process, after the end of that one
        assert lease.characters == 12
        said = "9 characters asked for, and 8 characters of this month left"
        with pytest.raises(ServiceError, match=said), store.usage.reserve(key, 9):
            pass
        with store.usage.reserve(key, 8):
            pass
        assert store.usage.of(key.id) == 0
        end(lease)
    assert store.usage.of(key.id) == 12
    with store.usage.reserve(key, 8) as count:
        count(8)
    assert store.usage.of(key.id) == 20


def test_what_ended_a_day_ago_is_deleted(store: Store) -> None:
    names = [store.jobs.put(REQUEST, NO_KEY) for _ in range(3)]
    store.jobs.finish(take(store), b"x", [])
    store.jobs.fail(take(store), "half a \ud800")
    assert store.jobs.find(names[1]).error == "half a ?"
    store.jobs.expire(time.time() + 86_000)
    assert [store.jobs.find(name).status for name in names] == ["done", "error", "queued"]
    assert stored(store) == [(3, 2, 0, 1 + len(REQUEST.content))]
    store.jobs.expire(time.time() + 87_000)
    assert stored(store) == [(1, 1, 0, len(REQUEST.content))]


def test_what_is_deleted_is_nowhere_in_the_files(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        owner = owned(store)
        names = [store.jobs.put(replace(REQUEST, content=b"private one" * 5000), owner) for _ in range(3)]
        lease = take(store)
        store.jobs.begin(lease, 2, 12, "en")
        store.jobs.add(lease, 0, ["private two"] * 2, 1.0)
        store.jobs.finish(lease, b"private three" * 5000, ["private four"])
        store.memory(owner, "en", "de").add([("private five", "private six")])
        assert b"private six" in files(tmp_path)
        store.jobs.expire(time.time() + 87_000)
        store.jobs.delete(names[1])
        assert b"private t" not in files(tmp_path)
        assert b"private one" in files(tmp_path)
        store.keys.revoke(owner.name)
        assert b"private" not in files(tmp_path)


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_a_key_that_is_revoked_takes_its_documents_along(store: Store) -> None:
    store.jobs.put(REQUEST, owned(store))
    lease = take(store)
    store.jobs.begin(lease, 1, 1, "en")
    store.keys.revoke(lease.key.name)
    with pytest.raises(LeaseLost):
        store.jobs.add(lease, 0, ["a"], 1.0)
    assert stored(store) == [(0, 0, 0, None)]


def test_there_are_limits(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "LARGEST", 20)
    with pytest.raises(ServiceError, match="the document has 21 bytes; 20 are the most") as raised:
        store.jobs.put(replace(REQUEST, content=b"x" * 21), NO_KEY)
    assert raised.value.status == 413
    monkeypatch.setattr(jobs, "QUEUED", 1)
    store.jobs.put(REQUEST, NO_KEY)
    with pytest.raises(ServiceError, match="1 document of this key wait") as raised:
        store.jobs.put(REQUEST, NO_KEY)
    assert (raised.value.status, raised.value.retry_after) == (429, 60)
    store.jobs.put(REQUEST, owned(store))
    monkeypatch.setattr(jobs, "STORED", 40)
    with pytest.raises(ServiceError, match="there is no room for further documents") as raised:
        store.jobs.put(REQUEST, owned(store, "bob"))
    assert (raised.value.status, raised.value.retry_after) == (429, 600)
    store.jobs.finish(take(store), b"", [])
    store.jobs.put(REQUEST, NO_KEY)


def test_no_key_has_more_than_half_of_the_room(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "STORED", 4 * len(REQUEST.content))

    def fill(key: Key, room: int, said: str) -> list[JobName]:
        names = [store.jobs.put(REQUEST, key) for _ in range(room)]
        with pytest.raises(ServiceError, match=said) as raised:
            store.jobs.put(REQUEST, key)
        assert (raised.value.status, raised.value.retry_after) == (429, 600)
        return names

    for name in fill(NO_KEY, 4, "there is no room"):
        store.jobs.delete(name)
    own = "the documents of one key have 0 MiB at most, half of the room there is; delete some"
    names = fill(owned(store), 2, own)
    fill(owned(store, "bob"), 2, own)
    fill(NO_KEY, 0, "there is no room")
    for name in names:
        store.jobs.delete(name)
    fill(NO_KEY, 2, own)


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("a/b\\letter.md", "letter.de.md"),
        ("../../letter.md", "letter.de.md"),
        ("let\nter\ud800.md", "letter?.de.md"),
        (f"{'a' * 300}.md", f"{'a' * 160}.de.md"),
        ("", "document.de"),
        ("letter", "letter.de"),
    ],
)
def test_names_of_files_are_names_of_files(store: Store, name: str, offered: str) -> None:
    found = store.jobs.find(store.jobs.put(replace(REQUEST, name=name, kind="markdown"), NO_KEY)).name
    assert found == offered
    assert PurePath(found).name == found


def test_what_is_no_document_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match=r"'letter\.xyz' is no kind of document; there are text, markdown"):
        store.jobs.put(replace(REQUEST, name="letter.xyz"), NO_KEY)
    with pytest.raises(UsageError, match="'xyz' is no kind of document"):
        store.jobs.put(replace(REQUEST, kind="xyz"), NO_KEY)
    name = store.jobs.put(replace(REQUEST, target="a/../b\ud800"), NO_KEY)
    assert store.jobs.find(name).name == "b?.md"
