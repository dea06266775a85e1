"""spaCy's blank pipelines by its own defaults, trained by its own loop: text classifier, tagger, or entities.

Batches of 100 to 1,000 words; validated every 200 updates; it ends after 1,600 updates without a better score, and the
best on the validation part is kept. All this is its default; that 20 epochs are the most is ours. Nothing is
pretrained.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str
from spacy.vocab import Vocab
from worker import Example, Job, Predict, reader, serve

EPOCHS = 20
PARTS = {"train": "train", "valid": "dev"}
"""Our parts by spaCy's names."""


def pipe_of(job: Job) -> str:
    """The component that does the task."""
    if job.task == "classification":
        return "textcat"
    return "ner" if job.spans else "tagger"


def learn(job: Job) -> dict[str, Any]:
    """Trains as ``spacy train`` does with the configuration of a blank pipeline with one component."""
    nlp = spacy.blank(job.language)
    nlp.add_pipe(pipe_of(job))
    for part, name in PARTS.items():
        DocBin(docs=annotated(nlp, job, part)).to_disk(job.own / f"{name}.spacy")
    config = load_config_from_str(nlp.config.to_str())
    config["paths"].update({name: str(job.own / f"{name}.spacy") for name in PARTS.values()})
    config["system"]["seed"], config["training"]["max_epochs"] = job.seed, EPOCHS
    train(init_nlp(config), job.own, stdout=sys.stderr, stderr=sys.stderr)
    best = spacy.load(job.own / "model-best").meta["performance"]
    return {"performance": {name: value for name, value in best.items() if isinstance(value, float)}}


def annotated(nlp: Any, job: Job, part: str) -> Iterator[Doc]:
    """The examples of a part with what is right."""
    examples = job.examples(part)
    labels = sorted({one["label"] for one in job.examples("train")}) if job.task == "classification" else []
    for one in examples:
        if labels:
            document = nlp.make_doc(one["text"])
            document.cats = {label: float(label == one["label"]) for label in labels}
        else:
            document = of_words(nlp.vocab, one)
            if job.spans:
                document.ents = biluo_tags_to_spans(document, iob_to_biluo(one["tags"]))
            else:
                for token, tag in zip(document, one["tags"], strict=True):
                    token.tag_ = tag
        yield document


def of_words(vocab: Vocab, example: Example) -> Doc:
    """A document of the words that a set has."""
    return Doc(vocab, words=example["words"], spaces=example["spaces"])


def load(job: Job) -> Predict:
    """All texts through ``pipe``, in batches as it makes them."""
    nlp = spacy.load(job.own / "model-best")

    def predict(examples: list[Example]) -> list[Any]:
        if job.task == "classification":
            return [max(one.cats, key=one.cats.__getitem__) for one in nlp.pipe(one["text"] for one in examples)]
        return [tags(one, job.spans) for one in nlp.pipe(of_words(nlp.vocab, one) for one in examples)]

    return predict


def tags(document: Doc, spans: bool) -> list[str]:
    """The tags of a document's words; of entities as BIO."""
    if not spans:
        return [token.tag_ for token in document]
    return [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in document]


if __name__ == "__main__":
    serve(reader(learn, load))
