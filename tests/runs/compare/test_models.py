"""Systems on the same sentences are told apart as by sacreBLEU's own command."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from regard.runs.compare.models import compare_outputs
from regard.tasks.metrics.bleu import score


def test_as_sacrebleu_says_on_its_command_line(tmp_path: Path) -> None:
    draw, words = random.Random(3), "a the dog cat runs sees in on house tree".split()
    references = [" ".join(draw.choices(words, k=draw.randint(4, 9))) for _ in range(60)]
    outputs = {}
    for name, rate in (("one", 0.2), ("two", 0.25), ("three", 0.6)):
        spoil = (" ".join(draw.choice(words) if draw.random() < rate else w for w in r.split()) for r in references)
        outputs[name] = list(spoil)
        (tmp_path / name).write_text("\n".join(outputs[name]) + "\n")
    (tmp_path / "reference").write_text("\n".join(references) + "\n")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "reference",
        "-i",
        *outputs,
        "-m",
        "bleu",
        "--paired-bs",
        "-f",
        "json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # no JSON of its chrF
    found = compare_outputs(outputs, references, "en")
    for (name, measures), theirs in zip(found.systems.items(), json.loads(done.stdout), strict=True):
        ours, wanted = measures["BLEU"], theirs["BLEU"]
        assert (ours.score, ours.p) == (wanted["score"], wanted["p_value"])
        low, high = ours.interval
        assert ((low + high) / 2, (high - low) / 2) == pytest.approx((wanted["mean"], wanted["ci"]), abs=1e-9)
        assert measures["chrF2"].score == score(outputs[name], references, "en", samples=1).chrf
    assert found.systems["three"]["BLEU"].p is not None
    assert found.systems["three"]["BLEU"].p < 0.01
    assert "one" in found.table().terminal()
