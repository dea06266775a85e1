"""A program is its calls in order, over rooms; a pass that would read or write outside of its arrays is refused."""

import threading

import numpy as np
import pytest

from regard.system.kernels import ACTIVATIONS, NORMS
from regard.system.kernels.packing import pack
from tests.system.kernels.arrays import draw, native

pytestmark = pytest.mark.usefixtures("instruction_set")
HEADS, D_K, D_V, D = 2, 3, 4, 10
OWN = HEADS * (D_K + D_V)
TABLE, GAIN = draw(7, D), draw(D, seed=1)
PROJECT, OUTPUT = draw(2 * HEADS * D_K + HEADS * D_V, D, seed=2), draw(D, HEADS * D_V, seed=3)
QUERY = draw(HEADS * D_K, D, seed=4)
BOTH = draw(2 * HEADS * D_V, D, seed=5)


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int32)


def program(kind: str, biased: bool = False, rotary: bool = False):
    """Embedding, one attention of a kind, residual and norm; and the room of the result."""
    made = native.Program()
    stream, projected, context, output = (made.room(w) for w in (D, len(PROJECT), HEADS * D_V, D))
    made.embed(TABLE, 2.0, stream)
    if kind == "recurrence":
        both = made.room(len(BOTH))
        made.product(stream, pack(BOTH), both, 0)
        made.recur(both, context, 1)
    elif kind == "memory":
        query = made.room(len(QUERY))
        made.product(stream, pack(QUERY), query, 0)
        made.attend_memory(query, context, HEADS, D_K, D_V, 0.5, 1)
    else:
        made.product(stream, pack(PROJECT), projected, 0)
        if rotary:
            made.rotate(projected, 1, 2)
        if kind == "sentence":
            made.attend(projected, context, HEADS, D_K, D_V, 0.5, biased)
        else:
            made.attend_past(projected, context, HEADS, D_K, D_V, 0.5, biased, 1)
    made.product(context, pack(OUTPUT), output, ACTIVATIONS["relu"])
    made.norm(stream, output, stream, output, GAIN, None, NORMS["rms"], 1, 1e-5)
    return made, output


def given(kind: str, rows: int = 4):
    """A pass of each kind that is as it has to be."""
    common = {"ids": np.arange(rows) % 7, "place": ints(*range(rows)), "length": ints(*range(1, rows + 1))}
    if kind == "sentence":
        return {**common, "first": ints(*[0] * rows), "length": ints(*[rows] * rows)}
    if kind == "memory":
        spans = {"memory_first": ints(*range(rows)), "memory_length": ints(*[2] * rows)}
        return {**common, "memory": [draw(9, OWN)] * 2, **spans}
    ancestors = np.array([np.random.default_rng(row).permutation(12)[:8] for row in range(rows)], np.int32)
    ancestors = ancestors.reshape(rows, 8)
    slot = ancestors[np.arange(rows), common["place"]]
    own = HEADS * D_V if kind == "recurrence" else OWN
    return {**common, "past": [draw(12, own, seed=9)] * 2, "ancestors": ancestors, "slot": slot}


def run(made, result: int, values) -> np.ndarray:
    out = np.full((len(values["ids"]), D + 2), 7, np.float32)
    made.run(result, out[:, :D], **values)
    assert (out[:, D:] == 7).all()
    return out[:, :D]


def expected(kind: str, values) -> np.ndarray:
    """The same calls by the kernels on their own."""
    rows = len(values["ids"])
    x, keys = TABLE[values["ids"]] * np.float32(2), HEADS * D_K
    project = QUERY if kind == "memory" else PROJECT
    projected, context = np.empty((rows, len(project)), np.float32), np.empty((rows, HEADS * D_V), np.float32)
    native.product(x, pack(project), projected, 0)
    length, first, places = values["length"], ints(*[0] * rows), None
    if kind == "sentence":
        other = projected[:, keys:]
    elif kind == "memory":
        other, length, first = values["memory"][1], values["memory_length"], values["memory_first"]
    else:
        other, places = values["past"][1].copy(), values["ancestors"]
        other[values["slot"]] = projected[:, keys:]
    native.attention(
        projected[:, :keys], other[:, :keys], other[:, keys:], context, HEADS, 0.5, length, first, places, None, None
    )
    output = np.empty((rows, D), np.float32)
    native.product(context, pack(OUTPUT), output, ACTIVATIONS["relu"])
    native.norm(x, output, x, output, GAIN, None, NORMS["rms"], 1, 1e-5)
    return output


