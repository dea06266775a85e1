"""What heads attend to, counted: against plain loops over hand-made attention."""

from typing import Any

import numpy as np
import pytest

from regard.inspection.forward.head_functions import (
    DISTANCES,
    FUNCTIONS,
    NAMES,
    Antecedent,
    HeadCounts,
    KindRecord,
    count_heads,
)
from regard.inspection.forward.head_statistics import FEWEST, NONE, head_statistics
from regard.inspection.forward.inputs import Token
from regard.inspection.forward.record import AttentionRecord, Kind

WORDS = ("The", "cat", "and", "the", "dog", ",", "it", "sleeps", ".")
TEXT = "The cat and the dog, it sleeps."
WRITTEN = "The dog, cat 7."


def tokens(text: str, ends: bool = True) -> tuple[Token, ...]:
    """A word or mark a token; then ``</s>``."""
    found, begin = [], 0
    for word in text.replace(",", " ,").replace(".", " .").split():
        begin = text.index(word, begin)
        found.append(Token(word, begin, begin + len(word)))
        begin += len(word)
    return (*found, Token("</s>", len(text), len(text))) if ends else tuple(found)


def attention(queries: int, keys: int, causal: bool = False, heads: int = 3) -> np.ndarray:
    drawn = np.random.default_rng(queries).random((heads, queries, keys)) + 0.01
    drawn = np.tril(drawn) if causal else drawn
    return (drawn / drawn.sum(-1, keepdims=True)).astype(np.float32)


def sides(kind: Kind, weight_HQK: np.ndarray | None = None, known: Antecedent | None = None) -> KindRecord:
    source, written = tokens(TEXT), tokens(WRITTEN)
    target = (Token("<s>", 0, 0), *written[:-1])
    shapes = {"encoder": (source, source), "decoder": (target, target), "cross": (written, source)}
    queries, keys = shapes[kind]
    weight_HQK = attention(len(queries), len(keys), kind == "decoder") if weight_HQK is None else weight_HQK
    record = AttentionRecord(TEXT, WRITTEN, source, target, written, {kind: [weight_HQK]})
    return KindRecord(record, kind, kind == "decoder", known)


def has(name: str, kind: str, query: int, key: int, queries: Any, keys: Any) -> bool:
    """Whether a key is one of a function for a query, said once more."""
    word, other = queries[query], keys[key]
    place = query if kind != "cross" else query * (len(keys) - 1) / (len(queries) - 1)
    found = {
        "previous": kind != "cross" and key == query - 1,
        "next": kind != "cross" and key == query + 1,
        "itself": kind != "cross" and key == query,
        "diagonal": kind == "cross" and abs(key - place) < 1,
        "first": key == 0,
        "end": other.start == other.end and key > 0,
        "punctuation": other.text in ",.",
        "same_word": word.text.isalnum()
        and word.text.lower() == other.text.lower()
        and (kind == "cross" or key != query),
        "antecedent": kind != "decoder" and word.text in ("it", "dog") and key == 4 and word.text == POINTS[kind],
        "rival": kind != "decoder" and key == 1 and word.text == POINTS[kind],
    }
    return found[name]


