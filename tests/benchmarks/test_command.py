"""A benchmark that cannot begin says why in one sentence, whatever is wrong."""

import sys
from pathlib import Path
from typing import Any

import pytest

PARALLEL = ("parallel",)
TREC = ("text_to_text", "--set", "trec")


@pytest.fixture
def said(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> Any:
    """What a benchmark prints on stderr, and its exit code."""

    def run(name: str, *words: str) -> tuple[int, str]:
        results = () if "--results" in words else ("--results", str(tmp_path / "results.jsonl"))
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *words, *results])
        with pytest.raises(SystemExit) as ended:
            load("command").run(load(name).main)
        return ended.value.code, capsys.readouterr().err

    monkeypatch.delenv("REGARD_DEBUG", raising=False)
    return run


@pytest.mark.parametrize(
    "words",
    [("table3", "--dry-run"), ("demonstration", "--seed", "1"), ("pronoun", "demo"), TREC, PARALLEL],
    ids=lambda words: words[0],
)
def test_a_results_file_that_is_none(said: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert said(*words, "--results", str(tmp_path)) == (1, f"{tmp_path}: is a folder; a file is needed\n")
    file = tmp_path / "text.jsonl"
    for text in ("hello\n", "[1]\n", '{"rows": 1}\n'):
        file.write_text('{"rows": []}\n' + text)
        code, printed = said(*words, "--results", str(file))
        assert (code, printed) == (1, f"{file}:2: is no line of results: a JSON object with rows is needed\n")
