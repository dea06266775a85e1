"""A packed batch against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches.batch import Capacity, capacity_for, pack_sources, pad_to_capacity
from regard.system.errors import RegardError
from tests.data.batches.packing import pack
from tests.refusals import refused

SENTENCES = st.lists(st.lists(st.integers(2, 99), max_size=6).map(lambda ids: np.array([*ids, 0])), max_size=8)


@given(SENTENCES, st.data())
def test_pack_lays_pairs_end_to_end(sources: list[np.ndarray], data: st.DataObject) -> None:  # type: ignore[type-arg]
    targets = [np.array([*data.draw(st.lists(st.integers(2, 99), max_size=6)), 0]) for _ in sources]
    batch = pack(sources, targets, start=100, capacity=Capacity(70, 80, 9))
    sides = (batch.source.ids_T, batch.target.ids_T, batch.labels_T, batch.weight_T)
    assert [len(side) for side in sides] == [70, 80, 80, 80]
    assert batch.source.count == batch.target.count == len(sources)
    assert batch.tokens == sum(map(len, targets)) == batch.weight_T.sum()
    for n, (source, target) in enumerate(zip(sources, targets, strict=True)):
        read, written = (slice(s.starts_B[n], s.starts_B[n] + s.lengths_B[n]) for s in (batch.source, batch.target))
        assert batch.source.ids_T[read].tolist() == source.tolist()
        assert batch.target.ids_T[written].tolist() == [100, *target[:-1]]
        assert batch.labels_T[written].tolist() == target.tolist()
        assert batch.weight_T[written].all()
    for side in (batch.source, batch.target):
        used = side.lengths_B.sum()
        assert not side.ids_T[used:].any()
        assert not side.lengths_B[len(sources) :].any()
        assert (side.starts_B[len(sources) :] == used).all()
        assert len(side.starts_B) == len(side.lengths_B) == 9


@pytest.mark.usefixtures("watch_shapes")
def test_the_shape_of_sources_is_just_large_enough() -> None:
    alone = pack_sources([np.array([5, 0]), np.array([0])])
    assert (alone.ids_T.tolist(), alone.starts_B.tolist(), alone.lengths_B.tolist()) == ([5, 0, 0], [0, 2], [2, 1])


def test_what_does_not_fit_is_refused() -> None:
    for args, holds in (
        ((np.array([1, 2, 0]), np.array([3]), 2, 1), "32"),
        ((np.array([0, 0]), np.array([1, 1]), 5, 1), "21"),
    ):
        with refused(RegardError, None, *holds):
            pad_to_capacity(*args)
    with refused(RegardError, None, "</s>"):
        pack_sources([np.array([], dtype=np.int64)])


def test_capacity_has_the_corpus_ratio_rounded_up_to_64() -> None:
    assert capacity_for(1024, 1100, 1000, 60, 30) == Capacity(1152, 1024, 96)
    assert capacity_for(1024, 64, 64, 2, 30).source == 1024
    assert capacity_for(1024, 100, 1000, 50, 200).source == 256
    assert capacity_for(64, 10, 1000, 1, 60).sentences == 8
