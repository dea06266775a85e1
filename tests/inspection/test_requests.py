"""Request fields are read or refused, and the error names the field; payloads come back as they were packed."""

import struct
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pydantic import Field, Strict

from regard.inspection import requests
from regard.inspection.forward.record import Kind
from regard.inspection.requests import AblationRequest, ImageRequest, Request, pack, read, split_fields
from regard.models.ablation import Ablations, Head
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.refusals import refused

DEEP: Any = []
for _ in range(50_000):
    DEEP = [DEEP]


@requests.question
def chosen(
    kind: Kind, heat: Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
) -> tuple[Kind, float]:
    return kind, heat


def test_a_whole_question() -> None:
    changes = {"off": [["cross", 2, 3], ("encoder", 1, 1), ["cross", 2, 3]], "positions": False, "mask": False}
    given = {"model": 2, "snapshot": "step 1,000", "text": "a b", "changes": changes}
    found, others = split_fields(Request, {**given, "branch": [3, 0], "kind": "cross"})
    assert found == Request(2, "step 1,000", text="a b", branch=(3, 0), changes=found.changes)
    assert others == {"kind": "cross"}
    with refused(UsageError):
        split_fields(Request, [["model", 0]])
    off = (Head("cross", 2, 3), Head("encoder", 1, 1))
    assert found.changes.ablations == Ablations(off, positions=False, mask=False)
    assert found.own == read(Request, given)
    assert read(Request, {"image": {"pixels": [1, 2], "number": None}}).image == ImageRequest(pixels=(1, 2))
    assert read(Request, {"image": {"number": 7}}).image == ImageRequest(7)


def test_what_is_not_said_is_as_usual() -> None:
    nothing = dict.fromkeys(("model", "snapshot", "text", "target", "branch", "image", "changes", "window", "between"))
    assert read(Request, {}) == read(Request, nothing) == Request()
    assert AblationRequest().ablations == Ablations()
    assert split_fields(Request, {"kind": None}) == (Request(), {})
    assert chosen("pool") == ("pool", 0.5)


def test_the_same_question_is_the_same_key() -> None:
    heads = [["encoder", 1, 2], ["encoder", 1, 1]]
    one = read(Request, {"text": "a", "changes": {"off": heads}})
    other = read(Request, {"changes": {"off": heads[::-1] * 2}, "text": "a", "weights": "named"})
    assert one == other
    assert hash(one) == hash(other)
    assert one != Request(text="a")


HEADS = (["cross", 1], ["elsewhere", 1, 1], [["cross"], 1, 1], ["cross", 0, 1], ["cross", 1, True], "c")
REFUSED: list[tuple[str | None, list[Any]]] = [
    ("model", [{"model": value} for value in (-1, 10**6 + 1, 10**5000, True, 1.0, "0", DEEP)]),
    ("snapshot", [{"snapshot": 5}]),
    ("text", [{"text": "x" * (requests.LONGEST + 1)}]),
    ("target", [{"text": None, "target": {}}, {"branch": [1], "target": "a"}]),
    ("branch", [{"branch": value} for value in ("12", [1, -1], [1, [2]], [0] * (requests.LONGEST + 1))]),
    ("window", [{"window": 0}]),
    ("image", [{"image": value} for value in (5, {}, {"number": 1, "pixels": [1]})]),
    ("number", [{"image": {"number": -1}}]),
    ("pixels", [{"image": {"pixels": [value]}} for value in (70_000, 1.5)]),
    ("size", [{"image": {"number": 1, "size": 2}}]),
    ("changes", [{"changes": []}]),
    ("mask", [{"changes": {"mask": 0}}]),
    ("of", [{"changes": {"of": []}}]),
    ("off", [{"changes": {"off": [head]}} for head in HEADS]),
    ("models", [{"models": 1}]),
    ("x" * 40, [{"x" * 1000: 1}]),
    (None, [{"\ud800": 1}, None, [], "text", 5, {1: 2}, DEEP]),
]


@pytest.mark.one_of(5)
@pytest.mark.parametrize(("where", "given"), [(where, given) for where, some in REFUSED for given in some])
def test_what_does_not_fit_is_refused(where: str | None, given: Any) -> None:
    with refused(UsageError, where) as caught:
        read(Request, given)
    assert len(str(caught.value).encode()) < 250


@pytest.mark.parametrize("heat", [float("nan"), float("inf"), -0.1, 1.1, "0", True, [], 10**400])
def test_numbers_have_bounds(heat: Any) -> None:
    with refused(UsageError, "heat"):
        chosen("pool", heat)


@pytest.mark.parametrize("given", [{}, {"kind": "c"}, {"kind": ["pool"]}, {"kind": 1}])
def test_a_word_that_must_be_given(given: dict[str, Any]) -> None:
    with refused(UsageError, "kind"):
        chosen(**given)
    with refused(UsageError, "more"):
        chosen(kind="pool", more=1)


def test_half_a_surrogate_pair_is_no_character() -> None:
    found = read(Request, {"text": "a\ud800b\U0001f600", "target": "\udfff"})
    assert (found.text, found.target) == ("a�b\U0001f600", "�")


def some(kind: str) -> st.SearchStrategy[Any]:
    """Arrays of a kind, numbers alone."""
    return arrays(kind, array_shapes(min_side=0), elements={"allow_nan": False} if kind == "float32" else None)


@drawn(
    st.dictionaries(st.text(), st.none() | st.integers(-(2**40), 2**40) | st.text(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.sampled_from(sorted(requests.TYPES.values())).flatmap(some), max_size=3),
)
def test_what_is_packed_comes_back(values: dict[str, Any], given: dict[str, Any]) -> None:
    values.pop("arrays", None)
    payload = pack(values, given)
    found, found_arrays = unpack(payload)
    assert found == values
    assert found_arrays.keys() == given.keys()
    for name, array in given.items():
        assert found_arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found_arrays[name], array)
    assert len(payload) % requests.ALIGNED == 0


def test_bytes_lie_as_the_page_says() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    payload = pack({"a": "ä"}, {"few": np.array([1, 2, 3], np.uint8), "weight": weight})
    (length,) = struct.unpack("<I", payload[:4])
    first = -(-(4 + length) // 8) * 8
    assert (payload[first : first + 3], payload[first + 8 : first + 8 + 24]) == (b"\1\2\3", weight.tobytes())
    with refused(RegardError, "model"):
        pack({"a": float("nan")}, {})
