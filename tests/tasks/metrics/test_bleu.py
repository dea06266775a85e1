"""Our scores are sacreBLEU's, signature and interval included."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.bleu import score
from tests.refusals import refused

PAIRS = """A man sleeps on the bench in the old town.|A man is asleep on the bench in the town.
Two dogs run in the snow.|Two dogs play in the snow.
The girl is eating .|The girl eats .
|No.
Yes|Yes"""
HYPOTHESES, REFERENCES = (list(side) for side in zip(*(line.split("|") for line in PAIRS.splitlines()), strict=True))


def command_line(tmp_path: Path, *options: str) -> list[str]:
    """What sacreBLEU's own command says of the same files."""
    (tmp_path / "hyp").write_text("\n".join(HYPOTHESES * 20) + "\n")
    (tmp_path / "ref").write_text("\n".join(REFERENCES * 20) + "\n")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref"), "-i", str(tmp_path / "hyp")]
    command += ["-m", "bleu", "chrf", "-f", "text", "-w", "3", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("lowercase", [False, True])
def test_as_sacrebleu_says_on_its_command_line(tmp_path: Path, lowercase: bool) -> None:
    ours = score(HYPOTHESES * 20, REFERENCES * 20, "en", lowercase, samples=100)
    options = ["--confidence", "--confidence-n", "100"] + (["--lowercase", "--chrf-lowercase"] if lowercase else [])
    text = "\n".join(command_line(tmp_path, *options))
    for value, interval in ((ours.bleu, ours.bleu_interval), (ours.chrf, ours.chrf_interval)):
        assert interval is not None
        middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
        assert f"= {value:.3f} (μ = {middle:.3f} ± {half:.3f})" in text
    assert f"{ours.bleu_signature} =" in text
    assert f"{ours.chrf_signature} =" in text
    assert ("case:lc" in ours.bleu_signature) == lowercase
    assert ours.sentences == 100


def test_without_samples_there_is_no_interval_and_the_same_score() -> None:
    quick, slow = score(HYPOTHESES, REFERENCES, samples=1), score(HYPOTHESES, REFERENCES, samples=50)
    assert (quick.bleu_interval, quick.chrf_interval, quick.bleu) == (None, None, slow.bleu)
    assert "bs:" not in quick.bleu_signature
    assert "bs:50" in slow.bleu_signature


def test_the_interval_is_about_the_score() -> None:
    found = score(HYPOTHESES * 20, REFERENCES * 20, samples=200)
    assert score(HYPOTHESES, REFERENCES, samples=200).bleu_interval  # of a tiny corpus some samples score nothing
    for value, interval in ((found.bleu, found.bleu_interval), (found.chrf, found.chrf_interval)):
        assert interval is not None
        assert interval[0] < value < interval[1]
    equal = score(REFERENCES[:3], REFERENCES[:3], samples=1)
    assert (equal.bleu, equal.chrf) == (pytest.approx(100), pytest.approx(100))


def test_the_language_chooses_the_tokeniser() -> None:
    assert "tok:zh" in score(["猫が好き"], ["猫が好き"], "zh", samples=1).bleu_signature
    assert "tok:13a" in score(["a cat"], ["a cat"], "de", samples=1).bleu_signature
    assert re.search("tok:(char|ja-mecab)", score(["猫が好きです"], ["猫が好きです"], "ja", samples=1).bleu_signature)


def test_it_says_what_does_not_fit() -> None:
    with refused(RegardError, None, "2", "1"):
        score(["a", "b"], ["a"])
    with refused(RegardError):
        score([], [])
