"""Reading beside other tools: the parts are everybody's, predictions are scored alike, and nothing is run twice."""

import json
import os
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from regard.tasks import model_class
from regard.tasks.metrics.labels import tag_scores

RUNNER = """
from worker import reader, serve

def learn(job):
    labels = [one["label"] for one in job.examples("train")]
    (job.own / "model").write_text(max(sorted(set(labels)), key=labels.count))
    return {"course": [[1.0, 50.0], [2.0, 75.0]]}

def load(job):
    label = (job.own / "model").read_text()
    return lambda examples: [label for _ in examples]

serve(reader(learn, load))
"""


@pytest.fixture
def splits(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """A set of labels, one of tags and one of entities in one file, as only sets."""
    found: ModuleType = load("reading_splits")
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    lines = [f"{'a' if place % 3 else 'b'}\tword {place}\n" for place in range(30)]
    (folder / "train.tsv").write_text("".join(lines))
    (folder / "test.tsv").write_text("a\tone\noos\tnothing\nb\ttwo\na\tthree\na\tfour\n")
    (folder / "whole.conll").write_text("".join(f"w{place} I-PER\nx I-PER\ny O\n\n" for place in range(23)))
    tree = "1\tdo\t_\tAUX\t_\t_\t_\t_\t_\tSpaceAfter=No\n2\tn't\t_\tPART\t_\t_\t_\t_\t_\t_\n"
    for part in found.PARTS:
        (folder / f"{part}.conllu").write_text(f"{tree}3\tgo\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n")
    monkeypatch.setattr(found, "DATA", tmp_path / "data")
    sets = {
        "labels": found.Set("classification", "toy", ("train.tsv",), (), ("test.tsv",), "2,1", "accuracy"),
        "tags": found.Set("tagging", "toy", ("train.conllu",), ("valid.conllu",), ("test.conllu",), None, "accuracy"),
        "folds-1": found.entities_of_one_file("toy", "whole.conll", 1),
        "folds-2": found.entities_of_one_file("toy", "whole.conll", 2),
    }
    monkeypatch.setattr(found, "SETS", sets)
    monkeypatch.setattr(found, "FOLDS", {"folds": ("folds-1", "folds-2")})
    return found


@pytest.fixture
def conductor(splits: ModuleType, load: Any, runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The benchmark with a runner that says the commonest label."""
    found: ModuleType = load("reading_vs_peers")
    path = runner(RUNNER)
    peers = {name: found.Reader(name, name, path, None, ("numpy",)) for name in ("regard", "other")}
    monkeypatch.setattr(found, "PEERS", peers)

    def conduct(*words: str) -> int:
        places = ["--work", str(tmp_path / "work"), "--results", str(tmp_path / "rows.jsonl")]
        core = str(min(os.sched_getaffinity(0)))
        monkeypatch.setattr(sys, "argv", ["reading_vs_peers.py", "--core", core, *places, *words])
        return int(found.main())

    return conduct


def rows_in(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return [row for line in lines for row in json.loads(line)["rows"]]


def test_every_sentence_of_one_file_is_tested_in_one_fold(load: Any) -> None:
    cut, whole = load("reading_splits").Cut, list(range(103))
    tested = []
    for fold in range(1, 6):
        parts = cut("file", fold).parts(whole)
        assert sorted(place for part in parts.values() for place in part) == whole
        assert len(parts["valid"]) == (len(parts["train"]) + len(parts["valid"])) // 10
        assert parts == cut("file", fold).parts(whole)
        tested += parts["test"]
    assert tested == whole


def test_the_parts_are_the_same_for_all_and_written_once(splits: ModuleType, tmp_path: Path) -> None:
    for name, data in splits.SETS.items():
        folder = splits.splits_of(name, tmp_path)
        for part in splits.PARTS:
            found = [json.loads(line) for line in (folder / f"{part}.jsonl").read_text().splitlines()]
            corpus = model_class(data.task).open_corpus(folder / f"{part}{splits.ending(data)}", None)
            for example, read in zip(found, corpus.examples(), strict=True):
                if data.task == "classification":
                    assert (example["text"], example["label"]) == tuple(read)
                else:
                    assert (example["words"], example["tags"]) == (read.words, list(read.tags))
                    assert example["spaces"] == splits.blanks(read.text, read.places)
        (folder / "train.jsonl").write_text("")
        assert splits.splits_of(name, tmp_path) == folder
        assert not (folder / "train.jsonl").read_text()


def test_the_counts_of_examples_add_up_to_the_score_of_all(load: Any) -> None:
    bootstrap, draw = load("bootstrap"), random.Random(3)
    names = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    sides = [[draw.choices(names, k=9) for _ in range(40)] for _ in range(2)]
    wanted = tag_scores(*sides, "bio")
    assert wanted.spans is not None
    assert bootstrap.scores_of(bootstrap.counts_of(*sides, True).sum(0)) == pytest.approx(wanted.spans.spans.f1)
    plain = tag_scores(*sides, "none").accuracy
    assert bootstrap.scores_of(bootstrap.counts_of(*sides, False).sum(0)) == pytest.approx(plain)
    assert bootstrap.counts_of(["a", "b"], ["a", "a"], False).tolist() == [[1, 1], [0, 1]]
    counts_NK = bootstrap.counts_of(*sides, True)
    assert np.array_equal(bootstrap.unpacked(bootstrap.packed(counts_NK)), counts_NK)


def test_the_interval_of_a_difference_is_that_of_its_standard_error(load: Any) -> None:
    bootstrap, draw = load("bootstrap"), np.random.default_rng(5)
    right_N, other_N = draw.random(800) < 0.8, draw.random(800) < 0.7
    sides = [np.stack([side_N, np.ones(800)], 1).astype(np.int64) for side_N in (right_N, other_N)]
    lead, low, high = bootstrap.paired([sides[0]], [sides[1]])
    each_N = 100 * (right_N.astype(float) - other_N)
    half = 1.96 * each_N.std() / 800**0.5
    assert lead == pytest.approx(each_N.mean())
    assert (low, high) == pytest.approx((lead - half, lead + half), abs=0.15 * half)
    assert bootstrap.paired([sides[0]], [sides[0], sides[0]]) == (0.0, 0.0, 0.0)
    mean, *_ = bootstrap.paired([sides[0], sides[1]], [sides[1]])
    assert mean == pytest.approx(lead / 2)


@pytest.mark.long(minutes=0.04)
def test_a_difference_is_told_once_for_the_same_runs(conductor: Any, tmp_path: Path) -> None:
    words = ("--set", "labels", "--test")
    assert conductor(*words, "--seeds", "1", "2") == 0
    told = [row for row in rows_in(tmp_path) if row["part"] == "difference"]
    assert [(row["peer"], row["difference"], row["low"], row["high"]) for row in told] == [("other", 0.0, 0.0, 0.0)]
    assert told[0]["ours"] == told[0]["theirs"] == {"1": 75.0, "2": 75.0}
    conductor(*words, "--seeds", "1", "2")
    assert len(rows_in(tmp_path)) == 13
    conductor(*words, "--seeds", "3", "--peer", "other")
    assert [row["part"] for row in rows_in(tmp_path)[13:]] == ["train", "valid", "test", "difference"]
