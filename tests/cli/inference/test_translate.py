"""``regard translate``: one line of output per line of input."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from regard.cli.io.input_texts import LONGEST_WORD
from regard.cli.io.lines import bursts, one_line
from regard.config import TASKS
from regard.text.confidence import SeenWords
from tests.cli.inference.fakes import Unaware


@dataclass
class Hypothesis:
    text: str
    tokens: tuple[int, ...]
    score: float
    confidence: float = 1.0
    unsure: bool | None = None


class Shouts(Unaware):
    """A translator into capitals."""

    info = TASKS["translation"]
    device = device_name = "cpu"
    engine = None

    def nbest(
        self, texts: list[str], n: int = 1, beam: int | None = None, first: int = 1, scores: bool = True
    ) -> list[list[Hypothesis]]:
        return [[Hypothesis(text.upper() + "!" * i, (len(text), i), -0.5 - i) for i in range(n)] for text in texts]


@pytest.fixture
def translate(regard, loaded):
    loaded(Shouts())
    return partial(regard, "translate", "model")


@pytest.mark.parametrize(
    ("given", "expected", "told"),
    [
        (b"", "", ()),
        (b"a\nb\n", "A\nB\n", ()),
        (b"a\nb", "A\nB\n", ()),
        (b"\n\na\n\n", "\n\nA\n\n", ()),
        (b"a\r\nb\r\n", "A\nB\n", ()),
        (b"\xef\xbb\xbfa\n", "A\n", ()),
        (b"a\xe2\x80\xa8b\x0cc\x85\n", "A\u2028B\x0cC\ufffd\n", ("1 line was not valid UTF-8",)),
        (b"a\x00b\n", "A\x00B\n", ()),
        (b"x\ry\n", "X Y\n", ()),
        (b"good\nb\xffd\nfine\n\xc3\n", "GOOD\nB\ufffdD\nFINE\n\ufffd\n", ("2 lines were not valid UTF-8", "2, 4")),
        (b"a " * 500_000 + b"\nb\n", "A " * 500_000 + "\nB\n", ()),
        (
            b"b\na " + b"a" * 1_000_000 + b" c\nd\n",
            f"B\nA {'A' * LONGEST_WORD} C\nD\n",
            ("line 2", f"{1_000_000 - LONGEST_WORD:,} characters are left out"),
        ),
    ],
    ids=lambda given: str(given[:20]),
)
def test_lines_out_are_lines_in(translate, given: bytes, expected: str, told: tuple[str, ...]) -> None:
    done = translate(stdin=given)
    assert (done.code, done.out) == (0, expected)
    assert all(words in done.err for words in told) if told else done.err == ""


def test_json_is_one_object_a_line(translate) -> None:
    values = [json.loads(line) for line in translate("--json", stdin=b"a\n\n").out.splitlines()]
    assert values[0] == {"text": "A", "tokens": [1, 0], "pieces": ["▁1", "▁0"], "score": -0.5, "confidence": 1.0}
    assert values[1]["text"] == ""
    value = json.loads(translate("--json", "--nbest", "2", stdin=b"a\n").out)
    assert value["text"] == "A"
    assert [h["text"] for h in value["nbest"]] == ["A", "A!"]


def test_nbest_is_number_score_and_text(translate) -> None:
    done = translate("--nbest", "2", stdin=b"a\nb\n")
    assert done.out == "1\t-0.5000\tA\n1\t-1.5000\tA!\n2\t-0.5000\tB\n2\t-1.5000\tB!\n"


def test_generated_line_breaks_become_spaces() -> None:
    assert one_line("a\nb\r\nc\rd") == "a b c d"


def test_bursts_keep_order_and_lose_nothing() -> None:
    lines = [str(i) for i in range(10_000)]
    found = list(bursts(iter(lines), most=64))
    assert [line for burst in found for line in burst] == lines
    assert max(map(len, found)) <= 64
    assert list(bursts(iter([]))) == []


def test_a_slow_writer_is_answered_before_it_goes_on() -> None:
    answered: queue.Queue[list[str]] = queue.Queue()

    def lines() -> Iterator[str]:
        yield "first"
        assert answered.get(timeout=20) == ["first"]  # else no second line ever comes
        yield "second"

    found = []
    for burst in bursts(lines()):
        found.append(burst)
        answered.put(burst)
    assert found == [["first"], ["second"]]


CHILD = """
import signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
sys.path.insert(0, {here!r})
import test_translate
bundle = types.ModuleType("regard.tasks.model_folder")
bundle.load = lambda folder, device=None, **rest: test_translate.Shouts()
bundle.open_without_torch = lambda *given, **named: None
sys.modules["regard.tasks.model_folder"] = bundle
from regard.cli import main
sys.exit(main(["translate", "model"]))
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    code, pipe = CHILD.format(here=os.path.dirname(__file__)), subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe)
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def test_a_closed_pipe_ends_it_quietly(child) -> None:
    def feed() -> None:
        with contextlib.suppress(BrokenPipeError):
            for _ in range(20_000):
                child.stdin.write(b"word " * 20 + b"\n")
            child.stdin.close()

    writer = threading.Thread(target=feed)
    writer.start()
    assert child.stdout.readline() == b"WORD " * 20 + b"\n"
    child.stdout.close()
    assert child.wait(timeout=30) == 0
    writer.join(timeout=30)
    assert child.stderr.read() == b""


