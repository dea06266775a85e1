"""JoeyNMT's own trainer, as ``python -m joeynmt train`` runs it: random batches by tokens, padded."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from measure import Job, before, job, open_meter

CONFIG = """\
name: multi30k
joeynmt_version: "2.3.0"
model_dir: {scratch}/model
use_cuda: False
fp16: False
random_seed: {seed}
data:
  train: {train}
  dev: {valid}
  dataset_type: plain
  src: {{lang: en, level: word, lowercase: False, max_length: 256, voc_file: {vocabulary}}}
  trg: {{lang: de, level: word, lowercase: False, max_length: 256, voc_file: {vocabulary}}}
  special_symbols:
    {{unk_token: <unk>, unk_id: 0, pad_token: <pad>, pad_id: 1, bos_token: <s>, bos_id: 2, eos_token: </s>, eos_id: 3}}
testing: {{beam_size: 1, batch_size: 64, batch_type: sentence, eval_metrics: [bleu]}}
training:
  optimizer: adam
  adam_betas: [0.9, 0.98]
  learning_rate: 0.0005
  scheduling: warmupinversesquareroot
  learning_rate_warmup: 400
  clip_grad_norm: 1.0
  loss: crossentropy
  label_smoothing: {label_smoothing}
  batch_size: {tokens}
  batch_type: token
  normalization: tokens
  early_stopping_metric: bleu
  epochs: 1000
  validation_freq: 100000
  logging_freq: 5
  overwrite: True
model:
  initializer: xavier_uniform
  tied_embeddings: True
  tied_softmax: True
  encoder: {stack}
  decoder: {stack}
"""
STACK = (
    "{{type: transformer, num_layers: {layers}, num_heads: {heads}, hidden_size: {d_model}, ff_size: {d_ff}, "
    "dropout: {dropout}, layer_norm: pre, embeddings: {{embedding_dim: {d_model}, scale: True, dropout: {dropout}}}}}"
)


def configure(work: Job) -> Path:
    """Writes the vocabulary and the configuration; returns the latter's path."""
    vocabulary = work.folder / "vocabulary.txt"
    names = Path(work.text("pieces.txt")).read_text()
    vocabulary.write_text("<unk>\n<pad>\n<s>\n</s>\n" + names)
    paths = {"train": work.text("pieces.train"), "valid": work.text("pieces.val"), "vocabulary": vocabulary}
    config = work.folder / "config.yaml"
    config.write_text(CONFIG.format(**vars(work), **paths, stack=STACK.format(**vars(work))))
    return config


def main() -> None:
    """Trains until the meter ends the process."""
    work = job()
    meter = open_meter(work, "joeynmt")
    from joeynmt.training import TrainManager

    before(TrainManager, "_train_step", lambda _, batch: meter.count(int(batch.ntokens), batch.trg.numel()))
    sys.argv = ["joeynmt", "train", str(configure(work))]
    runpy.run_module("joeynmt", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
