"""What readers can learn beside one label a text, each once on real texts, beside the simple thing of scikit-learn.

    python benchmarks/reading_kinds.py                      # everything, scored on validation parts
    python benchmarks/reading_kinds.py --kind number --test     # on the test part as well, which is scored once

How each set is made of the data at hand:

* *several*: one to three of SNIPS's requests, one after another, with the labels of all of them;
* *number*: an English caption of Multi30k, and how many words its German translation has;
* *skewed*: SST-2 with a tenth of its negative sentences, in all parts; class weights none and balanced;
* *scope*: CLINC150 with its requests of no class, by which validation sets the threshold;
* *pairs*: two requests of CLINC150, half of the pairs with the same intent.

Regard learns by its defaults, one thread; the peer is a linear model on TF-IDF of words, pairs of words and parts of
words (a ridge regression of counts for the number; of two texts, the features of each and their products), C = 1. A run
that was stopped resumes when the same command is given again; lines are appended to ``results/reading_kinds.jsonl``, or
to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import machine
import numpy as np
from corpus import DATA
from reading_splits import OUT_OF_SCOPE, PARTS, SETS, files_of, splits_of

from regard.tasks.metrics.calibration import (
    acceptance_scores,
    choose_threshold,
    expected_calibration_error,
    temperature,
)
from regard.tasks.metrics.labels import class_scores, label_scores, number_scores
from regard.tasks.model_folder import corpus_opener
from regard.text.lines import lines

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "reading_kinds.jsonl"
Rows = list[tuple[str, ...]]
"""Texts, the label last."""
Figures = dict[str, float]
SEVERAL = {"train": 12_000, "valid": 1_000, "test": 1_000}
PAIRS = {"train": 20_000, "valid": 1_000, "test": 2_000}
SAME = ("other", "same")


def several(work: Path) -> dict[str, Rows]:
    """One to three requests in a text."""
    draw, found = Random(1), {}
    for part, examples in labelled("snips", work).items():
        chosen = [draw.sample(examples, draw.randint(1, 3)) for _ in range(SEVERAL[part])]
        found[part] = [
            ("; ".join(text for text, _ in some), "|".join(sorted({label for _, label in some}))) for some in chosen
        ]
    return found


def number(work: Path) -> dict[str, Rows]:
    """Captions with the words of their translations."""
    names = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    found = {}
    for part, name in names.items():
        english, german = (list(lines(DATA / "multi30k" / f"{name}.{language}.gz")) for language in ("en", "de"))
        found[part] = [(one, str(len(other.split()))) for one, other in zip(english, german, strict=True)]
    return found


def skewed(work: Path) -> dict[str, Rows]:
    """Few negative sentences."""
    draw = Random(1)
    return {
        part: [one for one in examples if one[1] == "1" or draw.random() < 0.1]
        for part, examples in labelled("sst2", work).items()
    }


def scope(work: Path) -> dict[str, Rows]:
    """The requests of no class are in the parts for validation and test."""
    data, found = SETS["clinc150"], labelled("clinc150", work)
    for part in ("valid", "test"):
        paths = [files_of("clinc150", work) / name for name in getattr(data, part)]
        corpora = [corpus_opener(data.task)(path, data.columns) for path in paths]
        found[part] += [(text, label) for one in corpora for text, label in one.examples() if label == OUT_OF_SCOPE]
    return found


def pairs(work: Path) -> dict[str, Rows]:
    """Two requests each, half of them of one intent."""
    draw, found = Random(1), {}
    for part, examples in labelled("clinc150", work).items():
        by_label: dict[str, list[str]] = {}
        for text, label in examples:
            by_label.setdefault(label, []).append(text)
        names = sorted(by_label)
        found[part] = []
        for place in range(PAIRS[part]):
            if place % 2:
                both = draw.sample(by_label[draw.choice(names)], 2)
            else:
                both = [draw.choice(by_label[name]) for name in draw.sample(names, 2)]
            found[part].append((*both, SAME[place % 2]))
    return found


def labelled(name: str, work: Path) -> dict[str, Rows]:
    """The parts of a set of labels, those of no class left out."""
    folder = splits_of(name, work)
    parts = {part: lines(folder / f"{part}.jsonl") for part in PARTS}
    return {part: [(one["text"], one["label"]) for one in map(json.loads, some)] for part, some in parts.items()}


@dataclass(frozen=True)
class Kind:
    """What is learned.

    Args:
        make: of the texts of each part.
        peer: what the simple thing reaches on the last part given.
        figures: of ours, by the names that its evaluation has, dotted.
        settings: of our runs, by name.
        task: of ours.
    """

    make: Callable[[Path], dict[str, Rows]]
    peer: Callable[[list[Rows], str], Figures]
    figures: dict[str, str]
    settings: dict[str, tuple[str, ...]]
    task: str = "classification"


def tfidf() -> Any:
    """Words, pairs of neighbours, and 2 to 5 characters within words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    return make_union(words, TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))


