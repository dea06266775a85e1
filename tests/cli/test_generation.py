"""``regard translate``, ``ask`` and ``generate``: a line or an object for each text, and texts as they are written."""

import contextlib
import io
import json
import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from regard.cli import generation
from regard.cli.io.input_texts import LONGEST_WORD
from regard.cli.io.lines import bursts
from regard.config import TASKS
from regard.decoding.hypotheses import Hypothesis as TokenHypothesis
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.writer import NOTHING, Hypothesis
from regard.tasks.translation.guard import Attempt, judge
from regard.text.confidence import NOT_CALIBRATED, SeenWords
from tests.cli.fakes import Shouts, Unaware, answering

translate = answering("translate", Shouts)


@pytest.mark.one_of(5)
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


def test_json_is_one_object_a_line_and_nbest_is_number_score_and_text(translate) -> None:
    values = [json.loads(line) for line in translate("--json", stdin=b"a\n\n").out.splitlines()]
    words = {"words": [{"text": "A", "begin": 0, "end": 1, "confidence": 0.5}], "calibrated": False}
    whole = {"text": "A", "tokens": [1, 0], "pieces": ["▁1", "▁0"], "score": -0.5, "confidence": 1.0}
    assert values[0] == whole | words
    assert values[1]["text"] == ""
    value = json.loads(translate("--json", "--nbest", "2", stdin=b"a\n").out)
    assert (value["text"], [h["text"] for h in value["nbest"]]) == ("A", ["A", "A!"])
    done = translate("--nbest", "2", stdin=b"a\nb\n")
    assert done.out == "1\t-0.5000\tA\n1\t-1.5000\tA!\n2\t-0.5000\tB\n2\t-1.5000\tB!\n"


