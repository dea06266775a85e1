"""Two hosts, each a ``torchrun`` of its own on this machine: the same bits, and a clean end where one is lost."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import regard
from regard.runs.workers import heartbeat
from tests.training.toy import whole

OPTIONS = """
task=language-model train=text.txt output=hosts steps=60 device=cpu set=training.shards=4 set=training.tokens=256
set=data.max_tokens=32 set=model.layers=1 set=model.d_model=16 set=model.heads=2 set=model.d_ff=16
set=text.units=characters set=training.product=exact set=training.validate_every=5
""".split()


@contextmanager
def hosts(folder: Path, steps: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Two hosts of two processes each, with addresses of their own on the loopback interface."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [part for option in OPTIONS for part in f"--{option}".split("=", 1)]
    options[options.index("--steps") + 1] = str(steps)
    begun = []
    for host in range(2):
        at = ["--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(host), "--local-addr", f"127.0.0.{host + 1}"]
        command = [sys.executable, "-m", "torch.distributed.run", *at, "--master-addr", "127.0.0.1"]
        command += ["--master-port", str(port), "-m", "regard", "train", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        begun.append(
            subprocess.Popen(
                command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
            )
        )
    try:
        yield begun
    finally:
        for process in begun:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("one two three four five\n" * 200)
    return tmp_path


def alone(folder: Path, output: str, steps: int) -> dict[str, bytes]:
    """The weights of the same run by one process, which resumes what is there."""
    given = dict(option.split("=", 1) for option in OPTIONS if not option.startswith("set="))
    settings = [option.removeprefix("set=") for option in OPTIONS if option.startswith("set=")]
    given |= {"train": str(folder / "text.txt"), "output": str(folder / output), "quiet": True, "processes": 1}
    regard.train(**{**given, "steps": steps}, settings=settings)
    return whole(folder / output / "model.safetensors")


@pytest.mark.long(minutes=0.7)
def test_two_hosts_make_the_same_weights(folder: Path) -> None:
    with hosts(folder, 60) as begun:
        for host in begun:
            _, messages = host.communicate(timeout=120)
            assert host.returncode == 0, messages
    assert whole(folder / "hosts" / "model.safetensors") == alone(folder, "one", 60)


@pytest.mark.long(minutes=1.0)
def test_a_torchrun_that_is_killed_leaves_nobody(folder: Path) -> None:
    with hosts(folder, 600) as begun:
        while not list(folder.glob("hosts/training/checkpoints/step-??????")):
            assert all(host.poll() is None for host in begun)
            time.sleep(0.1)
        os.kill(begun[1].pid, signal.SIGKILL)
        _, messages = begun[0].communicate(timeout=30)
    assert "all is saved; rerun the same command to resume" in messages


@pytest.mark.long(minutes=1.0)
def test_a_lost_host_ends_the_other_and_the_run_resumes_on_one(folder: Path) -> None:
    with hosts(folder, 600) as begun:
        while len(list(folder.glob("hosts/training/checkpoints/step-??????"))) < 2:
            assert all(host.poll() is None for host in begun)
            time.sleep(0.1)
        host = begun[1].pid
        for process in (host, *children(host)):
            os.kill(process, signal.SIGKILL)
        _, messages = begun[0].communicate(timeout=30)
    assert begun[0].returncode == 1
    assert "regard: another process of this run ended or does not answer; what was saved is whole" in messages, messages
    assert alone(folder, "hosts", 600) == alone(folder, "one", 600)


@pytest.mark.long(minutes=1.0)
def test_a_host_that_is_silent_ends_the_other(folder: Path) -> None:
    """As one without power or connection: nothing is closed, nobody answers."""
    with hosts(folder, 6000) as begun:
        while not list(folder.glob("hosts/training/checkpoints/step-??????")):
            assert all(host.poll() is None for host in begun)
            time.sleep(0.1)
        frozen = [begun[1].pid, *children(begun[1].pid)]
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        end = time.monotonic() + heartbeat.SILENT + 60
        while children(begun[0].pid):
            assert time.monotonic() < end
            time.sleep(0.1)
        begun[0].kill()  # torchrun waits for the other torchrun for minutes
        _, messages = begun[0].communicate(timeout=30)
        for process in frozen:
            os.kill(process, signal.SIGKILL)
    assert "regard: another process of this run ended or does not answer; what was saved is whole" in messages, messages
