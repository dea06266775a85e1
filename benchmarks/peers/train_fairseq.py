"""fairseq's own trainer, as ``fairseq-train`` runs it on a CPU: batches by tokens, sorted by length."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from measure import Job, before, job, open_meter


def preprocess(work: Job) -> None:
    """Its own preparation of the text."""
    from fairseq_cli import preprocess

    dictionary = work.folder / "dictionary.txt"
    names = Path(work.text("pieces.txt")).read_text().split()
    dictionary.write_text("".join(f"{name} 1\n" for name in names))
    sys.argv = ["fairseq-preprocess", "-s", "en", "-t", "de", "--trainpref", work.text("pieces.train")]
    sys.argv += ["--validpref", work.text("pieces.val"), "--destdir", str(work.folder / "data")]
    sys.argv += ["--srcdict", str(dictionary), "--joined-dictionary", "--workers", "1"]
    preprocess.cli_main()


def options(work: Job) -> list[str]:
    """The command line of its trainer."""
    shape = []
    for side in ("encoder", "decoder"):
        shape += [f"--{side}-layers", str(work.layers), f"--{side}-embed-dim", str(work.d_model)]
        shape += [f"--{side}-ffn-embed-dim", str(work.d_ff), f"--{side}-attention-heads", str(work.heads)]
    return [
        *(str(work.folder / "data"), "-s", "en", "-t", "de", "--arch", "transformer", *shape),
        *("--share-all-embeddings", "--encoder-normalize-before", "--decoder-normalize-before"),
        *("--dropout", str(work.dropout), "--activation-dropout", str(work.dropout), "--attention-dropout", "0"),
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", str(work.label_smoothing)),
        *("--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--clip-norm", "1.0", "--lr", "5e-4"),
        *("--lr-scheduler", "inverse_sqrt", "--warmup-updates", "400", "--max-tokens", str(work.tokens)),
        *("--max-update", "100000", "--cpu", "--log-interval", "5", "--no-progress-bar", "--num-workers", "0"),
        *("--no-save", "--save-dir", str(work.folder / "model"), "--seed", str(work.seed)),
    ]


def main() -> None:
    """Trains until the meter ends the process."""
    work = job()
    preprocess(work)
    meter = open_meter(work, "fairseq")
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq_cli import train

    def count(criterion: Any, _: object, sample: dict[str, Any], *__: object, **___: object) -> None:
        target = sample["target"]
        meter.count(int(target.ne(criterion.padding_idx).sum()), target.numel())

    before(LabelSmoothedCrossEntropyCriterion, "forward", count)
    sys.argv = ["fairseq-train", *options(work)]
    train.cli_main()


if __name__ == "__main__":
    main()