def svm_several(parts: list[Rows], weights: str) -> Figures:
    """An SVM for each label."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MultiLabelBinarizer
    from sklearn.svm import LinearSVC

    names = MultiLabelBinarizer()
    learned, *_, scored = parts
    wanted = names.fit_transform([label.split("|") for _, label in learned])
    model = make_pipeline(tfidf(), OneVsRestClassifier(LinearSVC(random_state=1)))
    model.fit([text for text, _ in learned], wanted)
    gold = names.transform([label.split("|") for _, label in scored])
    found = label_scores(gold, model.predict([text for text, _ in scored]), list(names.classes_))
    return {"exact": found.exact, "micro f1": found.micro.f1, "macro f1": found.macro_f1}


def ridge_number(parts: list[Rows], weights: str) -> Figures:
    """Counts of words and pairs of words, so that a long text has a long vector; its length is there too."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline, make_union

    counts = CountVectorizer(ngram_range=(1, 2), min_df=2)
    every = CountVectorizer(token_pattern=r"\S+", vocabulary=None, preprocessor=lambda text: "w " * len(text.split()))
    learned, *_, scored = parts
    ridge = GridSearchCV(Ridge(solver="sparse_cg"), {"alpha": (1.0, 10.0, 100.0, 1000.0)}, cv=3)
    model = make_pipeline(make_union(every, counts), ridge)
    model.fit([text for text, _ in learned], [float(label) for _, label in learned])
    found = number_scores([float(label) for _, label in scored], model.predict([text for text, _ in scored]))
    return {"rmse": found.mean_squared_error**0.5, "pearson": found.pearson}


def svm_skewed(parts: list[Rows], weights: str) -> Figures:
    """Class weights by scikit-learn's own rule."""
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    learned, *_, scored = parts
    model = make_pipeline(tfidf(), LinearSVC(random_state=1, class_weight=weights if weights != "none" else None))
    model.fit([text for text, _ in learned], [label for _, label in learned])
    gold, said = (
        [int(one) for one in side] for side in ([r[1] for r in scored], model.predict([r[0] for r in scored]))
    )
    found = class_scores(gold, said, ["0", "1"])
    return {"macro f1": found.macro_f1, "accuracy": found.accuracy, "recall of the rare": found.classes["0"].recall}


