"""Whatever silently ruins a classifier of texts or images is found, with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.checks.findings import Finding
from regard.data.checks.labels import LabelReport, check_images, check_labels
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.images import open_images
from regard.data.corpora.labelled import Kind, open_labelled

Pairs = list[tuple[str, str]]
GOOD = [(f"text {number}", "ab"[number % 2]) for number in range(100)]


def rows(folder: Path, pairs: Pairs, name: str = "a.tsv") -> Corpus:
    (folder / name).write_text("".join(f"{text}\t{label}\n" for text, label in pairs), encoding="utf-8")
    return open_labelled(folder / name)


def check(folder: Path, pairs: Pairs, kind: Kind = "single", **others: Corpus) -> LabelReport:
    return check_labels([rows(folder, pairs)], kind, {f"the {name} texts": other for name, other in others.items()})


def found(report: LabelReport) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def places(finding: Finding) -> list[tuple[str, int]]:
    return [(Path(file).name, line) for file, line, _ in finding.examples]


def test_a_good_set_shows_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, GOOD)
    assert (report.findings, report.usable) == ((), True)
    assert report.verdict == "Usable: 100 texts. 2 labels."
    assert report.labels == {"a": 50, "b": 50} == json.loads(json.dumps(report.to_dict()))["labels"]
    sizes = (report.pairs, report.source_characters, report.target_characters)
    assert sizes == (100, sum(len(text) for text, _ in GOOD) / 100, 1.0)


def test_every_kind_of_trouble_is_found_where_it_stands(tmp_path: Path) -> None:
    bad = [
        ("text 0", "b"),  # line 101: contradicts line 1
        ("TEXT 2", "a"),  # 102: repeats line 3
        ("", "a"),  # 103
        ("x", ""),  # 104
        ("y", "A"),  # 105
        ("sch\u00c3\u00b6n", "b"),  # 106
    ]
    report = check(tmp_path, GOOD + bad)
    by_kind = found(report)
    lines = {"conflict": [1, 101], "duplicate": [102], "empty": [103], "no label": [104], "mojibake": [106]}
    lines |= {"rare label": [105], "like labels": [1, 105]}
    assert {kind: [line for _, line in places(finding)] for kind, finding in by_kind.items()} == lines
    assert (by_kind["conflict"].count, by_kind["like labels"].count) == (2, 53)
    assert "'a', 'A'" in by_kind["like labels"].sentence
    assert by_kind["conflict"].examples[1] == (str(tmp_path / "a.tsv"), 101, "b ← text 0")
    assert (report.usable, report.verdict) == (True, "Usable, with 5 warnings: 106 texts. 3 labels.")


def test_texts_are_compared_over_all_corpora_and_empty_files_are_named(tmp_path: Path) -> None:
    second = [("text 7", "a"), ("text 8", "a")]
    by_kind = found(check_labels([rows(tmp_path, GOOD), rows(tmp_path, second, "b.tsv")]))
    assert places(by_kind["conflict"]) == [("a.tsv", 8), ("b.tsv", 1)]
    assert places(by_kind["duplicate"]) == [("b.tsv", 2)]
    (finding,) = check_labels([rows(tmp_path, [], name) for name in ("a.tsv", "b.tsv")]).findings
    assert [file for file, _ in places(finding)] == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize(
    ("pairs", "kind", "message"),
    [
        ([(f"t{n}", "x") for n in range(9)], "one label", "All texts have one label, 'x'"),
        ([(f"{n % 3}", f"text {n}") for n in range(99)], "too many labels", "columns of text and label swapped"),
        ([(f"t{n}", "") for n in range(9)], "no label", "9 texts (100%) have no label"),
        ([("", f"{n % 2}") for n in range(9)], "empty", "9 texts (100%) are empty"),
        ([], "no texts", "There are no texts"),
    ],
)
def test_what_nothing_can_be_learned_from_is_fatal(tmp_path: Path, pairs: Pairs, kind: str, message: str) -> None:
    report = check(tmp_path, pairs)
    assert not report.usable
    assert [finding.kind for finding in report.findings if finding.severity == "fatal"] == [kind]
    assert message in report.verdict


def test_several_labels_are_counted_one_by_one(tmp_path: Path) -> None:
    report = check(tmp_path, [("t", "a|b"), ("T", "b|a"), ("u", "a"), ("v", ""), ("w", "b")], "multi")
    assert report.labels == {"a": 3, "b": 3}
    assert set(found(report)) == {"duplicate"}
    assert set(found(check(tmp_path, [("t", ""), ("u", "")], "multi"))) == {"one label"}


def test_regression_needs_numbers(tmp_path: Path) -> None:
    report = check(tmp_path, [("t", "1"), ("u", "1,5"), ("v", "nan"), ("T", "1.0"), ("w", "3")], "regression")
    assert [(line, text) for _, line, text in found(report)["not a number"].examples] == [(2, "1,5"), (3, "nan")]
    assert (report.usable, report.labels, set(found(report))) == (False, {}, {"not a number", "duplicate"})
    assert found(check(tmp_path, [("t", "1"), ("u", "1.0")], "regression"))["one label"].severity == "fatal"


def test_a_file_that_breaks_off_or_holds_invalid_bytes_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tx\nb\n", encoding="utf-8")
    (finding,) = check_labels([open_labelled(path)]).findings
    assert (finding.kind, finding.examples) == ("unreadable", ((str(path), 2, ""),))
    path.write_bytes(b"".join(b"t%d\t%d\n" % (n, n % 2) for n in range(20)) + b"f\xfcr\t1\n")
    by_kind = found(check_labels([open_labelled(path)]))
    assert by_kind["invalid UTF-8"].examples == ((str(path), 21, ""),)
    assert "replacement" not in by_kind  # it is ours, not somebody else's


def test_validation_texts_are_looked_for(tmp_path: Path) -> None:
    others = rows(tmp_path, [("new", "a"), ("text 5", "b"), *((f"n{n}", "c") for n in range(8))], "b.tsv")
    by_kind = found(check(tmp_path, GOOD, valid=others))
    assert (by_kind["leak"].severity, places(by_kind["leak"])) == ("warning", [("b.tsv", 2)])
    assert by_kind["unknown label"].count == 8
    assert "'c'" in by_kind["unknown label"].sentence


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_a_header_of_unknown_names_is_suspected(tmp_path: Path, kind: Kind) -> None:
    names = [("utterances", "intents")]
    both = [rows(tmp_path, names + GOOD[begin:50], name) for name, begin in (("a.tsv", 0), ("b.tsv", 25))]
    sentence = f"Line 1 of {both[0].name} has the label 'intents', which no other line has: is line 1 a header? "
    for corpora in (both[:1], both):
        finding = found(check_labels(corpora, kind))["header"]
        assert finding.severity == "warning"
        assert finding.sentence.startswith(sentence)
        assert "--columns" in finding.sentence
        assert places(finding) == [("a.tsv", 1), ("b.tsv", 1)][: len(corpora)]
    assert "header" not in found(check_labels([open_labelled(both[0].name, "utterances,intents")], kind))


def test_a_rare_label_of_the_first_line_is_a_header_only_where_others_recur(tmp_path: Path) -> None:
    few = [("t", "a"), ("u", "b"), ("v", "c"), ("w", "c")]
    for pairs in (few, [*GOOD, ("x", "a")], [GOOD[0], ("x", "c"), *GOOD[1:]]):
        assert "header" not in found(check(tmp_path, pairs))
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in [("x", "c"), *GOOD]))
    assert "header" not in found(check_labels([open_labelled(path)]))


def test_a_set_without_a_usable_text_is_refused(tmp_path: Path) -> None:
    report = check(tmp_path, GOOD, validation=rows(tmp_path, [(" ", "a"), ("text", "")], "b.tsv"))
    assert not report.usable
    assert places(found(report)["no texts"])[0] == ("b.tsv", 1)
    assert check(tmp_path, GOOD, "multi", validation=rows(tmp_path, [("text", "")], "b.tsv")).usable


def test_texts_that_are_all_one_need_others_to_validate_on(tmp_path: Path) -> None:
    assert found(check(tmp_path, [("text", "a|b")], "multi"))["few texts"].severity == "fatal"
    others = rows(tmp_path, [("another", "a")], "b.tsv")
    assert "few texts" not in found(check(tmp_path, [("text", "a|b")], "multi", validation=others))


def test_findings_speak_of_images(tmp_path: Path) -> None:
    path, other, wide = (tmp_path / f"{name}.csv" for name in ("some", "valid", "wide"))
    path.write_text("0,1,2,3,a\n0,1,2,3,b\n5,1,2,3,a\n5,1,2,3,a\n7,7,7,7,\n8,8,8,8,b\n")
    other.write_text("8,8,8,8,b\n1,2,8,8,c\n")
    report = check_images([open_images(path)], "single", {"the validation images": open_images(other)})
    assert {"conflict", "duplicate", "no label", "leak", "unknown label"} <= found(report).keys()
    assert not any("text" in finding.sentence.lower() for finding in report.findings)
    assert (report.pairs, "images" in report.verdict) == (6, True)
    wide.write_text("".join(f"1,{place},2,3,l{place}\n" for place in range(200)))
    swapped = check_images([open_images(wide)], "single")
    assert (swapped.usable, "--columns" in swapped.verdict) == (False, True)
