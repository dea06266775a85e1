"""Quick starts side by side: each cell is run once, scored alike, and a system that fails is told with its reason."""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = """
from pathlib import Path
from worker import serve

def translate(job, part):
    lines = Path(job.text(f"{part}.{job.target}")).read_text().splitlines()
    return [line.upper() for line in lines]

def train(job):
    if job.toolkit == "other":
        raise SystemExit("no such model")
    return len(Path(job.text(f"train.{job.source}")).read_text().splitlines())

def opened(job):
    return {"prepare": lambda: None, "train": lambda: train(job), "translate": lambda part: translate(job, part)}

serve(opened)
"""


@pytest.fixture
def conduct(load: Any, runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The benchmark with two systems, of which the other fails, and two sets of the same file."""
    found, path = load("quick_starts"), runner(RUNNER)
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("".join(f"name\tsource {place}\tein Satz mit fünf Wörtern {place}\n" for place in range(9)))
    peers = {name: found.Peer(name, name, path, None, ("numpy",)) for name in ("regard", "other")}
    monkeypatch.setattr(found, "PEERS", peers)
    monkeypatch.setattr(found, "DATA", tmp_path)
    monkeypatch.setattr(found, "SETS", dict.fromkeys(("whole", "some"), ("en", "de", ("pairs.tsv.gz",) * 2)))
    monkeypatch.setattr(found, "FIRST", {"some": 4})

    def conducted(*words: str) -> int:
        places = ["--work", str(tmp_path / "work"), "--results", str(tmp_path / "rows.jsonl")]
        monkeypatch.setattr(sys, "argv", ["quick_starts.py", *places, *words])
        return int(found.main())

    return conducted


def test_a_cell_is_run_once_and_told_in_the_table(conduct: Any, tmp_path: Path, capsys: Any) -> None:
    words = ("--minutes", "5", "--first-core", str(min(os.sched_getaffinity(0))))
    assert conduct(*words) == 1
    assert conduct(*words) == 0
    rows = [row for line in (tmp_path / "rows.jsonl").read_text().splitlines() for row in json.loads(line)["rows"]]
    wanted = [f"{system} {name} 5 1 1 dev" for name in ("whole", "some") for system in ("regard", "other")]
    assert [row["run"] for row in rows] == wanted
    assert [row["steps"] for row in rows if "steps" in row] == [9, 4]
    assert rows[0]["BLEU lc"] == 100.0 > rows[0]["BLEU cased"]
    assert "no such model" in rows[1]["absent"]
    capsys.readouterr()
    assert conduct("--table") == 0
    assert "| regard | 100.0 ×1 | 100.0 ×1 |\n| other | absent | absent |\n" in capsys.readouterr().out
