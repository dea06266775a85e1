"""Many texts are answered by several processes as by one; an error is the caller's own."""

import json
from collections.abc import Iterator

import pytest

from regard.runs.workers import answers
from regard.runs.workers.answers import answer_groups, answer_processes, divider
from regard.system.errors import RegardError, Stopped
from regard.system.forks import SAFE
from tests.refusals import refused

copied = pytest.mark.skipif(not SAFE, reason="processes are not copied here")


def content(texts: list[str], first: int) -> bytes:
    if "wrong" in texts:
        raise RegardError("is wrong", f"line {first + texts.index('wrong')}")
    return json.dumps([first, texts]).encode()


GROUPS = [(["a", "b"], 1), (["c"], 3), (["\ud800", "ß"], 4)]


def test_one_process_leaves_the_answers_to_the_caller() -> None:
    assert list(answer_groups(content, GROUPS, lambda: 1)) == [(*group, None) for group in GROUPS]


def test_one_group_asks_for_no_processes() -> None:
    def never() -> int:
        raise AssertionError

    assert list(answer_groups(content, GROUPS[:1], never)) == [(*GROUPS[0], None)]
    assert list(answer_groups(content, [], never)) == []


@copied
@pytest.mark.parametrize("processes", [2, 3])
def test_groups_are_answered_in_order(processes: int) -> None:
    found = list(answer_groups(content, GROUPS * 5, lambda: processes))
    assert found == [(*group, content(*group)) for group in GROUPS * 5]


@copied
def test_a_group_whose_answer_is_an_error_is_left_to_the_caller() -> None:
    given = [GROUPS[0], (["ok", "wrong"], 3), (["d"], 5)]
    found = answer_groups(content, given, lambda: 2)
    assert next(found)[2] == content(*GROUPS[0])
    texts, first, answer = next(found)
    assert (texts, first, answer) == (["ok", "wrong"], 3, None)
    with refused(RegardError, "line 4", "is wrong"):
        next(found)


@copied
def test_an_error_of_the_texts_comes_after_what_was_before_it() -> None:
    def given() -> Iterator[tuple[list[str], int]]:
        yield from GROUPS
        raise Stopped("stopped", "here")

    found = []
    with refused(Stopped, "here"):
        for one in answer_groups(content, given(), lambda: 2):
            found.append(one)
    assert [one[:2] for one in found] == GROUPS


def find(texts: list[str], begin: int) -> list[list[object]]:
    return [[place, text] for place, text in enumerate(texts, begin)]


@copied
@pytest.mark.parametrize("count", [0, 3, 4, 11])
def test_examples_are_divided_in_blocks(count: int) -> None:
    texts = [str(n) for n in range(count)]
    assert divider(lambda: 2, block=3)(find, texts) == divider(lambda: 1, block=3)(find, texts) == find(texts, 0)


def test_how_many_processes_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "useful_processes", lambda most: 7)
    monkeypatch.setattr(answers, "SAFE", True)
    assert answer_processes(None, None, "cpu") == 7
    assert answer_processes(None, 2, "cpu") == 1
    assert answer_processes(3, 2, "cpu") == 3
    assert answer_processes(None, None, "cuda:0") == 1
    monkeypatch.setattr(answers, "SAFE", False)
    assert answer_processes(3, None, "cpu") == 1