POINTS = {"encoder": "it", "cross": "dog", "decoder": ""}
KNOWN = Antecedent(TEXT, WRITTEN, (21, 23), (4, 7), ((16, 19),), ((4, 7),))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_counts_by_plain_loops(kind: Kind) -> None:
    seen = sides(kind, known=KNOWN)
    found = count_heads(seen)
    queries, keys = seen.record.queries(kind), seen.keys
    for name in (*FUNCTIONS, "rival"):
        place = NAMES.index(name)
        sums, chance, count = np.zeros(3), 0.0, 0
        for query in range(len(queries)):
            visible = range(query + 1) if kind == "decoder" else range(len(keys))
            there = [key for key in visible if has(name, kind, query, key, queries, keys)]
            if there and len(there) < len(visible):
                count += 1
                chance += len(there) / len(visible)
                sums += seen.record.weights[kind][0][:, query, there].sum(1)
        assert found.queries_F[place] == count, name
        assert found.chance_F[place] == pytest.approx(chance), name
        np.testing.assert_allclose(found.sum_LHF[0, :, place], sums, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_shares_lie_between_0_and_1_and_distances_make_a_whole(kind: Kind) -> None:
    seen = sides(kind)
    found = count_heads(seen)
    shares = found.sum_LHF[..., : NAMES.index("distance")]
    assert (shares >= 0).all()
    assert (shares <= found.queries_F[: NAMES.index("distance")] + 1e-6).all()
    every = sum(function.mask(seen).astype(int) for function in DISTANCES.values())
    assert (every == 1).all()


def test_attention_to_all_keys_alike_is_chance() -> None:
    for kind, size in (("encoder", len(tokens(TEXT))), ("decoder", len(tokens(WRITTEN)))):
        alike = np.tril(np.ones((1, size, size))) if kind == "decoder" else np.ones((1, size, size))
        found = count_heads(sides(kind, alike / alike.sum(-1, keepdims=True)))  # type: ignore[arg-type]
        np.testing.assert_allclose(found.sum_LHF[0, 0], found.chance_F)


def test_nothing_is_known_of_another_text() -> None:
    other = Antecedent("Another text.", WRITTEN, (21, 23), (4, 7), ((16, 19),))
    found = count_heads(sides("encoder", known=other))
    assert found.queries_F[NAMES.index("antecedent")] == 0


def counts(seed: int, share: float) -> HeadCounts:
    """Of a head that gives about a share to the previous token, and one that gives chance."""
    draw, size = np.random.default_rng(seed), len(tokens(TEXT))
    weight_HQK = attention(size, size, heads=2)
    weight_HQK[:] = 1 / size
    given = np.clip(share + draw.normal(0, 0.02, size), 0, 1)
    for query in range(1, size):
        weight_HQK[0, query] = (1 - given[query]) / (size - 1)
        weight_HQK[0, query, query - 1] = given[query]
    return count_heads(sides("encoder", weight_HQK))


def test_a_head_is_named_where_it_is_sure() -> None:
    found = head_statistics([{"encoder": counts(seed, 0.6)} for seed in range(FEWEST)])["encoder"]
    assert found.function(0, 0) == "previous"
    assert found.function(0, 1) is None
    assert found.label(0, 1) == NONE
    few = head_statistics([{"encoder": counts(seed, 0.6)} for seed in range(FEWEST - 1)])["encoder"]
    assert few.function(0, 0) is None


def test_intervals_hold_the_mean_and_are_drawn_by_seed() -> None:
    texts: list[dict[Kind, HeadCounts]] = [{"encoder": counts(seed, 0.2 + 0.05 * (seed % 5))} for seed in range(20)]
    found, again, other = (head_statistics(texts, seed)["encoder"] for seed in (1, 1, 2))
    there = found.texts_F > 0
    assert (found.low_LHF <= found.mean_LHF + 1e-12)[..., there].all()
    assert (found.high_LHF >= found.mean_LHF - 1e-12)[..., there].all()
    np.testing.assert_array_equal(found.low_LHF, again.low_LHF)
    assert not np.array_equal(found.low_LHF, other.low_LHF, equal_nan=True)
    place = NAMES.index("previous")
    by_text = np.array([one["encoder"].sum_LHF[0, 0, place] / one["encoder"].queries_F[place] for one in texts])
    draws = np.random.default_rng(0).choice(by_text, (4000, 20)).mean(1)
    wanted = np.quantile(draws, (0.025, 0.975))
    np.testing.assert_allclose((found.low_LHF[0, 0, place], found.high_LHF[0, 0, place]), wanted, atol=0.006)


def test_what_no_text_shows_is_nan() -> None:
    found = head_statistics([{"encoder": counts(0, 0.5)}])["encoder"]
    assert np.isnan(found.mean_LHF[..., NAMES.index("antecedent")]).all()
    assert "antecedent" not in found.functions
