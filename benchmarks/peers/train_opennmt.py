"""OpenNMT-py's own trainer, as ``onmt_train`` runs it, or its successor's, as ``eole train`` does.

Batches by tokens out of a bucket sorted by length.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from worker import Job, Meter, serve, trainer, watch

TRAINING = {
    **dict.fromkeys(("train_steps", "valid_steps", "save_checkpoint_steps"), 100_000),
    "batch_type": "tokens",
    "normalization": "tokens",
    "bucket_size": 30_000,
    "num_workers": 0,
    "optim": "adam",
    "adam_beta2": 0.998,
    "decay_method": "noam",
    "warmup_steps": 400,
    "learning_rate": 2,
    "max_grad_norm": 1.0,
    "attention_dropout": [0.0],
}


def configuration(job: Job) -> dict[str, Any]:
    """What both are told: Eole in sections, OpenNMT-py in one."""
    vocabulary = job.own / "vocabulary.txt"
    vocabulary.write_text("".join(f"{name}\t1\n" for name in job.names()))
    sides = {"path_src": job.text("pieces.train.en"), "path_tgt": job.text("pieces.train.de")}
    told = {"data": {"multi30k": {**sides, "transforms": [], "weight": 1}}, "seed": job.seed, "report_every": 5}
    told |= {"src_vocab": str(vocabulary), "tgt_vocab": str(vocabulary), "share_vocab": True}
    training = {**TRAINING, "batch_size": job.tokens, "label_smoothing": job.label_smoothing, "dropout": [job.dropout]}
    model = {"layers": job.layers, "heads": job.heads, "hidden_size": job.d_model, "word_vec_size": job.d_model}
    model |= {"transformer_ff": job.d_ff, "share_embeddings": True, "share_decoder_embeddings": True}
    if job.eole:
        training |= {"model_path": f"{job.folder}/model", "compute_dtype": job.precision}
        training |= {"param_init_method": "xavier_uniform"}
        model |= {"architecture": "transformer", "position_encoding_type": "SinusoidalInterleaved"}
        return told | {"overwrite": True, "training": training, "model": model}
    told |= {"save_data": f"{job.folder}/run", "save_model": f"{job.folder}/model"}
    told |= {"encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True}
    return told | training | model | {"param_init": 0, "param_init_glorot": True}


def train(job: Job, meter: Meter) -> None:
    """Hands over to the command."""
    if job.eole:
        from eole.bin import main as command
        from eole.utils.loss import LossCompute
    else:
        from onmt.bin import train as command
        from onmt.utils.loss import LossCompute

    def count(loss: Any, batch: dict[str, Any], *_: object, **__: object) -> None:
        target = batch["tgt"][:, 1:]
        meter.count(int(target.ne(loss.padding_idx).sum()), target.numel())

    watch(LossCompute, "forward", count)
    path = job.own / "config.yaml"
    path.write_text(json.dumps(configuration(job)))  # JSON is YAML
    sys.argv = ["eole", "train"] if job.eole else ["onmt_train"]
    sys.argv += ["-config", str(path)]
    command.main()


if __name__ == "__main__":
    serve(trainer(train))
