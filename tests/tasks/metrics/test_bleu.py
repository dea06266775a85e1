"""BLEU and chrF are sacreBLEU's, signature and interval included; exact match and ROUGE-L those of plain ways."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.bleu import Words, exact_match, rouge_l, score, score_answers
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
    quick, slow = score(HYPOTHESES, REFERENCES, samples=1), score(HYPOTHESES, REFERENCES, samples=200)
    assert (quick.bleu_interval, quick.chrf_interval, quick.bleu) == (None, None, slow.bleu)
    assert slow.bleu_interval  # of a tiny corpus some samples score nothing
    assert "bs:" not in quick.bleu_signature
    assert "bs:200" in slow.bleu_signature


def test_the_language_chooses_the_tokeniser() -> None:
    assert "tok:zh" in score(["猫が好き"], ["猫が好き"], "zh", samples=1).bleu_signature
    assert "tok:13a" in score(["a cat"], ["a cat"], "de", samples=1).bleu_signature
    assert re.search("tok:(char|ja-mecab)", score(["猫が好きです"], ["猫が好きです"], "ja", samples=1).bleu_signature)


def test_it_says_what_does_not_fit() -> None:
    with refused(RegardError, None, "2", "1"):
        score(["a", "b"], ["a"])
    with refused(RegardError):
        score([], [])
    with refused(RegardError, None, "nothing to score"):
        score_answers([], [], [])


WORDS = "the cat Cat sleeps übers Haus haus 12 it's x_y".split()


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) for _ in range(count)]


def test_words_are_letters_and_digits_of_any_script() -> None:
    assert Words().tokenize("It's ÜBER x_y, 12-3") == ["it", "s", "über", "x", "y", "12", "3"]


def test_rouge_is_the_mean_f_measure_of_the_longest_common_subsequence() -> None:
    """[Lin04 §3.2]: of two words of three, of all, of one of two in another order, and of none."""
    said, wanted = ["the cat sleeps", "A, b!", "b a", "x", ""], ["the old cat", "a b", "a b", "y", "z"]
    assert rouge_l(said, wanted) == pytest.approx(100 * (2 / 3 + 1 + 1 / 2) / 5)
    assert rouge_l(["a b"], ["a b c d e f"]) == pytest.approx(100 * 2 * (1 * 1 / 3) / (1 + 1 / 3))


def test_exact_match_is_to_the_letter_but_for_white_space_around() -> None:
    assert exact_match(["a b ", "a  b", "A b", "c"], ["a b", "a b", "a b", "c"]) == 50.0


def test_scores_of_each_prefix_are_those_of_its_texts_alone() -> None:
    said, wanted = texts(40, 3), texts(40, 3)
    said[::5] = texts(8, 4)
    wanted = [one or "x" for one in wanted]
    prefixes = [("a", "b", "")[place % 3] for place in range(40)]
    found = score_answers(said, wanted, prefixes)
    assert list(found.prefixes) == ["a", "b", ""]
    for number, (prefix, one) in enumerate(found.prefixes.items()):
        alone = score_answers(said[number::3], wanted[number::3], [prefix] * len(said[number::3]), samples=1)
        assert (alone, alone.prefixes) == (one, {})
    whole = score(said, wanted)
    assert (found.bleu, found.bleu_interval) == (whole.bleu, whole.bleu_interval)
    assert found.exact == pytest.approx(sum(one.exact * one.texts for one in found.prefixes.values()) / 40)
    first, *each, last = found.lines()
    assert f"{found.exact:.2f}" in first
    assert [line.partition(":")[0] for line in each] == ["a", "b", "(no prefix)"]
    assert found.bleu_signature in last
    assert set(found.to_dict()["prefixes"]) == {"a", "b", ""}
