"""The processes of a run as the first one sees them: it starts the others, or finds those that ``torchrun`` started.

Processes on one machine talk through its loopback interface and a file; no port is opened to the network. They train
and nothing else: the first one reads the command, prepares the data, chooses, writes, and says what to do.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, TCPStore
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from regard.config import Recipe
from regard.system.errors import UsageError
from regard.system.threads import interruptible
from regard.training.world import ALONE, LOST, LostProcess, LostTorchrunProcess, World

PLACE = "REGARD_PROCESS"
"""Environment variable of a process that was started here: file, rank, size and shards."""
_CALLED, _FREED = "regard/called", "regard/freed/"
"""Keys: the first process of a ``torchrun`` says that the others are needed, or not; and these that they are not."""
_PROCESS = "regard/process/"
"""Keys by which each process says which one it is, and on which machine."""
_BEAT = "regard/heartbeat/"
"""Keys under which each process counts its seconds: of a host without power no connection tells."""
_DAY, _WAIT = timedelta(days=1), timedelta(minutes=30)
"""Longest wait for the first process, which prepares data; and for another process to begin, and within a step."""
_SECOND = 1.0
_ABSENT, SILENT = 120, 30
"""Seconds without an answer after which a process is lost: of one that was never heard, and of one that was.

All hosts are started at about the same time, by ``torchrun`` or not.
"""
_SAID = 5.0
"""Seconds of waiting for the processes of a ``torchrun`` after which it is said."""
_PATIENCE = 10.0
"""Seconds that a process has to end by itself."""


class Heartbeat:
    """Counts seconds in a store that all processes share, and reads the counts of the others.

    Seconds of silence are counted by a thread that never waits for the store, which a host that stands still may hold.

    Args:
        connect: gives a store for a thread alone.
        rank, size: number of this process, and how many there are.
        absent: seconds after which a process that was never heard is lost.
        silent: the same of one that was heard.
    """

    def __init__(
        self, connect: Callable[[], Store], rank: int, size: int, absent: int = SILENT, silent: int = SILENT
    ) -> None:
        self._connect, self._rank, self._absent, self._silent = connect, rank, absent, silent
        self._others = [other for other in range(size) if other != rank]
        self._counts = dict.fromkeys(self._others, "")
        self._heard: dict[int, int] = {}
        self._seconds, self._failed, self._ended = 0, False, Event()
        self._threads = [Thread(target=work, daemon=True) for work in (self._count, self._beat)]

    def start(self) -> Callable[[], bool]:
        """Begin, until this process ends; the function that tells whether a process is lost."""
        for thread in self._threads:
            thread.start()
        atexit.register(self.end)
        return self.lost

    def lost(self) -> bool:
        """Whether a process was silent for too long, or the store is gone."""
        return self._failed or any(
            self._seconds - self._heard[other] >= self._silent
            if other in self._heard
            else self._seconds >= self._absent
            for other in self._others
        )

    def end(self) -> None:
        """Stop counting."""
        self._ended.set()
        for thread in self._threads:
            thread.join(_SECOND)

    def _count(self) -> None:
        while not self._ended.wait(_SECOND):
            self._seconds += 1

    def _beat(self) -> None:
        count = 0
        try:
            store = self._connect()
            while not self._ended.wait(_SECOND):
                count += 1
                store.set(f"{_BEAT}{self._rank}", str(count))
                for other in self._others:
                    if store.check([key := f"{_BEAT}{other}"]):
                        found = store.get(key).decode()
                        if found != self._counts[other]:
                            self._counts[other], self._heard[other] = found, self._seconds
        except RuntimeError:  # whoever holds the store has closed the connection, or never opened it
            self._failed = True


@dataclass
class TorchrunProcess:
    """This process was started by ``torchrun``, or by what sets the same variables.

    Args:
        rank, size: its number, and how many there are.
        called: the others were called, or are being.
        is_lost: tells whether another one does not answer any more; see :meth:`begin`.
    """

    rank: int
    size: int
    called: bool = field(default=False, compare=False)
    is_lost: Callable[[], bool] = field(default=lambda: False, compare=False)

    def begin(self) -> None:
        """Answer the others from now on, and hear whether they do, whatever this process does meanwhile."""
        if self.size > 1:
            by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"

            def connect() -> Store:
                """A connection to the store of all processes for a thread alone, which may wait until it is there."""
                place, wait = os.environ["MASTER_ADDR"], timedelta(seconds=_ABSENT)
                port, master = int(os.environ["MASTER_PORT"]), not (self.rank or by_torchrun)
                store = TCPStore(place, port, is_master=master, wait_for_workers=False, timeout=wait, multi_tenant=True)
                store.set_timeout(timedelta(seconds=SILENT))
                return store

            self.is_lost = Heartbeat(connect, self.rank, self.size, _ABSENT).start()

    def look(self, waited: float) -> None:
        """Raise a LostProcess if one of the others is lost."""
        if self.is_lost():
            raise LostProcess(LOST)

    @cached_property
    def store(self) -> Store:
        """Where the processes find each other."""
        store, _, _ = next(iter(rendezvous("env://", timeout=_DAY)))
        return store

    def call(self, shards: int) -> None:
        """Tell the waiting processes the shards of a step; 0: that nothing is to be done."""
        self.called = True
        self.store.set(_CALLED, str(shards))

    def wait(self) -> int:
        """The shards of a step, once the first process knows them; 0: nothing is to be done."""
        self.store.wait([_CALLED], _DAY)
        if not (shards := int(self.store.get(_CALLED))):
            self.store.set(f"{_FREED}{self.rank}", "")
        return shards

    @contextmanager
    def releasing(self) -> Iterator[None]:
        """Within, the others wait to be called; afterwards they are free, if that never came."""
        try:
            yield
        finally:
            if self.size > 1 and not self.called:
                with suppress(RuntimeError, TimeoutError):
                    interruptible(self._free, most=_PATIENCE / 2)

    def _free(self) -> None:
        """Call the others in vain, and wait until they have heard it: the store may end with this process."""
        self.call(0)
        self.store.wait([f"{_FREED}{rank}" for rank in range(1, self.size)], _DAY)


@cache
def torchrun_process() -> TorchrunProcess | None:
    """What the environment says of this process; ``None`` where RANK and WORLD_SIZE are not both set.

    Raises:
        UsageError: a variable is missing or cannot be.
    """
    found = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    if not (found["RANK"] and found["WORLD_SIZE"]):
        return None
    if missing := [name for name, value in found.items() if not value]:
        raise UsageError("is missing beside RANK and WORLD_SIZE; torchrun sets all four", missing[0])
    for name, value in found.items():
        if name != "MASTER_ADDR" and not value.isdecimal():
            raise UsageError(f"is {value!r}; a number is needed, as torchrun sets it", name)
    rank, size, port = (int(found[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    if not size:
        raise UsageError("is 0; there is at least one process", "WORLD_SIZE")
    if not rank < size:
        raise UsageError(f"is {rank}; of {size} processes (WORLD_SIZE) they are numbered from 0", "RANK")
    if not 0 < port < 1 << 16:
        raise UsageError(f"is {port}, which is no port", "MASTER_PORT")
    return TorchrunProcess(rank, size)


@dataclass
class WorkerGroup:
    """The processes that train together, this one the first.

    Args:
        world: of all of them.
        children: those that were started here.
        handles: of the file by which they met. torch's store opens the file's path again when it is destroyed, so that
            they are closed after it; where a process was lost, nobody knows when that is, and they stay open.
    """

    world: World = ALONE
    children: list[WorkerProcess] = field(default_factory=list)
    handles: tuple[int, ...] = ()

    def say(self, what: str, **given: object) -> None:
        """Tell the others what to do next, with plain values."""
        self.world.lead(lambda: {"do": what, **given})


@dataclass
class WorkerProcess:
    """A process that was started here, and where its messages go."""

    rank: int
    process: subprocess.Popen[bytes]
    messages: BinaryIO

    def fate(self) -> str:
        """How it ended, in a few words."""
        code = self.process.poll()
        self.messages.seek(0)
        lines = self.messages.read().decode("utf-8", "replace").strip().splitlines()
        if code is not None and code < 0:
            with suppress(ValueError):
                return f"process {self.rank} was ended by {signal.Signals(-code).name}"
        said = f": {lines[-1]}" if lines else ""
        return f"process {self.rank} ended{said}"


def plain(recipe: Recipe) -> dict[str, object]:
    """The values of a recipe, which :func:`~regard.config.recipe_from` reads."""
    return recipe.model_dump(mode="json", exclude_none=True)


def join(world: World, store: Store) -> World:
    """Connect this process with the others of its world; the world, with the processes that are on this machine."""
    dist.init_process_group("gloo", store=store, rank=world.rank, world_size=world.size, timeout=_WAIT)
    here = ""  # what processes have in common that can see each other
    with suppress(OSError):
        here = Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    store.set(f"{_PROCESS}{world.rank}", json.dumps([here, os.getpid()]))
    places = [json.loads(store.get(f"{_PROCESS}{rank}")) for rank in range(world.size)]
    known = tuple(process for machine, process in places if here and machine == here)
    return replace(world, processes=known)


def leave() -> None:
    """Close the connections of this process."""
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()


def abandon() -> None:
    """Let this process end without waiting for exchanges that can no longer be finished, once it has said why."""
    atexit.register(_end_at_once)


def _end_at_once() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(LostTorchrunProcess.exit_code)


@contextmanager
def worker_group(shards: int, processes: int, tell: Callable[[str], None], program: str = "") -> Iterator[WorkerGroup]:
    """The processes that divide the shards of a run, started and ended here; alone, where one is enough.

    Args:
        shards: of a step.
        processes: how many, this one included; of a ``torchrun`` as many as it started.
        tell: receives a line about them.
        program: the module that a process is started with, where they are started here.

    Raises:
        UsageError: so many cannot divide the shards.
        LostProcess: another process ended; the run can be resumed.
    """
    others = torchrun_process()
    size = others.size if others else processes
    world = World(shards, 0, size, local=others is None)  # which refuses what cannot be divided
    if others:
        world = replace(world, is_lost=others.is_lost)
    if size == 1:
        if shards > 1:
            tell(f"1 process computes the {shards} shards of a step")
        yield WorkerGroup(world)
        return
    tell(f"{size} processes divide the {shards} shards of a step")
    found = WorkerGroup(world)
    try:
        if others:
            found.world = _join_torchrun(others, world, tell)
        else:
            _start_all(found, program)
        yield found
        found.say("end")
        leave()
        for handle in found.handles:
            os.close(handle)
    except LostProcess as lost:
        _end(found.children)  # an exchange that nobody can finish ends with them
        if others:
            abandon()
        else:
            leave()
        failed = [child for child in found.children if child.process.returncode]
        fates = [child.fate() for child in sorted(failed, key=lambda child: child.process.returncode > 0)]
        said = fates[0] if fates else LOST.partition(";")[0]
        message = f"{said}; what was saved is whole: rerun the same command to resume"
        raise (LostTorchrunProcess if others else LostProcess)(message) from lost
    except BaseException:
        leave()
        if found.world is world:  # those that start hear nothing before they are connected
            for child in found.children:
                child.process.kill()
        raise
    finally:
        _end(found.children)
        for child in found.children:
            child.messages.close()


def _start_all(group: WorkerGroup, program: str) -> None:
    """Start the other processes, and connect with them."""
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # where nobody else can reach them
        os.environ["GLOO_SOCKET_IFNAME"] = loopback[0]
    world = group.world
    with _meeting_file() as (path, handles):
        group.handles = handles
        store = FileStore(path, world.size)
        for rank in range(1, world.size):
            group.children.append(_start(path, handles, rank, world, program))

        def look(waited: float) -> None:
            if any(child.process.poll() is not None for child in group.children):
                raise LostProcess("one ended at its start")

        try:
            group.world = interruptible(lambda: join(world, store), look)
        except RuntimeError as error:
            raise LostProcess("the processes could not connect") from error
        group.world.any(False)  # until all have read the file


def _join_torchrun(process: TorchrunProcess, world: World, tell: Callable[[str], None]) -> World:
    """Call the other processes of a ``torchrun`` and connect with them; where they are late, that is said."""
    said = list[bool]()

    def look(waited: float) -> None:
        process.look(waited)
        if waited > _SAID and not said:
            said.append(True)
            others = f"{process.size - 1} other processes" if process.size > 2 else "other process"
            tell(f"waiting for the {others} of torchrun (WORLD_SIZE is {process.size})")

    def connect() -> World:
        process.call(world.shards)
        return join(world, process.store)

    try:
        return interruptible(connect, look)
    except RuntimeError as error:
        raise LostProcess(f"the processes of torchrun could not connect ({_WAIT.seconds // 60} minutes)") from error


@contextmanager
def _meeting_file() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The path of an empty file, and the handles by which it stays open; without a name where the system can open such.

    A file without a name is gone with the processes that know it, even if they are killed.
    """
    if Path("/proc/self/fd").is_dir():
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
        yield f"/proc/self/fd/{handle}", (handle,)
        return
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        yield str(Path(folder) / "store"), ()


def _start(store: str, handles: tuple[int, ...], rank: int, world: World, program: str) -> WorkerProcess:
    above, known = str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")
    environment: Mapping[str, str] = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        PLACE: json.dumps([store, rank, world.size, world.shards, os.getpid()]),
        "PYTHONPATH": os.pathsep.join([above, *([known] if known else [])]),
    }
    messages = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as the process is known
    command, silent = [sys.executable, "-P", "-m", program], subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdin=silent, stdout=silent, stderr=messages, pass_fds=handles)
    return WorkerProcess(rank, process, messages)


def _end(children: list[WorkerProcess]) -> None:
    """Wait until the processes have ended; end those that do not by themselves."""
    for child in children:
        try:
            child.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
