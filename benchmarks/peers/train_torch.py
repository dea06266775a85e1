"""The loop of the tutorials: torch.nn.Transformer, random batches of whole sentences, padded, Adam, cross-entropy."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from worker import Job, Meter, serve, trainer


class Translator(nn.Module):
    """torch.nn.Transformer between tied embeddings with sinusoidal positions."""

    def __init__(self, job: Job, padding: int) -> None:
        super().__init__()
        self.padding, d = padding, job.d_model
        self.embedding = nn.Embedding(job.pieces + 2, d, padding_idx=padding)
        shape = (job.heads, job.layers, job.layers, job.d_ff, job.dropout)
        self.transformer = nn.Transformer(d, *shape, batch_first=True, norm_first=True)
        for part in self.transformer.modules():  # no dropout on attention weights, as for all others
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0
        self.output = nn.Linear(d, job.pieces + 2, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(job.dropout)
        angle = torch.arange(512)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], 2).view(512, d))

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings with positions added."""
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of each next piece."""
        length = target.shape[1]
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool, device=target.device), 1)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=source == self.padding,
            tgt_key_padding_mask=target == self.padding,
            memory_key_padding_mask=source == self.padding,
        )
        return self.output(hidden)


def train(job: Job, meter: Meter) -> None:
    """Trains for ever."""
    torch.manual_seed(job.seed)
    start, padding = job.pieces, job.pieces + 1
    examples = [(torch.tensor([*s, 0]), torch.tensor([start, *t, 0])) for s, t in job.pairs()]
    model = Translator(job, padding).to(job.device)
    optimiser = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98))
    criterion = nn.CrossEntropyLoss(ignore_index=padding, label_smoothing=job.label_smoothing)
    order = np.random.default_rng(job.seed)
    while True:
        chosen = order.permutation(len(examples))
        for first in range(0, len(chosen) - job.sentences, job.sentences):
            batch = [examples[i] for i in chosen[first : first + job.sentences]]
            source, target = (pad_sequence(list(side), True, padding) for side in zip(*batch, strict=True))
            labels = target[:, 1:]
            meter.count(int(labels.ne(padding).sum()), labels.numel())
            source, target, labels = (ids.to(job.device) for ids in (source, target, labels))
            with torch.autocast(job.device, torch.bfloat16, enabled=job.precision == "bf16"):
                loss = criterion(model(source, target[:, :-1]).flatten(0, 1), labels.flatten())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()


if __name__ == "__main__":
    serve(trainer(train))
