import os
import subprocess
import sys
import threading

import pytest

from regard.system.threads import ended_threads


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says which threads there are")
def test_threads_are_gone_for_the_system_too() -> None:
    for _ in range(50):
        with ended_threads(3) as pool:
            ids = set(pool.map(lambda _: threading.get_native_id(), range(30)))
            assert ids <= set(map(int, os.listdir("/proc/self/task")))
        assert not ids & set(map(int, os.listdir("/proc/self/task")))


def test_an_error_inside_is_raised_and_the_threads_end() -> None:
    with pytest.raises(ZeroDivisionError), ended_threads(1) as pool:
        pool.submit(lambda: 1 / 0).result()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says which threads there are")
@pytest.mark.parametrize("given", [None, "3"])
def test_numpy_starts_no_threads_and_the_environment_is_as_before(given: str | None) -> None:
    program = """if True:
        import os
        from regard.system.threads import one_numpy_thread
        with one_numpy_thread():
            import numpy
        print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
    """
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    variables |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    run = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    threads, left = run.stdout.split()
    assert left == str(given)
    assert given is not None or threads == "1"
