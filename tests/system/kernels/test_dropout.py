import numpy as np
import pytest

from tests.system.kernels.arrays import draw, halved, native, widened

pytestmark = pytest.mark.usefixtures("instruction_set")

SIZES = [0, 1, 5, 16, 67, 1000]


def drawn(size: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threshold", [0, 1, 26, 255, 256])
@pytest.mark.parametrize("gated", [False, True])
def test_dropout_is_its_plain_loop(size: int, threshold: int, gated: bool) -> None:
    x, gate, bytes_ = draw(size), draw(size, seed=1), drawn(size)
    wanted = x * (bytes_.astype(int) >= threshold) * np.float32(1.25)
    if gated:
        wanted = np.where(gate > 0, wanted, 0)
    out = np.empty_like(x)
    native.dropout(x, bytes_, out, threshold, 1.25, gate if gated else None)
    np.testing.assert_array_equal(out, wanted)
    native.dropout(x, bytes_, x, threshold, 1.25, gate if gated else None)  # in place
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("size", SIZES)
def test_added_to_a_stream_it_is_its_plain_loop(size: int) -> None:
    x, stream, bytes_ = draw(size), draw(size, seed=1), drawn(size)
    total = np.empty_like(x)
    native.add_dropout(x, bytes_, stream, total, 26, 1.25)
    np.testing.assert_allclose(total, stream + x * (bytes_ >= 26) * np.float32(1.25), atol=3e-7)


@pytest.mark.parametrize("size", SIZES)
def test_bf16_is_rounded_once(size: int) -> None:
    x, gate, stream, bytes_ = halved(draw(size)), halved(draw(size, seed=1)), draw(size, seed=2), drawn(size)
    out, total = np.empty_like(x), np.empty_like(stream)
    kept = widened(x) * (bytes_ >= 26) * np.float32(1.1)
    native.dropout(x, bytes_, out, 26, 1.1, gate)
    np.testing.assert_array_equal(widened(out), widened(halved(np.where(widened(gate) > 0, kept, 0))))
    native.add_dropout(x, bytes_, stream, total, 26, 1.1)
    np.testing.assert_allclose(total, stream + kept, atol=3e-7)


@pytest.mark.parametrize("gated", [False, True])
def test_nan_stays_nan_where_it_is_kept(gated: bool) -> None:
    x = np.resize(np.array([np.nan, -np.inf, np.inf, -1.0, 2.0], np.float32), 25)
    out, bytes_ = np.empty_like(x), np.full(25, 255, np.uint8)
    native.dropout(x, bytes_, out, 26, 1.0, x if gated else None)
    np.testing.assert_array_equal(out, np.maximum(x, 0) if gated else x)
    halves, found = halved(x), np.empty(25, np.uint16)
    native.dropout(halves, bytes_, found, 26, 1.0, halves if gated else None)
    np.testing.assert_array_equal(widened(found), np.maximum(x, 0) if gated else x)


def test_arrays_that_do_not_fit_are_refused() -> None:
    x, bytes_, out = draw(4), drawn(4), np.empty(4, np.float32)
    for kernel, said, given in (
        (native.dropout, "another length", (x, drawn(3), out, 26, 1.0, None)),
        (native.dropout, "another length", (x, bytes_, out, 26, 1.0, draw(3))),
        (native.add_dropout, "another length", (x, bytes_, draw(3), out, 26, 1.0)),
        (native.dropout, "one piece", (draw(8)[::2], bytes_, out, 26, 1.0, None)),
    ):
        with pytest.raises(ValueError, match=said):
            kernel(*given)
    with pytest.raises(TypeError):
        native.dropout(x, bytes_, np.empty(4, np.uint16), 26, 1.0, None)
