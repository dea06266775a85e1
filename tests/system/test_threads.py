import os
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
