"""Blocks of examples divided among processes become the same bytes as in one."""

import errno
import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.checks.pairs import PairScan
from regard.data.corpora import pairs, scan
from regard.data.corpora.corpus import TextPair
from regard.data.corpora.pairs import TwoFiles, open_pairs
from regard.data.corpora.scan import Block, DataScan, ExampleBlock
from regard.data.prepare.encoders import Encoded, Encoder, FlatWindows, RefusedExample
from regard.data.prepare.preparation import BlockEncoder, count_sample
from regard.data.prepare.split import TRAIN, Split, SplitCorpora
from regard.runs.datasets import training_job
from regard.system.forks import SAFE, ForkedWorkers
from regard.tasks.protocols import InputFiles
from regard.text.tokenizers.vocabulary import learn_vocabularies, sample

PROCESSES = [1, *(pytest.param(count, marks=pytest.mark.skipif(not SAFE, reason="no copies")) for count in (2, 3))]
WORDS = "red house boat Ärger 猫 runs far (away) it's d'accord 12".split()


def ids(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


TASKS = ["classification", "sentence-pairs", "tagging", "language-model", "masked-lm"]
CODED = [[(ids(1, 2, 1 << 32), ids())], RefusedExample("empty", 1), [(ids(3), ids(4)), (ids(), ids(-5, 6))]]


@pytest.mark.parametrize("kept", [*itertools.product([False, True], repeat=3)])
def test_windows_end_to_end_are_those_of_the_examples_that_are_kept(kept: tuple[bool, ...]) -> None:
    flat = FlatWindows.of(CODED)
    assert flat.refused == {1: CODED[1]}
    found = flat.keep(np.array(kept))
    left = [[] if isinstance(one, RefusedExample) else one for one, keep in zip(CODED, kept, strict=True) if keep]
    assert found.windows_B.tolist() == [len(one) for one in left]
    for side, (ids_T, lengths_W) in enumerate(found.sides):
        rows = [window[side].tolist() for one in left for window in one]
        assert lengths_W.tolist() == [len(row) for row in rows]
        assert ids_T.tolist() == [id for row in rows for id in row]


def test_nothing_is_encoded_as_nothing() -> None:
    flat = FlatWindows.of([])
    assert [len(flat.windows_B), *(len(array) for side in flat.sides for array in side)] == [0] * 5


class Recording(Encoder[TextPair]):
    """Ids are the lengths of the texts; texts of an odd length are refused."""

    example = TextPair
    keeps_validation = True
    piece_sizes = (99,)

    def sizes(self, part: str) -> tuple[int, int]:
        return 99, 1 << 20

    def encode(self, examples: Sequence[TextPair], part: str) -> list[Encoded]:
        return [RefusedExample("odd", 0) if len(a) % 2 else [(ids(len(a)), ids(len(b), len(b)))] for a, b in examples]

    def fields(self, counts: Sequence[int]) -> dict[str, Any]:
        return {}

    def save(self, folder: Path) -> None:
        pass

    sha256 = ""


def test_a_block_is_the_same_here_and_in_another_process() -> None:
    pairs = [TextPair("x" * n, "é" * n) for n in range(12)]
    marks_B = np.array([0, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0], np.int8)  # the corpus has grown by one
    block = Block(None, ExampleBlock(7, pairs), marks_B)  # type: ignore[arg-type]
    work, other, whole = (BlockEncoder(Recording(), False) for _ in range(3))
    (train, held), noted = work.do(block)
    sent = other.unpack_found(other.pack_found(other.do(other.unpack_item(other.pack_item(block)))))
    assert noted == sent[1] == []
    for part, found in zip((train, held), sent[0], strict=True):
        assert (part.seen, list(part.refused), list(part.texts)) == (found.seen, list(found.refused), list(found.texts))
        for (one, lengths), (more, others) in zip(part.sides, found.sides, strict=True):
            assert (one.dtype, one.tolist(), lengths.tolist()) == (more.dtype, more.tolist(), others.tolist())
    shared = "shared with validation"
    assert list(train.refused) == [(1, "odd", 0), (3, "odd", 0), (6, shared, 0), (7, "odd", 0)]
    assert list(held.refused) == [(5, "odd", 0), (9, "odd", 0)]
    assert train.sides[0][0].tolist() == [0, 4, 8, 10]
    assert (train.sides[0][0].dtype, train.sides[1][0].dtype) == (np.dtype("<u2"), np.dtype("<u4"))
    assert list(held.texts) == [b"xx\n", "éé\n".encode()]
    whole.merge(work.content)
    whole.merge(other.content)
    assert whole.words.counts == {word: 2 * count for word, count in work.words.counts.items()}
    assert (whole.counts[0] == 2 * work.counts[0]).all()
    assert work.counts[0].sum() == 4


def written(task: str, folder: Path) -> InputFiles:
    """Some hundred examples of a task, of which some are left out."""
    draws = np.random.default_rng(1)
    texts = [" ".join(draws.choice(WORDS, 4)) + f" n{n % 7}" for n in range(230)]
    texts[5] = texts[100] = ""
    texts[17] = "long " * 90
    labels = ["" if n == 50 else "ab"[n % 2] for n in range(230)]
    if task == "translation":
        for name, lines in (("a.en", texts), ("a.de", texts[::-1])):
            (folder / name).write_text("".join(f"{line}\n" for line in lines))
        return InputFiles(source=[folder / "a.en"], target=[folder / "a.de"])
    path = folder / "a.txt"
    if task == "tagging":
        path.write_text("".join("".join(f"{w} B-{w[0]}\n" for w in text.split()[:9]) + "\n" for text in texts))
    elif task in ("language-model", "masked-lm"):
        path.write_text("\n\n".join(text for text in texts if text))
    else:
        path = folder / "a.tsv"
        columns = [texts, texts[::-1], labels] if task == "sentence-pairs" else [texts, labels]
        rows = zip(*columns, strict=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return InputFiles([path])


def prepared(values: dict[str, Any], given: InputFiles, processes: int, folder: Path) -> dict[str, bytes]:
    """The files that so many processes write."""
    read, folder = replace(given, processes=lambda: processes), folder / f"data{processes}"
    job = training_job(values["task"], read, lambda *_: recipe_from(values), lambda text: None, True)
    replace(job, processes=processes).prepare(folder, lambda stage, n: None)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.one_of(2)
@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
@pytest.mark.parametrize(
    ("task", "dropout"),
    [("translation", 0.0), ("translation", 0.1), *((task, 0.0) for task in TASKS)],
)
def test_the_files_do_not_depend_on_the_processes(
    task: str, dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "BATCH", 20)
    monkeypatch.setattr(scan, "CHARACTERS", 900)
    monkeypatch.setattr(pairs, "BLOCK", 700)
    monkeypatch.setattr("regard.text.lines.HEAD", 300)
    started = []
    monkeypatch.setattr(ForkedWorkers, "__enter__", _noting(ForkedWorkers.__enter__, started))
    given = written(task, tmp_path)
    values = {"task": task, "text": {"vocabulary": 300, "bpe_dropout": dropout}, "data": {"max_tokens": 64}}
    one, *others = (prepared(values, given, processes, tmp_path) for processes in (1, 2, 3))
    assert one
    assert others == [one, one]
    passes = 3 if task == "translation" else 1  # scanning, counting, encoding
    assert len(started) == 2 * (passes - bool(dropout))  # with BPE-dropout words are numbered as they come


def _noting(enter: Any, started: list[Any]) -> Any:
    def noted(self: Any) -> Any:
        started.append(self)
        return enter(self)

    return noted


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
def test_where_no_process_can_be_started_one_prepares_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory() -> int:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(pairs, "BLOCK", 700)
    monkeypatch.setattr("regard.text.lines.HEAD", 300)
    given, values = written("translation", tmp_path), {"task": "translation", "text": {"vocabulary": 300}}
    one = prepared(values, given, 1, tmp_path)
    monkeypatch.setattr(os, "fork", no_memory)
    assert prepared(values, given, 2, tmp_path) == one


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SplitCorpora[TextPair]:
    """Lines of two files, then rows of a table; some pairs are not learned from."""
    monkeypatch.setattr(pairs, "BLOCK", 300)
    monkeypatch.setattr("regard.text.lines.HEAD", 100)
    words = ["red", "Haus", "Ärger", "猫", "it's", "runs"]
    rows = [[f"{words[(n + side) % 6]} {words[n * 7 % 6]} {n % 9}" for side in (0, 1)] for n in range(240)]
    for side, name in enumerate(("a.en", "a.de")):
        content = "".join(f"{row[side]}\n" for row in rows[:120]).encode()
        (tmp_path / name).write_bytes(content + b"f\xfcr\n")
    (tmp_path / "b.tsv").write_text("".join("\t".join(row) + "\n" for row in rows[120:]))
    learned = [TwoFiles(tmp_path / "a.en", tmp_path / "a.de"), open_pairs(tmp_path / "b.tsv")]
    held_B = np.arange(241) % 11 == 3
    return SplitCorpora(
        DataScan([PairScan(corpus).run() for corpus in learned]), lambda: Split(held_B, np.roll(held_B, 2))
    )


@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize(
    ("count", "joint", "units"), [(50, True, "pieces"), (9999, False, "characters"), (1, True, "pieces")]
)
def test_the_sample_is_what_drawing_gives(corpora, processes: int, count: int, joint: bool, units: str) -> None:
    text = {"sample": count, "joint": joint, "units": units, "vocabulary": 300}
    recipe = recipe_from({"text": text, "model": {"tie": "three" if joint else "two"}}).text
    wanted = sample(corpora.train_examples(), count, 5)
    counter, given = count_sample(corpora, recipe, 10, 5, processes)
    assert given == wanted[:: 1 + len(wanted) // 10]
    found = counter.learn(300)
    assert found.sha256 == learn_vocabularies(wanted, 300, joint, recipe.normalisation, units=recipe.units).sha256
    assert [note.invalid_lines for note in corpora.notes[:2]] == [[121]] * 2


def test_as_many_pairs_are_learned_from_as_there_are(corpora) -> None:
    assert corpora.train_count == len(list(corpora.train_examples()))
    marks = np.concatenate([block.marks_B for block in corpora.train_blocks(len)])
    assert (marks == TRAIN).sum() == corpora.train_count
