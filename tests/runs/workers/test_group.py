"""Processes that are started beside a run: what is refused, what is said when one ends, and that nothing stays."""

import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from threading import Thread, Timer

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

import regard
from regard.runs import run
from regard.runs.run import WORKER, Machine
from regard.runs.workers import cores, group, heartbeat
from regard.runs.workers.group import TorchrunProcess, torchrun_process
from regard.runs.workers.worker import follow_torchrun
from regard.system.errors import RegardError, UsageError
from regard.training.world import LostTorchrunProcess
from tests.refusals import refused
from tests.training.toy import in_child

CPU = torch.device("cpu")
COMMAND = """
--task language-model --train text.txt --processes 2 --output model --steps 4000 --device cpu --set training.shards=2
--set training.tokens=128 --set data.max_tokens=32 --set model.layers=1 --set model.d_model=16 --set model.heads=2
--set model.d_ff=16 --set text.units=characters --set training.product=exact --set training.validate_every=50
""".split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("one two three four five\n" * 200)
    return tmp_path


def begin(folder: Path, options: list[str], **variables: str) -> subprocess.Popen[str]:
    """A training with its messages at hand."""
    return subprocess.Popen(
        [sys.executable, "-m", "regard", "train", *options],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )


def start(folder: Path) -> subprocess.Popen[str]:
    """A training by two processes, once it has saved something."""
    process = begin(folder, COMMAND)
    while not list(folder.glob("model/training/checkpoints/step-??????")):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    return process


def worker_of(process: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0])


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs a processor's system with /proc")
@pytest.mark.one_of(4, minutes=0.2)
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
def test_whichever_process_ends_nothing_stays(
    folder: Path, number: signal.Signals, first: bool, code: int, said: str
) -> None:
    process = start(folder)
    worker = worker_of(process)
    os.kill(process.pid if first else worker, number)
    _, messages = process.communicate(timeout=20)
    assert process.returncode == code
    assert said in messages.splitlines()[-1]
    assert "Traceback" not in messages
    ends = time.monotonic() + 10
    while not is_gone(worker):
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_worker_that_cannot_begin_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = folder / "broken"
    broken.mkdir()
    (broken / "safetensors.py").write_text("raise SystemExit('no safetensors here')\n")
    inner = group._start

    def start(store: str, handles: tuple[int, ...], rank: int, world: group.World, program: str) -> group.WorkerProcess:
        monkeypatch.setenv("PYTHONPATH", str(broken))
        monkeypatch.setattr(group, "__file__", str(broken / "a" / "b" / "c" / "d.py"))
        return inner(store, handles, rank, world, program)

    monkeypatch.setattr(group, "_start", start)
    with pytest.raises(RegardError, match=r"process 1 ended: .*; what was saved"):
        regard.train(
            task="language-model",
            train=folder / "text.txt",
            output=folder / "model",
            steps=4,
            processes=2,
            settings=["training.shards=2", "training.tokens=128", "data.max_tokens=32"],
            quiet=True,
        )


def test_threads_belong_to_runs_without_shards() -> None:
    assert Machine(CPU, 2).threads_for(1, None) == 2
    assert Machine(CPU, None).threads_for(1, 3) == 3
    assert Machine(CPU, None).threads_for(4, 1) == 1
    with pytest.raises(UsageError, match="one thread in each process"):
        Machine(CPU, 2).threads_for(4, None)


