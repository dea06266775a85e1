"""The plain loops are themselves held to torch's functions, so that two independent hands agree."""

import numpy as np
import torch
import torch.nn.functional as F

from tests.models.small_models import assert_near
from tests.reference import equations

RANDOM = np.random.default_rng(3)


def test_attention() -> None:
    query, key, value = RANDOM.normal(size=(5, 4)), RANDOM.normal(size=(5, 4)), RANDOM.normal(size=(5, 3))
    for causal in (False, True):
        expected = F.scaled_dot_product_attention(
            *(torch.from_numpy(x)[None] for x in (query, key, value)), is_causal=causal
        )[0]
        assert_near(equations.attention(query, key, value, causal), expected, 1e-12)


def test_norms_and_activations() -> None:
    x, gain, bias = RANDOM.normal(size=(4, 6)), RANDOM.normal(size=6), RANDOM.normal(size=6)
    t, g, b = (torch.from_numpy(a) for a in (x, gain, bias))
    weights = {"weight": gain, "bias": bias}
    assert_near(equations.layer_norm(x, weights), F.layer_norm(t, (6,), g, b, 1e-5), 1e-12)
    assert_near(equations.rms_norm(x, weights), F.rms_norm(t, (6,), g, 1e-5), 1e-12)
    assert_near(np.vectorize(equations.gelu)(x), F.gelu(t), 1e-12)