CHILD = """
import signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
from tests.cli.fakes import Shouts
bundle = types.ModuleType("regard.tasks.model_folder")
bundle.load = lambda folder, device=None, **rest: Shouts()
bundle.open_without_torch = lambda *given, **named: None
sys.modules["regard.tasks.model_folder"] = bundle
from regard.cli import main
sys.exit(main(["translate", "model"]))
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    pipe, root = subprocess.PIPE, Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, stderr=pipe, cwd=root)
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def test_a_closed_pipe_ends_it_quietly(child) -> None:
    child.stdin.write(b"word\n" * 2000)
    child.stdin.flush()
    assert child.stdout.readline() == b"WORD\n"
    child.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        for _ in range(20_000):
            child.stdin.write(b"word " * 20 + b"\n")
        child.stdin.close()
    assert child.wait(timeout=30) == 0
    assert child.stderr.read() == b""


def test_each_line_is_answered_while_the_pipe_stays_open_and_an_interrupt_is_quiet(child) -> None:
    for word in (b"one\n", b"two\n"):
        child.stdin.write(word)
        child.stdin.flush()
        assert child.stdout.readline() == word.upper()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) == 130
    assert child.stderr.read() == b""


def test_warnings_are_sentences_too(regard, loaded, recwarn, monkeypatch) -> None:
    class Warns(Shouts):
        def write(self, texts: list[str], options: OutputOptions, first: int = 1, prefixes: Any = None) -> Any:
            warnings.simplefilter("always")
            for line in range(first, first + len(texts)):
                warnings.warn(f"line {line} is cut", stacklevel=2)
            return super().write(texts, options, first, prefixes)

    loaded(Warns())
    monkeypatch.setattr(bursts, "__defaults__", (2, 0.05))
    done = regard("translate", "model", stdin=b"a\nb\nc\n")
    assert done.out == "A\nB\nC\n"
    assert done.err == "".join(f"regard: warning: line {line} is cut\n" for line in (1, 2, 3))


def test_what_the_model_cannot_know_is_told_of_or_is_in_the_object(regard, loaded) -> None:
    class Knows(Shouts):
        assets = SimpleNamespace(doubted_below=0.6, calibration=NOT_CALIBRATED, terms=None)
        asked: ClassVar[list[bool]] = []

        def unseen_words(self, text: str) -> Any:
            return SeenWords.of({"the": 1}).unseen_words(text)

        def unseen_words_batch(self, texts: list[str]) -> Any:
            return list(map(self.unseen_words, texts))

        def write(self, texts: list[str], options: OutputOptions, *given: Any) -> Any:
            self.asked.append(options.scores)
            return [[Hypothesis(text.upper(), (1,), -0.5, confidence=0.25, unsure=text != "the")] for text in texts]

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


def test_translations_begin_with_the_lines_of_a_file(translate, tmp_path: Path) -> None:
    (tmp_path / "begins.txt").write_text("Ja, \n\n")
    assert translate("--prefix", tmp_path / "begins.txt", stdin=b"a\nb\n").out == "Ja, A\nB\n"
    done = translate("--prefix", tmp_path / "begins.txt", "a", "b", "c")
    assert done.code == 2
    assert "begins.txt: has 2 lines, so text 3 has none" in done.err
    assert "no such file" in translate("--prefix", tmp_path / "none.txt", "a").err


def test_translations_are_drawn_and_other_words_shown(translate) -> None:
    done = translate("--sample", "--seed", "4", "--top-k", "3", "--nbest", "2", "a", "b")
    assert done.out.splitlines()[1:3] == ["1\t-1.0000\tA 4 1 {'top_k': 3}.1", "2\t-1.0000\tB 4 2 {'top_k': 3}.0"]
    done = translate("--alternatives", "2", "a")
    assert done.out.splitlines() == ["A", "  A\ta0\t0.50\tall of 0", "  A\ta1\t0.25\tall of 1"]
    [whole] = map(json.loads, translate("--alternatives", "1", "--json", "a").out.splitlines())
    other = {"word": "a0", "text": "all of 0", "probability": 0.5}
    assert whole["alternatives"] == [{"word": "A", "begin": 0, "end": 1, "alternatives": [other]}]
    for options in (["--top-k", "3"], ["--seed", "1"], ["--sample", "--beam", "2"]):
        assert translate(*options, "a").code == 2
    for wrong in (["1", "--sample"], ["101"], ["0"]):
        translate("--alternatives", *wrong, "a").refuses("--alternatives")
    assert "--set decoding.repetition_penalty" in translate("--repetition-penalty", "2", "a").err
    translate("--sample", "--nbest", "101", "a").refuses("--nbest: 101 is no whole number from 1 to 100")


class Chooses(Shouts):
    """Says what it was asked for."""

    def write(self, texts: list[str], options: OutputOptions, *given: Any) -> list[list[Hypothesis]]:
        said = f"{options.mbr} {options.beam} {options.seed} {options.drawing.get('top_k')}"
        each = range(options.n)
        return [[Hypothesis(f"{text} {said} {i}", (i,), -1.0, utility=50.0 - i) for i in each] for text in texts]


def test_translations_are_chosen_by_minimum_bayes_risk(regard, loaded) -> None:
    loaded(Chooses())
    assert regard("translate", "model", "--mbr", "3", "--seed", "7", "--top-k", "5", "a").out == "a 3 None 7 5 0\n"
    done = regard("translate", "model", "--mbr", "3", "--beam", "4", "--nbest", "2", "--json", "a")
    [whole] = map(json.loads, done.out.splitlines())
    assert [(one["text"], one["utility"]) for one in whole["nbest"]] == [
        ("a 3 4 None None 0", 50),
        ("a 3 4 None None 1", 49),
    ]
    for wrong in ("0", "1", "101", "2 --nbest 3", "4 --beam 3", "2 --reverse x", "2 --alternatives 1"):
        assert regard("translate", "model", "--mbr", *wrong.split(), "a").code == 2
    assert "leave --beam out" in regard("translate", "model", "--mbr", "3", "--beam", "4", "--seed", "7", "a").err


class Loops(Shouts):
    """Repeats itself, but for a second search."""

    def write(self, texts: list[str], options: OutputOptions, *given: Any) -> list[list[Hypothesis]]:
        again = options.guard == "retry"
        said = [text.upper() if again else f"{text.upper()} X X X" for text in texts]
        reports = [judge(text, one, None, {}) for text, one in zip(texts, said, strict=True)]
        tried = (Attempt((), "X", 2.5),) if again else ()
        return [
            [Hypothesis(one, (1,), -1.0, guard=guard, tried=tried)] for one, guard in zip(said, reports, strict=True)
        ]


def test_damaged_translations_are_told_of_or_searched_for_again(regard, loaded) -> None:
    loaded(Loops())
    done = regard("translate", "model", "--guard", "warn", stdin=b"a b c d\ne\n")
    assert done.out == "A B C D X X X\nE X X X\n"
    told = "regard: line 2 may be damaged: repeated: “X X”; longer than usual"
    note, *_, last = done.err.splitlines()
    assert ("was not fitted" in note, last) == (True, told)
    assert "line 1 may be damaged: repeated: “X X”" in done.err
    done = regard("translate", "model", "--guard", "retry", stdin=b"a b c d\n\n")
    assert (done.out, done.err) == ("A B C D\n\n", f"{note}\n")
    [whole] = map(json.loads, regard("translate", "model", "--guard", "retry", "--json", "e f").out.splitlines())
    assert (whole["text"], whole["guard"]["warnings"]) == ("E F", [])
    assert whole["tried"] == [{"settings": [], "text": "X", "score": 2.5}]
    assert "--sample draws" in regard("translate", "model", "--guard", "retry", "--sample", "a").err


class Letters(Unaware):
    """Writes a text in capitals, a mark behind the less good ones; behind drawn ones seed, number and options."""

    info = TASKS["text-to-text"]

    def prefix_warning(self, text: str, prefix: str) -> str:
        strange = prefix or text.partition(": ")[0]
        return f"{strange} is new" if strange.startswith("foo") else ""

    def write(self, texts: list[str], options: OutputOptions, first: int) -> list[list[Hypothesis]]:
        ends = ["" if options.beam is None else str(options.beam), *("!" * number for number in range(1, options.n))]
        if not options.sample:
            return [self._answers(text, ends) if text.strip() else [NOTHING] for text in texts]
        given = "".join(f" {name}={value}" for name, value in options.drawing.items())
        numbers = range(first, first + len(texts))
        ends = [[f" {options.seed} {number}.{one}{given}" for one in range(options.n)] for number in numbers]
        return [self._answers(text, end) for text, end in zip(texts, ends, strict=True)]

    def _answers(self, text: str, ends: list[str], *doubt: Any) -> list[Hypothesis]:
        token = TokenHypothesis((5,), -0.25, math.log(0.5), (), True)
        return [Hypothesis(text.upper() + end, (5,), -0.25, True, *doubt, parts=(token,)) for end in ends]


ask = answering("ask", Letters)


def test_a_line_for_each_text(ask) -> None:
    done = ask(stdin=b"sort: b a\n\nc\td\n").succeeds()
    assert done.out == "SORT: B A\n\nC\tD\n"
    assert ask("--beam", "3", "a", "b").out == "A3\nB3\n"
    assert ask("--prefix", "sort", stdin=b"b a\n\nd c\n").out == "SORT: B A\n\nSORT: D C\n"


def test_a_prefix_that_was_not_learned_is_warned_of_once(ask, tmp_path: Path) -> None:
    done = ask(stdin=b"a: b\n\nfoo: a\nfood: b\n")
    assert (done.code, done.out) == (0, "A: B\n\nFOO: A\nFOOD: B\n")
    assert done.err == "regard: warning: foo is new\n"
    (tmp_path / "a.txt").write_text("\na\nb\n")
    done = ask("--prefix", "foo", "--input", tmp_path / "a.txt", "--output", tmp_path / "b.txt")
    assert done.err.count("foo is new") == 1
    assert ask("--prefix", "sort", "a").err == ""


def test_the_best_are_numbered_and_what_is_drawn_depends_on_line_seed_and_options(ask) -> None:
    done = ask("--n", "2", "a\tb", "c")
    assert done.out.splitlines() == ["1\t-0.2500\tA B", "1\t-0.2500\tA B!", "2\t-0.2500\tC", "2\t-0.2500\tC!"]
    options = ["--sample", "--seed", "4", "--temperature", "0.5", "--top-k", "3"]
    done = ask(*options, stdin=b"a\nb\n")
    assert done.out.splitlines() == ["A 4 1.0 temperature=0.5 top_k=3", "B 4 2.0 temperature=0.5 top_k=3"]
    assert ask("--sample", "--n", "2", "a").out == "1\t-0.2500\tA None 1.0\n1\t-0.2500\tA None 1.1\n"


def test_json_has_an_object_for_each_text(ask) -> None:
    sure = {"confidence": 1.0}
    first, second = map(json.loads, ask("--json", stdin=b"a\n\n").out.splitlines())
    likely = {"probability": 0.5, "score": -0.25, "finished": True}
    assert first == {"text": "A", "tokens": [5], "pieces": ["▁5"], **likely, **sure}
    sure |= {"probability": 1.0, "score": 0.0, "finished": True}
    assert second == {"text": "", "tokens": [], "pieces": [], **sure}
    found = map(json.loads, ask("--json", "--n", "2", "a", "").out.splitlines())
    assert [[one["text"] for one in both["outputs"]] for both in found] == [["A", "A!"], [""]]


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("options", "where"),
    [
        (["--n", "0"], "--n: 0 is no whole number from 1 to 100"),
        (["--beam", "0"], "--beam: 0 is no whole number from 1 to 100"),
        (["--beam", "101"], "--beam: 101 is"),
        (["--mbr", "0"], "--mbr: 0 is no whole number from 2 to 100"),
        (["--mbr", "2", "--n", "3"], "--mbr: 2 candidates"),
        (["--mbr", "9", "--beam", "8"], "--beam: a beam of 8"),
        (["--protect", "--sample"], "--protect"),
        (["--sample", "--beam", "2"], "--beam"),
        (["--seed", "2"], "--seed"),
        (["--temperature", "1"], "--temperature"),
        (["--sample", "--top-p", "0"], "--top-p"),
    ],
)
def test_what_does_not_go_together_is_refused(regard, options: list[str], where: str) -> None:
    regard("ask", "nowhere", *options, "a").refuses(where)


def test_an_answer_that_the_model_is_unsure_of_is_told_of_unless_it_was_drawn(ask, loaded) -> None:
    class Unsure(Letters):
        assets = SimpleNamespace(doubted_below=0.6, terms=None)

        def _answers(self, text: str, ends: list[str], *doubt: Any) -> list[Hypothesis]:
            return super()._answers(text, ends, 0.25, True)

    loaded(Unsure())
    assert "line 2: the model is unsure (probability 0.250" in ask("", "a").err
    assert ask(stdin=b"a\n\nb\n").err.startswith("regard: the model is unsure of 2 of 3 lines")
    assert ask("--sample", "a").err == ""
    done = ask("--json", "a")
    assert (json.loads(done.out)["unsure"], done.err) == (True, "")


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


def test_stdin_is_the_prompt(generate, model) -> None:
    prompts = {b"": "", b"abc": "abc", b"abc\n": "abc", b"abc\n\n": "abc\n", b"a\r\nb\n": "a\nb", b"\xef\xbb\xbfa": "a"}
    for stdin, prompt in prompts.items():
        done = generate(stdin=stdin)
        assert (done.code, done.out, model.prompts[-1]) == (0, prompt[::-1] + "0\n", prompt)


def test_of_a_prompt_without_blanks_the_end_is_read(generate, model) -> None:
    done = generate(stdin=b"first " + b"a" * (LONGEST_WORD + 5) + b"b\n").succeeds()
    assert model.prompts == [f"first {'a' * (LONGEST_WORD - 1)}b"]
    assert "line 1 the last 131,072 characters of each word are read; 6 characters are left out" in done.err


def test_a_prompt_that_would_fill_the_memory_is_refused(generate, monkeypatch) -> None:
    monkeypatch.setattr(generation, "LONGEST", 10)
    assert generate(stdin=b"a b\nc d\n").code == 0
    generate(stdin=b"a b\n" * 99).refuses("stdin: is longer than 10 characters", 1)


def test_a_prompt_is_taken_as_it_is_and_stdin_left_alone(generate, model) -> None:
    assert generate("--prompt", " a b ", "--n", "3", stdin=b"other").out == " b a 0\n---\n b a 1\n---\n b a 2\n"
    assert generate("--prompt", "", stdin=b"other").out == "0\n"
    done = generate(stdin=b"a\xffb")
    assert (done.out, "not valid UTF-8" in done.err) == ("b\ufffda0\n", True)


def test_every_option_arrives(generate, model) -> None:
    words = (
        "--max-tokens 7 --seed 3 --stop x --stop y --temperature 0.5 --top-k 4 --top-p 0.9 --min-p 0.1 --typical 0.8 "
        "--repetition-penalty 1.2"
    )
    assert generate("--prompt", "a", *words.split()).code == 0
    drawing = {"temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1, "typical": 0.8, "repetition_penalty": 1.2}
    assert model.options == {"max_tokens": 7, "seed": 3, "stop": ("x", "y"), **drawing}


def test_of_a_prompt_json_has_an_object_for_each_text(generate) -> None:
    done = generate("--prompt", "ä", "--n", "2", "--json")
    first, second = map(json.loads, done.out.splitlines())
    written = {"text": "ä0", "tokens": [1, 2], "pieces": ["▁1", "▁2"], "log_probability": -0.5, "end": "limit"}
    assert first == {"prompt": "ä", **written}
    assert second["text"] == "ä1"


@pytest.mark.parametrize("option", "--n=0 --max-tokens=0 --top-p=2 --temperature=-1 --repetition-penalty=0.5".split())
def test_what_does_not_fit_is_refused_before_a_model_is_loaded(regard, option: str) -> None:
    regard("generate", "nowhere", option).refuses(option.partition("=")[0])


def test_each_part_is_out_before_the_next_is_made(model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    raw = io.BytesIO()

    def stream(prompt: str, number: int, **options: Any) -> Iterator[str]:
        for letter in "xyz":
            seen.append(raw.getvalue())
            yield letter

    model.stream = stream
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw)))  # which has it once it is flushed
    generation.generate("model")
    assert seen == [b"", b"x", b"xy"]
