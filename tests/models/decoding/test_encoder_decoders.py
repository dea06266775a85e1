"""The steps of encoder-decoders against their forward passes: beams, rows that come and go, sentences forgotten."""

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper, transformer
from tests.laws.families import FEW, Family
from tests.models.decoding.rows_by_hand import SOURCES, Rows, compare_weights, leave_and_enter, search_at_random
from tests.models.small_models import PIECES, sentences

PLAIN = {name: Family(name, {}) for name in ("transformer", "rnn")}
RNNS = [Family("rnn", choices) for choices in FEW["rnn"]]
SIZED = Family("transformer", {"norm_place": "pre", "positions": "learned", "d_k": 2, "d_v": 5})
BOTH = [*PLAIN.values(), SIZED, *RNNS]


def named(family: Family) -> str:
    return "-".join([family.name, *(str(family.choices[word]) for word in ("cell", "score") if word in family.choices)])


@pytest.mark.one_of(54, minutes=0.02)
@pytest.mark.parametrize("family", BOTH, ids=named)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_search_is_the_forward_pass_of_each_row(family: Family, seed: int) -> None:
    search_at_random(stepper(family.model()), seed, 7)


@pytest.mark.one_of(42)
@pytest.mark.parametrize("family", RNNS, ids=named)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_is_translated_alike_in_any_company(family: Family, beam: int) -> None:
    model, sources = family.model(), sentences([3, 6, 1, 4, 2])

    def found(given: list[np.ndarray], tokens: int):
        decoding = Decoding(beam=beam, max_extra=3, tokens=tokens)
        return search(stepper(model), given, decoding, Symbols(PIECES), nbest=beam)

    alone = [found([source], 10_000)[0] for source in sources]
    for tokens in (16, 10_000):  # a small budget: sentences wait and enter
        for one, other in zip(found(sources, tokens), alone, strict=True):
            assert [h.tokens for h in one] == [h.tokens for h in other]
            assert np.allclose([h.score for h in one], [h.score for h in other], atol=1e-9)


@pytest.mark.parametrize("name", PLAIN)
def test_a_sentence_whose_last_row_left_is_forgotten(name: str) -> None:
    def held(state) -> list[int]:
        if name == "transformer":
            return state.memory_lengths_B.tolist()
        lengths = state.layout.keys.lengths_B.tolist()
        assert len(state.memory_SD) == len(state.key_SD) == sum(lengths)
        return lengths

    leave_and_enter(stepper(PLAIN[name].model()), held)


def test_arenas_grow_beyond_their_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "ROOM", 2)
    rows = Rows(stepper(PLAIN["transformer"].model()), SOURCES)
    for length in range(9):
        rows.read([PIECES if not length else 2 + (length + row) % 7 for row in range(len(rows.rows))])
        if length == 3:
            rows.select([2, 2, 1, 1, 1])
    assert rows.state.pasts[0].stride >= 9


def test_rows_of_the_same_sentences_keep_the_memory_as_it_is() -> None:
    rows = Rows(stepper(PLAIN["rnn"].model()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 1, 2, 2])
    rows.read([3, 4, 5, 6, 7, 8])
    before = rows.state
    rows.select([1, 0, 2, 2, 5, 4])
    assert rows.state.memory_SD is before.memory_SD
    assert rows.state.layout is before.layout
    rows.read([3, 4, 5, 6, 7, 8])


@pytest.mark.parametrize("name", PLAIN)
def test_no_gradient_is_kept_and_all_rows_may_stay(name: str) -> None:
    rows = Rows(stepper(PLAIN[name].model()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 1, 2])
    rows.read([3, 4, 5])
    state = rows.state
    kept = [state.pasts[0].key_SHK] if name == "transformer" else [*state.carried, state.key_SD, state.memory_SD]
    assert not any(x.requires_grad for x in kept)


@pytest.mark.one_of(9)
@pytest.mark.parametrize("family", [PLAIN["transformer"], *RNNS], ids=named)
def test_weights_are_those_of_the_forward_pass(family: Family) -> None:
    model = family.model()
    if family.name == "transformer":
        compare_weights(model, "decoder.*.cross.weight", heads=6)
    elif family.choices["score"] != "none":
        compare_weights(model, "decoder.cross.weight", heads=1)
    else:
        step = stepper(model, weights=True)
        assert step.step(step.start(SOURCES), np.array([PIECES] * 3))[1].context() is None
