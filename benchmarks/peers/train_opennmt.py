"""OpenNMT-py's own trainer, as ``onmt_train`` runs it: batches by tokens out of a bucket sorted by length."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from measure import Job, before, job, open_meter

CONFIG = """\
save_data: {scratch}/run
save_model: {scratch}/model
data:
  multi30k: {{path_src: {source}, path_tgt: {target}, transforms: [], weight: 1}}
src_vocab: {vocabulary}
tgt_vocab: {vocabulary}
share_vocab: true
seed: {seed}
train_steps: 100000
valid_steps: 100000
save_checkpoint_steps: 100000
report_every: 5
batch_type: tokens
batch_size: {tokens}
normalization: tokens
bucket_size: 30000
num_workers: 0
encoder_type: transformer
decoder_type: transformer
layers: {layers}
heads: {heads}
hidden_size: {d_model}
word_vec_size: {d_model}
transformer_ff: {d_ff}
dropout: [{dropout}]
attention_dropout: [0.0]
label_smoothing: {label_smoothing}
optim: adam
adam_beta2: 0.998
decay_method: noam
warmup_steps: 400
learning_rate: 2
max_grad_norm: 1.0
param_init: 0
param_init_glorot: true
position_encoding: true
share_embeddings: true
share_decoder_embeddings: true
"""


def configure(work: Job) -> Path:
    """Writes the vocabulary and the configuration; returns the latter's path."""
    vocabulary = work.folder / "vocabulary.txt"
    names = Path(work.text("pieces.txt")).read_text().split()
    vocabulary.write_text("".join(f"{name}\t1\n" for name in names))
    paths = {"source": work.text("pieces.train.en"), "target": work.text("pieces.train.de"), "vocabulary": vocabulary}
    config = work.folder / "config.yaml"
    config.write_text(CONFIG.format(**vars(work), **paths))
    return config


def main() -> None:
    """Trains until the meter ends the process."""
    work = job()
    meter = open_meter(work, "OpenNMT-py")
    from onmt.bin import train
    from onmt.utils.loss import LossCompute

    def count(loss: Any, batch: dict[str, Any], *_: object, **__: object) -> None:
        target = batch["tgt"][:, 1:, 0]
        meter.count(int(target.ne(loss.padding_idx).sum()), target.numel())

    before(LossCompute, "forward", count)
    sys.argv = ["onmt_train", "-config", str(configure(work))]
    train.main()


if __name__ == "__main__":
    main()
