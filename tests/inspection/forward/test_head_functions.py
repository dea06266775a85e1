"""What heads attend to, counted in texts and images: against plain loops over hand-made attention."""

from typing import Any

import numpy as np
import pytest

from regard.inspection.forward import head_functions as heads
from regard.inspection.forward.head_functions import NAMES, HeadCounts, KindRecord, count_heads
from regard.inspection.forward.head_statistics import FEWEST, NONE, head_statistics
from regard.inspection.forward.record import AttentionRecord, Kind, Token

TEXT = "The cat and the dog, it sleeps."
WRITTEN = "The dog, cat 7."
POINTS = {"encoder": "it", "cross": "dog", "decoder": ""}
KNOWN = heads.Antecedent(TEXT, WRITTEN, (21, 23), (4, 7), ((16, 19),), ((4, 7),))


def tokens(text: str) -> tuple[Token, ...]:
    """A word or mark a token; then ``</s>``."""
    found, begin = [], 0
    for word in text.replace(",", " ,").replace(".", " .").split():
        begin = text.index(word, begin)
        found.append(Token(word, begin, begin + len(word)))
        begin += len(word)
    return (*found, Token("</s>", len(text), len(text)))


def attention(*shape: int, causal: bool = False) -> np.ndarray:
    drawn = np.random.default_rng(shape[-2]).random(shape) + 0.01
    drawn = np.tril(drawn) if causal else drawn
    return drawn / drawn.sum(-1, keepdims=True)


def sides(kind: Kind, weight_HQK: np.ndarray | None = None, known: heads.Antecedent | None = None) -> KindRecord:
    source, written = tokens(TEXT), tokens(WRITTEN)
    target = (Token("<s>", 0, 0), *written[:-1])
    queries, keys = {"encoder": (source, source), "decoder": (target, target), "cross": (written, source)}[kind]
    if weight_HQK is None:
        weight_HQK = attention(3, len(queries), len(keys), causal=kind == "decoder").astype(np.float32)
    record = AttentionRecord(TEXT, WRITTEN, source, target, written, {kind: [weight_HQK]})
    return KindRecord(record, kind, kind == "decoder", known)


def has(name: str, kind: str, query: int, key: int, queries: Any, keys: Any) -> bool:
    """Whether a key is one of a function for a query, said once more."""
    word, other = queries[query], keys[key]
    place = query if kind != "cross" else query * (len(keys) - 1) / (len(queries) - 1)
    alike = word.text.isalnum() and word.text.lower() == other.text.lower()
    found = {
        "previous": kind != "cross" and key == query - 1,
        "next": kind != "cross" and key == query + 1,
        "itself": kind != "cross" and key == query,
        "diagonal": kind == "cross" and abs(key - place) < 1,
        "first": key == 0,
        "end": other.start == other.end and key > 0,
        "punctuation": other.text in ",.",
        "same_word": alike and (kind == "cross" or key != query),
        "antecedent": key == 4 and word.text == POINTS[kind],
        "rival": key == 1 and word.text == POINTS[kind],
    }
    return found[name]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_counts_by_plain_loops(kind: Kind) -> None:
    seen = sides(kind, known=KNOWN)
    found = count_heads(seen)
    queries, keys = seen.record.queries(kind), seen.keys
    for name in (*heads.FUNCTIONS, "rival"):
        place = NAMES.index(name)
        sums, chance, count = np.zeros(3), 0.0, 0
        for query in range(len(queries)):
            visible = range(query + 1) if kind == "decoder" else range(len(keys))
            there = [key for key in visible if has(name, kind, query, key, queries, keys)]
            if there and len(there) < len(visible):
                count += 1
                chance += len(there) / len(visible)
                sums += seen.record.weights[kind][0][:, query, there].sum(1)
        assert (found.queries_F[place], found.chance_F[place]) == (count, pytest.approx(chance)), name
        np.testing.assert_allclose(found.sum_LHF[0, :, place], sums, rtol=1e-5, err_msg=name)
    shares, queries_F = found.sum_LHF[..., : NAMES.index("distance")], found.queries_F[: NAMES.index("distance")]
    assert ((shares >= 0) & (shares <= queries_F + 1e-6)).all()
    assert (sum(function.mask(seen).astype(int) for function in heads.DISTANCES.values()) == 1).all()


def test_attention_to_all_keys_alike_is_chance() -> None:
    for kind, size in (("encoder", len(tokens(TEXT))), ("decoder", len(tokens(WRITTEN)))):
        alike = np.tril(np.ones((1, size, size))) if kind == "decoder" else np.ones((1, size, size))
        found = count_heads(sides(kind, alike / alike.sum(-1, keepdims=True)))
        np.testing.assert_allclose(found.sum_LHF[0, 0], found.chance_F)


