"""Translation demonstration on the built-in corpus: generate, train, score, inspect pronoun attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.data.demo.grammar import Corpus, Pair, corpus, words_of_tokens
from regard.data.demo.grammar.scores import (
    Accuracy,
    NearestSentence,
    Shares,
    cross_shares,
    encoder_shares,
    exact_match,
    majority_pronoun,
    mean_shares,
    over_words,
    pronoun_accuracy,
)
from regard.models.captured_attention import weights_of
from regard.models.transformer import Transformer
from regard.runs.train import train
from regard.system import disk
from regard.system.errors import RegardError, Stopped
from regard.tasks.metrics.bleu import score
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints.files import Files
from regard.training.log import Reporter

TRAIN, VALID, TEST = 60_000, 1_000, 1_000
STEPS = 2_000
RECIPE: dict[str, Any] = {
    "text": {"vocabulary": 2400, "source_language": "en", "target_language": "de"},
    "data": {"max_tokens": 64},
    "model": {
        "encoder_layers": 3,
        "decoder_layers": 3,
        "d_model": 128,
        "d_ff": 512,
        "heads": 4,
        "norm_place": "pre",
        "dropout": 0.1,
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
"""Small enough for a few minutes on a laptop. Three layers each: the decoder looks up a pronoun's noun."""


@dataclass(frozen=True)
class DemoScores:
    """How well test sentences come out: the share equal to the reference, BLEU, and the pronoun's gender."""

    exact: float
    bleu: float
    bleu_signature: str
    pronoun: Accuracy


@dataclass(frozen=True)
class PronounAttention:
    """Attention of the pronoun, in the head that best separates antecedent and rival on validation (from 1)."""

    layer: int
    head: int
    valid: Shares
    test: Shares

    @property
    def margin(self) -> float:
        """Attention to the antecedent minus attention to its rival, on validation."""
        return self.valid.antecedent - self.valid.rival


@dataclass(frozen=True)
class Demonstration:
    """Everything the demonstration shows."""

    train: int
    test: int
    model: DemoScores
    nearest: DemoScores
    majority: Accuracy
    encoder: PronounAttention
    cross: PronounAttention
    ablated: DemoScores | None
    example: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def demonstrate(
    output: Path,
    seed: int = 1,
    steps: int | None = None,
    ablate: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> Demonstration:
    """Run the demonstration in a folder; the corpus lies in ``corpus/``, the model in ``model/``.

    Args:
        output: the folder; a stopped run in it resumes.
        seed: of the corpus and of training.
        steps: updates; default: what suffices. A finished run with more steps requested continues.
        ablate: also train the same Transformer without positions, in ``without-positions/``.
        reporter: receives progress; ``should_stop``: called before every step.
        threads: processor threads; default: as many as torch takes.

    Raises:
        Stopped: ``should_stop`` returned true; the same command resumes.
    """
    reporter = reporter or Reporter()
    reporter.on_event("generating the corpus")
    made = corpus(TRAIN, VALID, TEST, seed)
    files = write(made, output / "corpus")
    options: dict[str, Any] = {"seed": seed, "steps": steps or STEPS, "threads": threads}
    options |= {"reporter": reporter, "should_stop": should_stop, "allow_mismatch": ["training.steps"]}
    model = train(**files, output=output / "model", recipe=RECIPE, **options)
    without = None
    if ablate:
        recipe = {**RECIPE, "model": {**RECIPE["model"], "positions": "none"}}
        without = train(**files, output=output / "without-positions", recipe=recipe, **options)
    reporter.on_event("translating the test sentences")
    return evaluate_demonstration(made, model, without, should_stop)


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
    size = len(content)
    if path.exists() and (disk.refuse_irregular(path).st_size != size or disk.content(path, size) != content):
        raise RegardError("holds something else, perhaps another seed's corpus; choose another --output", str(path))
    with disk.naming(path):
        Files().replace(path, [content])


def evaluate_demonstration(
    made: Corpus,
    model: Translation,
    without: Translation | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Demonstration:
    """Score the model on the test sentences, beside the baselines, and measure its pronouns' attention."""

    def translation_quality(translator: Translation | NearestSentence, **options: int) -> DemoScores:
        if should_stop():
            raise Stopped("stopped before the scores; the model is saved, the same command makes them")
        return quality(made.test, translator.translate([pair.source for pair in made.test], **options))

    deciding = [pair for pair in made.test if pair.pronoun and pair.pronoun.decides]
    guessed = [f"weil {majority_pronoun(made.train)} so"] * len(deciding)
    valid = [pair for pair in made.valid if pair.pronoun]
    tested = [pair for pair in made.test if pair.pronoun]
    return Demonstration(
        train=len(made.train),
        test=len(made.test),
        model=translation_quality(model, beam=1),
        nearest=translation_quality(NearestSentence([p.source for p in made.train], [p.target for p in made.train])),
        majority=pronoun_accuracy(deciding, guessed),
        ablated=translation_quality(without, beam=1) if without else None,
        encoder=pronoun_attention(model, valid, tested, "encoder"),
        cross=pronoun_attention(model, valid, tested, "cross"),
        example=tested[0].source,
    )


def quality(pairs: Sequence[Pair], hypotheses: Sequence[str]) -> DemoScores:
    """Exact match, BLEU and pronoun accuracy."""
    references = [pair.target for pair in pairs]
    scores = score(hypotheses, references, "de", samples=1)
    return DemoScores(
        exact_match(hypotheses, references), scores.bleu, scores.bleu_signature, pronoun_accuracy(pairs, hypotheses)
    )


def pronoun_attention(model: Translation, valid: Sequence[Pair], tested: Sequence[Pair], kind: str) -> PronounAttention:
    """Choose the head on validation sentences, report its shares on test sentences.

    Chosen is the largest share on the antecedent after the rival's is taken off: a head that looks at both nouns alike
    has not found out which one is meant.
    """
    shares = {place: mean_shares(found) for place, found in heads(model, valid, kind).items()}
    best = max(shares, key=lambda place: shares[place].antecedent - shares[place].rival)
    return PronounAttention(best[0] + 1, best[1] + 1, shares[best], mean_shares(heads(model, tested, kind)[best]))


def heads(model: Translation, pairs: Sequence[Pair], kind: str) -> dict[tuple[int, int], list[Shares]]:
    """For each (layer, head) the shares of each sentence's pronoun: the English one, or the German one (cross)."""
    shares = encoder_shares if kind == "encoder" else cross_shares
    both = model.vocabularies
    assert isinstance(model.model, Transformer)
    sources = both.source.encode_batch([p.source for p in pairs])
    targets = both.target.encode_batch([p.target for p in pairs])
    read, written = ([[*words_of_tokens(e.offsets, e.text), -1] for e in side] for side in (sources, targets))
    queries = read if kind == "encoder" else written
    said, heard = [[*e.ids, both.source.end] for e in sources], [[both.target.start, *e.ids] for e in targets]
    weights = weights_of(model.model, model.recipe.model.family, said, heard)
    found: dict[tuple[int, int], list[Shares]] = {}
    for layer, by_pair in enumerate(weights[kind]):
        for pair, weight_HQK, query, key in zip(pairs, by_pair, queries, read, strict=True):
            for head, weight_QK in enumerate(weight_HQK.double().cpu().numpy()):
                found.setdefault((layer, head), []).append(shares(pair, over_words(weight_QK, query, key)))
    return found
