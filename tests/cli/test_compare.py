"""``regard compare``: its options, its tables, its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.resume.small_commands import recipes


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    for part, numbers in (("train", range(60)), ("valid", range(60, 68))):
        (tmp_path / f"{part}.en").write_text("".join(f"the cat {i} sees a dog {i % 7}\n" for i in numbers))
        (tmp_path / f"{part}.de").write_text("".join(f"die Katze {i} sieht Hund {i % 7}\n" for i in numbers))
    recipes(tmp_path)
    options = ["compare", str(tmp_path / "none.toml"), str(tmp_path / "dot.toml")]
    for side, code in (("source", "en"), ("target", "de")):
        options += [f"--{side}", str(tmp_path / f"train.{code}"), f"--valid-{side}", str(tmp_path / f"valid.{code}")]
    return [*options, "--threads", "1", "--output", str(tmp_path / "out")]


def test_tables_are_printed_and_written(regard: Any, words: list[str], tmp_path: Path) -> None:
    more = ["--steps", "2", "--seeds", "1", "--fraction", "0.5", "1", "--lowercase"]
    done = regard(*words, *more).succeeds()
    rows = [line.split()[0] for line in done.out.splitlines() if line.split()[:1] in (["none"], ["dot"])]
    assert rows == ["none", "dot", "none", "dot", "none", "dot"]  # two shares, then by length
    for said in ("sequential", "⌈n/2⌉ + m", "BLEU lc", "1-8 words", "table.md"):
        assert said in done.out
    assert "run 1 of 4: none-of0.5-seed1" in done.err
    out = tmp_path / "out"
    assert "By the length of the source" in (out / "table.md").read_text(encoding="utf-8")
    assert not list(out.glob(".*partial*"))
    again = regard(*words, *more)
    assert again.out == done.out
    assert "4 of 4 runs are in" in again.err
    page = (out / "table.md").read_bytes()
    assert regard(*words, "--steps", "2", "--seeds", "1", "--name", "second").code == 0  # of the same runs
    assert (out / "second.md").exists()
    assert (out / "table.md").read_bytes() == page
    values = [json.loads(line) for line in regard(*words, *more, "--json").out.splitlines()]
    assert [value["run"] for value in values][:2] == ["none-of0.5-seed1", "dot-of0.5-seed1"]
    assert len(values) == 4


@pytest.mark.parametrize(
    ("left_out", "more", "said"),
    [
        ("--output", [], "--output DIR"),
        ("--source", [], "at least one --source FILE, and as many --target FILE"),
        ("--target", [], "at least one --source FILE, and as many --target FILE"),
        ("--valid-source", [], "give both --valid-source FILE and --valid-target FILE"),
        ("", ["--test-target", "x"], "give both --test-source FILE and --test-target FILE"),
        ("", [], "--minutes: give this or --steps"),
        ("", ["--steps", "2", "--minutes", "1"], "--minutes: give this or --steps"),
        ("", ["--steps", "2", "--fraction", "2"], "no share of the data"),
        ("", ["--steps", "2", "--name", "../a"], "no plain name"),
    ],
)
def test_options_that_are_missing_or_do_not_fit(
    regard: Any, words: list[str], left_out: str, more: list[str], said: str, tmp_path: Path
) -> None:
    place = words.index(left_out) if left_out else len(words)
    regard(*words[:place], *words[place + 2 :], *more).refuses(said)
    assert not (tmp_path / "out").exists()
