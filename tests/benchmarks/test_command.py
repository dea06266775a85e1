"""A benchmark that cannot begin says why in one sentence, whatever is wrong."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.system.errors import Diverged, RegardError, UsageError

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
    ("error", "code", "sentence"),
    [
        (RegardError("is\nwrong", "here"), 1, "here: is wrong\n"),
        (UsageError("no such row"), 2, "no such row\n"),
        (Diverged("the loss is not finite"), 76, "the loss is not finite\n"),
        (FileNotFoundError(2, "No such file or directory", "a.gz"), 1, "a.gz: No such file or directory\n"),
        (json.JSONDecodeError("no value", "x", 0), 1, "a file is no JSON: no value: line 1 column 1 (char 0)\n"),
    ],
)
def test_an_error_is_one_sentence(load: Any, capsys: Any, error: Exception, code: int, sentence: str) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        load("command").run(fails)
    assert (ended.value.code, capsys.readouterr().err) == (code, sentence)


def test_an_error_of_the_program_is_shown_whole(load: Any) -> None:
    def fails() -> None:
        raise KeyError("rows")

    with pytest.raises(KeyError):
        load("command").run(fails)


@pytest.mark.parametrize("words", [("--steps", "-5"), ("--steps", "0"), ("--seed", "-1")])
def test_numbers_that_cannot_be_end_a_dry_run(said: Any, words: tuple[str, str]) -> None:
    code, printed = said("table3", "--dry-run", *words)
    assert code == 2
    assert printed.endswith(f", not {words[1]}\n")


def test_an_unknown_setting_ends_a_dry_run(said: Any, tmp_path: Path) -> None:
    code, printed = said("table3", "--dry-run", "--set", "bogus=1", "--work", str(tmp_path))
    assert code == 2
    assert printed.startswith("--set: unknown key 'bogus'")


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


@pytest.mark.parametrize("words", [PARALLEL, TREC], ids=lambda words: words[0])
def test_data_that_are_missing(
    load: Any, said: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "nowhere"))
    code, printed = said(*words, *(() if words == PARALLEL else ("--work", str(tmp_path))))
    assert code == 1
    assert printed.startswith(str(tmp_path / "nowhere"))
    assert printed.endswith(": no such file; benchmarks read data below REGARD_DATA; set that variable\n")


def test_a_model_to_read_or_begin_with_that_is_missing(
    load: Any, said: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = tmp_path / "missing"
    assert said("pronoun", str(missing)) == (1, f"{missing / 'model'}: no such folder\n")
    rows = {part: [("type", f"text {n}", "word") for n in range(9)] for part in ("train", "test")}
    monkeypatch.setitem(load("text_to_text").SETS, "trec", lambda: rows)
    code, printed = said(*TREC, "--from", str(missing), "--work", str(tmp_path / "work"))
    assert (code, printed) == (1, f"{missing}: is no model folder to initialise from\n")


def test_a_gpu_is_refused_beside_results_of_a_cpu(load: Any, said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load("table3"), "device", lambda: "cuda")
    code, printed = said("table3", "--results", str(load("table3").RESULTS))
    assert code == 1
    assert printed.startswith("table3.jsonl is of runs trained on a CPU; ")
