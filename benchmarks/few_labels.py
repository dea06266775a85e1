"""Few labels: a classifier from these alone, and one begun from a model of masked words, beside an SVM.

    python benchmarks/few_labels.py                                  # 100, 300, 1,000 labels, three sets and seeds
    python benchmarks/few_labels.py --labels 300 --set trec --test   # on the test part as well, which is scored once

Of a set's training part so many texts are drawn by the seed (of CLINC150 as many of each intent) and keep their
labels, which serve for learning and validation. 100 labels of CLINC150's 150 intents would leave none to validate on
and are left out. *Masked words* trains a model of masked words on all of the set's texts and the general ones first,
for ten minutes, and begins from it. Regard learns by its defaults, one thread. A run that was stopped resumes when the
same command is given again; lines are appended to ``results/few_labels.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import machine
from corpus import DATA
from reading_kinds import Rows, labelled, tfidf, write

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "few_labels.jsonl"
SETS = ("trec", "sst2", "clinc150")
LABELS = (100, 300, 1000)
BALANCED = {"clinc150": 300}
"""Sets of as many texts of each class, and the fewest labels: two of each intent, so that some can be held out."""
GENERAL = ("lm-warpeace/warpeace.txt.xz", "lm-debian-en/descriptions.en.txt.xz")
MINUTES = 10
Row = dict[str, Any]


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, action="append", help="default: all")
    parser.add_argument("--labels", type=int, action="append", help="default: 100, 300 and 1,000")
    parser.add_argument("--way", choices=list(WAYS), action="append", help="default: all but masked words")
    parser.add_argument("--seed", type=int, action="append", help="default: 1, 2 and 3")
    parser.add_argument("--test", action="store_true", help="also score the test part, once")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "few_labels")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Every run that has no result yet."""
    asked = options()
    for count in asked.labels or LABELS:
        for name in asked.set or SETS:
            parts = labelled(name, asked.work)
            for seed in () if count < BALANCED.get(name, 0) else asked.seed or (1, 2, 3):
                some = draw(parts["train"], count, seed, name in BALANCED)
                for way in asked.way or ("svm", "labels"):
                    run = f"{name} {count} {way} {seed}"
                    if not done(asked.results, run, asked.test):
                        row = {"run": run, "set": name, "labels": len(some), "asked": count, "way": way, "seed": seed}
                        measure(asked, row, parts, some)


def measure(asked: argparse.Namespace, row: Row, parts: dict[str, Rows], some: Rows) -> None:
    """One way on one draw, appended."""
    begun = {"benchmark": "few_labels", "name": row["run"], "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    folder = asked.work / row["run"].replace(" ", "-")
    write(folder / "labelled.tsv", some)
    began = time.process_time()
    words = asked.work / f"words-{row['set']}"
    predict = WAYS[row["way"]](Draw(folder, some, [text for text, _ in parts["train"]], words, row["seed"]))
    row |= {"seconds": round(time.process_time() - began, 1)}
    for part in ("valid", "test") if asked.test else ("valid",):
        said = predict([text for text, _ in parts[part]])
        right = sum(one == label for one, (_, label) in zip(said, parts[part], strict=True))
        row[part] = round(100 * right / len(said), 2)
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row), flush=True)


Predict = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Draw:
    """What a way learns from.

    Args:
        folder: of the run, with the file ``labelled.tsv``.
        labelled: the texts that keep their labels.
        texts: all of the training part.
        words: folder of the model of masked words, which the draws of a set share.
    """

    folder: Path
    labelled: Rows
    texts: list[str]
    words: Path
    seed: int


def svm(draw: Draw) -> Predict:
    """TF-IDF and a linear SVM of the labelled texts."""
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = make_pipeline(tfidf(), LinearSVC(random_state=draw.seed))
    model.fit([text for text, _ in draw.labelled], [label for _, label in draw.labelled])
    return lambda texts: [str(one) for one in model.predict(texts)]


def regard_of(draw: Draw, **more: Any) -> Predict:
    """A classifier by the defaults."""
    import regard
    from regard.training.reporters import LineReporter

    model = regard.train(
        task="classification",
        train=draw.folder / "labelled.tsv",
        output=draw.folder / "model",
        seed=draw.seed,
        threads=1,
        device="cpu",
        reporter=LineReporter(sys.stderr),
        **more,
    )
    return lambda texts: [one.label for one in model.classify(texts)]


def labels(draw: Draw) -> Predict:
    """From the labelled texts alone."""
    return regard_of(draw)


def masked(draw: Draw) -> Predict:
    """From a model of masked words, one for each set."""
    import regard
    from regard.training.reporters import LineReporter

    if not (draw.words / "model").exists():
        texts = draw.words / "texts.txt"
        texts.parent.mkdir(parents=True, exist_ok=True)
        texts.write_text("".join(general()) + "".join(f"{text}\n" for text in draw.texts) * 3, encoding="utf-8")
        regard.train(
            task="masked-lm",
            train=texts,
            output=draw.words / "model",
            settings=["data.documents=line"],
            minutes=MINUTES,
            seed=1,
            threads=1,
            device="cpu",
            reporter=LineReporter(sys.stderr),
        )
    return regard_of(draw, start_from=draw.words / "model")


def general() -> Iterable[str]:
    """Lines of running English."""
    for name in GENERAL:
        yield from lzma.decompress((DATA / name).read_bytes()).decode("utf-8").splitlines(keepends=True)


WAYS: dict[str, Callable[[Draw], Predict]] = {
    "svm": svm,
    "labels": labels,
    "masked": masked,
}


def draw(examples: Rows, count: int, seed: int, balanced: bool) -> Rows:
    """So many examples, in order."""
    places = list(range(len(examples)))
    Random(seed).shuffle(places)
    if balanced:
        by_label: dict[str, list[int]] = {}
        for place in places:
            by_label.setdefault(examples[place][1], []).append(place)
        each = max(1, count // len(by_label))
        places = [place for some in by_label.values() for place in some[:each]]
        count = len(places)
    return [examples[place] for place in sorted(places[:count])]


def done(results: Path, run: str, test: bool) -> bool:
    """Whether a run has its score; a test part is scored once."""
    return any(row["run"] == run and ("test" in row or not test) for row in machine.rows_in(results))


if __name__ == "__main__":
    main()
