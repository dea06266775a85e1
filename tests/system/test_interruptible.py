import time

import pytest

from regard.system.interruptible import interruptible


def test_the_result_and_the_error_are_those_of_the_call() -> None:
    assert interruptible(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_a_look_ends_the_wait() -> None:
    waits: list[float] = []

    def look(waited: float) -> None:
        waits.append(waited)
        if len(waits) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: time.sleep(5), look)
    assert waits == sorted(waits)
    assert len(waits) == 3


def test_a_wait_may_have_an_end() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        interruptible(lambda: time.sleep(5), most=0.1)
    assert time.monotonic() - began < 4
