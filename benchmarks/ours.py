"""Regard's own trainer through the product's one door: what ``regard train`` calls, the job's sizes in its recipe."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from measure import Job, Meter, job

import regard
from regard.system.errors import RegardError
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.training.log import Reporter, Start, StepMetrics


class Measured(Reporter):
    """A reporter that tells the meter of each update, and makes sure that the vocabulary is everybody's."""

    def __init__(self, meter: Meter, output: Path, vocabulary: Path) -> None:
        self.meter, self.output, self.vocabulary = meter, output, vocabulary

    def on_start(self, start: Start) -> None:
        """The vocabulary learned must be the one the peers were given."""
        if Tokenizer.load(self.output / "tokenizer.json").sha256 != Tokenizer.load(self.vocabulary).sha256:
            raise RegardError("was trained with another vocabulary than the peers are", str(self.output))

    def on_step(self, metrics: StepMetrics) -> None:
        """An update has ended: its real target tokens, and the batch's capacity."""
        self.meter.count(metrics.tokens, round(metrics.tokens / metrics.fill))
        self.meter.step()


def settings(work: Job) -> tuple[str, ...]:
    """The job as values of the recipe; validation and checkpoints lie beyond the last step."""
    values = {
        "text.vocabulary": work.pieces,
        "model.encoder_layers": work.layers,
        "model.decoder_layers": work.layers,
        "model.d_model": work.d_model,
        "model.d_ff": work.d_ff,
        "model.heads": work.heads,
        "model.norm_place": "pre",
        "model.dropout": work.dropout,
        "model.feedforward_dropout": work.dropout,
        "model.attention_dropout": 0.0,
        "training.tokens": work.tokens,
        "training.precision": {"fp32": "fp32", "bf16": "mixed"}.get(work.precision, "auto"),
        "training.label_smoothing": work.label_smoothing,
        "training.validate_every": 100_000,
        "training.clip": 1.0,
        "training.rate": 1e-3,
    }
    return tuple(f"{name}={value}" for name, value in values.items())


def main() -> None:
    """Trains until the meter ends the process."""
    work = job()
    output = work.folder / "model"
    regard.train(
        source=[Path(work.text("train.en"))],
        target=[Path(work.text("train.de"))],
        valid_source=Path(work.text("val.en")),
        valid_target=Path(work.text("val.de")),
        output=output,
        settings=settings(work),
        steps=100_000,
        seed=work.seed,
        **({"threads": 1} if work.threads == 1 else {"processes": work.threads}),  # a core is a process
        device=work.device,
        reporter=Measured(Meter(work), output, Path(work.text("tokenizer.json"))),
    )


if __name__ == "__main__":
    main()