def test_each_line_is_answered_while_the_pipe_stays_open(child) -> None:
    for word in (b"one\n", b"two\n"):
        child.stdin.write(word)
        child.stdin.flush()
        assert child.stdout.readline() == word.upper()
    child.stdin.close()
    assert child.wait(timeout=30) == 0


def test_an_interrupt_is_quiet(child) -> None:
    child.stdin.write(b"one\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"ONE\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) == 130
    assert child.stderr.read() == b""


def test_warnings_are_sentences_too(regard, loaded, recwarn, monkeypatch) -> None:
    class Warns(Shouts):
        def nbest(
            self, texts: list[str], n: int = 1, beam: int | None = None, first: int = 1, scores: bool = True
        ) -> Any:
            warnings.simplefilter("always")
            for line in range(first, first + len(texts)):
                warnings.warn(f"line {line} is cut", stacklevel=2)
            return super().nbest(texts, n, beam, first)

    loaded(Warns())
    monkeypatch.setattr(bursts, "__defaults__", (2, 0.05))
    done = regard("translate", "model", stdin=b"a\nb\nc\n")
    assert done.out == "A\nB\nC\n"
    assert done.err == "".join(f"regard: warning: line {line} is cut\n" for line in (1, 2, 3))


def test_what_the_model_cannot_know_is_told_of_or_is_in_the_object(regard, loaded) -> None:
    class Knows(Shouts):
        assets = SimpleNamespace(doubted_below=0.6)
        asked: ClassVar[list[bool]] = []

        def unseen_words(self, text: str) -> Any:
            return SeenWords.of({"the": 1}).unseen_words(text)

        def unseen_words_batch(self, texts: list[str]) -> Any:
            return list(map(self.unseen_words, texts))

        def nbest(self, texts: list[str], *given: Any, scores: bool = True, **more: Any) -> Any:
            self.asked.append(scores)
            return [[Hypothesis(text.upper(), (1,), -0.5, 0.25, text != "the")] for text in texts]

    loaded(Knows())
    sure = "probability 0.250 a token, where 0.600 or more is usual"
    done = regard("translate", "model", "the", "the zebra")
    assert done.out == "THE\nTHE ZEBRA\n"
    assert done.err == (
        f"regard: line 2: “zebra” is in no training text\nregard: line 2: the model is unsure ({sure})\n"
    )
    done = regard("translate", "model", stdin=b"the\nzebra\n")
    assert done.out == "THE\nZEBRA\n"
    assert len(done.err.splitlines()) == 2
    assert all("1 of 2 lines" in line for line in done.err.splitlines())
    assert Knows.asked == [True, False]
    done = regard("translate", "model", "--json", "zebra", "the")
    first, second = map(json.loads, done.out.splitlines())
    assert (first["confidence"], first["unsure"], first["unseen"]) == (0.25, True, [["zebra", 0, 5]])
    assert (second["unsure"], second["unseen"], done.err) == (False, [], "")
