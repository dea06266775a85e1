"""The search in a process of its own: what it finds, whom it stops for, and what happens when it is killed."""

import gc
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest

from regard.engine.transformer import FastTransformer
from regard.inspection import SHIPPED
from regard.serving.core import Call, CallEnded, ServiceError, StaleModel
from regard.serving.models import ServedModels
from regard.serving.search.process import SearchProcess
from regard.serving.search.request import CALL
from regard.system.errors import RegardError
from regard.tasks.model_folder import open_without_torch
from regard.tasks.model_path import fingerprint
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology
from regard.tasks.translation.translator import Translation
from regard.text.terms import TermList
from tests.serving.search.test_threads import Caller, texts

FOLDER = SHIPPED[0]
BOOK = texts(3000, seed=7)


@pytest.fixture(scope="module")
def searching() -> Iterator[SearchProcess]:
    found = SearchProcess(2, 1, "fp32")
    yield found
    found.end()


@pytest.fixture
def own(searching: SearchProcess) -> Translation:
    return opened(searching)


def opened(searching: SearchProcess, folder: Path = FOLDER, base: str | None = None) -> Translation:
    """A translator that searches there."""
    task = open_without_torch(folder, "cpu", "fp32")
    searching.open(task, folder, fingerprint(folder), base)
    found = copy(task)
    found.search = searching.of(task)
    found.kept = task  # what is open there goes with the task
    return found


def begun(searching: SearchProcess) -> None:
    until = time.monotonic() + 60
    while not searching.counts().running:
        assert time.monotonic() < until
        time.sleep(0.001)


def ended(searching: SearchProcess) -> None:
    until = time.monotonic() + 5
    while (now := searching.counts()).running or now.waiting:
        assert time.monotonic() < until


def test_what_is_found_is_what_the_model_finds_alone(own, searching, monkeypatch) -> None:
    alone, lines = open_without_torch(FOLDER, "cpu", "fp32"), texts(20, seed=1)
    terms = Terminology(TermList(("dog\tTier", "!\tFrau")))
    asked = [
        {"options": OutputOptions(1)},
        {"options": OutputOptions(3, 4)},
        {"options": OutputOptions(beam=4, terms=terms)},
        {"options": OutputOptions(beam=1, scores=False), "prefixes": ["der Mann"] * len(lines)},
    ]
    wanted = [alone.write(lines, **one) for one in asked]
    for name in ("step", "multi_step", "start"):
        monkeypatch.delattr(FastTransformer, name)  # nothing is searched for in this process
    CALL.set(Call())
    for one, expected in zip(asked, wanted, strict=True):
        assert repr(own.write(lines, **one)) == repr(expected)  # NaN, too
    ended(searching)


def test_who_leaves_is_no_longer_searched_for(own, searching) -> None:
    before, caller = searching.counts().sentences, Caller(own, BOOK, beam=4)
    begun(searching)
    caller.call.leave()
    caller.join(5)
    assert isinstance(caller.error, CallEnded)
    ended(searching)
    assert searching.counts().sentences < before + len(BOOK)


def test_who_has_left_before_is_not_searched_for(own) -> None:
    caller = Call()
    CALL.set(caller)
    caller.leave()
    with pytest.raises(CallEnded):
        own.write(["the man sleeps."], OutputOptions(1))


def test_a_call_ends_at_its_deadline(own, searching) -> None:
    CALL.set(Call(deadline=time.monotonic() + 0.2))
    with pytest.raises(ServiceError) as told:
        own.write(BOOK, OutputOptions(beam=4))
    assert told.value.status == 504


def test_what_runs_when_the_process_is_killed_is_answered(own, searching, caplog) -> None:
    wanted = open_without_torch(FOLDER, "cpu", "fp32").nbest(BOOK[:600], beam=4)
    before = searching.counts().restarts
    callers = [Caller(own, BOOK[begin : begin + 200], beam=4) for begin in (0, 200, 400)]
    begun(searching)
    os.kill(searching._process.pid, signal.SIGKILL)
    for caller in callers:
        caller.join(60)
    assert [found for caller in callers for found in caller.found] == wanted
    assert "has ended" in caplog.text
    assert searching.counts().restarts == before + 1


def test_what_is_killed_twice_is_told(own, searching) -> None:
    caller = Caller(own, BOOK, beam=4)
    for _ in range(2):
        begun(searching)
        first = searching._process
        os.kill(first.pid, signal.SIGKILL)
        while searching._process is first and caller.is_alive():
            time.sleep(0.001)
    caller.join(20)
    assert caller.error.status == 503
    assert caller.error.retry_after
    CALL.set(Call())
    assert own.write(["the man sleeps."], OutputOptions(1))  # it goes on for others


def test_models_of_one_base_are_searched_with(searching) -> None:
    both, wanted = [opened(searching, base="one") for _ in range(2)], open_without_torch(FOLDER, "cpu", "fp32")
    CALL.set(Call())
    assert [one.nbest(BOOK[:9], beam=2) for one in both] == [wanted.nbest(BOOK[:9], beam=2)] * 2