KINDS = ["sentence", "past", "memory", "recurrence"]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_program_is_its_calls(kind: str) -> None:
    made, result = program(kind)
    for rows in (4, 1, 6, 0):
        values = given(kind, rows)
        wanted = expected(kind, values) if rows else np.empty((0, D))
        assert (run(made, result, values) == wanted).all()


@pytest.mark.parametrize("halved", [False, True])
def test_weights_on_a_memory_are_its_softmax(halved: bool) -> None:
    """Of the layer's own heads alone, 0 behind a shorter sentence; and nothing else changes."""
    made, result = program("memory")
    values = {**given("memory"), "memory_first": ints(0, 3, 4, 5), "memory_length": ints(3, 1, 0, 4)}
    memory = values["memory"][1]
    if halved:
        bits = np.empty(memory.shape, np.uint16)
        native.halve(memory, bits)
        values["memory"], memory = [bits] * 2, (bits.astype(np.uint32) << 16).view(np.float32)
    weights = np.full((4, 2 * HEADS, 5), 7, np.float32)
    assert (run(made, result, {**values, "weights": weights}) == run(made, result, values)).all()
    query = (2 * TABLE[values["ids"]] @ QUERY.T).reshape(4, HEADS, D_K)
    wanted = np.zeros((4, HEADS, 5))
    for row, (first, length) in enumerate(zip(values["memory_first"], values["memory_length"], strict=True)):
        for head in range(HEADS if length else 0):
            key = memory[first : first + length, head * D_K : (head + 1) * D_K]
            power = np.exp(0.5 * (key @ query[row, head]))
            wanted[row, head, :length] = power / power.sum()
    np.testing.assert_allclose(weights[:, HEADS:], wanted, atol=1e-5)
    assert (weights[:, :HEADS] == 7).all()
    for wrong in (
        weights[:3],
        weights[:, 1:].copy(),
        weights[:, :, :3].copy(),
        weights[:, :, :4],
        weights.astype("f8"),
    ):
        with pytest.raises((ValueError, TypeError)):
            run(made, result, {**values, "weights": wrong})


def test_a_recurrence_goes_on_from_the_token_before() -> None:
    made, size, rows = native.Program(), 67, 5
    stream, out = made.room(2 * size), made.room(size)
    table, state = 3 * draw(rows, 2 * size), draw(9, size, seed=1)
    made.embed(table, 1.0, stream)
    made.recur(stream, out, 0)
    length, before = ints(1, 2, 2, 3, 1), [None, 4, 5, 4, None]
    ancestors, slot = np.full((rows, 3), 8, np.int32), ints(0, 1, 2, 3, 6)
    for row, place in enumerate(before):
        ancestors[row, length[row] - 1] = slot[row]
        if place is not None:
            ancestors[row, length[row] - 2] = place
    past, found = state.copy(), np.empty((rows, size), np.float32)
    values = {"place": length - 1, "length": length, "slot": slot, "ancestors": ancestors, "past": [past]}
    made.run(out, found, np.arange(rows), **values)
    keep = 1 / (1 + np.exp(-table[:, size:].astype(np.float64)))
    old = np.array([np.zeros(size) if place is None else state[place] for place in before])
    wanted = keep * old + (1 - keep) * table[:, :size]
    np.testing.assert_allclose(past[slot], wanted, atol=1e-6)
    np.testing.assert_allclose(found, np.maximum(wanted, 0), atol=1e-6)
    untouched = np.setdiff1d(np.arange(9), slot)
    assert (past[untouched] == state[untouched]).all()
    with pytest.raises(ValueError):
        made.run(out, found, np.arange(rows), **{**values, "past": [np.zeros((9, size), np.uint16)]})


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_pass_lacks_or_has_outside_is_refused(kind: str) -> None:
    made, result = program(kind)
    values = given(kind)
    for name, value in values.items():
        if name not in ("ids", "place", "length"):
            with pytest.raises(ValueError):
                run(made, result, {**values, name: None})
        if isinstance(value, list):
            for wrong in (value[:1], [value[0], value[1][:, :-1]], [value[0], value[1][:2]], [], [None, value[1]]):
                with pytest.raises(ValueError):
                    run(made, result, {**values, name: wrong})
            continue
        if (kind not in ("past", "recurrence") and name == "place") or (kind == "memory" and name == "length"):
            continue  # not looked at
        for wrong in (2**31 - 1, -1):
            bad = value.copy()
            bad.flat[-1 if name != "ancestors" else 0] = wrong
            if name == "place" or (name == "length" and kind in ("past", "recurrence") and wrong < 0):
                continue
            with pytest.raises(ValueError):
                run(made, result, {**values, name: bad})
        with pytest.raises(ValueError):
            run(made, result, {**values, name: value[:-1]})


