"""Attention of imported models equals that of ``transformers``, token by token."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.runs.conversion import import_model
from tests.runs.convert.small_folders import TEXTS, folder_of

KINDS = {"BertForMaskedLM": "encoder", "BertForSequenceClassification": "encoder", "GPT2LMHeadModel": "decoder"}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_theirs(kind: str, tmp_path: Path) -> None:
    peer, tokenizer = folder_of(kind, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    model = regard.load(tmp_path / "ours", device="cpu")
    for text in TEXTS[:2]:
        found = model.attention(text)
        ids = tokenizer(text)["input_ids"]
        begun = [tokenizer.eos_token_id] if kind.startswith("GPT2") else []  # a document begins after its end
        with torch.inference_mode():
            expected = peer(torch.tensor([[*begun, *ids]]), output_attentions=True).attentions
        assert found.kind == KINDS[kind]
        assert list(found.keys.tokens) == list(found.queries.tokens)
        assert found.weights.shape[2:] == (len(begun) + len(ids),) * 2
        np.testing.assert_allclose(found.weights, torch.cat(expected).numpy(), atol=1e-6)
        assert found.weights.std() > 0.01
