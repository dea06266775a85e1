"""Results are the same for any number of threads, whoever calls."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest

from regard.system import kernels
from regard.system.kernels.packing import Precision, pack
from tests.system.kernels.arrays import best, draw, native

pytestmark = pytest.mark.usefixtures("instruction_set", "_one_thread_again")


@pytest.fixture
def _one_thread_again() -> Iterator[None]:
    yield
    kernels.use_threads(1)


def product(x, packed, columns):
    """A product of so many columns."""
    out = np.full((len(x), columns), np.nan, np.float32)
    native.product(x, packed, out, 4)
    return out


@pytest.mark.one_of(5)
@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 512, 1531), (5, 300, 1000), (80, 64, 700)])
def test_product_has_the_same_bits(rows: int, inner: int, columns: int, precision: Precision) -> None:
    x, packed = draw(rows, inner), pack(draw(columns, inner, seed=1), draw(columns, seed=2), precision)
    alone = product(x, packed, columns)
    for count in (2, 3):
        kernels.use_threads(count)
        for _ in range(20):
            np.testing.assert_array_equal(product(x, packed, columns), alone)


@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize(("rows", "pieces"), [(1, 9_001), (4, 2_000), (3, 1)])
def test_vocabulary_has_the_same_bits(rows: int, pieces: int, precision: Precision) -> None:
    given = draw(rows, 48), draw(pieces, 48, seed=1), 4, (), precision
    alone = best(*given)
    for count in (2, 3):
        kernels.use_threads(count)
        for found, wanted in zip(best(*given), alone, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_several_callers_at_once_disturb_nobody() -> None:
    packed, rows = pack(draw(1_600, 256)), [draw(1, 256, seed=seed) for seed in range(4)]
    alone = [product(x, packed, 1_600) for x in rows]
    kernels.use_threads(3)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            for found, wanted in zip(pool.map(lambda x: product(x, packed, 1_600), rows), alone, strict=True):
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied by this processor's system")
def test_forked_process_begins_with_one_thread() -> None:
    x, packed = draw(1, 256), pack(draw(1_600, 256))
    kernels.use_threads(2)
    wanted = product(x, packed, 1_600)
    child = os.fork()
    if child == 0:
        right = native.threads() == 1 and np.array_equal(product(x, packed, 1_600), wanted)
        kernels.use_threads(2)
        os._exit(0 if right and np.array_equal(product(x, packed, 1_600), wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert native.threads() == 2


def test_one_thread_for_a_while() -> None:
    kernels.use_threads(2)
    with kernels.one_thread():
        assert native.threads() == 1
    assert native.threads() == 2
    kernels.use_threads(10_000)
    assert native.threads() == kernels.MOST_THREADS
    with pytest.raises(ValueError, match="threads"):
        native.set_threads(0)
