"""A model file with flipped bits or a lying header, sealed anew, and ids that are none: an answer or a RegardError."""

import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.hypotheses import Symbols
from regard.system.errors import RegardError
from regard.tasks.model_folder import open_without_torch
from regard.tasks.model_path import MODEL
from regard.training.checkpoints import manifest
from tests.engine.engines import pair
from tests.models.small_models import PIECES
from tests.tasks.small_tasks import EVERY, put
from tests.training.toy import Fast

TEXT = "The animal didn't cross."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put(tmp_path / "model", EVERY["translator"]())


def reseal(folder: Path, weights: bytes) -> None:
    """Put other weights into a model folder, which is whole again afterwards."""
    names = json.loads((folder / manifest.NAME).read_text())["files"]
    contents = {name: [weights if name == MODEL else (folder / name).read_bytes()] for name in names}
    manifest.replace(folder, contents, Fast())


def outcome(folder: Path) -> str:
    """``answered`` or ``refused``; anything else fails the test."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy, where a weight is none or very large
            task = open_without_torch(folder, "cpu")
            assert task is not None
            (found,) = task.nbest([TEXT], 1, beam=2)
    except RegardError:
        return "refused"
    assert all(0 <= token < task.target_tokenizer.size for token in found[0].tokens)
    return "answered"


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.long(0.1))])
def test_damage_beneath_a_valid_seal_is_an_answer_or_an_error(folder: Path, count: int) -> None:
    whole, random_ = (folder / MODEL).read_bytes(), random.Random(3)
    header = 8 + int.from_bytes(whole[:8], "little")
    assert outcome(folder) == "answered"
    seen = {"answered": 0, "refused": 0}
    for number in range(count):
        damaged = bytearray(whole)
        if number % 10:
            damaged[random_.randrange(header if number % 2 else len(whole))] ^= 1 << random_.randrange(8)
        else:
            del damaged[random_.randrange(len(whole)) :]
        reseal(folder, bytes(damaged))
        seen[outcome(folder)] += 1
    assert min(seen.values()) > count // 20


def lies(header: dict[str, dict[str, object]]) -> Iterator[dict[str, object]]:
    """Headers that say of one tensor what is not so."""
    name = next(name for name in sorted(header) if name.endswith("weight"))
    begin, end = header[name]["data_offsets"]  # type: ignore[misc]
    for shape in ([], [0], [-1, 2], [2**40, 2**40], [1.5], "all"):
        yield {**header, name: {**header[name], "shape": shape}}
    size = end - begin
    outside = ([begin + 1, end + 1], [begin, 2**62], [-4, end], [end, begin], [0, 0], [2**70, 2**70 + size])
    for places in (*outside, [begin + 0.0, end + 0.0], [begin], "here", None):
        yield {**header, name: {**header[name], "data_offsets": places}}
    for kind in ("F64", "I8", "", 7):
        yield {**header, name: {**header[name], "dtype": kind}}
    yield {other: value for other, value in header.items() if other != name}
    yield {**header, "another": header[name]}
    yield {**header, name: 5}  # type: ignore[dict-item]


def test_lying_headers_are_refused(folder: Path) -> None:
    whole = (folder / MODEL).read_bytes()
    size = int.from_bytes(whole[:8], "little")
    for lie in lies(json.loads(whole[8 : 8 + size])):
        text = json.dumps(lie).encode()
        reseal(folder, len(text).to_bytes(8, "little") + text + whole[8 + size :])
        assert outcome(folder) == "refused", lie
    for length in (0, 7, size + 9, 2**63, 2**64 - 1):
        reseal(folder, length.to_bytes(8, "little") + whole[8:])
        assert outcome(folder) == "refused", length


FAST: dict[str, Any] = {}
"""The engine, made once."""


@given(st.lists(st.lists(st.integers(0, PIECES - 1), max_size=9), max_size=5), st.integers(1, 4), st.data())
def test_steps_of_drawn_sentences_are_distributions(sources: list[list[int]], steps: int, data: st.DataObject) -> None:
    """Of any length, none and one among them, rows leaving and returning in any order."""
    fast = FAST.setdefault("engine", pair({})[1])
    given_ = [np.array([*source, 0], np.int64) for source in sources]
    if not given_:
        return
    state = fast.start(given_)
    count = len(given_)
    token_N = np.full(count, Symbols(PIECES).start, np.int64)
    for _ in range(steps):
        state, answer = fast.step(state, token_N)
        np.testing.assert_allclose(np.exp(answer.all()).sum(1), 1, atol=1e-4)
        kept = np.array(sorted(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=6))), np.int64)
        state, count = fast.select(state, kept), len(kept)
        token_N = np.array(data.draw(st.lists(st.integers(0, PIECES - 1), min_size=count, max_size=count)), np.int64)


@pytest.mark.parametrize("id_", [-1, PIECES + 1, 2**31, 2**62, -(2**63)])
def test_ids_that_are_none_are_refused(id_: int) -> None:
    fast = pair({})[1]
    with pytest.raises((RegardError, ValueError, IndexError)):
        fast.start([np.array([3, id_, 0], np.int64)])
    state = fast.start([np.array([3, 0], np.int64)])
    with pytest.raises((RegardError, ValueError, IndexError)):
        fast.step(state, np.array([id_], np.int64))
