"""What heads attend to in an image, counted: against plain loops over hand-made attention."""

import numpy as np
import pytest

from regard.inspection.forward.head_statistics import head_statistics
from regard.inspection.forward.patch_functions import FUNCTIONS, OF_IMAGES, PatchPositions, count_patches


def attention(tokens: int, layers: int = 2, heads: int = 3, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).random((layers, heads, tokens, tokens)) + 0.01
    return drawn / drawn.sum(-1, keepdims=True)


def has(name: str, query: int, key: int, columns: int) -> bool:
    """Whether a key is one of a function for a query, said once more; the class token is 0."""
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
def test_counts_are_those_of_plain_loops(rows: int, columns: int) -> None:
    tokens, patch = 1 + rows * columns, 4
    weight = attention(tokens)
    found = count_patches(weight, PatchPositions(rows, columns, patch))
    for place, name in enumerate(FUNCTIONS):
        total, chance, queries = np.zeros(weight.shape[:2]), 0.0, 0
        for query in range(tokens):
            keys = [key for key in range(tokens) if has(name, query, key, columns)]
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


def test_what_attends_evenly_is_chance_and_a_head_of_its_row_is_named() -> None:
    places = PatchPositions(3, 4, 2)
    weight = np.full((1, 2, 13, 13), 1 / 13)
    row = np.repeat(np.arange(3), 4)
    weight[0, 1, 1:, 1:] = (row[:, None] == row) & ~np.eye(12, dtype=bool)
    weight[0, 1, 1:, 0] = 0
    weight[0, 1] /= weight[0, 1].sum(-1, keepdims=True)
    found = head_statistics([{"encoder": count_patches(weight, places)}] * 10, metrics=OF_IMAGES)["encoder"]
    np.testing.assert_allclose(found.mean_LHF[0, 0], found.chance_F)
    assert (found.function(0, 0), found.function(0, 1)) == (None, "row")
    assert found.label(0, 1) == "same row"
