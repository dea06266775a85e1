import numpy as np
import pytest

from tests.kernels.arrays import draw

pytestmark = pytest.mark.usefixtures("instruction_set")

SIZES = [0, 1, 5, 16, 67, 1000]


def drawn(size: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, size, dtype=np.uint8)


def bits(x):
    """As bf16."""
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x).bfloat16().view(torch.uint16).numpy()


def floats(bits_of):
    """Of bf16."""
    return (bits_of.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threshold", [0, 1, 26, 255, 256])
@pytest.mark.parametrize("gated", [False, True])
def test_dropout_is_its_plain_loop(size: int, threshold: int, gated: bool) -> None:
    from regard.kernels import _native

    x, gate, bytes_ = draw(size), draw(size, seed=1), drawn(size)
    wanted = x * (bytes_.astype(int) >= threshold) * np.float32(1.25)
    if gated:
        wanted = np.where(gate > 0, wanted, 0)
    out = np.empty_like(x)
    _native.dropout(x, bytes_, out, threshold, 1.25, gate if gated else None)
    np.testing.assert_array_equal(out, wanted)
    _native.dropout(x, bytes_, x, threshold, 1.25, gate if gated else None)  # in place
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("size", SIZES)
def test_added_to_a_stream_it_is_its_plain_loop(size: int) -> None:
    from regard.kernels import _native

    x, stream, bytes_ = draw(size), draw(size, seed=1), drawn(size)
    total = np.empty_like(x)
    _native.add_dropout(x, bytes_, stream, total, 26, 1.25)
    np.testing.assert_allclose(total, stream + x * (bytes_ >= 26) * np.float32(1.25), atol=3e-7)


@pytest.mark.parametrize("size", SIZES)
def test_bf16_is_rounded_once(size: int) -> None:
    from regard.kernels import _native

    x, gate, stream, bytes_ = bits(draw(size)), bits(draw(size, seed=1)), draw(size, seed=2), drawn(size)
    out, total = np.empty_like(x), np.empty_like(stream)
    kept = floats(x) * (bytes_ >= 26) * np.float32(1.1)
    _native.dropout(x, bytes_, out, 26, 1.1, gate)
    np.testing.assert_array_equal(floats(out), floats(bits(np.where(floats(gate) > 0, kept, 0))))
    _native.add_dropout(x, bytes_, stream, total, 26, 1.1)
    np.testing.assert_allclose(total, stream + kept, atol=3e-7)


@pytest.mark.parametrize("gated", [False, True])
def test_nan_stays_nan_where_it_is_kept(gated: bool) -> None:
    from regard.kernels import _native

    x = np.resize(np.array([np.nan, -np.inf, np.inf, -1.0, 2.0], np.float32), 25)
    out, bytes_ = np.empty_like(x), np.full(25, 255, np.uint8)
    _native.dropout(x, bytes_, out, 26, 1.0, x if gated else None)
    np.testing.assert_array_equal(out, np.maximum(x, 0) if gated else x)
    halves, found = bits(x), np.empty(25, np.uint16)
    _native.dropout(halves, bytes_, found, 26, 1.0, halves if gated else None)
    np.testing.assert_array_equal(floats(found), np.maximum(x, 0) if gated else x)


def test_arrays_that_do_not_fit_are_refused() -> None:
    from regard.kernels import _native

    with pytest.raises(ValueError, match="another length"):
        _native.dropout(draw(4), drawn(3), np.empty(4, np.float32), 26, 1.0, None)
    with pytest.raises(ValueError, match="another length"):
        _native.dropout(draw(4), drawn(4), np.empty(4, np.float32), 26, 1.0, draw(3))
    with pytest.raises(ValueError, match="another length"):
        _native.add_dropout(draw(4), drawn(4), draw(3), np.empty(4, np.float32), 26, 1.0)
    with pytest.raises(ValueError, match="one piece"):
        _native.dropout(draw(8)[::2], drawn(4), np.empty(4, np.float32), 26, 1.0, None)
    with pytest.raises(TypeError):
        _native.dropout(draw(4), drawn(4), np.empty(4, np.uint16), 26, 1.0, None)
