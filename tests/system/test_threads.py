import ast
import os
import subprocess
import sys
import threading
import time
from statistics import median

import pytest

from regard.system import SLEEP
from regard.system.threads import ended_threads, interruptible


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says which threads there are")
def test_threads_are_gone_for_the_system_too() -> None:
    for _ in range(50):
        with ended_threads(3) as pool:
            ids = set(pool.map(lambda _: threading.get_native_id(), range(30)))
            assert ids <= set(map(int, os.listdir("/proc/self/task")))
        assert not ids & set(map(int, os.listdir("/proc/self/task")))


def test_the_result_and_the_error_are_those_of_the_call() -> None:
    with pytest.raises(ZeroDivisionError), ended_threads(1) as pool:
        pool.submit(lambda: 1 // 0).result()
    assert interruptible(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_a_look_or_the_time_ends_the_wait() -> None:
    waits: list[float] = []

    def look(waited: float) -> None:
        waits.append(waited)
        if len(waits) == 3:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: time.sleep(5), look)
    assert waits == sorted(waits)
    assert len(waits) == 3
    with pytest.raises(TimeoutError):
        interruptible(lambda: time.sleep(5), most=0.1)
    assert time.monotonic() - began < 4


GIVEN = {
    "nothing": {},
    "their own": {"OMP_WAIT_POLICY": "ACTIVE", "KMP_BLOCKTIME": "7", "OPENBLAS_THREAD_TIMEOUT": "9"},
    "another": {"GOMP_SPINCOUNT": "1000", "OPENBLAS_NUM_THREADS": "1"},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_threads_that_wait_sleep_unless_the_user_says_otherwise(given: dict[str, str]) -> None:
    program = "import os, regard, sys; print({name: os.environ.get(name) for name in sys.argv[1:]})"
    names = {name for row in SLEEP for name in (row[0], row[2])}
    variables = {name: value for name, value in os.environ.items() if name not in names} | given
    run = subprocess.run(
        [sys.executable, "-c", program, *names], env=variables, capture_output=True, text=True, check=True
    )
    ours = {name: value for name, value, other in SLEEP if not {name, other} & given.keys()}
    assert ast.literal_eval(run.stdout) == dict.fromkeys(names) | ours | given
    assert given or len(ours) == len(SLEEP)


@pytest.mark.long(minutes=0.05)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says what a process computes")
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_thread_that_waits_computes_nothing(library: str) -> None:
    """One thread multiplies now and then; what the others of its pool compute meanwhile is what they wait for it.

    Of five rounds the middle one counts: beside other programs single ones are far off, either way.
    """
    program = f"""if True:
        import time, regard, {library}
        a = {library}.ones((256, 256))
        if "{library}" == "torch":
            torch.set_num_threads(2)
        for _ in range(20):
            a @ a
        for _ in range(5):
            began, computed = time.thread_time(), time.process_time()
            for _ in range(15):
                a @ a
                pause = time.thread_time() + 0.01
                while time.thread_time() < pause:
                    pass
            alone = time.thread_time() - began
            print((time.process_time() - computed - alone) / alone)
    """
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    run = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    assert median(map(float, run.stdout.split())) < 0.4
