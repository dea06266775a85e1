"""What every test relies on: one thread, fixed seeds, no network, the data below REGARD_DATA.

REGARD_TEST_THREADS gives each test more threads, REGARD_TEST_SEED other data (``seed_shift``): what fails then holds by
luck.
"""

import gc
import os
import random
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

THREADS = int(os.environ.get("REGARD_TEST_THREADS", "1"))
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch loads; tests share their machine
    os.environ[_variable] = str(THREADS)
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")

import numpy as np
import pytest
from hypothesis import settings

pytest_plugins = ["grades", "seed_shift", "shape_watcher"]

ROOT = Path(__file__).parents[1]

settings.register_profile("default", derandomize=True, deadline=None, max_examples=20)
settings.register_profile("all", derandomize=True, deadline=None, max_examples=500)


def pytest_configure(config: pytest.Config) -> None:
    from seed_shift import SHIFT

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a background job; commands inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    profile = settings.get_profile("all" if config.getoption("--all") else "default")
    settings.register_profile("chosen", profile, derandomize=not SHIFT, database=None)
    settings.load_profile("chosen")


def pytest_collection_finish() -> None:
    """No collection of garbage looks at the tests and libraries again, nor copies them in forked processes."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seed() -> None:
    random.seed(1)
    np.random.seed(1)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(1)
        torch.set_num_threads(THREADS)  # a test before may have trained with another number


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_timed() -> Iterator[None]:
    """Two runs of a test are the same: products are computed as the processor's flags say, on one core.

    No disk is waited for.
    """
    from regard.nn import ops
    from regard.runs.workers import processes
    from regard.training import measure

    def by_flags(objective: Any, ways: Any, batch: Any, recipe: Any, choose: Any, *rest: Any) -> Any:
        """The paths by flags; of numbers of threads one."""
        slow: dict[Any, float] = dict.fromkeys(ways, 3.0) | {ops.full(): 2.0, ops.choose("auto"): 1.0, 1: 1.0}
        return slow, choose(slow)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)  # only a machine without power loses by that
        patch.setattr(processes, "usable_cores", lambda: 1)  # each process more would load torch anew
        patch.setattr(measure, "time_ways", by_flags)
        patch.setattr(measure, "_COLLECTIONS", 0)  # garbage of other tests hides little memory, and takes long to find
        patch.setattr(measure, "MOST", 2)  # steps by which a plan of so many passes says how long they take
        yield


@pytest.fixture
def compiled() -> None:
    """Skips what needs the compiled kernels where there are none."""
    from regard.system import kernels

    if not kernels.available():
        pytest.skip("no compiler was there when Regard was installed")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is kept between commands is kept here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _gpu(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a gpu")


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    connect = socket.socket.connect

    def local(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family != socket.AF_UNIX and host not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a test asked for the network: {address!r}")
        connect(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", local)
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public corpora: REGARD_DATA, or where the variable is unset a folder beside the repository."""
    folder = Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("needs corpora: set REGARD_DATA to their folder")
    return folder
