"""Request fields are parsed or refused with a message."""

from __future__ import annotations

from typing import Any

import pytest

from regard.explore.requests import LONGEST, AblationRequest, Fields, Request, format_value
from regard.models.ablation import Ablations, Head
from regard.system.errors import UsageError

DEEP: Any = []
for _ in range(50_000):
    DEEP = [DEEP]


def read(**given: Any) -> Request:
    fields = Fields(given)
    found = Request.from_fields(fields)
    fields.end()
    return found


def test_a_whole_question() -> None:
    changes = {"off": [["cross", 2, 3], ("encoder", 1, 1), ["cross", 2, 3]], "positions": False, "mask": False}
    found = read(model=2, snapshot="step 1,000", text="a b", branch=[3, 0], changes=changes)
    assert (found.model, found.snapshot, found.text, found.target, found.branch) == (
        2,
        "step 1,000",
        "a b",
        None,
        (3, 0),
    )
    off = (Head("cross", 2, 3), Head("encoder", 1, 1))
    assert found.without.changes == Ablations(off, positions=False, mask=False)
    assert found.own == read(model=2, snapshot="step 1,000", text="a b", changes=changes)
    assert read(image={"pixels": [1, 2]}).pixels == (1, 2)
    assert read(image={"number": 7}).image == 7


def test_what_is_not_said_is_as_usual() -> None:
    nothing = dict.fromkeys(("model", "snapshot", "text", "target", "branch", "image", "changes"))
    assert read() == read(**nothing) == Request()
    assert AblationRequest().changes == Ablations()
    fields = Fields({"most": None})
    assert fields.whole("most", 1, 9, 5) == 5
    assert fields.number("heat", 0, 1, 0.5) == 0.5
    assert fields.word("kind", ["a", "b"], "b") == "b"
    assert fields.flag("so", True)
    fields.end()


def test_the_same_question_is_the_same_key() -> None:
    heads = [["encoder", 1, 2], ["encoder", 1, 1]]
    one, other = read(text="a", changes={"off": heads}), read(changes={"off": heads[::-1] * 2}, text="a")
    assert one == other
    assert hash(one) == hash(other)
    assert one != read(text="a")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": -1}, "from 0 to"),
        ({"model": 10**5000}, "a number that large"),
        ({"model": True}, "not true"),
        ({"model": 1.0}, "not 1.0"),
        ({"model": "0"}, "not '0'"),
        ({"model": DEEP}, "not a list"),
        ({"snapshot": 5}, "expected a text, not 5"),
        ({"text": None, "target": {}}, "expected a text, not an object"),
        ({"text": "x" * (LONGEST + 1)}, "100,001 characters"),
        ({"target": "x" * 10**6}, "1,000,000 characters"),
        ({"branch": "12"}, "expected a list"),
        ({"branch": [1, -1]}, "integer"),
        ({"branch": [1, [2]]}, "integer"),
        ({"branch": [0] * (LONGEST + 1)}, "entries"),
        ({"branch": [1], "target": "a"}, "one of them is enough"),
        ({"image": 5}, "expected an object, not 5"),
        ({"image": {}}, "by its number, or given by its pixels"),
        ({"image": {"number": 1, "pixels": [1]}}, "by its number, or given by its pixels"),
        ({"image": {"number": -1}}, "integer"),
        ({"image": {"pixels": [70_000]}}, "from 0 to 65535"),
        ({"image": {"pixels": [1.5]}}, "integer"),
        ({"image": {"number": 1, "size": 2}}, "'size' is an unknown field"),
        ({"changes": []}, "expected an object, not a list"),
        ({"changes": {"mask": 0}}, "true or false"),
        ({"changes": {"off": [["cross", 1]]}}, "a head is one of"),
        ({"changes": {"off": [["elsewhere", 1, 1]]}}, "a head is one of"),
        ({"changes": {"off": [[["cross"], 1, 1]]}}, "a head is one of"),
        ({"changes": {"off": [["cross", 0, 1]]}}, "from 1"),
        ({"changes": {"off": ["cross"]}}, "expected a list"),
        ({"changes": {"of": []}}, "known are mask, off, positions, scaling"),
        ({"models": 1}, "'models' is an unknown field"),
        ({"x" * 1000: 1}, "x…' is an unknown field"),
    ],
)
def test_what_does_not_fit_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(**given)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 250
    str(raised.value).encode()


@pytest.mark.parametrize("given", [None, [], "text", 5, {1: 2}, DEEP])
def test_only_objects_are_questions(given: Any) -> None:
    with pytest.raises(UsageError, match="expected an object"):
        Fields(given)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1, "0", True, [], 10**400])
def test_numbers_have_bounds(value: Any) -> None:
    with pytest.raises(UsageError, match="a number from 0 to 1"):
        Fields({"heat": value}).number("heat", 0, 1, 0)


def test_a_word_that_must_be_given() -> None:
    for given in ({}, {"kind": "c"}, {"kind": ["a"]}, {"kind": 1}):
        with pytest.raises(UsageError, match="expected one of a, b"):
            Fields(given).word("kind", ["a", "b"])


def test_half_a_surrogate_pair_is_no_character() -> None:
    found = read(text="a\ud800b\U0001f600", target="\udfff")
    assert (found.text, found.target) == ("a�b\U0001f600", "�")
    with pytest.raises(UsageError) as raised:
        read(**{"\ud800": 1})
    str(raised.value).encode()


def test_values_in_a_few_words() -> None:
    assert [format_value(one) for one in (None, "a", False, 3, -2.5, 10**16, (1,), {}, object())] == [
        "nothing",
        "'a'",
        "false",
        "3",
        "-2.5",
        "a number that large",
        "a list",
        "an object",
        "an object",
    ]
