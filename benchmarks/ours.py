"""Regard as a runner beside those of the peers: its trainer, its readers by their defaults, its models in use."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from quality import entries
from worker import EXTRA, Answers, Example, Job, Meter, Missing, Opened, Predict, reader, serve

import regard
from regard.tasks.model_folder import open_without_torch
from regard.text.tags import TaggedWords
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.training.log import Reporter, Start, StepMetrics
from regard.training.reporters import LineReporter


class Measured(Reporter):
    """A reporter that tells the meter of each update, and makes sure that the vocabulary is everybody's."""

    def __init__(self, job: Job) -> None:
        self.job, self.meter = job, Meter(job)

    def on_start(self, start: Start) -> None:
        """The vocabulary learned must be the one the peers were given."""
        learned, theirs = self.job.own / "model" / "tokenizer.json", Path(self.job.text("tokenizer.json"))
        if Tokenizer.load(learned).sha256 != Tokenizer.load(theirs).sha256:
            raise regard.RegardError("was trained with another vocabulary than the peers are", str(learned.parent))

    def on_step(self, metrics: StepMetrics) -> None:
        """An update has ended: its real target tokens, and the batch's capacity."""
        self.meter.count(metrics.tokens, round(metrics.tokens / metrics.fill))
        self.meter.step()


def settings(job: Job) -> tuple[str, ...]:
    """The job as values of the recipe; validation and checkpoints lie beyond the last step."""
    values = {"text.vocabulary": job.pieces, "training.tokens": job.tokens, "training.rate": 1e-3, "training.clip": 1.0}
    values |= {"model.encoder_layers": job.layers, "model.decoder_layers": job.layers, "model.d_model": job.d_model}
    values |= {"model.d_ff": job.d_ff, "model.heads": job.heads, "model.norm_place": "pre"}
    values |= {"model.dropout": job.dropout, "model.feedforward_dropout": job.dropout, "model.attention_dropout": 0.0}
    values |= {"training.precision": {"fp32": "fp32", "bf16": "mixed"}.get(job.precision, "auto")}
    values |= {"training.label_smoothing": job.label_smoothing, "training.validate_every": 100_000}
    return tuple(f"{name}={value}" for name, value in values.items())


def train(job: Job) -> None:
    """What ``regard train`` calls, until the meter ends the process."""
    regard.train(
        source=[Path(job.text("train.en"))],
        target=[Path(job.text("train.de"))],
        valid_source=Path(job.text("val.en")),
        valid_target=Path(job.text("val.de")),
        output=job.own / "model",
        settings=settings(job),
        steps=100_000,
        seed=job.seed,
        **({"threads": 1} if job.threads == 1 else {"processes": job.threads}),  # a core is a process
        device=job.device,
        reporter=Measured(job),
    )


def learn(job: Job) -> dict[str, Any]:
    """Trains a reader, of a model that is begun if the job names one; tells the scores on the way, by seconds."""
    valid = job.file("valid", job.ending)
    regard.train(
        task=job.task,
        train=[job.file("train", job.ending)],
        valid=valid if valid.exists() else None,
        start_from=getattr(job, "begun", None),
        output=job.own / "model",
        seed=job.seed,
        threads=1,
        device="cpu",
        reporter=LineReporter(sys.stderr),
    )
    return course(job.own / "model", "f1" if job.spans else "accuracy")


def course(folder: Path, score: str) -> dict[str, Any]:
    """Parameters, steps, and the score of each validation by seconds of training."""
    log = entries(folder)
    curve = [[round(one["seconds"], 1), round(one[score], 2)] for one in log["valid"]]
    return {"parameters": log["start"][0]["parameters"], "steps": len(log["step"]), "course": curve}


def load(job: Job) -> Predict:
    """A reader, which takes all texts at once."""
    model = regard.load(job.own / "model", "cpu")

    def predict(examples: list[Example]) -> list[Any]:
        if isinstance(model, regard.Classifier):
            return [one.label for one in model.classify([one["text"] for one in examples])]
        assert isinstance(model, regard.Tagger)
        words = [TaggedWords.from_words(one["words"], (), one["spaces"]) for one in examples]
        return [one.tags for one in model.tag_all(words)]

    return predict


def using(job: Job) -> Opened:
    """A model as the commands open it, whatever computes: the engine without torch where that can, else torch."""
    folder = Path(job.folders["regard"])
    try:
        model = open_without_torch(folder, job.device, job.precision)
        model = model or regard.load(folder, job.device, precision=job.precision)
    except regard.RegardError as error:
        raise Missing(str(error)) from None
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return {do.__name__: partial(do, model) for do in (translate, encode, generate)}


def translate(model: Any, texts: list[str], beam: int, batch: int) -> Answers:
    """The batch is given in source tokens times beam; hypotheses are compared by the sum of their log-probabilities."""
    chosen = {"tokens": batch, "length_penalty": 0.0}
    model.recipe = model.recipe.model_copy(update={"decoding": model.recipe.decoding.model_copy(update=chosen)})
    return [list(found[0].tokens) for found in model.nbest(texts, 1, beam=beam, max_extra=EXTRA, scores=False)]


def encode(model: Any, texts: list[str], batch: int) -> Answers:
    """The mean of a text's vectors; the batches are Regard's own."""
    return [vector.tolist() for vector in model.encode(texts, pool="mean", normalise=False)]


def generate(model: Any, texts: list[str], tokens: int) -> Answers:
    """The most probable token every time."""
    return [list(found[0].tokens) for found in model.generate(texts, max_tokens=tokens, temperature=0.0, scores=False)]


def opened(job: Job) -> Opened:
    """What a job is about: training beside trainers, reading, or using a model."""
    if hasattr(job, "corpus"):
        return {"train": partial(train, job)}
    return reader(learn, load)(job) if hasattr(job, "splits") else using(job)


if __name__ == "__main__":
    serve(opened)
