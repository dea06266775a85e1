"""Regard by its defaults, as a runner beside those of the peers: what ``regard train`` chooses itself, one thread."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from read_job import Example, Job, Predict, serve

import regard
from regard.text.tags import TaggedWords
from regard.training.reporters import LineReporter


def learn(job: Job) -> dict[str, Any]:
    """Trains; tells the scores on the way, by seconds."""
    regard.train(
        task=job.task,
        train=[job.file("train", job.ending)],
        valid=job.file("valid", job.ending),
        output=job.folder / "model",
        seed=job.seed,
        threads=1,
        device="cpu",
        reporter=LineReporter(sys.stderr),
    )
    return course(job.folder / "model" / "training" / "metrics.jsonl", "f1" if job.spans else "accuracy")


def course(log: Path, score: str) -> dict[str, Any]:
    """Parameters, steps, and the score of each validation by seconds of training."""
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    kinds = {kind: [one for one in entries if one["kind"] == kind] for kind in ("start", "step", "valid")}
    curve = [[round(one["seconds"], 1), round(one[score], 2)] for one in kinds["valid"]]
    return {"parameters": kinds["start"][0]["parameters"], "steps": len(kinds["step"]), "course": curve}


def load(job: Job) -> Predict:
    """All texts at once."""
    model = regard.load(job.folder / "model", "cpu")

    def predict(examples: list[Example]) -> list[Any]:
        if isinstance(model, regard.Classifier):
            return [one.label for one in model.classify([one["text"] for one in examples])]
        assert isinstance(model, regard.Tagger)
        words = [TaggedWords.from_words(one["words"], (), one["spaces"]) for one in examples]
        return [one.tags for one in model.tag_all(words)]

    return predict


if __name__ == "__main__":
    serve(learn, load, "torch", "numpy")
