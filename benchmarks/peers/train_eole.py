"""Eole's own trainer, as its command ``eole train`` runs it: batches by tokens out of a bucket sorted by length."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from measure import Job, before, job, open_meter

CONFIG = """\
seed: {seed}
share_vocab: true
overwrite: true
src_vocab: {vocabulary}
tgt_vocab: {vocabulary}
report_every: 5
data:
  multi30k: {{path_src: {source}, path_tgt: {target}, transforms: [], weight: 1}}
training:
  model_path: {scratch}/model
  train_steps: 100000
  valid_steps: 100000
  save_checkpoint_steps: 100000
  batch_type: tokens
  batch_size: {tokens}
  normalization: tokens
  bucket_size: 30000
  num_workers: 0
  compute_dtype: {precision}
  optim: adam
  adam_beta2: 0.998
  warmup_steps: 400
  decay_method: noam
  learning_rate: 2
  max_grad_norm: 1.0
  label_smoothing: {label_smoothing}
  dropout: [{dropout}]
  attention_dropout: [0.0]
  param_init_method: xavier_uniform
model:
  architecture: transformer
  layers: {layers}
  heads: {heads}
  hidden_size: {d_model}
  word_vec_size: {d_model}
  transformer_ff: {d_ff}
  share_embeddings: true
  share_decoder_embeddings: true
  position_encoding_type: SinusoidalInterleaved
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
    meter = open_meter(work, "eole")
    from eole.bin import main as commands
    from eole.utils.loss import LossCompute

    def count(loss: Any, batch: dict[str, Any], *_: object, **__: object) -> None:
        target = batch["tgt"][:, 1:]
        meter.count(int(target.ne(loss.padding_idx).sum()), target.numel())

    before(LossCompute, "forward", count)
    sys.argv = ["eole", "train", "-config", str(configure(work))]
    commands.main()


if __name__ == "__main__":
    main()