def logistic_scope(parts: list[Rows], weights: str) -> Figures:
    """A logistic regression, whose probabilities are meant as such; temperature and threshold from validation."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    learned, valid, scored = parts[0], parts[1], parts[-1]
    model = make_pipeline(tfidf(), LogisticRegression(C=10.0, max_iter=300))
    model.fit([text for text, _ in learned], [label for _, label in learned])
    names = {label: place for place, label in enumerate(model.classes_)}

    def logits(rows: Rows) -> tuple[Any, Any, Any]:
        outside = np.array([label == OUT_OF_SCOPE for _, label in rows])
        gold = np.array([names.get(label, 0) for _, label in rows])
        return model.decision_function([text for text, _ in rows]), gold, outside

    logit_BC, gold_B, outside_B = logits(valid)
    heat = temperature(logit_BC[~outside_B], gold_B[~outside_B])

    def judged(logit_BC: Any, gold_B: Any) -> tuple[Any, Any]:
        probability_BC = np.exp(logit_BC / heat - np.logaddexp.reduce(logit_BC / heat, 1, keepdims=True))
        return probability_BC.max(1), probability_BC.argmax(1) == gold_B

    threshold = choose_threshold(*judged(logit_BC, gold_B), outside_B).value
    logit_BC, gold_B, outside_B = logits(scored)
    sure_B, right_B = judged(logit_BC, gold_B)
    found = acceptance_scores(sure_B, right_B, outside_B, np.array([threshold])).at(0)
    inside = ~outside_B
    return {
        "accuracy of classes": 100 * float(right_B[inside].mean()),
        "calibration error": expected_calibration_error(sure_B[inside], right_B[inside]),
        "in scope": found.in_scope_accuracy,
        "recall outside": found.recall,
    }


def svm_pairs(parts: list[Rows], weights: str) -> Figures:
    """The features of each text, and the products of those that both have."""
    from scipy.sparse import hstack
    from sklearn.svm import LinearSVC

    learned, *_, scored = parts
    features = tfidf().fit([text for first, second, _ in learned for text in (first, second)])

    def both(rows: Rows) -> Any:
        sides = [features.transform([row[side] for row in rows]) for side in (0, 1)]
        shared = sides[0].multiply(sides[1])
        return hstack([*sides, shared, shared.sum(1)]).tocsr()

    model = LinearSVC(random_state=1).fit(both(learned), [label for *_, label in learned])
    right = model.predict(both(scored)) == np.array([label for *_, label in scored])
    return {"accuracy": 100 * float(right.mean())}


KINDS = {
    "several": Kind(
        several,
        svm_several,
        {"exact": "exact", "micro f1": "micro.f1", "macro f1": "macro_f1"},
        {"none": ("classification.kind=multi",)},
    ),
    "number": Kind(
        number,
        ridge_number,
        {"rmse": "mean_squared_error", "pearson": "pearson"},
        {"none": ("classification.kind=regression",)},
    ),
    "skewed": Kind(
        skewed,
        svm_skewed,
        {"macro f1": "macro_f1", "accuracy": "accuracy", "recall of the rare": "classes.0.recall"},
        {"none": (), "balanced": ("classification.class_weights=balanced",)},
    ),
    "scope": Kind(
        scope,
        logistic_scope,
        {
            "accuracy of classes": "accuracy",
            "calibration error": "calibration_error",
            "in scope": "out_of_scope.in_scope_accuracy",
            "recall outside": "out_of_scope.recall",
        },
        {"none": (f"classification.out_of_scope={OUT_OF_SCOPE}",)},
    ),
    "pairs": Kind(pairs, svm_pairs, {"accuracy": "accuracy"}, {"none": ()}, "sentence-pairs"),
}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="also score the test part, once")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "reading_kinds")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Every kind that has no result yet."""
    asked = options()
    for name in asked.kind or KINDS:
        kind = KINDS[name]
        parts = kind.make(asked.work)
        folder = asked.work / "parts" / name
        for part, rows in parts.items():
            write(folder / f"{part}.tsv", rows)
        for weights in kind.settings:
            run = f"{name} {weights} {asked.seed}"
            if not done(asked.results, run, asked.test):
                measure(asked, name, run, weights, parts, folder)


def measure(asked: argparse.Namespace, name: str, run: str, weights: str, parts: dict[str, Rows], folder: Path) -> None:
    """Both sides, on the same parts; appended."""
    import regard
    from regard.training.reporters import LineReporter

    kind = KINDS[name]
    begun = {"benchmark": "reading_kinds", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    scored = ("valid", "test") if asked.test else ("valid",)
    began = time.process_time()
    theirs = {part: kind.peer([parts["train"], parts["valid"], parts[part]], weights) for part in scored}
    their_seconds = (time.process_time() - began) / len(scored)
    began = time.process_time()
    model: Any = regard.train(
        task=kind.task,
        train=folder / "train.tsv",
        valid=folder / "valid.tsv",
        output=asked.work / run.replace(" ", "-"),
        settings=kind.settings[weights],
        seed=asked.seed,
        threads=1,
        device="cpu",
        reporter=LineReporter(sys.stderr),
    )
    our_seconds = time.process_time() - began
    found = []
    for part in scored:
        own = model.evaluate(corpus_opener(kind.task)(folder / f"{part}.tsv", None)).to_dict()
        ours = {title: value_of(own, path) for title, path in kind.figures.items()}
        if "rmse" in ours:
            ours["rmse"] = ours["rmse"] ** 0.5
        for who, figures, seconds in (("Regard", ours, our_seconds), ("scikit-learn", theirs[part], their_seconds)):
            row = {"run": run, "kind": name, "weights": weights, "seed": asked.seed, "part": part, "who": who}
            found.append(row | {"seconds": round(seconds, 1)} | {key: round(one, 4) for key, one in figures.items()})
    machine.append(asked.results, {**begun, "rows": found})
    print(json.dumps(found, indent=1), flush=True)


def value_of(values: dict[str, Any], path: str) -> float:
    """A value by its dotted name."""
    found: Any = values
    for name in path.split("."):
        found = found[name]
    return float(found)


def write(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    """A table without a header's names in doubt."""
    made = [tuple(one.replace("\t", " ") for one in row) for row in rows]
    header = ("text", "label") if len(made[0]) == 2 else ("sentence1", "sentence2", "label")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in (header, *made)), encoding="utf-8", newline="")


def done(results: Path, run: str, test: bool) -> bool:
    """Whether a run has its figures; a test part is scored once."""
    return any(row["run"] == run and (row["part"] == "test" or not test) for row in machine.rows_in(results))


if __name__ == "__main__":
    main()
