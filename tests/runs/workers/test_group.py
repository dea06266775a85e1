"""Processes that are started beside a run: what is refused, what is said when one ends, and that nothing stays."""

import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from threading import Thread, Timer

import pytest
import torch
from torch._C._distributed_c10d import TCPStore
from torch.distributed import DistNetworkError, HashStore

import regard
from regard.runs import run
from regard.runs.run import WORKER, Machine
from regard.runs.workers import group, processes
from regard.runs.workers.group import Heartbeat, TorchrunProcess, torchrun_process
from regard.runs.workers.worker import follow_torchrun
from regard.system.errors import RegardError, UsageError
from regard.training.world import LostTorchrunProcess
from tests.refusals import refused
from tests.runs.workers.started import await_checkpoints, begin, children, free_port, gone
from tests.training.toy import in_child

CPU = torch.device("cpu")
COMMAND = """
train --task language-model --train text.txt --output model --steps 4000 --device cpu --set training.shards=2
--set training.tokens=128 --set data.max_tokens=32 --set model.layers=1 --set model.d_model=16 --set model.heads=2
--set model.d_ff=16 --set text.units=characters --set training.product=exact --set training.validate_every=50
""".split()


@pytest.fixture
def start(tmp_path):
    """Begins a training with its messages at hand."""
    (tmp_path / "text.txt").write_text("one two three four five\n" * 200)
    return lambda *options, **variables: begin([*COMMAND, *options], tmp_path, OMP_NUM_THREADS="1", **variables)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs a processor's system with /proc")
@pytest.mark.long(minutes=0.18)
@pytest.mark.parametrize(
    ("number", "first", "code", "said"),
    [
        (signal.SIGKILL, False, 1, "process 1 was ended by SIGKILL; what was saved is whole: rerun the same"),
        (signal.SIGTERM, False, 75, "all is saved; rerun the same command to resume"),
        (signal.SIGTERM, True, 75, "all is saved; rerun the same command to resume"),
        (signal.SIGKILL, True, -9, ""),
    ],
    ids=["worker-killed", "worker-stopped", "first-stopped", "first-killed"],
)
def test_whichever_process_ends_nothing_stays(tmp_path, start, number, first, code, said):
    process = start("--processes", "2")
    await_checkpoints(tmp_path, [process])
    worker = children(process.pid)[0]
    os.kill(process.pid if first else worker, number)
    _, messages = process.communicate(timeout=20)
    assert process.returncode == code
    assert said in messages.splitlines()[-1]
    assert "Traceback" not in messages
    assert gone([worker])


@pytest.mark.long(minutes=0.1)
def test_a_worker_that_cannot_begin_is_reported(tmp_path, monkeypatch):
    broken, inner = tmp_path / "broken", group._start
    broken.mkdir()
    (broken / "safetensors.py").write_text("raise SystemExit('no safetensors here')\n")
    (tmp_path / "text.txt").write_text("one two three four five\n" * 200)

    def start(*given):
        monkeypatch.setenv("PYTHONPATH", str(broken))
        monkeypatch.setattr(group, "__file__", str(broken / "a" / "b" / "c" / "d.py"))
        return inner(*given)

    monkeypatch.setattr(group, "_start", start)
    given = {"task": "language-model", "train": tmp_path / "text.txt", "output": tmp_path / "model", "quiet": True}
    settings = ["training.shards=2", "training.tokens=128", "data.max_tokens=32"]
    with pytest.raises(RegardError, match=r"process 1 ended: .*; what was saved"):
        regard.train(**given, steps=4, processes=2, settings=settings)


def test_threads_belong_to_runs_without_shards():
    assert Machine(CPU, 2).threads_for(1, None) == 2
    assert Machine(CPU, None).threads_for(1, 3) == 3
    assert Machine(CPU, None).threads_for(4, 1) == 1
    with pytest.raises(UsageError, match="one thread in each process"):
        Machine(CPU, 2).threads_for(4, None)


