"""Decoder-only engines beside the models: prompts in one pass, then step by step; the window slides."""

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import sample, search
from regard.models.decoding import stepper
from tests.engine.engines import MOST, Beside, both, texts
from tests.laws.families import SOURCES, Family, held
from tests.models import small_models as small
from tests.models.small_models import PIECES, assert_near, sentences


@pytest.mark.one_of(24)
@held("gpt")
def test_every_step_is_that_of_the_model(family: Family) -> None:
    """Rows are repeated, reordered and left out, and prompts enter meanwhile, one of them empty."""
    beside = Beside(family)
    beside.start([*SOURCES, np.zeros(0, np.int64)])
    beside.read(5)
    beside.select([0, 0, 2, 3, 3, 4])
    beside.read(6)
    beside.select([1, 0, 2, 5])
    beside.admit(sentences([6, 2], seed=4))
    beside.read(6)
    beside.select([5, 4, 1])
    for _ in range(40):
        beside.read(3)


@pytest.mark.one_of(20)
@held("gpt", gpt=3)
def test_the_window_slides_as_the_models_does(family: Family) -> None:
    beside = Beside(family, window=7)
    beside.start([*sentences([3, 11, 6])])
    for step in range(30):
        beside.read(3)
        if step % 4 == 3:
            beside.select([[0, 0, 2], [2, 1, 0], [1, 1, 0]][step // 4 % 3])


@pytest.mark.one_of(10)
@held("gpt", gpt=3)
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_rows_of_fewer_bits_depend_on_no_neighbour_while_the_window_slides(family: Family, precision: str) -> None:
    """To the bit, beside rows of other ages, with prompts that enter; a prompt at once is its tokens in steps."""
    _, fast = both(family, window=7, precision=precision)
    random = np.random.default_rng(2)
    prompts = sentences([3, 11, 6])
    among, alone = fast.start(prompts), [fast.start([prompt]) for prompt in prompts]
    for now in range(25):
        token_N = random.integers(2, PIECES, len(alone))
        among, answer = fast.step(among, token_N)
        for row, state in enumerate(alone):
            alone[row], own = fast.step(state, token_N[row : row + 1])
            assert (own.all()[0] == answer.all()[row]).all(), (now, row)
        if now % 5 == 4:
            entering = sentences([int(random.integers(1, 14))], seed=now)
            among = fast.admit(fast.select(among, np.array([2, 0])), entering)
            alone = [alone[2], alone[0], fast.start(entering)]
    once, steps = fast.start([prompts[0]]), fast.start([np.zeros(0, np.int64)])
    for token in prompts[0]:
        steps, _ = fast.step(steps, np.array([token]))
    answers = [fast.step(state, np.array([4]))[1].all() for state in (once, steps)]
    assert (answers[0] == answers[1]).all()


@pytest.mark.one_of(4)
@held("gpt")
def test_whole_texts_are_read_as_by_the_model_and_alone_as_among_others(family: Family) -> None:
    (model, fast), given = both(family), small.texts(SOURCES)
    found = fast.read(texts(given))
    with torch.no_grad():
        assert_near(found, model(given), MOST)
    for source, among in zip(SOURCES, np.split(found, np.cumsum([len(one) for one in SOURCES])[:-1]), strict=True):
        assert fast.read(texts(small.texts([source]))).tobytes() == among.tobytes()
        changed = np.append(source[:-1], 5)
        assert (fast.read(texts(small.texts([changed])))[:-1] == among[:-1]).all()  # causal


def test_a_long_prompt_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.engine.gpt.CHUNK", 7)
    beside = Beside(Family("gpt", {"positions": "rotary"}))
    beside.start(sentences([40, 3, 61]))
    beside.read(3)


@pytest.mark.one_of(4)
@held("gpt", gpt=3)
@pytest.mark.parametrize("beam", [1, 3])
def test_what_a_search_finds_depends_on_no_neighbour(family: Family, beam: int) -> None:
    """To the bit: prompts enter and leave beside it."""
    _, fast = both(family)
    decoding, firsts = Decoding(beam=beam, max_extra=3, tokens=30), [3, 4, 5, 6]

    def found(places):
        given, firsts_here = [SOURCES[b] for b in places], [firsts[b] for b in places]
        return search(fast, given, decoding, Symbols(PIECES), nbest=beam, firsts=firsts_here, limits=[4] * len(places))

    for place, among in enumerate(found([0, 1, 2, 3])):
        assert found([place])[0] == among


def test_samples_of_one_prompt_share_its_keys_and_are_those_of_the_model() -> None:
    family = Family("gpt", {"positions": "alibi"})
    model, fast = both(family, window=8)
    symbols, more = Symbols(PIECES), {"seed": 5, "samples": 3, "firsts": [3, 4, 5, 6], "limits": [20] * 4}
    for decoding in (Decoding(temperature=0.8), Decoding(top_k=4), Decoding(repetition_penalty=1.3)):
        found = sample(fast, SOURCES, decoding, symbols, **more)
        expected = sample(stepper(model, window=8), SOURCES, decoding, symbols, **more)
        assert [[one.tokens for one in group] for group in found] == [[one.tokens for one in g] for g in expected]
