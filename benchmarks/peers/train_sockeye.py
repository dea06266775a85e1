"""Sockeye's own trainer, as ``sockeye-train`` runs it on a CPU: batches by tokens out of buckets of lengths, traced."""

from __future__ import annotations

import sys
from typing import Any

from measure import Job, before, job, open_meter


def options(work: Job) -> list[str]:
    """The command line of its trainer."""
    d_model, heads, d_ff = str(work.d_model), str(work.heads), str(work.d_ff)
    return [
        *("--prepared-data", str(work.folder / "prepared"), "--output", str(work.folder / "model")),
        *("--validation-source", work.text("pieces.val.en"), "--validation-target", work.text("pieces.val.de")),
        *("--encoder", "transformer", "--decoder", "transformer", "--num-layers", f"{work.layers}:{work.layers}"),
        *("--transformer-model-size", d_model, "--transformer-attention-heads", heads),
        *("--transformer-feed-forward-num-hidden", d_ff, "--weight-tying-type", "src_trg_softmax"),
        *("--batch-type", "max-word", "--batch-size", str(work.tokens), "--label-smoothing", str(work.label_smoothing)),
        *("--optimizer", "adam", "--initial-learning-rate", "0.0005", "--learning-rate-scheduler-type", "none"),
        *("--transformer-dropout-prepost", str(work.dropout), "--transformer-dropout-act", str(work.dropout)),
        *("--transformer-dropout-attention", "0", "--gradient-clipping-type", "norm"),
        *("--gradient-clipping-threshold", "1.0", "--seed", str(work.seed), "--use-cpu"),
        *("--checkpoint-interval", "100000", "--max-updates", "100000"),
    ]


def prepare(work: Job) -> None:
    """Its own preparation of the text."""
    from sockeye import prepare_data

    sys.argv = ["sockeye-prepare-data", "--source", work.text("pieces.train.en"), "--target"]
    sys.argv += [work.text("pieces.train.de"), "--shared-vocab", "--output", str(work.folder / "prepared")]
    prepare_data.main()


def main() -> None:
    """Trains until the meter ends the process."""
    work = job()
    prepare(work)
    meter = open_meter(work, "sockeye")
    from sockeye import constants, train
    from sockeye.training import EarlyStoppingTrainer

    def count(_: object, batch: Any) -> None:
        labels = batch.labels[constants.TARGET_LABEL_NAME]
        meter.count(int(labels.ne(constants.PAD_ID).sum()), labels.numel())

    before(EarlyStoppingTrainer, "_step", count)
    sys.argv = ["sockeye-train", *options(work)]
    train.main()


if __name__ == "__main__":
    main()