def test_processes_are_for_the_cpu(monkeypatch):
    cuda = torch.device("cuda")
    for device, asked, shards, said in (
        (cuda, 2, 4, "for the cpu"),
        (CPU, 3, 4, r"1, 2 or 4 do$"),
        (CPU, 2, 1, r"only 1 does, or set training\.shards=2$"),
    ):
        with pytest.raises(UsageError, match=said):
            Machine(device, None, asked).refuse_division(shards)
    for device, threads, asked, shards, found in (
        (cuda, None, None, 4, 1),
        (CPU, None, 4, 4, 4),
        (CPU, None, None, 1, 1),
        (CPU, 1, None, 2, 1),
        (CPU, 1, 2, 2, 2),
    ):
        assert Machine(device, threads, asked).processes_for(shards) == found
    monkeypatch.setattr(processes, "independent_cores", lambda most, tries: 1)  # other programs are busy on the others
    for count, found in ((1, 1), (2, 2), (8, 2)):
        monkeypatch.setattr(processes, "usable_cores", lambda count=count: count)
        assert [Machine(CPU, None).processes_for(shards) for shards in (2, 4)] == [found] * 2
    monkeypatch.setattr(run, "torchrun_process", lambda: TorchrunProcess(0, 2))
    with pytest.raises(UsageError, match="2 cannot divide the 1 shard"):
        Machine(CPU, None).refuse_division(1)


@pytest.fixture
def environment(monkeypatch):
    """Sets variables as torchrun does; afterwards none is known of."""

    def set_variables(**changed):
        whole = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1", **changed}
        for name, value in whole.items():
            monkeypatch.setenv(name, value)
        torchrun_process.cache_clear()

    torchrun_process.cache_clear()
    yield set_variables
    torchrun_process.cache_clear()


def test_a_torchrun_is_known_by_its_environment(environment):
    assert torchrun_process() is None
    environment()
    assert torchrun_process() == TorchrunProcess(1, 4)


NUMBERS = {"RANK": ["first", "-1", "4"], "WORLD_SIZE": ["two", "0"]}
UNFIT = {**NUMBERS, "MASTER_ADDR": [""], "MASTER_PORT": ["", "x", "70000"]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in UNFIT.items() for value in values])
def test_what_a_torchrun_cannot_have_set_is_refused(name, value, environment):
    environment(**{name: value})
    with refused(UsageError, name):
        torchrun_process()


