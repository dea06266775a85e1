"""Processes that a test starts: their children, whether they live, and a port that is free for them."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path


def begin(words, folder=None, **variables):
    """A command of Regard with its messages at hand."""
    command = [sys.executable, "-m", "regard", *map(str, words)]
    said, env = subprocess.PIPE, {**os.environ, **variables}
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said, text=True, env=env)


def children(process):
    """The processes that a process has started."""
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(processes, seconds=10):
    """Whether they have all ended, within some seconds."""
    end = time.monotonic() + seconds
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, processes))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def await_checkpoints(folder, processes, count=1):
    """Wait until the run of processes has saved so often."""
    while len(list(folder.glob("*/training/checkpoints/step-??????"))) < count:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)
