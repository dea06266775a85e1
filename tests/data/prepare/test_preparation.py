"""Examples become a folder of ids: every one once, in its part; made once, whole or not there, reused only if all fits.

Blocks of examples divided among processes become the same bytes as in one. A sample of pairs counted in blocks gives
the pairs, and the vocabularies, that drawing them one by one gives.
"""

import errno
import io
import itertools
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from regard.config import Recipe, recipe_from
from regard.data.checks.pairs import PairScan
from regard.data.corpora import pairs as pair_files
from regard.data.corpora import scan
from regard.data.corpora.corpus import Corpus, TextPair, no_progress
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.pairs import TwoFiles, open_pairs
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import FlatWindows, RefusedExample
from regard.data.prepare.folder import DataMismatch, PreparedExamples, PreparedPairs
from regard.data.prepare.preparation import count_sample
from regard.data.prepare.split import SHARED, TRAIN, VALIDATION, SplitCorpora
from regard.data.prepare.windowing import ClassEncoder, Frame, LabelIds
from regard.system.errors import Damaged, RegardError
from regard.system.forks import SAFE, ForkedWorkers
from regard.tasks import job_class
from regard.tasks.protocols import InputFiles
from regard.tasks.text.preparation import prepare_texts
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import learn_vocabularies, read_tokenizer, sample
from tests.data.prepare.preparing import WORDS, prepare_pairs, written
from tests.refusals import refused

