"""Embeddings of the words of tokens: their gradient."""

from __future__ import annotations

import torch

from regard.nn.embeddings import WordEmbedding, WordRows

WORDS = WordRows(torch.tensor([1, 2, 0, 2]), torch.tensor([[3, 1], [1, 4]]))


def backward(part: WordEmbedding, between: bool = False) -> torch.Tensor:
    """The gradient of the table; ``between``: it is taken away behind the forward pass, as loops of torch do."""
    loss = (part(torch.zeros(4, 8), WORDS) * torch.arange(32.0).view(4, 8)).sum()
    if between:
        part.weight.grad = None
    loss.backward()
    assert part.weight.grad is not None
    return part.weight.grad


def test_rows_are_added_to_a_part_of_a_buffer_and_else_the_gradient_is_whole() -> None:
    part = WordEmbedding(6, 8, 2)
    whole = backward(part).clone()
    assert not whole.is_sparse
    assert torch.equal(backward(part, between=True), whole)
    buffer = torch.ones(60)
    part.weight.grad = buffer[12:].view(6, 8)
    assert torch.equal(backward(part), whole + 1)
    assert torch.equal(buffer[12:].view(6, 8), whole + 1)
    assert part.weight.grad.data_ptr() == buffer[12:].data_ptr()
