"""Trains the two models that the package brings along: a Transformer and its recurrent sister, from the demo's grammar.

    python scripts/shipped_models.py build/shipped            # both; or behind it: transformer, recurrent, without

``without`` is what the Transformer's page shows of models without an idea: those of benchmarks/without.py, seed 1.

Each takes some minutes of one core. Both learn the same sentences with the same vocabulary, seed and steps; they are
small, so that both take less than 3 MB. On another processor their bits differ, and their scores little.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from regard.inspection import SHIPPED
from regard.inspection.folders.walk import NAME, write_walk
from regard.runs.demo import NAME as WITHOUT
from regard.runs.demo.ablation_study import SENTENCES, study_heads
from regard.runs.demo.grammar import Corpus, corpus
from regard.runs.demo.pronoun_task import DemonstrationJob
from regard.runs.demo.translation import RECIPE, TRAIN, VALID, quality, sentences_that_decide, write
from regard.runs.demo.without import ABSENT, demonstrate_without
from regard.runs.train import train
from regard.runs.tune import tune_alignment
from regard.tasks.model_path import CARD, weights_sha256
from regard.tasks.translation.training import TranslationJob
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from regard.training.reporters import reporter

SEED, STEPS, TESTED, BESIDE = 1, 1_800, 300, 100
TRANSFORMER = {**RECIPE["model"], "d_model": 64, "d_ff": 256, "heads": 4}
RECURRENT = {"family": "rnn", "score": "additive", "encoder_layers": 1, "decoder_layers": 1, "d_model": 64}
RECURRENT |= {"two_way": True, "tie": "three", "dropout": 0.05}
MODELS = {"transformer": (TRANSFORMER, DemonstrationJob), "recurrent": (RECURRENT, TranslationJob)}
TRAINING = {**RECIPE["training"], "tokens": 1024, "shards": 1, "validate_every": 600, "validation_sentences": 50}
TOLD = """## What it is

A demonstration that comes with Regard: it learned the sentences of a tiny grammar (docs/demo-corpus.md), nothing else.
Of {tested:,} test sentences, which it never saw, it translates {exact:.1%} exactly, with {pronouns} of {deciding}
pronouns right; of the first 100 of them, which lie beside it in `corpus/`, {first:.0%} exactly.

"""


def ship(name: str, folder: Path, task: Translation, made: Corpus) -> None:
    """Copy a model into the package, with what its card says of test sentences, and the Transformer's walk."""
    place = SHIPPED[list(MODELS).index(name)]
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place / "model", ignore=shutil.ignore_patterns("training"))
    written, some = task.translate([pair.source for pair in made.test], beam=1), made.test[:BESIDE]
    found, first = quality(made.test, written), quality(some, written[:BESIDE])
    right, deciding = found.pronoun.correct, found.pronoun.total
    told = TOLD.format(tested=len(made.test), exact=found.exact, pronouns=right, deciding=deciding, first=first.exact)
    card = (folder / CARD).read_text(encoding="utf-8").replace("## Data", f"{told}## Data", 1)
    manifest.replace(place / "model", {CARD: [card.encode()]}, Files())
    (place / "corpus").mkdir()
    for language, texts in (("en", [pair.source for pair in some]), ("de", [pair.target for pair in some])):
        (place / "corpus" / f"test.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    if name == "transformer":
        study = study_heads(task, sentences_that_decide(made.test)[:SENTENCES])
        (place / NAME).write_bytes(write_walk(study, weights_sha256(place / "model")))


def ship_measurements(folder: Path) -> None:
    """Train the demonstration's model without each idea, and copy what was measured beside the Transformer."""
    for idea in ABSENT:
        with reporter() as shown:
            demonstrate_without(idea, folder, SEED, reporter=shown, threads=1, training={"tokens": 1024, "shards": 1})
    shutil.copy(folder / WITHOUT, SHIPPED[0])


if __name__ == "__main__":
    folder, made = Path(sys.argv[1]), corpus(TRAIN, VALID, TESTED, SEED)
    files = write(made, folder / "corpus")
    for name in [one for one in sys.argv[2:] or MODELS if one in MODELS]:
        model, job = MODELS[name]
        recipe = {**RECIPE, "model": model, "training": TRAINING}
        with reporter() as shown:
            run = {"output": folder / name, "recipe": recipe, "seed": SEED, "steps": STEPS, "job_class": job}
            task = train(**files, **run, threads=1, processes=1, reporter=shown)
        tune_alignment(folder / name)
        ship(name, folder / name, task, made)
    if "without" in sys.argv[2:] or not sys.argv[2:]:
        ship_measurements(folder / "without")
