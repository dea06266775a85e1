"""What ruins a translator is found, with its file and line; sound data is called usable."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.checks.findings import PATTERNS, Finding, Report
from regard.data.checks.pairs import check_pairs
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.pairs import open_pairs
from regard.text.tokenizers.byte_pieces import LONGEST
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import learn_vocabularies

WORDS = "the a red house boat sails tired animal street wide while under seven children play quietly".split()


def sound(count: int = 1500) -> list[tuple[str, str]]:
    draws = random.Random(1)
    sources = [" ".join(draws.choices(WORDS, k=draws.randint(3, 25))) + f" {number}." for number in range(count)]
    return [(text, f"Übersetzt {text.upper()}") for text in sources]


def write(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> Corpus:
    for side, ending in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{ending}").write_bytes(text.encode("utf-8", "surrogateescape"))
    return open_pairs(folder / f"{name}.en", folder / f"{name}.de")


def check(folder: Path, pairs: list[tuple[str, str]], **options: Any) -> Report:
    return check_pairs([write(folder, pairs)], **options)


def found(report: Report, kind: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.kind == kind]
    return finding


def test_sound_data_is_usable(tmp_path: Path) -> None:
    report = check(tmp_path, sound())
    assert (report.usable, report.pairs, report.verdict) == (True, 1500, "Usable: 1,500 pairs.")
    assert [finding.kind for finding in report.findings if finding.kind != "lower case"] == []


LINE = [
    ("empty", 0, ""),
    ("empty", 1, "  "),
    ("tab", 0, "a\tb"),
    ("carriage return", 1, "a\rb c"),
    ("control", 0, "a\x01b\x85c"),
    ("mojibake", 1, "Das MÃ¤dchen lÃ¤uft â€“ schnell"),
    ("replacement", 1, "Das M\ufffddchen"),
    ("tokenised", 0, "it &apos;s a so @-@ called thing"),
    ("invalid UTF-8", 1, "Das M\udce4dchen"),
    ("ratio", 1, "word " * 200),
    ("too long", 0, "word " * 400),
]


@pytest.mark.one_of(9)
@pytest.mark.parametrize(("kind", "side", "text"), LINE)
def test_a_bad_line_is_found_with_its_place(tmp_path: Path, kind: str, side: int, text: str) -> None:
    pairs = sound()
    pairs[700] = (text, pairs[700][1]) if side == 0 else (pairs[700][0], text)
    finding = found(check(tmp_path, pairs), kind)
    assert finding.count == 1
    assert finding.share == pytest.approx(1 / 3000 if kind in PATTERNS else 1 / 1500)
    file, line, excerpt = finding.examples[0]
    assert line == 701
    if kind not in ("ratio", "too long"):
        assert file == str(tmp_path / ("train.en", "train.de")[side])
        assert excerpt.isprintable()
    assert finding.severity != "fatal" or kind == "invalid UTF-8"


@pytest.mark.parametrize("kind", ["tab", "mojibake"])
def test_shares_of_lines_are_of_the_lines_of_both_sides(tmp_path: Path, kind: str) -> None:
    mark = {"tab": "\t", "mojibake": " MÃ¤dchen"}[kind]
    finding = found(check(tmp_path, [(left + mark, right + mark) for left, right in sound(40)]), kind)
    assert (finding.count, finding.share) == (80, 1.0)
    assert "80 lines (100%)" in finding.sentence
    assert finding.severity == ("warning" if kind == "tab" else "fatal")
    few = [(left + mark * (number < 6), right) for number, (left, right) in enumerate(sound(40))]
    assert found(check(tmp_path, few), kind).share == 6 / 80


def test_duplicates_and_copies(tmp_path: Path) -> None:
    pairs = sound()
    pairs[10] = pairs[20] = pairs[5]
    pairs[30] = (pairs[30][0], pairs[30][0].upper())
    report = check(tmp_path, pairs)
    assert (found(report, "duplicate").count, found(report, "copy").count) == (2, 1)
    assert [example[1] for example in found(report, "duplicate").examples] == [11, 21]
    assert found(report, "copy").examples[0][1] == 31


def test_the_same_pair_in_another_direction_is_no_duplicate(tmp_path: Path) -> None:
    lines = "".join(f"{n} is a number\n" for n in range(100))
    for code in ("en", "de", "fr"):
        (tmp_path / f"a.{code}").write_text(lines)
    to_de, to_fr = (open_pairs(tmp_path / "a.en", tmp_path / f"a.{code}") for code in ("de", "fr"))
    assert "duplicate" not in {one.kind for one in check_pairs([to_de, to_fr]).findings}
    assert found(check_pairs([to_de, to_fr, to_fr]), "duplicate").count == 100


def test_pairs_that_another_corpus_holds_too_are_duplicates(tmp_path: Path) -> None:
    one, pairs = write(tmp_path, sound(100)), sound(300)[100:]
    pairs[7] = (sound(100)[40][0].upper(), sound(100)[40][1])
    pairs[8] = ("", "")
    report = check_pairs([one, write(tmp_path, pairs, "more")])
    assert (found(report, "duplicate").count, found(report, "duplicate").share) == (1, 1 / 300)
    assert [example[:2] for example in found(report, "duplicate").examples] == [(str(tmp_path / "more.en"), 8)]
    twice = found(check_pairs([one, one]), "duplicate")
    assert (twice.count, twice.share, twice.severity, twice.examples[0][1]) == (100, 0.5, "warning", 1)


def test_line_counts_that_differ(tmp_path: Path) -> None:
    corpus, target = write(tmp_path, sound()), tmp_path / "train.de"
    target.write_bytes(b"".join(target.read_bytes().splitlines(keepends=True)[:-7]))
    report = check_pairs([corpus])
    assert not report.usable
    assert all(part in found(report, "misaligned").sentence for part in ("has 1,500 lines", "has 1493"))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("lost", [0, 3, 700])
def test_a_lost_line_is_located(tmp_path: Path, lost: int) -> None:
    pairs = sound(3000)
    targets = [target for _, target in pairs]
    targets = [*targets[:lost], *targets[lost + 1 :], "noch ein Satz"]
    report = check(tmp_path, list(zip((source for source, _ in pairs), targets, strict=True)))
    assert not report.usable
    finding = found(report, "alignment")
    assert "shifted by a line" in finding.sentence
    assert abs(finding.examples[0][1] - 1 - lost) <= 5


@pytest.mark.long(minutes=0.04)
def test_shuffled_sorted_and_foreign_sides_are_not_usable_but_pairs_sorted_by_length_are(tmp_path: Path) -> None:
    pairs = sound(3000)
    assert check(tmp_path, sorted(pairs, key=lambda pair: len(pair[0]))).usable
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    shuffled = random.Random(2).sample(targets, len(targets))
    for other in (shuffled, sorted(targets), sorted(targets, key=len)):
        report = check(tmp_path, list(zip(sources, other, strict=True)))
        assert not report.usable
        assert "translations of each other" in found(report, "alignment").sentence


def test_leaks_into_validation_and_test(tmp_path: Path) -> None:
    pairs = sound()
    clean = [("a sentence of its own", "ein eigener Satz"), ("another quite new one", "noch ein neuer")] * 20
    one_sided = [*clean, (pairs[3][0].upper() + " ", "etwas anderes")]
    leaky = [*clean[:20], *pairs[:20]]
    train = write(tmp_path, pairs)
    others = {"validation": write(tmp_path, one_sided, "valid"), "test": write(tmp_path, leaky, "test")}
    report = check_pairs([train], others)
    assert not report.usable
    leak, sentence = found(report, "leak"), found(report, "sentence leak")
    assert (leak.count, leak.severity, leak.examples[0][:2]) == (20, "fatal", (str(tmp_path / "test.en"), 21))
    assert "test are in the training data" in leak.sentence
    assert (sentence.count, sentence.severity) == (1, "note")


def test_words_the_vocabulary_does_not_know(tmp_path: Path) -> None:
    vocabularies = learn_vocabularies(sound(200), 400)
    pairs = [(source, "быстрая лиса прыгает через собаку " * (1 + len(source) // 40)) for source, _ in sound()]
    finding = found(check(tmp_path, pairs, vocabularies=vocabularies), "bytes")
    assert finding.severity == "fatal"
    assert "лиса" in finding.sentence
    assert [example[:2] for example in finding.examples] == [(str(tmp_path / "train.de"), line) for line in (1, 2, 3)]
    pairs = sound(60)
    for number, side in ((20, 0), (20, 1), (41, 1), (50, 0)):
        pairs[number] = (pairs[number][0] + " лиса" * (side == 0), pairs[number][1] + " лиса" * (side == 1))
    examples = found(check(tmp_path, pairs, vocabularies=vocabularies), "bytes").examples
    files = [str(tmp_path / f"train.{ending}") for ending in ("en", "de", "de")]
    assert [example[:2] for example in examples] == list(zip(files, (21, 21, 42), strict=True))


def test_wrong_encodings(tmp_path: Path) -> None:
    pairs = sound()
    write(tmp_path, pairs)
    both = open_pairs(tmp_path / "train.en", tmp_path / "train.de")
    targets = "".join(f"{target}\n" for _, target in pairs)
    (tmp_path / "train.de").write_bytes(targets.encode("latin-1"))
    report = check_pairs([both])
    assert not report.usable
    assert "WINDOWS-1252" in found(report, "invalid UTF-8").sentence
    (tmp_path / "train.de").write_bytes(targets.encode("utf-16"))
    assert "UTF-16" in found(check_pairs([both]), "unreadable").sentence
    (tmp_path / "train.de").write_text(targets.encode().decode("cp1252", "replace"), encoding="utf-8")
    assert found(check_pairs([both]), "mojibake").severity == "fatal"


def test_small_empty_and_absent(tmp_path: Path) -> None:
    report = check(tmp_path, sound(50))
    assert found(report, "few pairs").severity == "warning"
    values = json.loads(json.dumps(report.to_dict()))
    assert values["usable"] is True
    assert values["findings"][0].keys() == {"kind", "severity", "count", "share", "examples", "sentence"}
    assert not check(tmp_path, sound(1)).usable
    assert not check(tmp_path, []).usable
    assert not check_pairs([open_pairs(tmp_path / "absent.en", tmp_path / "train.de")]).usable


def test_a_line_without_end_costs_no_more_than_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def counted(self: Tokenizer, texts: list[str]) -> list[np.ndarray]:
        encoded.extend(map(len, texts))
        return [np.zeros(1, dtype=np.int64) for _ in texts]

    monkeypatch.setattr(Tokenizer, "ids_batch", counted)
    pairs = sound(50)
    pairs[7] = ("ab" * 1_000_000, "ab cd " * 300_000)
    finding = found(check(tmp_path, pairs), "too long")
    assert finding.examples[0][1] == 8
    assert max(encoded) <= LONGEST + 1
