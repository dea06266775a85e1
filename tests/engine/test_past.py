import numpy as np
import pytest

from regard.engine import past as past_of
from regard.engine.past import CHUNK, Memory, Past, project
from regard.system.kernels.packing import Precision


@pytest.fixture(params=[past_of.LARGE, 0], autouse=True)
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_of, "LARGE", request.param)


def test_places_that_rows_name_are_kept_and_others_used_again() -> None:
    past, random = Past(2, 3, room=4), np.random.default_rng(0)
    ancestors_NS, lengths_N = np.zeros((3, 60), np.int32), np.zeros(3, np.int32)
    written: list[list[float]] = [[], [], []]
    for now in range(60):
        taken = past.take(3, ancestors_NS, lengths_N)
        named = [place for row in range(3) for place in ancestors_NS[row, : lengths_N[row]].tolist()]
        assert not set(taken.tolist()) & set(named)
        assert len(set(taken.tolist())) == 3
        ancestors_NS[np.arange(3), lengths_N] = taken
        lengths_N = lengths_N + np.int32(1)
        for past_XE in past.of_layer:
            past_XE[taken] = (100 * now + np.arange(3))[:, None]
        for row in range(3):
            written[row].append(100 * now + row)
        for row in range(3):
            assert past.of_layer[1][ancestors_NS[row, : lengths_N[row]]][:, 2].tolist() == written[row]
        parents = random.integers(0, 3, 3)  # a beam in which rows die out
        ancestors_NS, written = ancestors_NS[parents], [list(written[parent]) for parent in parents.tolist()]
    assert len(past.of_layer[0]) < 3 * 60  # places of rows that died were used again


def test_memories_move_together_when_their_room_is_full() -> None:
    memory, random = Memory(2, 3), np.random.default_rng(0)
    first_B, length_B, held = np.zeros(0, np.int32), np.zeros(0, np.int32), []
    for now in range(50):
        lengths = random.integers(0, 9, 2)
        rooms, first_B = memory.extend(first_B, length_B, lengths)
        for room_SE in rooms:
            room_SE[:] = now
        length_B = np.append(length_B, lengths).astype(np.int32)
        held += [now, now]
        for first, length, value in zip(first_B, length_B, held, strict=True):
            assert all((memory_SE[first : first + length] == value).all() for memory_SE in memory.of_layer)
        kept = random.permutation(len(held))[:5]
        first_B, length_B, held = first_B[kept], length_B[kept], [held[place] for place in kept]
    assert len(memory.of_layer[0]) < 200


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_keys_and_values_beside_weights_of_fewer_bits_are_their_upper_halves(precision: Precision) -> None:
    from regard.engine.layers import Linear

    random, tokens = np.random.default_rng(0), CHUNK + 70
    linear = Linear([random.standard_normal((6, 4), np.float32)], [None])
    x_TD = random.standard_normal((tokens, 4), np.float32)
    memory = Memory(1, 6, precision)
    (room_TE,), _ = memory.extend(np.zeros(0, np.int32), np.zeros(0, np.int32), np.array([tokens]))
    project(linear, x_TD, room_TE)
    expected = linear.rows(x_TD)
    found = room_TE if precision == "fp32" else (room_TE.astype(np.uint32) << 16).view(np.float32)
    assert (
        Past(1, 6, precision).of_layer[0].dtype == room_TE.dtype == (np.float32 if precision == "fp32" else np.uint16)
    )
    assert (np.abs(found - expected) <= (0 if precision == "fp32" else np.abs(expected) * 2.0**-8)).all()
    assert (found != 0).all()
