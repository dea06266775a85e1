"""Blocks of examples divided among processes become the same bytes as in one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.prepare import division
from regard.data.prepare.division import Block, blocks, pack, unpack
from regard.data.prepare.encoders import RefusedExample
from regard.data.prepare.split import Placed
from regard.runs.datasets import training_job
from regard.system.forks import SAFE, ForkedWorkers
from regard.tasks.protocols import InputFiles

WORDS = "red house boat Ärger 猫 runs far (away) it's d'accord 12".split()


@pytest.mark.parametrize("coded", [[], [RefusedExample("empty", 1)], [[], RefusedExample("too long"), [], []]])
def test_nothing_is_packed(coded: list[Any]) -> None:
    assert unpack(pack(coded)) == coded


def test_ids_are_packed() -> None:
    def ids(*numbers: int) -> Any:
        return np.array(numbers, np.int64)

    coded = [[(ids(1, 2, 1 << 32), ids())], RefusedExample("empty", 1), [(ids(3), ids(4)), (ids(), ids(-5, 6))]]
    found = unpack(pack(coded))
    assert found[1] == coded[1]
    for one, other in zip(found, coded, strict=True):
        if not isinstance(other, RefusedExample):
            assert [[side.tolist() for side in window] for window in one] == [  # type: ignore[union-attr]
                [side.tolist() for side in window] for window in other
            ]


def test_each_part_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        def characters(self, example: str) -> int:
            return len(example)

    monkeypatch.setattr(division, "BATCH", 3)
    monkeypatch.setattr(division, "CHARACTERS", 100)
    corpus: Any = None
    parts = ["train", "validation", "shared"]
    placed = [Placed("x" * (200 if n == 4 else 1), parts[n % 3], corpus, n) for n in range(12)]  # type: ignore[arg-type]
    found = list(blocks(placed, Counting()))  # type: ignore[arg-type]
    assert [(one.part, [each.number for each in one.placed]) for one in found] == [
        ("train", [0, 2, 3]),
        ("validation", [1, 4]),
        ("train", [5, 6, 8]),
        ("train", [9, 11]),
        ("validation", [7, 10]),
    ]
    assert Block("train", placed[:1]).examples == ["x"]


def written(task: str, folder: Path) -> InputFiles:
    """Some hundred examples of a task, of which some are left out."""
    draws = np.random.default_rng(1)
    texts = [" ".join(draws.choice(WORDS, 4)) + f" n{n % 7}" for n in range(230)]
    texts[5] = texts[100] = ""
    texts[17] = "long " * 90
    labels = ["" if n == 50 else "ab"[n % 2] for n in range(230)]
    if task == "translation":
        for name, lines in (("a.en", texts), ("a.de", texts[::-1])):
            (folder / name).write_text("".join(f"{line}\n" for line in lines))
        return InputFiles(source=[folder / "a.en"], target=[folder / "a.de"])
    path = folder / "a.txt"
    if task == "tagging":
        path.write_text("".join("".join(f"{w} B-{w[0]}\n" for w in text.split()[:9]) + "\n" for text in texts))
    elif task in ("language-model", "masked-lm"):
        path.write_text("\n\n".join(text for text in texts if text))
    else:
        path = folder / "a.tsv"
        columns = [texts, texts[::-1], labels] if task == "sentence-pairs" else [texts, labels]
        rows = zip(*columns, strict=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return InputFiles([path])


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
@pytest.mark.parametrize(
    ("task", "dropout"),
    [
        ("translation", 0.0),
        ("translation", 0.1),
        ("classification", 0.0),
        ("sentence-pairs", 0.0),
        ("tagging", 0.0),
        ("language-model", 0.0),
        ("masked-lm", 0.0),
    ],
)
def test_the_files_do_not_depend_on_the_processes(
    task: str, dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(division, "BATCH", 20)
    started = []
    monkeypatch.setattr(ForkedWorkers, "__enter__", _noting(ForkedWorkers.__enter__, started))
    values = {"task": task, "text": {"vocabulary": 300, "bpe_dropout": dropout}, "data": {"max_tokens": 64}}
    job = training_job(task, written(task, tmp_path), lambda *_: recipe_from(values), lambda text: None, True)
    contents = []
    for processes in (1, 2, 3):
        replace(job, processes=processes).prepare(folder := tmp_path / f"data{processes}", lambda stage, n: None)
        contents.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert contents[0]
    assert contents[0] == contents[1] == contents[2]
    assert len(started) == (0 if dropout else 2)  # words are numbered as they come


def _noting(enter: Any, started: list[Any]) -> Any:
    def noted(self: Any) -> Any:
        started.append(self)
        return enter(self)

    return noted
