"""fastText's classifier in one setting that is not tuned: words and pairs of words, 25 epochs, rate 0.5, one thread."""

from __future__ import annotations

from typing import Any

import fasttext
from worker import Example, Job, Predict, reader, serve

PREFIX = "__label__"


def learn(job: Job) -> dict[str, Any]:
    """Learns from the training part; the validation part is not looked at. Labels are numbered: they hold no blank."""
    examples = job.examples("train")
    numbers = {label: place for place, label in enumerate(sorted({one["label"] for one in examples}))}
    lines = (f"{PREFIX}{numbers[one['label']]} {one_line(one)}\n" for one in examples)
    train = job.own / "train.txt"
    train.write_text("".join(lines), encoding="utf-8")
    model = fasttext.train_supervised(str(train), wordNgrams=2, epoch=25, lr=0.5, thread=1, seed=job.seed, verbose=0)
    model.save_model(str(job.own / "model.bin"))
    (job.own / "labels.txt").write_text("\n".join(numbers), encoding="utf-8")
    return {}


def load(job: Job) -> Predict:
    """All texts at once."""
    model = fasttext.load_model(str(job.own / "model.bin"))
    labels = (job.own / "labels.txt").read_text(encoding="utf-8").split("\n")

    def predict(examples: list[Example]) -> list[str]:
        found, _ = model.predict([one_line(one) for one in examples])
        return [labels[int(one[0].removeprefix(PREFIX))] if one else "" for one in found]

    return predict


def one_line(example: Example) -> str:
    """A text as fastText reads it: words are what stands between blanks."""
    return " ".join(example["text"].split())


if __name__ == "__main__":
    serve(reader(learn, load))
