"""Two hosts, each a ``torchrun`` of its own on this machine: the same bits, and a clean end where one is lost."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

import regard
from regard.runs.workers import group
from tests.runs.workers.started import await_checkpoints, children, free_port
from tests.training.toy import whole

OPTIONS = "task=language-model train=text.txt output=hosts device=cpu".split()
SETTINGS = """
training.shards=4 training.tokens=256 data.max_tokens=32 model.layers=1 model.d_model=16 model.heads=2 model.d_ff=16
text.units=characters training.product=exact training.validate_every=5
""".split()
LOST = "regard: another process of this run ended or does not answer; what was saved is whole"


@contextmanager
def hosts(folder, steps):
    """Two hosts of two processes each, with addresses of their own on the loopback interface."""
    (folder / "text.txt").write_text("one two three four five\n" * 200)
    port, begun = free_port(), []
    given = [*OPTIONS, f"steps={steps}", *(f"set={setting}" for setting in SETTINGS)]
    options = [part for option in given for part in f"--{option}".split("=", 1)]
    for host in range(2):
        at = ["--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(host), "--local-addr", f"127.0.0.{host + 1}"]
        command = [sys.executable, "-m", "torch.distributed.run", *at, "--master-addr", "127.0.0.1"]
        command += ["--master-port", str(port), "-m", "regard", "train", *options]
        streams = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        begun.append(subprocess.Popen(command, cwd=folder, env=environment, **streams))
    try:
        yield begun
    finally:
        for process in begun:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def alone(folder, output, steps):
    """The weights of the same run by one process, which resumes what is there."""
    given = dict(option.split("=", 1) for option in OPTIONS)
    given |= {"train": str(folder / "text.txt"), "output": str(folder / output), "quiet": True, "processes": 1}
    regard.train(**given, steps=steps, settings=SETTINGS)
    return whole(folder / output / "model.safetensors")


@pytest.mark.long(minutes=0.7)
def test_two_hosts_make_the_same_weights(tmp_path):
    with hosts(tmp_path, 60) as begun:
        for host in begun:
            _, messages = host.communicate(timeout=120)
            assert host.returncode == 0, messages
    assert whole(tmp_path / "hosts" / "model.safetensors") == alone(tmp_path, "one", 60)


@pytest.mark.long(minutes=1.0)
def test_a_torchrun_that_is_killed_leaves_nobody(tmp_path):
    with hosts(tmp_path, 600) as begun:
        await_checkpoints(tmp_path, begun)
        os.kill(begun[1].pid, signal.SIGKILL)
        _, messages = begun[0].communicate(timeout=30)
    assert "all is saved; rerun the same command to resume" in messages


@pytest.mark.long(minutes=1.0)
def test_a_lost_host_ends_the_other_and_the_run_resumes_on_one(tmp_path):
    with hosts(tmp_path, 600) as begun:
        await_checkpoints(tmp_path, begun, 2)
        for process in (begun[1].pid, *children(begun[1].pid)):
            os.kill(process, signal.SIGKILL)
        _, messages = begun[0].communicate(timeout=30)
    assert begun[0].returncode == 1
    assert LOST in messages, messages
    assert alone(tmp_path, "hosts", 600) == alone(tmp_path, "one", 600)


@pytest.mark.long(minutes=1.0)
def test_a_host_that_is_silent_ends_the_other(tmp_path):
    """As one without power or connection: nothing is closed, nobody answers."""
    with hosts(tmp_path, 6000) as begun:
        await_checkpoints(tmp_path, begun)
        frozen = [begun[1].pid, *children(begun[1].pid)]
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        end = time.monotonic() + group.SILENT + 60
        while children(begun[0].pid):
            assert time.monotonic() < end
            time.sleep(0.1)
        begun[0].kill()  # torchrun waits for the other torchrun for minutes
        _, messages = begun[0].communicate(timeout=30)
        for process in frozen:
            os.kill(process, signal.SIGKILL)
    assert LOST in messages, messages