def test_nothing_is_known_of_another_text() -> None:
    other = heads.Antecedent("Another text.", WRITTEN, (21, 23), (4, 7), ((16, 19),))
    found = count_heads(sides("encoder", known=other))
    assert found.queries_F[NAMES.index("antecedent")] == 0


def counts(seed: int, share: float) -> dict[Kind, HeadCounts]:
    """Of a head that gives about a share to the previous token, and one that gives chance."""
    draw, size = np.random.default_rng(seed), len(tokens(TEXT))
    weight_HQK = np.full((2, size, size), 1 / size, np.float32)
    given = np.clip(share + draw.normal(0, 0.02, size), 0, 1)
    for query in range(1, size):
        weight_HQK[0, query] = (1 - given[query]) / (size - 1)
        weight_HQK[0, query, query - 1] = given[query]
    return {"encoder": count_heads(sides("encoder", weight_HQK))}


def test_a_head_is_named_where_it_is_sure() -> None:
    found = head_statistics([counts(seed, 0.6) for seed in range(FEWEST)])["encoder"]
    assert [found.function(0, head) for head in (0, 1)] == ["previous", None]
    assert found.label(0, 1) == NONE
    few = head_statistics([counts(seed, 0.6) for seed in range(FEWEST - 1)])["encoder"]
    assert few.function(0, 0) is None


def test_intervals_hold_the_mean_and_are_drawn_by_seed() -> None:
    texts = [counts(seed, 0.2 + 0.05 * (seed % 5)) for seed in range(20)]
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
    assert np.isnan(found.mean_LHF[..., NAMES.index("antecedent")]).all()  # no text shows it
    assert "antecedent" not in found.functions


def patch_has(name: str, query: int, key: int, columns: int) -> bool:
    """Whether a key is one of a function of patches for a query, said once more; the class token is 0."""
    if query == 0 or key == 0:
        return name == "class_token" and query > 0 and key == 0
    (row, column), (down, across) = divmod(query - 1, columns), divmod(key - 1, columns)
    found = {
        "same_patch": query == key,
        "neighbours": query != key and abs(row - down) <= 1 and abs(column - across) <= 1,
        "row": query != key and row == down,
        "column": query != key and column == across,
    }
    return found.get(name, False)


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (1, 5), (1, 1)])
def test_counts_of_patches_are_those_of_plain_loops(rows: int, columns: int) -> None:
    tokens, patch = 1 + rows * columns, 4
    weight = attention(2, 3, tokens, tokens)
    found = heads.count_patches(weight, heads.PatchPositions(rows, columns, patch))
    for place, name in enumerate(heads.PATCH_FUNCTIONS):
        total, chance, queries = np.zeros(weight.shape[:2]), 0.0, 0
        for query in range(tokens):
            keys = [key for key in range(tokens) if patch_has(name, query, key, columns)]
            queries += bool(keys)
            chance += len(keys) / tokens
            total += weight[:, :, query, keys].sum(-1)
        np.testing.assert_allclose(found.sum_LHF[..., place], total)
        assert (found.chance_F[place], found.queries_F[place]) == (pytest.approx(chance), queries)
    far, entropy = np.zeros(weight.shape[:2]), -(weight * np.log2(weight)).sum((2, 3))
    for query in range(1, tokens):
        for key in range(1, tokens):
            step = np.subtract(divmod(query - 1, columns), divmod(key - 1, columns))
            far += patch * np.hypot(*step) * weight[:, :, query, key] / weight[:, :, query, 1:].sum(-1)
    np.testing.assert_allclose(found.sum_LHF[..., -2], far, atol=1e-12)
    np.testing.assert_allclose(found.sum_LHF[..., -1], entropy)
    assert found.queries_F[-2:].tolist() == [tokens - 1, tokens]


def test_what_attends_evenly_to_patches_is_chance_and_a_head_of_its_row_is_named() -> None:
    weight = np.full((1, 2, 13, 13), 1 / 13)
    row = np.repeat(np.arange(3), 4)
    weight[0, 1, 1:, 1:] = (row[:, None] == row) & ~np.eye(12, dtype=bool)
    weight[0, 1, 1:, 0] = 0
    weight[0, 1] /= weight[0, 1].sum(-1, keepdims=True)
    counted: dict[Kind, HeadCounts] = {"encoder": heads.count_patches(weight, heads.PatchPositions(3, 4, 2))}
    found = head_statistics([counted] * 10, metrics=heads.OF_IMAGES)["encoder"]
    np.testing.assert_allclose(found.mean_LHF[0, 0], found.chance_F)
    assert (found.function(0, 0), found.function(0, 1), found.label(0, 1)) == (None, "row", "same row")