@pytest.mark.long(minutes=0.12)
def test_the_first_hears_a_signal_while_it_waits_for_a_torchrun(start):
    process = start(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    stop(process, "waiting for the other process of torchrun", "stopped before the first step")


@pytest.mark.long(minutes=0.1)
def test_a_signal_while_processes_start_ends_all_at_once(start):
    stop(start("--processes", "2"), "2 processes divide", "")


def stop(process, heard, said):
    """Stop it as soon as this is heard of it."""
    assert any(heard in line for line in process.stderr)
    os.kill(process.pid, signal.SIGTERM)
    _, messages = process.communicate(timeout=30)
    assert process.returncode == 75
    assert said in messages
    assert "Traceback" not in messages


def agent():
    """The store of a torchrun, and what gives a connection to it."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return store, lambda: TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)


def test_another_hears_a_signal_while_it_waits_to_be_called():
    class Heard(Exception):
        pass

    def hear(number, frame):
        raise Heard

    waiting, (store, connect) = TorchrunProcess(1, 2), agent()
    vars(waiting)["store"], other = store, connect()
    before = signal.signal(signal.SIGUSR2, hear)
    alarm = Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR2))
    began = time.monotonic()
    try:
        alarm.start()
        with pytest.raises(Heard):
            follow_torchrun(waiting, lambda: False)
    finally:
        alarm.join()
        signal.signal(signal.SIGUSR2, before)
        other.set("regard/called", "0")  # which ends the thread that waits
    assert time.monotonic() - began < 20


@pytest.mark.long(minutes=0.07)
def test_another_whose_first_process_is_gone_says_one_sentence(start):
    store, _ = agent()
    process = start(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.port))
    store.wait(["regard/heartbeat/1"], timedelta(seconds=60))
    del store, _
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 75
    said = "another process of this run ended or does not answer; rerun the same command to resume"
    assert messages == f"regard: {said}\n"


@pytest.fixture
def quick_hearts(monkeypatch):
    """Hearts that beat fifty times a second, as those of processes that meet at a port of this machine: the port."""
    port = free_port()
    told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    monkeypatch.setattr(group, "_SECOND", 0.02)
    monkeypatch.setattr(group, "abandon", lambda: None)  # which would end these tests with it
    return port


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_dies_or_stops_while_it_prepares_ends_those_that_wait(quick_hearts, number):
    child = os.fork()
    if not child:
        try:
            TorchrunProcess(0, 2).begin()
            time.sleep(600)
        finally:
            os._exit(1)
    try:
        waiting = TorchrunProcess(1, 2)
        waiting.begin()
        store = TCPStore("127.0.0.1", quick_hearts, is_master=False, wait_for_workers=False)
        store.wait(["regard/heartbeat/0", "regard/heartbeat/1"])
        time.sleep(1)  # as long as it lives, it may prepare for longer than a silence lasts
        assert not waiting.is_lost()
        os.kill(child, number)
        said = "ended or does not answer; rerun the same command to resume"
        with pytest.raises(LostTorchrunProcess, match=said) as lost:
            follow_torchrun(waiting, lambda: False)
        assert lost.value.exit_code == 75
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_first_does_not_wait_for_a_host_that_never_comes(quick_hearts, monkeypatch):
    """In a process of its own: a thread stays in torch, where another group of the same process would wait for it."""
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")

    def wait():
        store = TCPStore("127.0.0.1", quick_hearts, is_master=True, wait_for_workers=False)
        first = TorchrunProcess(0, 2)
        vars(first)["store"] = TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)
        group.torchrun_process = lambda: first
        first.begin()
        said = "ended or does not answer; what was saved is whole: rerun the same command to resume"
        with pytest.raises(LostTorchrunProcess, match=said), group.worker_group(2, 2, lambda line: None):
            pass

    assert in_child(wait) == 0


@pytest.mark.long(minutes=0.05)
def test_without_torchrun_a_host_that_never_comes_is_lost_as_soon(quick_hearts):
    def wait():
        first = TorchrunProcess(0, 2)
        first.begin()
        assert waited(first.is_lost, 20)

    assert in_child(wait) == 0


def test_processes_that_are_not_needed_hear_it_before_the_first_ends():
    store, connect = agent()
    both, shards = [TorchrunProcess(rank, 2) for rank in range(2)], []
    for process in both:
        vars(process)["store"] = connect()
    other = Thread(target=lambda: (time.sleep(0.3), shards.append(both[1].wait())))
    other.start()
    with both[0].releasing():
        pass
    assert store.check(["regard/freed/1"])
    other.join()
    assert shards == [0]


@pytest.mark.long(minutes=0.06)
def test_the_file_of_the_meeting_takes_no_other_files_place(tmp_path):
    """torch's store opens its path, a handle's, again at the end; no file opened meanwhile may have that handle."""
    before = os.listdir("/proc/self/fd") if Path("/proc/self/fd").is_dir() else []
    with group.worker_group(2, 2, lambda said: None, WORKER):
        files = [(tmp_path / str(number)).open("wb") for number in range(8)]
    assert [os.path.getsize(file.name) for file in files] == [0] * 8
    for file in files:
        file.close()
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)


def waited(done, seconds=5):
    """Whether something is done within some seconds."""
    end = time.monotonic() + seconds
    while not (found := done()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


@pytest.fixture
def hearts(monkeypatch):
    """Makes hearts that beat a hundred times a second; they end with the test."""
    monkeypatch.setattr(group, "_SECOND", 0.01)
    made = []

    def make(connect, rank=0, size=2, absent=1000, silent=1000):
        made.append(Heartbeat(connect, rank, size, absent, silent))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_one_that_begins_late_is_not_lost_but_one_that_ends_or_never_begins_is(hearts):
    store = HashStore()
    first, second = (hearts(lambda: store, rank, silent=20) for rank in range(2))
    lost = first.start()
    time.sleep(0.5)  # longer than it may be silent
    assert not lost()
    second.start()
    assert waited(lambda: store.check(["regard/heartbeat/1"]))
    assert not lost()
    second.end()
    assert waited(lost)
    assert waited(hearts(HashStore, absent=5).start())


def test_a_store_that_is_gone_or_not_there_is_a_loss(hearts):
    class Gone(HashStore):
        def set(self, key, value):
            raise DistNetworkError("Broken pipe")

    def missing():
        raise DistNetworkError("connect() timed out")

    for connect in (Gone, missing):
        assert waited(hearts(connect).start())
