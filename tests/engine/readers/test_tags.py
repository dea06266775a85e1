"""Choosing tags beside the model's own chain: the best path, and how probable each of its tags is."""

import numpy as np
import pytest
import torch

from regard.nn.heads import CRFTags, IndependentTags
from regard.nn.layout import Sequences
from regard.text.tags import ForbiddenTransitions, forbidden

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LENGTHS = np.array([4, 1, 7, 2])


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_the_best_path_and_its_probabilities_are_the_models(crf: bool, limited: bool) -> None:
    from regard.engine.readers.tags import TagDecoder

    random = torch.Generator().manual_seed(3)
    chain = CRFTags(5) if crf else IndependentTags(5)
    field = None
    if isinstance(chain, CRFTags):
        parts = (chain.field.transition_CC, chain.field.start_C, chain.field.end_C)
        for part in parts:
            part.data = torch.randn(part.shape, generator=random)
        field = tuple(part.detach().numpy() for part in parts)
    limits = forbidden(TAGS, "bio") if limited else ForbiddenTransitions()
    chain.limit(limits)
    fast, sequences = TagDecoder.of(field, 5, limits), Sequences.end_to_end(LENGTHS.tolist())
    for _ in range(20):
        score_RC = torch.randn(int(LENGTHS.sum()), 5, generator=random) * 2
        tags_R, probability_R = fast.choose(score_RC.double().numpy(), LENGTHS, heat=1.3)
        expected_R = chain.decode(score_RC, sequences)
        assert tags_R.tolist() == expected_R.tolist()
        known_R = chain.probabilities(score_RC / 1.3, sequences).gather(1, expected_R[:, None])[:, 0]
        np.testing.assert_allclose(probability_R, known_R.numpy(), atol=1e-5)
