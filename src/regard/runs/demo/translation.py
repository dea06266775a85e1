"""Translation demonstration on the built-in corpus: generate, train, score, inspect pronoun attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.config import recipe_values
from regard.runs.demo.ablation_study import SENTENCES, AblationStudy, PronounAttention, pronoun_attention, study_heads
from regard.runs.demo.grammar import Corpus, Pair, corpus
from regard.runs.demo.grammar.lexicon import Example, read_entries
from regard.runs.demo.grammar.scores import Accuracy, NearestSentence, exact_match, majority_pronoun, pronoun_accuracy
from regard.runs.demo.pronoun_task import DemonstrationJob
from regard.runs.train import train
from regard.system import disk
from regard.system.errors import Option, RegardError, Stopped
from regard.tasks.metrics.bleu import score
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints.files import Files
from regard.training.log import Reporter

TRAIN, VALID, TEST = 60_000, 1_000, 1_000
STEPS = 2_000
RECIPE: dict[str, dict[str, object]] = {
    "text": {"vocabulary": 2400, "source_language": "en", "target_language": "de"},
    "data": {"max_tokens": 64},
    "model": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "d_model": 128,
        "d_ff": 512,
        "heads": 1,
        "decoder_heads": 4,
        "norm_place": "pre",
        "dropout": 0.05,
    },
    "training": {
        "tokens": 2048,
        "shards": 2,
        "rate": 4e-3,
        "warmup": 300,
        "validation_sentences": 200,
        "select": "loss",
    },
    "decoding": {"beam": 4},
}
"""Small enough for a few minutes on a laptop. The encoder itself must tell what *it* stands for
(:mod:`~regard.runs.demo.pronoun_task`), and has one head a layer to find out, so that one head shows it; the weight of
that task makes it look at the noun before it finds a way by other words (docs/experiments.md)."""


@dataclass(frozen=True)
class DemoScores:
    """How well test sentences come out: the share equal to the reference, BLEU, and the pronoun's gender."""

    exact: float
    bleu: float
    bleu_signature: str
    pronoun: Accuracy


@dataclass(frozen=True)
class Demonstration:
    """Everything the demonstration shows.

    Args:
        simple: the simple sentences of the table of examples that come out exactly.
        simple_seen: those of them that are sentences of the training set.
    """

    train: int
    test: int
    model: DemoScores
    simple: Accuracy
    simple_seen: Accuracy
    nearest: DemoScores
    majority: Accuracy
    encoder: PronounAttention
    cross: PronounAttention
    study: AblationStudy | None
    example: str

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {**asdict(self), "study": self.study and self.study.to_dict()}


def demonstrate(
    output: Path,
    seed: int = 1,
    steps: int | None = None,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> Demonstration:
    """Run the demonstration in a folder; the corpus lies in ``corpus/``, the model in ``model/``.

    Args:
        output: the folder; a stopped run in it resumes.
        seed: of the corpus and of training.
        steps: updates; default: what suffices. A finished run with more steps requested continues.
        reporter: receives progress; ``should_stop``: called before every step.
        threads: processor threads; default: as many as torch takes.

    Raises:
        Stopped: ``should_stop`` returned true; the same command resumes.
    """
    reporter = reporter or Reporter()
    reporter.on_event("generating the corpus")
    made = corpus(TRAIN, VALID, TEST, seed)
    model = teacher(made, output, seed, steps, threads, reporter, should_stop)(output=output / "model", recipe=RECIPE)
    reporter.on_event("translating the test sentences, and switching every head off in turn")
    return evaluate_demonstration(made, model, should_stop)


def teacher(
    made: Corpus,
    output: Path,
    seed: int,
    steps: int | None,
    threads: int | None,
    reporter: Reporter,
    should_stop: Callable[[], bool],
) -> Callable[..., Translation]:
    """What trains a model on the corpus, given its folder and recipe; arguments as of :func:`demonstrate`."""
    done = 0
    with suppress(RegardError):  # the steps that it was trained for before
        done = int(recipe_values(output / "model" / "recipe.toml").get("training", {}).get("steps", 0))
    return partial(
        train,
        **write(made, output / "corpus"),
        seed=seed,
        steps=steps or max(STEPS, done),
        allow_mismatch=["training.steps"],
        threads=threads,
        reporter=reporter,
        should_stop=should_stop,
        job_class=DemonstrationJob,
    )


def write(made: Corpus, folder: Path) -> dict[str, Any]:
    """The corpus as plain text files, a sentence a line; the arguments of ``train`` that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in (("train", made.train), ("valid", made.valid), ("test", made.test)):
        for language, texts in (("en", [p.source for p in pairs]), ("de", [p.target for p in pairs])):
            put(folder / f"{name}.{language}", "".join(f"{text}\n" for text in texts).encode())
    return {
        "source": folder / "train.en",
        "target": folder / "train.de",
        "valid_source": folder / "valid.en",
        "valid_target": folder / "valid.de",
    }


def put(path: Path, content: bytes) -> None:
    """Write a file whole; one that holds something else is somebody's."""
    if path.exists() and not disk.holds(path, content):
        raise RegardError(f"holds something else, perhaps another seed's; choose another {Option('output')}", str(path))
    with disk.naming(path):
        Files().replace(path, [content])


def evaluate_demonstration(
    made: Corpus,
    model: Translation,
    should_stop: Callable[[], bool] = lambda: False,
) -> Demonstration:
    """Score the model on the test sentences, beside the baselines, and measure its pronouns' attention."""

    def translation_quality(translator: Translation | NearestSentence, **options: Any) -> DemoScores:
        if should_stop():
            raise Stopped("stopped before the scores; the model is saved, the same command makes them")
        return quality(made.test, translator.translate([pair.source for pair in made.test], **options))

    deciding = sentences_that_decide(made.test)
    guessed = [f"weil {majority_pronoun(made.train)} so"] * len(deciding)
    valid, tested = (
        sentences_that_decide(pairs) or [pair for pair in pairs if pair.pronoun] for pairs in (made.valid, made.test)
    )
    measured = translation_quality(model, beam=1)
    examples, seen = read_entries(Example), {pair.source for pair in made.train}
    written = model.translate([example.english for example in examples], beam=1)
    right = [example for example, german in zip(examples, written, strict=True) if german == example.german]
    right_seen, all_seen = (sum(example.english in seen for example in some) for some in (right, examples))
    return Demonstration(
        train=len(made.train),
        test=len(made.test),
        model=measured,
        simple=Accuracy(len(right), len(examples)),
        simple_seen=Accuracy(right_seen, all_seen),
        nearest=translation_quality(NearestSentence([p.source for p in made.train], [p.target for p in made.train])),
        majority=pronoun_accuracy(deciding, guessed),
        study=study_heads(model, deciding[:SENTENCES], should_stop) if deciding else None,
        encoder=pronoun_attention(model, valid, tested, "encoder"),
        cross=pronoun_attention(model, valid, tested, "cross"),
        example=tested[0].source,
    )


def sentences_that_decide(pairs: Sequence[Pair]) -> list[Pair]:
    """Those in which the pronoun's gender tells which noun is meant."""
    return [pair for pair in pairs if pair.pronoun and pair.pronoun.decides]


def quality(pairs: Sequence[Pair], hypotheses: Sequence[str]) -> DemoScores:
    """Exact match, BLEU and pronoun accuracy."""
    references = [pair.target for pair in pairs]
    scores = score(hypotheses, references, "de", samples=1)
    return DemoScores(
        exact_match(hypotheses, references), scores.bleu, scores.bleu_signature, pronoun_accuracy(pairs, hypotheses)
    )