def test_processes_are_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Machine(torch.device("cuda"), None).processes_for(4) == 1
    with pytest.raises(UsageError, match="for the cpu"):
        Machine(torch.device("cuda"), None, 2).refuse_division(4)
    with pytest.raises(UsageError, match=r"1, 2 or 4 do$"):
        Machine(CPU, None, 3).refuse_division(4)
    with pytest.raises(UsageError, match=r"only 1 does, or set training\.shards=2$"):
        Machine(CPU, None, 2).refuse_division(1)
    assert Machine(CPU, None, 4).processes_for(4) == 4
    assert Machine(CPU, None).processes_for(1) == 1
    assert Machine(CPU, 1).processes_for(2) == 1
    assert Machine(CPU, 1, 2).processes_for(2) == 2
    monkeypatch.setattr(cores, "independent_cores", lambda most, tries: 1)  # other programs are busy on the others
    for count, processes in ((1, 1), (2, 2), (8, 2)):
        monkeypatch.setattr(cores, "usable_cores", lambda count=count: count)
        assert [Machine(CPU, None).processes_for(shards) for shards in (2, 4)] == [processes] * 2
    monkeypatch.setattr(run, "torchrun_process", lambda: TorchrunProcess(0, 2))
    with pytest.raises(UsageError, match="2 cannot divide the 1 shard"):
        Machine(CPU, None).refuse_division(1)


@pytest.mark.parametrize(
    ("seconds", "most", "found"),
    [
        ({1: 1.0, 2: 1.1, 4: 1.2}, 8, 4),
        ({1: 1.0, 2: 1.0, 4: 1.9}, 4, 2),  # four of them are two threads each of two cores
        ({1: 1.0, 2: 1.5}, 2, 1),
        ({1: 1.0, 2: 1.0}, 1, 1),
    ],
)
def test_cores_are_counted_by_what_they_do(
    seconds: dict[int, float], most: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 4)
    monkeypatch.setattr(cores, "_seconds", seconds.__getitem__)
    assert cores.independent_cores(most) == found


def test_a_core_that_was_busy_is_counted_in_the_next_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 2)
    monkeypatch.setattr(cores, "_PAUSE", 0.0)
    two = iter([1.9, 1.9, 1.1])
    monkeypatch.setattr(cores, "_seconds", lambda count: 1.0 if count == 1 else next(two))
    assert cores.independent_cores(2, tries=5) == 2
    assert next(two, None) is None
    two = iter([1.9, 1.9, 1.9])
    assert cores.independent_cores(2, tries=3) == 1


def test_the_cores_of_this_machine_are_counted() -> None:
    assert cores.independent_cores(2) in (1, 2)
    assert cores._seconds(2) > 0


