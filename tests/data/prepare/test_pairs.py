"""Prepared data: what stands in the shards is the text, made once, whole or not there, reused only if all fits."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from regard.config import Recipe, recipe_from
from regard.data.corpora.corpus import Corpus
from regard.data.prepare.folder import DataMismatch, PreparedPairs
from regard.system.errors import Damaged
from tests.data.prepare.full_disk import named_when_full
from tests.data.prepare.preparing import WORDS, prepare_pairs, written
from tests.refusals import refused


def texts(count: int, seed: int = 0) -> list[str]:
    draws = np.random.default_rng(seed)
    return [f"{' '.join(draws.choice(WORDS, draws.integers(2, 9)))} {number}" for number in range(count)]


def recipe(**sections: dict[str, object]) -> Recipe:
    text = {"vocabulary": 320, **sections.pop("text", {})}
    return recipe_from({"text": text, "data": {"validation": 20, "max_tokens": 40}, **sections})


@pytest.fixture
def pairs(tmp_path: Path) -> Corpus:
    sources = texts(200)
    return written(tmp_path, "train", sources, [text.upper() for text in sources])


def decoded(prepared: PreparedPairs, side: str) -> list[str]:
    shards, tokenizer = getattr(prepared, side), prepared.vocabularies.source
    return [tokenizer.decode(shards.gather(0, np.array([number]))[0]) for number in range(shards.count)]


def test_a_full_disk_names_the_file(tmp_path: Path, pairs: Corpus) -> None:
    chosen = recipe(text={"bpe_dropout": 0.3, "joint": False}, model={"tie": "two"})
    named = named_when_full(lambda: prepare_pairs([pairs], chosen, tmp_path / "data"))
    assert sorted(named) == sorted(path.name for path in (tmp_path / "data").iterdir())
    assert len(named) > 15


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
    sources = texts(60)
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


def test_given_validation_is_used_whole(tmp_path: Path, pairs: Corpus) -> None:
    held = written(tmp_path, "valid", ["a new one", "another"], ["ein neuer", "noch einer"])
    prepared = prepare_pairs([pairs], recipe(), tmp_path / "data", validation=held)
    assert prepared.validation_pairs() == list(held.examples())
    assert prepared.pairs == 200


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


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, pairs: Corpus) -> None:
    one = prepare_pairs([pairs], recipe(text={"bpe_dropout": 0.2}), tmp_path / "one")
    two = prepare_pairs([pairs], recipe(text={"bpe_dropout": 0.2}), tmp_path / "two")
    assert {path.name: path.read_bytes() for path in one.folder.iterdir()} == {
        path.name: path.read_bytes() for path in two.folder.iterdir()
    }


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


def test_a_kill_leaves_nothing_that_looks_complete(tmp_path: Path, pairs: Corpus, monkeypatch) -> None:
    syncs = 0
    real = os.fsync

    def counted(descriptor: int) -> None:
        nonlocal syncs
        syncs -= 1
        if syncs == 0:
            raise KeyboardInterrupt
        real(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    last = 0
    for last in range(1, 40):
        syncs = last
        try:
            prepare_pairs([pairs], recipe(), tmp_path / "data")
        except KeyboardInterrupt:
            assert not (tmp_path / "data").exists()
        else:
            break
    assert last > 5  # every file is brought to the disk before the folder gets its name
    monkeypatch.undo()
    assert PreparedPairs(tmp_path / "data").pairs == 180
    assert not (tmp_path / "data.partial").exists()
