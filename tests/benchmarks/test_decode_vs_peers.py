"""Decoding beside other tools: rows, ratios and equal outputs are what the answers say; no speed is measured."""

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = """
from functools import partial
from worker import Missing, serve

def load(job):
    if job.word == "missing":
        raise Missing("no such type")
    print("noise of a library")
    return {"translate": partial(translate, job.word)}

def translate(word, texts, beam, batch):
    if word == "fails":
        raise SystemExit("went wrong")
    shift = word == "other"
    return [[len(text) + (shift and place == 0), beam] for place, text in enumerate(texts)]

serve(load)
"""


@pytest.fixture
def decode_tools(load: Any, runner: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The conductor with tools that write a text's length."""
    found = load("decode_tools")
    path = runner(RUNNER)

    def tools() -> list[Any]:
        words = {"regard": "other", "ctranslate2": "", "transformers": "missing", "onnxruntime": "fails"}
        return [
            found.Tool(
                *(name, name, path, None, ("numpy",), "fp32", {"word": word}),
                batches=(3, 5),
                slow=name in ("transformers", "onnxruntime"),
            )
            for name, word in words.items()
        ]

    monkeypatch.setattr(found, "tools", tools)
    monkeypatch.setattr(found.decode_models, "forms", lambda folder, wanted: {})
    return found


def asked(tmp_path: Path, **changed: Any) -> argparse.Namespace:
    names = ["regard", "ctranslate2", "transformers", "onnxruntime"]
    values = {"peers": names, "precision": ["fp32"], "rounds": 2, "slow_sentences": 2, "tried": 4, "cores": [0]}
    values |= {"device": "cpu", "clock": "cpu", "one_python": False, "forms": (), "packed": False}
    return argparse.Namespace(**{**values, "work": tmp_path, "scratch": tmp_path, **changed})


def test_rows_tell_what_was_answered(decode_tools: Any, tmp_path: Path) -> None:
    texts = ["a", "bb", "ccc", "dddd"]
    measures = [decode_tools.Measure("greedy", {"beam": 1}, texts, batched=True)]
    rows = {row["tool"]: row for row in decode_tools.measured("translate", tmp_path, measures, asked(tmp_path))}
    assert {name: row.get("absent") for name, row in rows.items() if "runs" not in row} == {
        "transformers": "no such type",
        "onnxruntime": "failed: went wrong",
    }
    ours, basis = rows["regard"], rows["ctranslate2"]
    assert (ours["same"], basis["same"], basis["ratio"]) == (0.75, 1.0, 1.0)
    assert len(ours["runs"]) == 2
    assert ours["batch"] in (3, 5)
    assert ours["texts"] == 4
    assert 0 < ours["peak MB"] < 2000
    assert set(ours["versions"]) == {"numpy"}


def test_a_rate_counts_the_end_of_each_output(decode_tools: Any) -> None:
    runs = [{"cpu": cpu, "answers": [[1, 2], [3]]} for cpu in (1.0, 9.0, 2.0)]
    assert decode_tools.tokens_a_second("translate", runs, "cpu") == 5 / 2
    assert decode_tools.tokens_a_second("generate", runs, "cpu") == 3 / 2
    assert decode_tools.tokens_a_second("encode", runs, "cpu") == 2 / 2


if sys.platform != "linux":
    pytest.skip("processes are pinned to a core as Linux does it", allow_module_level=True)
