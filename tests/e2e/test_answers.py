"""What a person does with a file of prefixed pairs, one command after the other."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main
from tests.e2e.conftest import settings

Run = Any
"""The fixture ``regard``: words in; code, out, err."""
SMALL = settings(
    "text.units=characters model.d_model=32 model.d_ff=64 model.heads=2 model.encoder_layers=1 model.decoder_layers=1 "
    "model.dropout=0 data.validation=20 data.max_tokens=24 training.product=exact training.rate=0.01 decoding.beam=2 "
    "training.tokens=256"
)


def write(path: Path, count: int, seed: int) -> Path:
    """Letters to be said in capitals, or as they are."""
    draw = random.Random(seed)
    texts = ["".join(draw.choices("abcd", k=draw.randint(2, 5))) for _ in range(count)]
    rows = [(("large", text, text.upper()), ("same", text, text))[number % 2] for number, text in enumerate(texts)]
    path.write_text("".join("\t".join(row) + "\n" for row in [("task", "input", "output"), *rows]))
    return path


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prefixed pairs and a finished ``model``."""
    folder = tmp_path_factory.mktemp("taught")
    given = ["--task", "text-to-text", "--train", write(folder / "a.tsv", 600, 1), "--output", folder / "model"]
    write(folder / "test.tsv", 40, 2)
    assert main([str(word) for word in ["train", *given, "--steps", 200, "--threads", 1, *SMALL]]) == 0
    return folder


def test_a_text_with_its_prefix_is_answered(taught: Path, regard: Run) -> None:
    done = regard("ask", taught / "model", "large: abc", "same: abc", "")
    assert (done.code, done.out) == (0, "ABC\nabc\n\n")
    (taught / "texts.txt").write_text("bad\n\ncab\n")
    out = taught / "answers.txt"
    regard("ask", taught / "model", "--prefix", "large", "--input", taught / "texts.txt", "--output", out)
    assert out.read_text() == "BAD\n\nCAB\n"
    best = regard("ask", taught / "model", "--n", "3", "same: dab").out.splitlines()
    assert [line.split("\t")[0] for line in best] == ["1"] * len(best)
    assert best[0].split("\t")[2] == "dab"


def test_a_test_set_is_scored_for_each_prefix(taught: Path, regard: Run) -> None:
    done = regard("evaluate", taught / "model", "--test", taught / "test.tsv")
    first, *each, _ = done.out.splitlines()
    exact = float(re.search(r"exact match ([\d.]+) %", first)[1])
    assert exact > 70
    assert [line.partition(":")[0] for line in each] == ["large", "same"]
    found = [
        json.loads(regard("evaluate", taught / "model", "--test", taught / "test.tsv", "--json", *more).out)
        for more in ((), ("--processes", 2), ("--columns", "task,input,output", "--beam", 2))
    ]
    assert found[0] == found[1] == found[2]
    assert found[0]["exact"] == pytest.approx(exact, abs=0.005)
    assert {prefix: one["texts"] for prefix, one in found[0]["prefixes"].items()} == {"large": 20, "same": 20}
    regard("evaluate", taught / "model", "--source", "a", "--reference", "b").refuses("--source")
    regard("check", "--task", "text-to-text", "--train", taught / "a.tsv").refuses("text-to-text")
