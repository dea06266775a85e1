"""The surprise at each token against a plain loop: one window at a time, every token behind all that it may see."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.runs.workers.answers import divider
from regard.system.errors import Stopped, UsageError
from regard.system.forks import SAFE
from regard.tasks.language import scores
from regard.tasks.language.scores import Perplexity, surprisals, windows
from tests.models.small_models import PIECES, assert_near, gpt, texts
from tests.refusals import refused

END = 0


def plain(model, ids: np.ndarray, length: int, stride: int) -> list[float]:
    """Token by token: what the window that it is new in holds before it."""
    found, count = [], len(ids)
    for place in range(count):
        begin = 0 if place < length else (place - length) // stride * stride + stride
        read = [END if begin == 0 else ids[begin - 1], *ids[begin:place]]
        with torch.no_grad():
            score = model.output.scores(model(texts([np.array(read)])))[-1].log_softmax(0)
        found.append(-float(score[ids[place]]))
    return found


@pytest.mark.parametrize("stride", [1, 3, 4])
def test_every_token_is_judged_by_what_stands_before_it(stride: int) -> None:
    model, random = gpt(), np.random.default_rng(1)
    documents = [random.integers(0, PIECES, length) for length in (11, 0, 1, 4, 5, 26)]
    found = surprisals(model, documents, 4, stride, END)
    for nats, ids in zip(found, documents, strict=True):
        assert len(nats) == len(ids)
        if len(ids):
            assert_near(nats, np.array(plain(model, ids, 4, stride)), 1e-9)


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
def test_several_processes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "ROOM", 16)
    model, random = gpt(), np.random.default_rng(2)
    documents = [random.integers(0, PIECES, length) for length in (40, 0, 7, 26)]
    one, two = (
        surprisals(model, documents, 4, 2, END, divide=divider(lambda count=count: count, block=1)) for count in (1, 2)
    )
    for some, others in zip(one, two, strict=True):
        assert np.array_equal(some, others)


@given(st.lists(st.integers(0, 60), max_size=4), st.integers(1, 9), st.data())
def test_windows_hold_every_token_fresh_once(lengths, length, data) -> None:
    stride = data.draw(st.integers(1, length))
    fresh: list[tuple[int, int]] = []
    for one in windows(lengths, length, stride):
        assert 0 <= one.begin <= one.fresh <= one.end <= lengths[one.document]
        assert one.end - one.begin <= length
        assert one.fresh == 0 or one.end - one.fresh <= stride
        assert one.fresh == 0 or one.fresh - one.begin >= length - stride
        fresh += [(one.document, place) for place in range(one.fresh, one.end)]
    assert fresh == [(number, place) for number, count in enumerate(lengths) for place in range(count)]


def test_a_stride_that_leaves_tokens_out_is_refused_and_it_can_be_stopped() -> None:
    def stop() -> None:
        raise Stopped("now")

    for stride in (0, 5, -1):
        with refused(UsageError, "stride", str(stride), "4"):
            surprisals(gpt(), [np.arange(9)], 4, stride, END)
    with pytest.raises(Stopped):
        surprisals(gpt(), [np.arange(9)], 4, 4, END, stop)
    assert surprisals(gpt(), [], 4, 4, END, stop) == []


def test_measures_and_their_sum() -> None:
    both = Perplexity(10.0, 5, 2, 8) + Perplexity(6.0, 3, 2, 8)
    assert both == Perplexity(16.0, 8, 4, 16)
    assert both.per_token == pytest.approx(math.exp(2))
    assert both.per_word == pytest.approx(math.exp(4))
    assert both.bits_per_byte == pytest.approx(1 / math.log(2))
    assert Perplexity(1e6, 1, 1, 1).per_token == math.inf
    assert Perplexity(0.0, 0, 0, 0).bits_per_byte == 0.0
