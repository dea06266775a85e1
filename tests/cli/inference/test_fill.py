"""``regard fill``: k lines for each gap, or one JSON object per line of input."""

import json

import pytest

from regard.config import TASKS
from regard.tasks.language.masked import Candidate
from tests.cli.inference.fakes import Unaware


class Letters(Unaware):
    """Fills every gap with a, b, c …"""

    info = TASKS["masked-lm"]

    def fill(self, texts: list[str], k: int) -> list[list[list[Candidate]]]:
        letters = list(enumerate("abc"[:k], 1))
        guesses = [[Candidate(f"▁{one}", 0.5 / n, text.replace("[MASK]", one)) for n, one in letters] for text in texts]
        return [[each] * text.count("[MASK]") for text, each in zip(texts, guesses, strict=True)]


def test_a_line_for_each_guess(regard, loaded) -> None:
    loaded(Letters())
    done = regard("fill", "model", "-k", "2", stdin="the [MASK]\t.\n[MASK] ä [MASK]\n".encode())
    assert done.code == 0
    guesses = ["0.5000\t▁a\ta ä a", "0.2500\t▁b\tb ä b"]
    assert done.out.splitlines() == ["0.5000\t▁a\tthe a .", "0.2500\t▁b\tthe b .", *guesses, *guesses]


def test_a_line_without_a_gap_stays_and_is_told_but_an_empty_one_is_not(regard, loaded) -> None:
    loaded(Letters())
    done = regard("fill", "model", "-k", "1", stdin=b"[MASK]\n\nnothing\there\n")
    assert done.out == "0.5000\t▁a\ta\n\n\t\tnothing here\n"
    assert "line 3 has no [MASK]" in done.err
    assert "line 2" not in done.err
    assert regard("fill", "model", stdin=b"\xef\xbb\xbf").out == ""  # a file of nothing but that has no line


def test_json_has_an_object_for_each_line(regard, loaded) -> None:
    loaded(Letters())
    done = regard("fill", "model", "--json", "--k", "1", stdin=b"[MASK] x [MASK]\nno gap\n\n")
    first, second, third = map(json.loads, done.out.splitlines())
    assert first == {"text": "[MASK] x [MASK]", "gaps": [[{"piece": "▁a", "probability": 0.5, "text": "a x a"}]] * 2}
    assert second == {"text": "no gap", "gaps": []}
    assert third == {"text": "", "gaps": []}
    assert done.err == ""


@pytest.mark.parametrize("k", ["0", "-3"])
def test_no_guesses_are_refused(regard, k: str) -> None:
    regard("fill", "nowhere", "--k", k).refuses("--k")