def test_tables_of_positions_must_reach_as_far() -> None:
    values = given("sentence")
    made, result = program("sentence", biased=True)
    run(made, result, {**values, "bias": draw(HEADS, 9)})
    for bias in (None, draw(HEADS, 5), draw(HEADS + 1, 9)):
        with pytest.raises(ValueError):
            run(made, result, {**values, "bias": bias})
    made, result = program("sentence", rotary=True)
    run(made, result, {**values, "cos": draw(4, 1), "sin": draw(4, 1)})
    for cos in (None, draw(3, 1), draw(4, 2)):
        with pytest.raises(ValueError):
            run(made, result, {**values, "cos": cos, "sin": draw(4, 1)})
    made, result = program("sentence")
    moved = run(made, result, {**values, "positions": draw(4, D)})
    assert not np.allclose(moved, run(made, result, values))
    for table in (draw(3, D), draw(4, D + 1)):
        with pytest.raises(ValueError):
            run(made, result, {**values, "positions": table})


def test_shapes_that_do_not_fit_are_refused_when_recorded() -> None:
    made = native.Program()
    small, half, large = made.room(3), made.room(32), made.room(64)
    for call in (
        lambda: made.room(0),
        lambda: made.embed(TABLE, 1.0, small),
        lambda: made.product(small, pack(draw(64, 4)), large, 0),
        lambda: made.product(small, pack(draw(96, 3)), large, 0),
        lambda: made.product(9, pack(draw(64, 3)), large, 0),
        lambda: made.product(small, pack(draw(64, 3)), large, 9),
        lambda: made.gate(large, small, 0),
        lambda: made.norm(small, large, -1, small, GAIN[:3], None, 0, 1, 1e-5),
        lambda: made.norm(small, -1, -1, small, GAIN, None, 0, 1, 1e-5),
        lambda: made.norm(small, -1, -1, small, GAIN[:3], None, 0, 2, 1e-5),
        lambda: made.rotate(small, 1, 3),
        lambda: made.rotate(small, 2, 2),
        lambda: made.attend(large, small, 1, 3, 3, 1.0, False),
        lambda: made.attend_past(large, small, 0, 3, 3, 1.0, False, 0),
        lambda: made.recur(large, small, 0),
        lambda: made.recur(large, half, -1),
        lambda: made.attend_memory(small, small, 1, 3, 3, 1.0, -1),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.one_of(3)
def test_weights_live_as_long_as_the_program_and_threads_have_rooms_of_their_own() -> None:
    made, result = program("sentence")  # its packed matrices are named by nothing else
    values = [given("sentence", rows) for rows in (3, 40, 200)]
    wanted = [run(made, result, one).copy() for one in values]
    found: list[list[bool]] = []

    def work() -> None:
        for _ in range(20):
            same = [run(made, result, one) == other for one, other in zip(values, wanted, strict=True)]
            found.append([bool(one.all()) for one in same])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * 20
    assert all(map(all, found))