def test_a_torchrun_is_known_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    torchrun_process.cache_clear()
    assert torchrun_process() is None
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    torchrun_process.cache_clear()
    assert torchrun_process() == TorchrunProcess(1, 4)
    torchrun_process.cache_clear()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"RANK": "first"}, "RANK"),
        ({"RANK": "-1"}, "RANK"),
        ({"RANK": "4"}, "RANK"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR"),
        ({"MASTER_PORT": ""}, "MASTER_PORT"),
        ({"MASTER_PORT": "x"}, "MASTER_PORT"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT"),
    ],
)
def test_what_a_torchrun_cannot_have_set_is_refused(
    changed: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in (whole | changed).items():
        monkeypatch.setenv(name, value)
    torchrun_process.cache_clear()
    with refused(UsageError, named):
        torchrun_process()
    torchrun_process.cache_clear()


def test_the_first_hears_a_signal_while_it_waits_for_a_torchrun(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    options = COMMAND[: COMMAND.index("--processes")] + COMMAND[COMMAND.index("--processes") + 2 :]
    process = begin(folder, options, **told)
    assert process.stderr is not None
    assert any("waiting for the other process of torchrun" in line for line in process.stderr)
    os.kill(process.pid, signal.SIGTERM)
    _, messages = process.communicate(timeout=30)
    assert process.returncode == 75
    assert "stopped before the first step" in messages
    assert "Traceback" not in messages


def test_another_hears_a_signal_while_it_waits_to_be_called() -> None:
    class Heard(Exception):
        pass

    def hear(number: int, frame: object) -> None:
        raise Heard

    waiting, store = TorchrunProcess(1, 2), TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    vars(waiting)["store"] = store
    other = TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)
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


def test_another_whose_first_process_is_gone_says_one_sentence(folder: Path) -> None:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    options = COMMAND[: COMMAND.index("--processes")] + COMMAND[COMMAND.index("--processes") + 2 :]
    process = begin(folder, options, **told)
    store.wait(["regard/heartbeat/1"], timedelta(seconds=60))
    del store
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 75
    said = "another process of this run ended or does not answer; rerun the same command to resume"
    assert messages == f"regard: {said}\n"


@pytest.fixture
def quick_hearts(monkeypatch: pytest.MonkeyPatch) -> int:
    """Hearts that beat fifty times a second, as those of processes that meet at a port of this machine: the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    monkeypatch.setattr(heartbeat, "_SECOND", 0.02)
    monkeypatch.setattr(group, "abandon", lambda: None)  # which would end these tests with it
    return port


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_dies_or_stops_while_it_prepares_ends_those_that_wait(
    quick_hearts: int, number: signal.Signals
) -> None:
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
        with pytest.raises(
            LostTorchrunProcess, match="ended or does not answer; rerun the same command to resume"
        ) as lost:
            follow_torchrun(waiting, lambda: False)
        assert lost.value.exit_code == 75
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_first_does_not_wait_for_a_host_that_never_comes(
    quick_hearts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: a thread stays in torch, where another group of the same process would wait for it."""
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")

    def wait() -> None:
        agent = TCPStore("127.0.0.1", quick_hearts, is_master=True, wait_for_workers=False)
        first = TorchrunProcess(0, 2)
        vars(first)["store"] = TCPStore("127.0.0.1", agent.port, is_master=False, wait_for_workers=False)
        group.torchrun_process = lambda: first
        first.begin()
        said = "ended or does not answer; what was saved is whole: rerun the same command to resume"
        with pytest.raises(LostTorchrunProcess, match=said), group.worker_group(2, 2, lambda line: None):
            pass

    assert in_child(wait) == 0


def test_without_torchrun_a_host_that_never_comes_is_lost_as_soon(quick_hearts: int) -> None:
    def wait() -> None:
        first = TorchrunProcess(0, 2)
        first.begin()
        end = time.monotonic() + 20
        while not first.is_lost():
            assert time.monotonic() < end
            time.sleep(0.05)

    assert in_child(wait) == 0


def test_processes_that_are_not_needed_hear_it_before_the_first_ends() -> None:
    agent = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    processes = [TorchrunProcess(rank, 2) for rank in range(2)]
    for process in processes:
        vars(process)["store"] = TCPStore("127.0.0.1", agent.port, is_master=False, wait_for_workers=False)
    shards = list[int]()
    other = Thread(target=lambda: (time.sleep(0.3), shards.append(processes[1].wait())))
    other.start()
    with processes[0].releasing():
        pass
    assert agent.check(["regard/freed/1"])
    other.join()
    assert shards == [0]


def test_a_signal_while_processes_start_ends_all_at_once(folder: Path) -> None:
    process = begin(folder, COMMAND)
    assert process.stderr is not None
    assert any("2 processes divide" in line for line in process.stderr)
    os.kill(process.pid, signal.SIGTERM)
    _, messages = process.communicate(timeout=20)
    assert process.returncode == 75
    assert "Traceback" not in messages


def test_the_file_of_the_meeting_takes_no_other_files_place(tmp_path: Path) -> None:
    """torch's store opens its path, a handle's, again at the end; no file opened meanwhile may have that handle."""
    before = os.listdir("/proc/self/fd") if Path("/proc/self/fd").is_dir() else []
    with group.worker_group(2, 2, lambda said: None, WORKER):
        files = [(tmp_path / str(number)).open("wb") for number in range(8)]
    assert [os.path.getsize(file.name) for file in files] == [0] * 8
    for file in files:
        file.close()
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)
