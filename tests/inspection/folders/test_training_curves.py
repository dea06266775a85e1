"""A log is followed line by line, its values are taken unchanged or rejected, and curves are downsampled."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders import training_curves as module
from regard.inspection.folders.training_curves import LOG, TEXT, Curves, TrainingCurves
from regard.system.errors import RegardError
from tests.refusals import refused


@pytest.mark.parametrize("points", [1, 3, 7, 50, 100])
def test_means_by_plain_loops(points: int) -> None:
    draw = np.random.default_rng(points)
    values = np.where(draw.random(50) < 0.3, np.nan, draw.normal(size=50))
    curves = Curves()
    for step, value in enumerate(values):
        curves.add(step, {"a": value})
    steps, columns = curves.downsample(points)
    width = next(width for width in range(1, 51) if -(-50 // width) <= points)
    assert len(steps) == len(columns["a"]) == -(-50 // width) <= points
    for place, begin in enumerate(range(0, 50, width)):
        known = [value for value in values[begin : begin + width] if np.isfinite(value)]
        assert columns["a"][place] == pytest.approx(sum(known) / len(known) if known else np.nan, nan_ok=True)
        assert steps[place] == pytest.approx(np.mean(range(begin, min(50, begin + width))))


def test_there_are_only_so_many_columns() -> None:
    curves = Curves(["a"], most=2)
    curves.add(1, {"b": 1.0, "c": 1.0})
    curves.add(2, {"c": 1.0, "a": 5.0})
    assert [*curves.columns] == ["a", "b"]
    np.testing.assert_array_equal(curves.columns["a"], [np.nan, 5])


def line(kind: str, step: int, **values: Any) -> bytes:
    return json.dumps({"kind": kind, "step": step, **values}).encode() + b"\n"


def log() -> bytes:
    found = [line("start", 0, steps=20, parameters=7)]
    for step in range(1, 21):
        values = {"seconds": step / 2, "rate": 1e-3, "tokens_per_second": 100, "norm": 1.5}
        if step % 10 == 0:
            values["norms"] = {"encoder": 0.5 * step}
        found.append(line("step", step, loss=None if step == 7 else 9 - step / 4, **values))
        if step % 10 == 0:
            found.append(line("sample", step, source="ä", reference="c", hypothesis="b"))
            found.append(line("valid", step, loss=4.0, bleu=step / 1.0))
    return b"".join([*found, line("save", 20, path="step-000020"), line("unheard of", 21)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / LOG).parent.mkdir()
    return tmp_path


def followed(folder: Path, content: bytes) -> TrainingCurves:
    """A log that was read once."""
    (folder / LOG).write_bytes(content)
    course = TrainingCurves(folder)
    assert course.advance() == bool(content)
    return course


@pytest.mark.parametrize("piece", [11, 37, 10_000])
def test_read_as_it_grows(folder: Path, piece: int) -> None:
    whole = log()
    course = TrainingCurves(folder)
    for end in range(piece, len(whole) + piece, piece):
        (folder / LOG).write_bytes(whole[:end])
        course.advance()
    assert not course.advance()
    assert course.planned == 20
    assert course.updates.steps.tolist() == list(range(1, 21))
    assert np.isnan(course.updates.columns["loss"][6])
    values, arrays = course.summary(100)
    assert [each["bleu"] for each in values["valid"]] == [10, 20]
    assert [each["source"] for each in values["samples"]] == ["ä", "ä"]
    assert values["norms"] == {"steps": [10, 20], "names": ["encoder"]}
    assert arrays["norms"].tolist() == [[5.0], [10.0]]


def test_a_log_that_was_cut_is_read_anew(folder: Path) -> None:
    course = followed(folder, log())
    (folder / LOG).write_bytes(b"".join(log().splitlines(keepends=True)[:6]) + b'{"half\n[1]\n')
    course.advance()
    assert course.updates.steps.tolist() == [1, 2, 3, 4, 5]
    assert course.valid == {}


@pytest.mark.parametrize("renamed", [False, True])
def test_a_log_that_began_anew_and_grew_beyond_the_old_is_read_from_its_beginning(folder: Path, renamed: bool) -> None:
    course = followed(folder, b"".join(line("step", step, loss=9.0) for step in range(1, 6)))
    other = b"".join(line("step", step, loss=8.0) for step in range(1, 31))
    if renamed:
        (folder / "new").write_bytes(other)
        (folder / "new").replace(folder / LOG)
    else:
        (folder / LOG).write_bytes(other)  # the same file, as a system gives its number again
    course.advance()
    assert course.updates.steps.tolist() == list(range(1, 31))
    assert set(course.updates.columns["loss"]) == {8.0}


def test_the_same_log_under_another_number_is_read_once(folder: Path) -> None:
    course = followed(folder, log())
    (folder / "copy").write_bytes(log())
    (folder / "copy").replace(folder / LOG)
    course.advance()
    assert len(course.updates.steps) == 20


def test_a_million_updates_make_a_bounded_answer(folder: Path) -> None:
    """As does a damaged log that says everything of one step."""
    course = TrainingCurves(folder)
    names = [f"layer {number}" for number in range(40)]
    for step in range(1, 30_001):
        course.updates.add(step, dict.fromkeys(module.COLUMNS, 1.0))
        course.norms.add(step, dict.fromkeys(names, float(step)))
        course.valid[step] = {"step": step, "loss": 5.0, "best": step == 12_347}
        text = dict.fromkeys(("source", "reference", "hypothesis"), "a")
        course.samples.append({"step": max(step, 29_000), **text})
    values, arrays = course.summary(10_000)
    assert len(arrays["loss"]) <= 10_000
    assert arrays["norms"].size <= module.CELLS
    assert len(values["norms"]["steps"]) == len(arrays["norms"]) > module.CELLS / 50
    np.testing.assert_allclose(arrays["norms"][:, 0], values["norms"]["steps"])
    steps = [one["step"] for one in values["valid"]]
    assert steps == sorted(set(steps))
    assert {1, 12_347, 30_000} <= set(steps)
    assert len(steps) <= module.VALIDATIONS + module.WRITTEN + 1
    counts = Counter(one["step"] for one in values["samples"])
    assert len(counts) == module.WRITTEN
    assert counts[29_000] == module.EACH
    assert set(counts) <= set(steps)


def test_damaged_lines_are_passed_over(folder: Path) -> None:
    """Whatever stands in a log, what is whole in it is told."""
    damaged = [
        b"NaN", b"[]", b'"text"', b"5", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"kind": ' + b"9" * 5000 + b"}",
        b'{"kind": ["step"], "step": 1}', b'{"kind": {}, "step": 1}', b'{"kind": "start", "step": 0, "steps": "many"}',
        b'{"kind": "step", "loss": 5}', b'{"kind": "step", "step": "2", "loss": 5}', b'{"kind": "step", "step": NaN}',
        b'{"kind": "step", "step": [1], "loss": 5}', b'{"kind": "step", "step": -1}',
        b'{"kind": "step", "step": 1e999}', b'{"kind": "step", "step": true}',
        b'{"kind": "step", "step": 1' + b"0" * 400 + b"}",
        b'{"kind": "step", "step": 9007199254740993, "loss": 1}', b'{"kind": "step", "step": 1.0, "loss": 1}',
        b'{"kind": "valid", "step": 3}', b'{"kind": "valid", "step": 3, "loss": NaN}', b'{"kind": "valid", "loss": 1}',
        b'{"kind": "sample", "step": 3}',
        b'{"kind": "sample", "step": 3, "source": 1, "reference": "", "hypothesis": ""}',
        b'{"kind": "sample", "source": "", "reference": "", "hypothesis": ""}',
    ]  # fmt: skip
    half = [
        b'{"kind": "step", "step": 1, "loss": NaN, "rate": "fast", "norm": true, "seconds": 1e300, "norms": [1]}',
        b'{"kind": "step", "step": 2, "loss": 1' + b"0" * 400 + b', "norms": {"a": "b", "c": null, "d": -Infinity}}',
        b'{"kind": "step", "step": 3, "loss": 4, "norms": {"a": -1.5, "b": {}, "\\ud800": 2, "' + b"n" * 99 + b'": 1}}',
        b'{"kind": "valid", "step": 3, "loss": 2, "best": "y", "bleu": Infinity, "chrf": "x", "f1": 0.5, "\\ud800": 1}',
        b'{"kind": "valid", "step": 4, "best": true, "loss": 1' + b"".join(b', "%d": 1' % n for n in range(99)) + b"}",
        b'{"kind": "sample", "step": 3, "source": "\\ud800", "reference": "' + b"r" * 5000 + b'", "hypothesis": ""}',
    ]
    content = b"\n".join([*damaged, *half, b'{"kind": "step", "step": 4, "lo'])
    values, arrays = followed(folder, content).summary(10)
    assert json.loads(json.dumps(values, allow_nan=False, ensure_ascii=False).encode()) == values
    assert values["planned"] is None
    assert arrays["step"].tolist() == [1, 2, 3]
    assert np.isnan(arrays["loss"]).tolist() == [True, True, False]
    assert all(np.isnan(arrays[name]).all() for name in ("rate", "norm", "seconds"))
    assert values["norms"] == {"steps": [3], "names": ["a", "\ufffd"]}
    assert arrays["norms"].tolist() == [[-1.5, 2]]
    known, many = values["valid"]
    assert known == {"step": 3, "loss": 2, "best": False, "f1": 0.5, "\ufffd": 1}
    assert (many["best"], len(many)) == (True, module.SCORES + 1)
    (sample,) = values["samples"]
    assert (sample["source"], sample["hypothesis"]) == ("\ufffd", "")
    assert sample["reference"] == "r" * TEXT + "…"


@pytest.mark.parametrize("seed", range(20))
def test_a_log_with_any_bytes_changed_is_told(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    content = bytearray(log())
    for _ in range(200):
        content[draw.randrange(len(content))] = draw.randrange(256)
    values, arrays = followed(folder, content).summary(7)
    json.dumps(values, allow_nan=False, ensure_ascii=False).encode()
    assert {array.dtype.name for array in arrays.values()} == {"float32"}


@pytest.mark.parametrize("chunk", [7, 100, 1 << 20])
def test_a_line_that_does_not_end_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """However it comes: whole, in parts, or after the log was looked at; nothing of it is kept."""
    monkeypatch.setattr(module, "LINE", 80)
    monkeypatch.setattr(module, "CHUNK", chunk)
    zeros = b"\0" * 1000
    whole = [line("step", 1, loss=9.0), zeros + line("step", 2, loss=8.0), line("step", 3, loss=7.0)]
    long = [b'{"kind": "step", "step": 4, "loss": 6' + b" " * 60 + b"}\n", line("step", 5, loss=5.0), zeros]
    course = followed(folder, b"".join([*whole, *long]))
    assert course.updates.steps.tolist() == [1, 3, 5]
    assert course._rest == b""
    rest = b"\n" + line("step", 6, loss=4.0) + b'{"kind": "step",'
    for more, new in ((zeros, False), (rest, True), (b' "step": 7, "loss": 1}\n', True)):
        with (folder / LOG).open("ab") as file:
            file.write(more)
        assert course.advance() == new
    assert course.updates.steps.tolist() == [1, 3, 5, 6, 7]


def test_no_log_is_said(tmp_path: Path) -> None:
    with refused(RegardError, "metrics.jsonl"):
        TrainingCurves(tmp_path).advance()
    (tmp_path / LOG).parent.mkdir()
    values, arrays = followed(tmp_path, b"").summary(10)
    assert arrays["loss"].shape == (0,)
    assert (values["valid"], values["samples"], arrays["norms"].shape) == ([], [], (0, 0))
