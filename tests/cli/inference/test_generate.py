"""``regard generate``: streaming, several texts, JSON, and errors before a model is loaded."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from regard.cli.inference import generate as command
from regard.cli.io.input_texts import LONGEST_WORD
from regard.config import TASKS
from tests.cli.inference.fakes import Unaware


@dataclass
class Written:
    text: str
    tokens: tuple[int, ...]
    log_probability: float
    end: str


class Echoes(Unaware):
    """Writes the prompt backwards, letter by letter."""

    info = TASKS["language-model"]

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.prompts: list[str] = []

    def stream(self, prompt: str, number: int, **options: Any) -> Iterator[str]:
        self.options = options
        self.prompts.append(prompt)
        yield from prompt[::-1][: options["max_tokens"]] + str(number)

    def generate(self, prompt: str, n: int, **options: Any) -> list[Written]:
        self.options = options
        return [Written(f"{prompt[::-1]}{number}", (1, 2), -0.5, "limit") for number in range(n)]


@pytest.fixture
def model(loaded) -> Echoes:
    found = Echoes()
    loaded(found)
    return found


@pytest.fixture
def generate(regard, model):
    return partial(regard, "generate", "model")


@pytest.mark.parametrize(
    ("stdin", "prompt"),
    [
        (b"", ""),
        (b"abc", "abc"),
        (b"abc\n", "abc"),
        (b"abc\n\n", "abc\n"),
        (b"a\r\nb\n", "a\nb"),
        (b"\xef\xbb\xbfa", "a"),
    ],
)
def test_stdin_is_the_prompt(generate, model, stdin: bytes, prompt: str) -> None:
    done = generate(stdin=stdin)
    assert (done.code, done.out, model.prompts) == (0, prompt[::-1] + "0\n", [prompt])


def test_of_a_prompt_without_blanks_the_end_is_read(generate, model) -> None:
    done = generate(stdin=b"first " + b"a" * (LONGEST_WORD + 5) + b"b\n")
    assert done.code == 0
    assert model.prompts == [f"first {'a' * (LONGEST_WORD - 1)}b"]
    assert "line 1 the last 131,072 characters of each word are read; 6 characters are left out" in done.err


def test_a_prompt_that_would_fill_the_memory_is_refused(generate, monkeypatch) -> None:
    monkeypatch.setattr(command, "LONGEST", 10)
    assert generate(stdin=b"a b\nc d\n").code == 0
    generate(stdin=b"a b\n" * 99).refuses("stdin: is longer than 10 characters", 1)


def test_a_prompt_is_taken_as_it_is_and_stdin_left_alone(generate, model) -> None:
    assert generate("--prompt", " a b ", stdin=b"other").out == " b a 0\n"
    assert generate("--prompt", "", stdin=b"other").out == "0\n"


def test_bad_bytes_are_replaced_and_told(generate) -> None:
    done = generate(stdin=b"a\xffb")
    assert done.out == "b\ufffda0\n"
    assert "not valid UTF-8" in done.err


def test_several_texts_are_written_one_after_the_other(generate) -> None:
    assert generate("--prompt", "ab", "--n", "3").out == "ba0\n---\nba1\n---\nba2\n"


def test_every_option_arrives(generate, model) -> None:
    words = (
        "--max-tokens 7 --seed 3 --stop x --stop y --temperature 0.5 --top-k 4 --top-p 0.9 --min-p 0.1 --typical 0.8 "
        "--repetition-penalty 1.2"
    )
    assert generate("--prompt", "a", *words.split()).code == 0
    assert model.options == {
        "max_tokens": 7,
        "seed": 3,
        "stop": ("x", "y"),
        "temperature": 0.5,
        "top_k": 4,
        "top_p": 0.9,
        "min_p": 0.1,
        "typical": 0.8,
        "repetition_penalty": 1.2,
    }


def test_json_has_an_object_for_each_text(generate) -> None:
    done = generate("--prompt", "ä", "--n", "2", "--json")
    first, second = map(json.loads, done.out.splitlines())
    written = {"text": "ä0", "tokens": [1, 2], "pieces": ["▁1", "▁2"], "log_probability": -0.5, "end": "limit"}
    assert first == {"prompt": "ä", **written}
    assert second["text"] == "ä1"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--n", "0"], "--n"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--top-p", "2"], "--top-p"),
        (["--temperature", "-1"], "--temperature"),
        (["--repetition-penalty", "0.5"], "--repetition-penalty"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_model_is_loaded(regard, words: list[str], what: str) -> None:
    regard("generate", "nowhere", *words).refuses(what)


def test_each_part_is_out_before_the_next_is_made(regard, loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    class Watched(Echoes):
        def stream(self, prompt: str, number: int, **options: Any) -> Iterator[str]:
            for letter in "xyz":
                seen.append(out.getvalue())
                yield letter

    class Out(io.BytesIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    out = Out()
    loaded(Watched())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    assert command.generate("model") == 0
    assert seen == [b"", b"x", b"xy"]
    assert out.flushed >= 3
