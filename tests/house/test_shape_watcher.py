import numpy as np
import pytest

from shape_watcher import ShapeWatcher, contradictions, dimensions

HERE = (__file__,)


def well_named(x_TD: np.ndarray, offsets_B1: np.ndarray) -> np.ndarray:
    lengths_B = np.diff(offsets_B1)
    y_TD = x_TD * lengths_B.sum()
    return y_TD


def letter_with_two_sizes(x_TD: np.ndarray) -> np.ndarray:
    y_TD = x_TD[1:]
    return y_TD


def wrong_rank(x_TD: np.ndarray) -> np.ndarray:
    total_T = x_TD[None]
    return total_T


def yields_before_it_is_wrong(x_TD: np.ndarray):
    yield x_TD
    x_T = x_TD
    yield x_T


X = np.zeros((3, 4))


def watch(function, *arguments) -> list[str]:
    watcher = ShapeWatcher(HERE)
    with watcher:
        function(*arguments)
    assert watcher.calls, "the function was not watched"
    return watcher.found


def test_names_end_in_dimensions() -> None:
    assert dimensions("weight_HTS") == ["H", "T", "S"]
    assert dimensions("offsets_B1") == ["B1"]
    assert dimensions("x_T2D") == ["T2", "D"]
    for plain in ("x", "d_model", "ids_t", "_T", "T", "MAX_T", "x_Td"):
        assert dimensions(plain) == [], plain


def test_what_is_wrong_is_found() -> None:
    """In a generator at each yield."""
    assert watch(well_named, X, np.array([0, 2, 3])) == []
    for function, said in (
        (letter_with_two_sizes, "letter_with_two_sizes: T is 3 in x_TD and 2 in y_TD"),
        (wrong_rank, "wrong_rank: total_T has shape (1, 3, 4)"),
        (lambda x_TD: list(yields_before_it_is_wrong(x_TD)), "x_T has shape (3, 4)"),
    ):
        assert any(said in found for found in watch(function, X)), said


def test_torch_tensors_are_seen_and_lists_are_not() -> None:
    torch = pytest.importorskip("torch")
    assert contradictions({"x_TD": torch.zeros(2, 3), "y_D": torch.zeros(4)}) == ["D is 3 in x_TD and 4 in y_D"]
    assert contradictions({"x_TD": [1, 2, 3], "count_T": 7, "e_B1": torch.zeros(3), "f_B": torch.zeros(2)}) == []


WATCHED_TEST = """
import importlib.util, pytest, shape_watcher

@pytest.mark.usefixtures("watch_shapes")
def test_it():
    spec = importlib.util.spec_from_file_location("part", "{part}")
    part = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(part)
    part.wrong()
"""


def test_fixture_fails_the_test(tmp_path, monkeypatch) -> None:
    """The whole way: a test that passes by itself fails because a watched function misnames a tensor."""
    import shape_watcher

    part = tmp_path / "part.py"
    part.write_text("import numpy as np\ndef wrong():\n    x_T = np.zeros((2, 2))\n    return x_T\n")
    test = tmp_path / "test_it.py"
    test.write_text(WATCHED_TEST.format(part=part))
    monkeypatch.setattr(shape_watcher, "WATCHED", (str(tmp_path),))
    monkeypatch.setattr(shape_watcher.ShapeWatcher.__init__, "__defaults__", ((str(tmp_path),),))
    before = pytest.main(["-q", "-p", "shape_watcher", "--rootdir", str(tmp_path), "-c", "/dev/null", str(test)])
    assert before == pytest.ExitCode.TESTS_FAILED
