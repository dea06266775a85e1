"""A run that is asked to stop saves, says so, and goes on to the same bits."""

import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from regard.runs.train import train
from regard.system.errors import Stopped
from regard.training.log import Reporter
from tests.refusals import refused
from tests.training.toy import undated

ENTRANCE = """
import sys
from regard import __main__ as entrance
command = entrance._command
def told():
    print("ready", flush=True)
    return command()
entrance._command = told
sys.exit(entrance.main())
"""
"""The command of the process, which says when its handlers stand: what comes before is Python's own."""


def test_a_rate_beyond_all_numbers_is_divergence(world: Path, regard: Any, train_options: Any) -> None:
    words = train_options(world, world / "other")
    place = words.index("--steps")
    settings = ["--set", "training.rate=1e300", "--set", "training.validate_every=2"]
    done = regard(*words[:place], "--minutes", "0.5", *words[place + 2 :], *settings)
    assert (done.code, "not finite" in done.sentence, "training.rate" in done.sentence) == (76, True, True)


def test_weights_too_large_to_translate_with_are_divergence(world: Path, regard: Any, train_options: Any) -> None:
    rate = ["--set", "training.rate=1e37", "--set", "training.validate_every=1", "--set", "training.warmup=0"]
    done = regard(*train_options(world, world / "other"), *rate)
    assert done.code == 76
    assert "the loss of the validation is not finite" in done.sentence


class Impatient(Reporter):
    """Asks to stop as soon as the final scores are being made."""

    asked = False

    def on_event(self, text: str) -> None:
        self.asked |= text.startswith("scoring the best model")


def test_stopped_while_the_final_scores_are_made(world: Path, regard: Any, train_options: Any) -> None:
    words = train_options(world, world / "stopped")
    settings = [word for before, word in pairwise(words) if before == "--set"]
    reporter = Impatient()
    with refused(Stopped):
        options = {"settings": settings, "steps": 6, "reporter": reporter}
        train(world / "a.en", world / "a.de", world / "stopped", should_stop=lambda: reporter.asked, **options)
    assert "* BLEU" not in (world / "stopped" / "card.md").read_text()
    done = regard(*words)
    assert done.code == 0
    assert "* BLEU" in (world / "stopped" / "card.md").read_text()
    for name in ("model.safetensors", "card.md"):
        assert undated(world / "stopped" / name) == undated(world / "model" / name)


def signalled(words: list[object], number: signal.Signals, seconds: float) -> tuple[int, str]:
    """Exit code of a command that gets a signal after so long, and what it said."""
    command, pipe = [sys.executable, "-c", ENTRANCE, *map(str, words)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
    return process.returncode, err


@pytest.mark.long(minutes=3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_training_is_stopped_at_any_moment(world: Path, train_options: Any, number: signal.Signals) -> None:
    draw = random.Random(int(number))
    for _ in range(25):
        code, err = signalled(train_options(world, world / "stopped"), number, 4 * draw.random())
        assert "Traceback" not in err
        assert code in (0, 75), err


@pytest.mark.long(minutes=2)
@pytest.mark.parametrize("words", [["info", "model"], ["translate", "model"], ["explore", "model", "--no-browser"]])
def test_another_command_is_interrupted_at_any_moment(world: Path, words: list[str]) -> None:
    draw = random.Random(words[0])
    for _ in range(15):
        found = [str(world / word) if word == "model" else word for word in words]
        code, err = signalled(found, signal.SIGINT, 3 * draw.random())
        assert "Traceback" not in err
        assert code in (0, 130), err