LABELS = ("a", "b", "c")
PROCESSES = [1, *(pytest.param(count, marks=pytest.mark.skipif(not SAFE, reason="no copies")) for count in (2, 3))]
AWKWARD = "red house boat Ärger 猫 runs far (away) it's d'accord 12".split()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def ids(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


TASKS = ["translation", "classification", "sentence-pairs", "tagging", "language-model", "masked-lm"]
CODED = [[(ids(1, 2, 1 << 32), ids())], RefusedExample("empty", 1), [(ids(3), ids(4)), (ids(), ids(-5, 6))]]


@pytest.mark.parametrize("kept", [*itertools.product([False, True], repeat=3)])
def test_windows_end_to_end_are_those_of_the_examples_that_are_kept(kept: tuple[bool, ...]) -> None:
    nothing, flat = FlatWindows.of([]), FlatWindows.of(CODED)
    assert [len(nothing.windows_B), *(len(array) for side in nothing.sides for array in side)] == [0] * 5
    assert flat.refused == {1: CODED[1]}
    found = flat.keep(np.array(kept))
    left = [[] if isinstance(one, RefusedExample) else one for one, keep in zip(CODED, kept, strict=True) if keep]
    assert found.windows_B.tolist() == [len(one) for one in left]
    for side, (ids_T, lengths_W) in enumerate(found.sides):
        rows = [window[side].tolist() for one in left for window in one]
        assert lengths_W.tolist() == [len(row) for row in rows]
        assert ids_T.tolist() == [id for row in rows for id in row]


def input_files(task: str, folder: Path) -> InputFiles:
    """Some hundred examples of a task, of which some are left out."""
    draws = np.random.default_rng(1)
    texts = [" ".join(draws.choice(AWKWARD, 4)) + f" n{n % 7}" for n in range(230)]
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


def contents_by(values: dict[str, Any], given: InputFiles, processes: int, folder: Path) -> dict[str, bytes]:
    """The files that so many processes write."""
    read, folder = replace(given, processes=lambda: processes), folder / f"data{processes}"
    job = job_class(values["task"]).of_files(read, lambda *_: recipe_from(values), lambda text: None, True)
    replace(job, processes=processes).prepare(folder, lambda stage, n: None)
    return contents(folder)


@pytest.mark.one_of(4)
@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
@pytest.mark.parametrize(("task", "dropout"), [("translation", 0.1), *((task, 0.0) for task in TASKS)])
def test_the_files_do_not_depend_on_the_processes(
    task: str, dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "BATCH", 20)
    monkeypatch.setattr(scan, "CHARACTERS", 900)
    monkeypatch.setattr(pair_files, "BLOCK", 700)
    monkeypatch.setattr("regard.text.lines.HEAD", 300)
    given = input_files(task, tmp_path)
    values = {"task": task, "text": {"vocabulary": 300, "bpe_dropout": dropout}, "data": {"max_tokens": 64}}
    with patch.object(ForkedWorkers, "__enter__", autospec=True, side_effect=ForkedWorkers.__enter__) as started:
        one, *others = (contents_by(values, given, processes, tmp_path) for processes in (1, 2, 3))
    assert one
    assert others == [one, one]
    passes = 3 if task == "translation" else 1  # scanning, counting, encoding
    assert started.call_count == 2 * (passes - bool(dropout))  # with BPE-dropout words are numbered as they come


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SplitCorpora[TextPair]:
    """Lines of two files, then rows of a table; some pairs are not learned from."""
    monkeypatch.setattr(pair_files, "BLOCK", 300)
    monkeypatch.setattr("regard.text.lines.HEAD", 100)
    words = ["red", "Haus", "Ärger", "猫", "it's", "runs"]
    rows = [[f"{words[(n + side) % 6]} {words[n * 7 % 6]} {n % 9}" for side in (0, 1)] for n in range(240)]
    for side, name in enumerate(("a.en", "a.de")):
        content = "".join(f"{row[side]}\n" for row in rows[:120]).encode()
        (tmp_path / name).write_bytes(content + b"f\xfcr\n")
    (tmp_path / "b.tsv").write_text("".join("\t".join(row) + "\n" for row in rows[120:]))
    learned = [TwoFiles(tmp_path / "a.en", tmp_path / "a.de"), open_pairs(tmp_path / "b.tsv")]
    held_B = np.arange(241) % 11 == 3
    marks_B = np.select([held_B, np.roll(held_B, 2)], [VALIDATION, SHARED], TRAIN).astype(np.int8)
    return SplitCorpora(DataScan([PairScan(corpus).run() for corpus in learned]), lambda: marks_B)


@pytest.mark.one_of(3)
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
    marks = np.concatenate([block.marks_B for block in corpora.train_blocks(len)])
    assert corpora.train_count == len(list(corpora.train_examples())) == (marks == TRAIN).sum()


class Full(io.FileIO):
    """A file on a full disk: the error names nothing, as the system's own."""

    def write(self, content: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sentences(count: int) -> list[str]:
    draws = np.random.default_rng(0)
    return [f"{' '.join(draws.choice(WORDS, draws.integers(2, 9)))} {number}" for number in range(count)]


def recipe(**sections: dict[str, object]) -> Recipe:
    text = {"vocabulary": 320, **sections.pop("text", {})}
    return recipe_from({"text": text, "data": {"validation": 20, "max_tokens": 40}, **sections})


@pytest.fixture
def pairs(tmp_path: Path) -> Corpus:
    sources = sentences(200)
    return written(tmp_path, "train", sources, [text.upper() for text in sources])


def decoded(prepared: PreparedPairs, side: str) -> list[str]:
    shards, tokenizer = getattr(prepared, side), prepared.vocabularies.source
    return [tokenizer.decode(shards.gather(0, np.array([number]))[0]) for number in range(shards.count)]


def test_a_full_disk_names_the_file(tmp_path: Path, pairs: Corpus) -> None:
    """Again and again there is no room for one file more, until there is for all."""
    chosen = recipe(text={"bpe_dropout": 0.3, "joint": False}, model={"tie": "two"})
    named, opened, real = list[str](), list[Path](), io.open

    def stand_in(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        opened.extend([Path(path)] if mode == "wb" else [])
        is_full = mode == "wb" and len(opened) == len(named) + 1
        return io.BufferedWriter(Full(path, "wb")) if is_full else real(path, mode, *rest, **more)

    with patch.object(io, "open", stand_in):
        while True:
            opened.clear()
            try:
                prepare_pairs([pairs], chosen, tmp_path / "data")
            except OSError as fault:
                if fault.errno != errno.ENOSPC:
                    raise
                named.append(Path(fault.filename).name)
            else:
                break
    assert len(opened) == len(named) > 15
    assert sorted(named) == sorted(path.name for path in (tmp_path / "data").iterdir())


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_shards_and_validation_hold_the_text(tmp_path: Path, pairs: Corpus, dropout: float) -> None:
    prepared = prepare_pairs([pairs], recipe(text={"bpe_dropout": dropout}), tmp_path / "data")
    kept = prepared.validation_pairs()
    assert len(kept) == 20 == prepared.validation_source.count
    assert decoded(prepared, "validation_source") == [pair[0] for pair in kept]
    train = list(zip(decoded(prepared, "source"), decoded(prepared, "target"), strict=True))
    assert sorted(train + kept) == sorted(pairs.examples())
    assert prepared.pairs == 180
    assert all(prepared.source.gather(0, np.array([n]))[0][-1] == 0 for n in range(180))


def test_pairs_that_do_not_fit_are_left_out_counted_and_named(tmp_path: Path) -> None:
    sources = sentences(60)
    targets = [text.upper() for text in sources]
    sources[3], targets[7], sources[11], targets[12] = "", " ", "wide " * 80, "BOAT " * 80
    prepared = prepare_pairs([written(tmp_path, "train", sources, targets)], recipe(), tmp_path / "data")
    validated = {pair[0] for pair in prepared.validation_pairs()}
    counts = prepared.left_out["counts"]
    too_long = 2 - counts["validation"]  # one of the two may have been drawn to validate
    assert (counts["empty"], counts["too long"]) == (2, too_long)
    assert prepared.left_out["examples"]["empty"] == [f"{tmp_path}/train.en:4", f"{tmp_path}/train.de:8"]
    assert prepared.pairs + len(validated) + 4 == 60
    assert prepared.source.longest <= 40


def test_invalid_bytes_are_mended_and_said(tmp_path: Path, pairs: Corpus) -> None:
    path = tmp_path / "train.de"
    path.write_bytes(path.read_bytes().replace(b"RED", b"R\xc4D", 1))
    number = next(n for n, line in enumerate(path.read_bytes().split(b"\n"), 1) if b"\xc4" in line)
    prepared = prepare_pairs([pairs], recipe(), tmp_path / "data")
    assert prepared.mended == [f"{path}:{number}: 1 line is not valid UTF-8; bytes became U+FFFD"]
    assert sum("\ufffd" in text for text in decoded(prepared, "target") + decoded(prepared, "validation_target")) == 1


def test_what_fits_is_reused_and_what_does_not_is_named(tmp_path: Path, pairs: Corpus) -> None:
    first = prepare_pairs([pairs], recipe(), tmp_path / "data")
    before = {path.name: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    again = prepare_pairs([pairs], recipe(training={"rate": 0.5}), tmp_path / "data")
    assert again.fingerprint == first.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in again.folder.iterdir()} == before
    for other, message in (
        (recipe(text={"vocabulary": 310}), "text.vocabulary"),
        (recipe(seed=2), "seed"),
        (recipe(text={"bpe_dropout": 0.1}), "text.bpe_dropout"),
    ):
        with refused(DataMismatch, tmp_path / "data", message):
            prepare_pairs([pairs], other, tmp_path / "data")
    with refused(DataMismatch, tmp_path / "data", "data"):
        prepare_pairs(
            [written(tmp_path, "other", ["x"] * 30, ["y"] * 30)], recipe(), tmp_path / "data", validation=pairs
        )


def test_damage_is_found_and_the_data_made_again(tmp_path: Path, pairs: Corpus) -> None:
    folder = tmp_path / "data"
    first = prepare_pairs([pairs], recipe(), folder)
    draws = np.random.default_rng(1)
    for path in sorted(folder.iterdir()):
        whole = bytearray(path.read_bytes())
        if path.name != "index.json":
            whole[draws.integers(len(whole))] ^= 1 << int(draws.integers(8))
            path.write_bytes(whole)
            with refused(Damaged, path):
                PreparedPairs(folder)
            whole[:] = b""
        path.write_bytes(whole[: len(whole) // 2])
        with refused(Damaged, path):
            PreparedPairs(folder)
        with pytest.raises(Damaged):
            prepare_pairs([pairs], recipe(), folder)
        shutil.rmtree(folder)
        assert prepare_pairs([pairs], recipe(), folder).fingerprint == first.fingerprint


def test_a_kill_leaves_nothing_that_looks_complete(tmp_path: Path, pairs: Corpus) -> None:
    for last in range(40):
        killed = itertools.chain([None] * last, [KeyboardInterrupt], itertools.repeat(None))
        try:
            with patch.object(os, "fsync", side_effect=killed):
                prepare_pairs([pairs], recipe(), tmp_path / "data")
        except KeyboardInterrupt:
            assert not (tmp_path / "data").exists()
        else:
            break
    assert 5 <= last < 39  # every file is brought to the disk before the folder gets its name
    assert PreparedPairs(tmp_path / "data").pairs == 180
    assert not (tmp_path / "data.partial").exists()


def prepared(
    path: Path, folder: Path, valid: Path | None = None, rests: Any = None, **sections: Any
) -> PreparedExamples:
    data = {"max_tokens": 16, "validation": 6, **sections.pop("data", {})}
    values = {"task": "classification", "data": data, "text": {"vocabulary": 300}, **sections}
    recipe = Recipe.model_validate(values)

    def learned(examples) -> ClassEncoder:
        tokenizer = learn([text for text, _ in examples.train_examples()], recipe.text.vocabulary)
        return ClassEncoder(tokenizer, Frame.of(tokenizer, recipe.data.max_tokens), LabelIds("single", LABELS))

    scanned = DataScan.of([open_labelled(path)], open_labelled(valid) if valid else None)
    return prepare_texts(scanned, recipe, folder, learned, rests or {}, no_progress)


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    draws = np.random.default_rng(1)
    rows = [(" ".join(draws.choice(["red", "house", "boat"], 3)) + f" n{n}", LABELS[n % 3]) for n in range(60)]
    return table(tmp_path / "a.csv", rows)


def said(made: PreparedExamples) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Every text with its label, of the training and of the validation part."""
    tokenizer = read_tokenizer(made.folder / "tokenizer.json")
    parts = (made.text, made.labels), (made.validation_text, made.validation_labels)
    train, validation = (
        [(tokenizer.decode(text.sentence(n)), LABELS[int(labels.sentence(n)[0])]) for n in range(text.count)]
        for text, labels in parts
    )
    return train, validation


def test_every_text_stands_in_one_part_with_its_label_by_seed(texts: Path, tmp_path: Path) -> None:
    (train, validation), (_, other) = (said(prepared(texts, tmp_path / f"{n}", seed=n)) for n in (1, 2))
    assert len(validation) == 6
    assert sorted(train + validation) == sorted(open_labelled(texts).examples())
    assert other != validation


def test_what_waits_is_bounded_by_characters_and_changes_no_byte(texts: Path, tmp_path: Path, monkeypatch) -> None:
    longest = max(len(text + label) for text, label in open_labelled(texts).examples())
    first = prepared(texts, tmp_path / "data")
    encode, encoded = ClassEncoder.encode, list[list[int]]()

    def noted(self: ClassEncoder, examples: Any, part: str) -> Any:
        encoded.append([len(text + label) for text, label in examples])
        return encode(self, examples, part)

    monkeypatch.setattr(scan, "CHARACTERS", 100)
    monkeypatch.setattr(ClassEncoder, "encode", noted)
    assert contents(prepared(texts, tmp_path / "again").folder) == contents(first.folder)
    assert sum(map(len, encoded)) == 60
    assert 100 <= max(map(sum, encoded)) < 100 + longest
    assert sum(sum(batch) >= 100 for batch in encoded) > 5


def test_what_rests_on_something_else_is_refused_by_name(texts: Path, tmp_path: Path) -> None:
    prepared(texts, tmp_path / "data")
    for changed, said in (
        ({"seed": 2}, "seed"),
        ({"data": {"max_tokens": 17}}, "data.max_tokens"),
        ({"data": {"validation": 5}}, "data.validation"),
        ({"text": {"vocabulary": 301}}, "text.vocabulary"),
        ({"text": {"vocabulary": 300, "lowercase": True}}, "text.lowercase"),
        ({"rests": {"kind": "multi"}}, "kind"),
    ):
        with refused(DataMismatch, tmp_path / "data", said):
            prepared(texts, tmp_path / "data", **changed)
    texts.write_text(texts.read_text().replace(",a", ",b", 1))
    with refused(DataMismatch, tmp_path / "data", "data"):
        prepared(texts, tmp_path / "data")


def test_given_validation_takes_the_place_of_a_split_and_is_not_learned_from(texts: Path, tmp_path: Path) -> None:
    valid = table(tmp_path / "v.csv", [("red moon", "c"), ("a boat", "a"), *[("zz zz", "c")] * 9])
    train, validation = said(prepared(texts, tmp_path / "data", valid))
    assert train == list(open_labelled(texts).examples())
    assert validation == list(open_labelled(valid).examples())
    tokenizer = read_tokenizer(tmp_path / "data" / "tokenizer.json")
    assert not any("zz" in tokenizer.piece(id) for id in range(tokenizer.size))


def test_what_is_left_out_is_counted_and_named(texts: Path, tmp_path: Path) -> None:
    texts.write_text(texts.read_text() + '" ",a\nhello,\n')
    valid = table(tmp_path / "v.csv", [("red", "a"), ("boat", ""), ("house", "b")])
    made = prepared(texts, tmp_path / "data", valid)
    places = {"empty": [f"{texts}:62"], "no label": [f"{texts}:63"], "validation": [f"{valid}:3"]}
    assert made.left_out["examples"] == places
    assert {kind: made.left_out["counts"][kind] for kind in places} == dict.fromkeys(places, 1)
    assert (made.count, made.validation_text.count) == (60, 2)


def test_where_nothing_is_left_or_all_is_alike_the_file_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [(f"text {n}", "") for n in range(20)])
    with refused(RegardError, path):
        prepared(path, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    good = table(tmp_path / "b.csv", [(f"text {n}", "a") for n in range(20)])
    with refused(RegardError, path, "valid"):
        prepared(good, tmp_path / "data", path)
    alike = table(tmp_path / "c.csv", [("text", "a")] * 40)
    with refused(RegardError, alike, "40", "valid"):
        prepared(alike, tmp_path / "data")


def test_a_long_text_is_several_examples_with_one_label(texts: Path, tmp_path: Path) -> None:
    valid = table(tmp_path / "v.csv", [(" ".join(["house"] * 60 + ["boat"]), "b"), ("red", "c")])
    made = prepared(texts, tmp_path / "data", valid)
    labels = [label for _, label in said(made)[1]]
    assert len(labels) > 2
    assert labels == ["b"] * (len(labels) - 1) + ["c"]
    assert made.validation_text.longest <= 16
    assert made.validation_wholes.windows_B.tolist() == [len(labels) - 1, 1]
    assert (made.wholes.count, made.wholes.windows_B.sum()) == (60, made.count)
    old = prepared(texts, tmp_path / "data", valid)
    del old.index["wholes"]  # what an earlier version prepared is refused where it matters
    with refused(RegardError, tmp_path / "data", "resume"):
        _ = old.wholes
