"""``metrics.jsonl``: whole lines, no numbers JSON does not have, cut back on resume with nothing lost."""

import errno
import json
import os

import pytest

from regard.system.errors import RegardError
from regard.training.log import MetricsLog
from tests.refusals import refused
from tests.training.toy import Fast, Killer, in_child


def written(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def filled(tmp_path, steps=6):
    log = MetricsLog(tmp_path / "metrics.jsonl", Fast())
    log.write("start", 0)
    for step in range(1, steps + 1):
        log.write("step", step, loss=1.0 / step)
    return log


def test_numbers_that_are_not_finite_are_null_and_text_stays_on_its_line(tmp_path):
    log, text, nan = filled(tmp_path, 0), "a\nb\r\u2028c\x85\x00 ä", float("nan")
    log.write("step", 1, loss=nan, norm=float("inf"), norms={"a": float("-inf"), "b": 0.5}, some=[nan, 1], source=text)
    values = {"loss": None, "norm": None, "norms": {"a": None, "b": 0.5}, "some": [None, 1], "source": text}
    raw = log.path.read_bytes()
    assert raw.count(b"\n") == 2
    assert json.loads(raw.split(b"\n")[1]) == {"kind": "step", "step": 1, **values}


def test_cut_back_to_a_step_with_the_tail_kept(tmp_path):
    log = filled(tmp_path)
    log.truncate(4)
    assert [line["step"] for line in written(log.path)] == [0, 1, 2, 3, 4]
    assert [line["step"] for line in written(tmp_path / "metrics.after-000004.jsonl")] == [5, 6]
    log.write("step", 5)
    log.truncate(4)
    assert [line["step"] for line in written(log.path)] == [0, 1, 2, 3, 4]
    assert [line["step"] for line in written(tmp_path / "metrics.after-000004-1.jsonl")] == [5]


@pytest.mark.parametrize("torn", ["", '{"kind": "step", "step": 3, "lo'])
def test_only_a_torn_line_is_cut(tmp_path, torn):
    log = filled(tmp_path)
    before = log.path.read_text()
    log.path.write_text(before + torn)
    log.truncate(6)
    assert log.path.read_text() == before
    assert len(list(tmp_path.iterdir())) == (2 if torn else 1)


@pytest.mark.long(minutes=0.03)
def test_killed_while_cutting_loses_nothing(tmp_path):
    for number in range(1, 12):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = filled(folder)
        log.files = Killer(number)
        code = in_child(lambda log=log: log.truncate(4))
        assert code == (137 if number <= 10 else 0)
        log.files = Fast()
        log.truncate(4)
        assert [line["step"] for line in written(log.path)] == [0, 1, 2, 3, 4]
        tails = [[line["step"] for line in written(path)] for path in folder.glob("metrics.after-*.jsonl")]
        assert [5, 6] in tails


def test_a_full_disk_does_not_stop_training(tmp_path, monkeypatch):
    log = filled(tmp_path)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("builtins.open", full)
    log.write("step", 7)
    monkeypatch.undo()
    assert log.lost == 1
    assert len(written(log.path)) == 7


@pytest.mark.parametrize("device", [None, "/dev/zero"], ids=["pipe", "device"])
def test_a_log_that_is_no_file_is_neither_waited_for_nor_read(tmp_path, device):
    path = tmp_path / "metrics.jsonl"
    os.symlink(device, path) if device else os.mkfifo(path)
    log = MetricsLog(path, Fast())
    with refused(RegardError, path):
        log.truncate(4)
    log.write("step", 5)
    log.sync()
    assert log.lost == 1
