"""``regard ask``: a line for each text, n best or drawn, or JSON."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from regard.tasks.translation.text_to_text.writer import NOTHING, Answer
from tests.cli.inference.fakes import Unaware


class Letters(Unaware):
    """Writes a text in capitals, a mark behind the less good ones; behind drawn ones seed, number and options."""

    info = TASKS["text-to-text"]
    device = device_name = "cpu"
    engine = None

    def prefix_warning(self, text: str, prefix: str) -> str:
        strange = prefix or text.partition(": ")[0]
        return f"{strange} is new" if strange.startswith("foo") else ""

    def nbest(self, texts: list[str], n: int, beam: int | None, *, first: int, scores: bool) -> list[list[Answer]]:
        ends = ["" if beam is None else str(beam), *("!" * number for number in range(1, n))]
        return [self._answers(text, ends) if text.strip() else [NOTHING] for text in texts]

    def sample(self, texts: list[str], n: int, *, seed: int | None, first: int, **options: Any) -> list[list[Answer]]:
        given = "".join(f" {name}={value}" for name, value in options.items() if value is not None)
        ends = [[f" {seed} {number}.{one}{given}" for one in range(n)] for number in range(first, first + len(texts))]
        return [self._answers(text, end) for text, end in zip(texts, ends, strict=True)]

    def _answers(self, text: str, ends: list[str]) -> list[Answer]:
        return [Answer(text.upper() + end, (5,), 0.5, -0.25) for end in ends]


def test_a_line_for_each_text(regard, loaded) -> None:
    loaded(Letters())
    done = regard("ask", "model", stdin=b"sort: b a\n\nc\td\n")
    assert done.code == 0
    assert done.out == "SORT: B A\n\nC\tD\n"
    assert regard("ask", "model", "--beam", "3", "a", "b").out == "A3\nB3\n"


def test_a_prefix_is_put_before_all_but_blank_texts(regard, loaded) -> None:
    loaded(Letters())
    assert regard("ask", "model", "--prefix", "sort", stdin=b"b a\n\nd c\n").out == "SORT: B A\n\nSORT: D C\n"


def test_a_prefix_that_was_not_learned_is_warned_of_once(regard, loaded, tmp_path: Path) -> None:
    loaded(Letters())
    done = regard("ask", "model", stdin=b"a: b\n\nfoo: a\nfood: b\n")
    assert (done.code, done.out) == (0, "A: B\n\nFOO: A\nFOOD: B\n")
    assert done.err == "regard: warning: foo is new\n"
    (tmp_path / "a.txt").write_text("\na\nb\n")
    done = regard("ask", "model", "--prefix", "foo", "--input", tmp_path / "a.txt", "--output", tmp_path / "b.txt")
    assert done.err.count("foo is new") == 1
    assert regard("ask", "model", "--prefix", "sort", "a").err == ""


def test_the_best_are_numbered(regard, loaded) -> None:
    loaded(Letters())
    done = regard("ask", "model", "--n", "2", "a\tb", "c")
    assert done.out.splitlines() == ["1\t-0.2500\tA B", "1\t-0.2500\tA B!", "2\t-0.2500\tC", "2\t-0.2500\tC!"]


def test_what_is_drawn_depends_on_the_line_the_seed_and_the_options(regard, loaded) -> None:
    loaded(Letters())
    options = ["--sample", "--seed", "4", "--temperature", "0.5", "--top-k", "3"]
    done = regard("ask", "model", *options, stdin=b"a\nb\n")
    assert done.out.splitlines() == ["A 4 1.0 temperature=0.5 top_k=3", "B 4 2.0 temperature=0.5 top_k=3"]
    assert regard("ask", "model", "--sample", "--n", "2", "a").out.splitlines() == [
        "1\t-0.2500\tA None 1.0",
        "1\t-0.2500\tA None 1.1",
    ]


def test_json_has_an_object_for_each_text(regard, loaded) -> None:
    loaded(Letters())
    sure = {"confidence": 1.0}
    first, second = map(json.loads, regard("ask", "model", "--json", stdin=b"a\n\n").out.splitlines())
    likely = {"probability": 0.5, "score": -0.25, "finished": True}
    assert first == {"text": "A", "tokens": [5], "pieces": ["▁5"], **likely, **sure}
    sure |= {"probability": 1.0, "score": 0.0, "finished": True}
    assert second == {"text": "", "tokens": [], "pieces": [], **sure}
    (both,) = map(json.loads, regard("ask", "model", "--json", "--n", "2", "a").out.splitlines())
    assert [one["text"] for one in both["outputs"]] == ["A", "A!"]


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (["--n", "0"], "--n: 0 must lie between 1 and 100"),
        (["--beam", "0"], "--beam: 0 must lie between 1 and 100"),
        (["--beam", "101"], "--beam: 101 must"),
        (["--sample", "--beam", "2"], "--beam"),
        (["--seed", "2"], "--seed"),
        (["--temperature", "1"], "--temperature"),
        (["--sample", "--top-p", "0"], "--top-p"),
    ],
)
def test_what_does_not_go_together_is_refused(regard, options: list[str], where: str) -> None:
    regard("ask", "nowhere", *options, "a").refuses(where)


def test_an_answer_that_the_model_is_unsure_of_is_told_of_unless_it_was_drawn(regard, loaded) -> None:
    class Unsure(Letters):
        assets = SimpleNamespace(doubted_below=0.6)

        def _answers(self, text: str, ends: list[str]) -> list[Answer]:
            return [Answer(text.upper() + end, (5,), 0.5, -0.25, True, 0.25, True) for end in ends]

    loaded(Unsure())
    assert "line 2: the model is unsure (probability 0.250" in regard("ask", "model", "", "a").err
    assert regard("ask", "model", stdin=b"a\n\nb\n").err.startswith("regard: the model is unsure of 2 of 3 lines")
    assert regard("ask", "model", "--sample", "a").err == ""
    done = regard("ask", "model", "--json", "a")
    assert (json.loads(done.out)["unsure"], done.err) == (True, "")
