"""Images of a file to be looked at: with labels, or without, as what is classified."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from regard.data.corpora.images import Shape
from regard.system.errors import RegardError, UsageError
from regard.tasks.images.classifier import some_images
from tests.refusals import refused

TASK: Any = SimpleNamespace(cut=SimpleNamespace(shape=Shape(2, 2)))


def test_with_labels_and_without(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,3,4,a\n5,6,7,8,b\n\n9,9,9,9,c\n")
    (tmp_path / "b.csv").write_text("1,2,3,4\n\n5,6,7,8\n")
    (tmp_path / "c.tsv").write_text("p0\tp1\tp2\tp3\n1\t2\t3\t4\n")
    (tmp_path / "d.csv").write_text("label,p0,p1,p2,p3\nx,1,2,3,4\n")
    np.savez(tmp_path / "e.npz", images=np.arange(8).reshape(2, 2, 2), labels=np.array(["u", "v"]))
    for name, labels in {"a.csv": ["a", "b"], "b.csv": [None] * 2, "c.tsv": [None], "d.csv": ["x"]}.items():
        found = some_images(TASK, tmp_path / name, 2)
        assert [label for _, label in found] == labels
        assert found[0][0].tolist() == [1, 2, 3, 4]
    (one,) = some_images(TASK, tmp_path / "e.npz", 1)
    assert (one[0].tolist(), one[1]) == ([0, 1, 2, 3], "u")


def test_what_is_no_image_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,3,4\n1,2,x,4\n")
    with refused(RegardError, "a.csv:2", "'x'"):
        some_images(TASK, tmp_path / "a.csv", 9)
    assert len(some_images(TASK, tmp_path / "a.csv", 1)) == 1
    (tmp_path / "b.csv").write_text("")
    with refused(RegardError):
        some_images(TASK, tmp_path / "b.csv", 9)
    with refused(UsageError):
        some_images(TASK, tmp_path / "b.txt", 9)