def test_a_folder_that_has_changed_is_not_searched_with(searching, tmp_path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    task = open_without_torch(folder, "cpu", "fp32")
    with pytest.raises(RegardError, match="has changed"):
        searching.open(task, folder, "other", None)
    shutil.rmtree(folder)
    with pytest.raises(RegardError, match="model"):
        searching.open(task, folder, "other", None)


def test_a_process_that_does_not_answer_holds_nobody_up(monkeypatch) -> None:
    monkeypatch.setattr("regard.serving.search.process.LATE", 0.1)
    searching = SearchProcess(1, 1, "fp32")
    own = opened(searching)
    CALL.set(Call())
    own.write(["the man sleeps."], OutputOptions(1))
    while not (before := searching.counts()).sentences:
        time.sleep(0.001)
    os.kill(searching._process.pid, signal.SIGSTOP)
    callers = [Caller(own, BOOK, beam=1) for _ in range(9)]  # more than the socket takes
    CALL.set(Call(deadline=time.monotonic()))
    with pytest.raises(ServiceError, match="time limit"):
        own.write(["the man sleeps."], OutputOptions(1))
    assert searching.counts() == before
    while len(searching._asked) < len(callers):
        time.sleep(0.001)
    for caller in callers[1:]:
        caller.call.leave()
        caller.join(5)
        assert isinstance(caller.error, CallEnded)
    searching.end()
    callers[0].join(5)
    assert callers[0].error.status == 503


def test_a_process_that_hangs_is_killed_and_started_again(monkeypatch, caplog) -> None:
    monkeypatch.setattr("regard.serving.search.process.HANG", 0.05)
    searching = SearchProcess(1, 1, "fp32")
    own = opened(searching)
    searching.tidy()
    searching._alive.result(20)
    searching.tidy()
    searching._alive.result(20)
    first = searching._process
    os.kill(first.pid, signal.SIGSTOP)
    caller = Caller(own, ["the man sleeps."], beam=1)
    opening = threading.Thread(target=opened, args=(searching,))
    opening.start()
    while first.poll() is None:
        searching.tidy()
        time.sleep(0.001)
    opening.join(20)
    caller.join(20)
    assert caller.found == open_without_torch(FOLDER, "cpu", "fp32").nbest(["the man sleeps."], beam=1)
    assert not opening.is_alive()
    assert "does not answer" in caplog.text
    assert searching.counts().restarts == 1
    searching.end()


def test_a_model_that_cannot_be_opened_again_is_tried_later(searching, tmp_path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    own = opened(searching, folder)
    folder.rename(tmp_path / "away")
    first = searching._process
    first.kill()
    caller = Caller(own, ["the man sleeps."], beam=1)
    caller.join(20)
    assert (caller.error.status, caller.error.retry_after) == (503, 2)
    (tmp_path / "away").rename(folder)
    caller = Caller(own, ["the man sleeps."], beam=1)
    caller.join(20)
    assert caller.found == open_without_torch(FOLDER, "cpu", "fp32").nbest(["the man sleeps."], beam=1)


def test_a_process_that_cannot_be_started_is_started_later(own, searching, monkeypatch) -> None:
    tries = list[object]()

    def start() -> None:
        tries.append(None)
        if len(tries) == 1:
            raise OSError("no memory")
        SearchProcess._start(searching)

    monkeypatch.setattr(searching, "_start", start)
    searching._process.kill()
    CALL.set(Call())
    assert own.write(["the man sleeps."], OutputOptions(1))
    assert len(tries) == 2


def test_a_model_goes_when_nobody_has_it(own, searching) -> None:
    find = own.search
    del own.kept
    gc.collect()
    searching.tidy()
    own.search = find
    CALL.set(Call())
    with pytest.raises(ServiceError, match="left memory"):
        own.write(["the man sleeps."], OutputOptions(1))


def test_the_end_tells_who_waits_and_ends_the_process() -> None:
    searching = SearchProcess(1, 1, "fp32")
    caller = Caller(opened(searching), BOOK, beam=4)
    begun(searching)
    searching.end()
    caller.join(20)
    assert caller.error.status == 503
    assert searching._process.returncode is not None


def test_the_server_opens_an_engine_when_one_is_needed(searching, tmp_path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    models = ServedModels([f"en:de={folder}"], "fp32", searching=searching)
    CALL.set(Call())
    with models.use(models.all[0]) as task:
        engine, own = task.engine(), copy(task)
        own.search = searching.of(task)
        [[best]] = own.write(["the man sleeps."], OutputOptions(1))
        assert vars(engine)["_engine"] is None
        shutil.copytree(SHIPPED[1], folder, dirs_exist_ok=True)
        with pytest.raises(StaleModel):
            task.score(["the man sleeps."], [best.text])
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
        alone = open_without_torch(FOLDER, "cpu", "fp32")
        assert task.score(["the man sleeps."], [best.text]) == alone.score(["the man sleeps."], [best.text])
