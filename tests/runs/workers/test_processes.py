"""Cores are counted by what they do; texts are answered by several processes as by one, an error is the caller's."""

import json

import pytest

from regard.runs.workers import processes
from regard.runs.workers.processes import answer_groups, answer_processes, divider, independent_cores
from regard.system.errors import RegardError, Stopped
from regard.system.forks import SAFE
from regard.system.processor import usable_cores
from tests.refusals import refused

copied = pytest.mark.skipif(not SAFE, reason="processes are not copied here")


CORES = [
    ({1: 1.0, 2: 1.1, 4: 1.2}, 8, 4),
    ({1: 1.0, 2: 1.0, 4: 1.9}, 4, 2),  # four of them are two threads each of two cores
    ({1: 1.0, 2: 1.5}, 2, 1),
    ({1: 1.0, 2: 1.0}, 1, 1),
]


@pytest.mark.parametrize(("seconds", "most", "found"), CORES)
def test_cores_are_counted_by_what_they_do(seconds, most, found, monkeypatch):
    monkeypatch.setattr(processes, "usable_cores", lambda: 4)
    monkeypatch.setattr(processes, "_seconds", seconds.__getitem__)
    assert independent_cores(most) == found


def test_a_core_that_was_busy_is_counted_in_the_next_measurement(monkeypatch):
    monkeypatch.setattr(processes, "usable_cores", lambda: 2)
    monkeypatch.setattr(processes, "_PAUSE", 0.0)
    for tries, times, found in ((5, [1.9, 1.9, 1.1], 2), (3, [1.9, 1.9, 1.9], 1)):
        two = iter(times)
        monkeypatch.setattr(processes, "_seconds", lambda count, two=two: 1.0 if count == 1 else next(two))
        assert independent_cores(2, tries) == found
        assert next(two, None) is None


def test_the_cores_of_this_machine_are_counted(monkeypatch):
    monkeypatch.setattr(processes, "usable_cores", usable_cores)
    assert independent_cores(2) in (1, 2)
    assert processes._seconds(2) > 0


def content(texts, first):
    if "wrong" in texts:
        raise RegardError("is wrong", f"line {first + texts.index('wrong')}")
    return json.dumps([first, texts]).encode()


GROUPS = [(["a", "b"], 1), (["c"], 3), (["\ud800", "ß"], 4)]


def test_one_process_or_one_group_leaves_the_answers_to_the_caller():
    def never():
        raise AssertionError

    for groups, asked in ((GROUPS, lambda: 1), (GROUPS[:1], never), ([], never)):
        assert list(answer_groups(content, groups, asked)) == [(*group, None) for group in groups]


@copied
@pytest.mark.parametrize("count", [2, 3])
def test_groups_are_answered_in_order(count):
    found = list(answer_groups(content, GROUPS * 5, lambda: count))
    assert found == [(*group, content(*group)) for group in GROUPS * 5]


@copied
def test_a_group_whose_answer_is_an_error_is_left_to_the_caller():
    found = answer_groups(content, [GROUPS[0], (["ok", "wrong"], 3), (["d"], 5)], lambda: 2)
    assert next(found)[2] == content(*GROUPS[0])
    assert next(found) == (["ok", "wrong"], 3, None)
    with refused(RegardError, "line 4", "is wrong"):
        next(found)


@copied
def test_an_error_of_the_texts_comes_after_what_was_before_it():
    def given():
        yield from GROUPS
        raise Stopped("stopped", "here")

    found = []
    with refused(Stopped, "here"):
        for one in answer_groups(content, given(), lambda: 2):
            found.append(one)
    assert [one[:2] for one in found] == GROUPS


def find(texts, begin):
    return [[place, text] for place, text in enumerate(texts, begin)]


@copied
@pytest.mark.parametrize("count", [0, 3, 4, 11])
def test_examples_are_divided_in_blocks(count):
    texts = [str(n) for n in range(count)]
    assert divider(lambda: 2, block=3)(find, texts) == divider(lambda: 1, block=3)(find, texts) == find(texts, 0)


def test_how_many_processes_answer(monkeypatch):
    monkeypatch.setattr(processes, "useful_processes", lambda most: 7)
    for safe, asked, threads, device, count in (
        (True, None, None, "cpu", 7),
        (True, None, 2, "cpu", 1),
        (True, 3, 2, "cpu", 3),
        (True, None, None, "cuda:0", 1),
        (False, 3, None, "cpu", 1),
    ):
        monkeypatch.setattr(processes, "SAFE", safe)
        assert answer_processes(asked, threads, device) == count
