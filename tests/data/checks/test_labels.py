"""Whatever silently ruins a classifier is found, with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.checks.findings import Finding
from regard.data.checks.labels import LabelReport, check_labels
from regard.data.corpora.labelled import Kind, open_labelled

GOOD = [(f"text {number}", "ab"[number % 2]) for number in range(100)]


def rows(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in pairs), encoding="utf-8")
    return path


def found(report: LabelReport) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def test_a_good_set_shows_nothing(tmp_path: Path) -> None:
    report = check_labels([open_labelled(rows(tmp_path / "a.tsv", GOOD))])
    assert report.findings == ()
    assert report.usable
    assert report.verdict == "Usable: 100 texts. 2 labels."
    assert report.labels == {"a": 50, "b": 50}
    assert (report.pairs, report.target_characters) == (100, 1.0)
    assert report.source_characters == sum(len(text) for text, _ in GOOD) / 100
    assert json.loads(json.dumps(report.to_dict()))["labels"] == {"a": 50, "b": 50}


def test_every_kind_of_trouble_is_found_where_it_stands(tmp_path: Path) -> None:
    bad = [
        ("text 0", "b"),  # line 101: contradicts line 1
        ("TEXT 2", "a"),  # 102: repeats line 3
        ("", "a"),  # 103
        ("x", ""),  # 104
        ("y", "A"),  # 105
        ("sch\u00c3\u00b6n", "b"),  # 106
    ]
    path = rows(tmp_path / "a.tsv", GOOD + bad)
    report = check_labels([open_labelled(path)])
    by_kind = found(report)
    lines = {kind: [line for _, line, _ in finding.examples] for kind, finding in by_kind.items()}
    assert lines == {
        "conflict": [1, 101],
        "duplicate": [102],
        "empty": [103],
        "no label": [104],
        "rare label": [105],
        "like labels": [1, 105],
        "mojibake": [106],
    }
    assert (by_kind["conflict"].count, by_kind["like labels"].count) == (2, 53)
    assert "'a', 'A'" in by_kind["like labels"].sentence
    assert by_kind["conflict"].examples[1] == (str(path), 101, "b ← text 0")
    assert report.usable
    assert report.verdict == "Usable, with 5 warnings: 106 texts. 3 labels."


def test_texts_are_compared_over_all_corpora(tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a.tsv", GOOD), rows(tmp_path / "b.tsv", [("text 7", "a"), ("text 8", "a")])
    by_kind = found(check_labels([open_labelled(first), open_labelled(second)]))
    assert [(file, line) for file, line, _ in by_kind["conflict"].examples] == [(str(first), 8), (str(second), 1)]
    assert [(file, line) for file, line, _ in by_kind["duplicate"].examples] == [(str(second), 2)]


@pytest.mark.parametrize(
    ("pairs", "kind", "message"),
    [
        ([(f"t{n}", "x") for n in range(9)], "one label", "All texts have one label, 'x'"),
        ([(f"{n % 3}", f"text {n}") for n in range(99)], "too many labels", "columns of text and label swapped"),
        ([(f"t{n}", "") for n in range(9)], "no label", r"9 texts \(100%\) have no label"),
        ([("", f"{n % 2}") for n in range(9)], "empty", "9 texts .* are empty"),
        ([], "no texts", "There are no texts"),
    ],
)
def test_what_nothing_can_be_learned_from_is_fatal(tmp_path: Path, pairs, kind: str, message: str) -> None:
    report = check_labels([open_labelled(rows(tmp_path / "a.tsv", pairs))])
    assert not report.usable
    assert [finding.kind for finding in report.findings if finding.severity == "fatal"] == [kind]
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(report.verdict)


def test_empty_files_are_named(tmp_path: Path) -> None:
    files = [rows(tmp_path / name, []) for name in ("a.tsv", "b.tsv")]
    (finding,) = check_labels([open_labelled(path) for path in files]).findings
    assert [file for file, _, _ in finding.examples] == [str(path) for path in files]


def test_several_labels_are_counted_one_by_one(tmp_path: Path) -> None:
    pairs = [("t", "a|b"), ("T", "b|a"), ("u", "a"), ("v", ""), ("w", "b")]
    report = check_labels([open_labelled(rows(tmp_path / "a.tsv", pairs))], "multi")
    assert report.labels == {"a": 3, "b": 3}
    assert set(found(report)) == {"duplicate"}
    none = check_labels([open_labelled(rows(tmp_path / "a.tsv", [("t", ""), ("u", "")]))], "multi")
    assert set(found(none)) == {"one label"}


def test_regression_needs_numbers(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.tsv", [("t", "1"), ("u", "1,5"), ("v", "nan"), ("T", "1.0"), ("w", "3")])
    report = check_labels([open_labelled(path)], "regression")
    assert [(line, text) for _, line, text in found(report)["not a number"].examples] == [(2, "1,5"), (3, "nan")]
    assert not report.usable
    assert report.labels == {}
    assert set(found(report)) == {"not a number", "duplicate"}
    same = check_labels([open_labelled(rows(tmp_path / "b.tsv", [("t", "1"), ("u", "1.0")]))], "regression")
    assert found(same)["one label"].severity == "fatal"


def test_a_file_that_breaks_off_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tx\nb\n", encoding="utf-8")
    report = check_labels([open_labelled(path)])
    assert [finding.kind for finding in report.findings] == ["unreadable"]
    assert report.findings[0].examples == ((str(path), 2, ""),)


def test_invalid_bytes_are_no_replacement_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"".join(b"t%d\t%d\n" % (n, n % 2) for n in range(20)) + b"f\xfcr\t1\n")
    by_kind = found(check_labels([open_labelled(path)]))
    assert by_kind["invalid UTF-8"].examples == ((str(path), 21, ""),)
    assert "replacement" not in by_kind


def test_validation_texts_are_looked_for(tmp_path: Path) -> None:
    train = open_labelled(rows(tmp_path / "a.tsv", GOOD))
    pairs = [("new", "a"), ("text 5", "b"), *((f"n{n}", "c") for n in range(8))]
    other = open_labelled(rows(tmp_path / "b.tsv", pairs))
    by_kind = found(check_labels([train], others={"valid": other}))
    assert [line for _, line, _ in by_kind["leak"].examples] == [2]
    assert by_kind["leak"].severity == "warning"
    assert by_kind["unknown label"].count == 8
    assert "'c'" in by_kind["unknown label"].sentence


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_a_header_of_unknown_names_is_suspected(tmp_path: Path, kind: Kind) -> None:
    names = [("utterances", "intents")]
    first, second = (rows(tmp_path / name, names + GOOD[begin:50]) for name, begin in (("a.tsv", 0), ("b.tsv", 25)))
    sentence = f"Line 1 of {first} has the label 'intents', which no other line has: is line 1 a header? "
    for files, lines in (([first], [(str(first), 1)]), ([first, second], [(str(first), 1), (str(second), 1)])):
        finding = found(check_labels([open_labelled(path) for path in files], kind))["header"]
        assert finding.severity == "warning"
        assert finding.sentence.startswith(sentence)
        assert "--columns" in finding.sentence
        assert [(file, line) for file, line, _ in finding.examples] == lines
    assert "header" not in found(check_labels([open_labelled(first, "utterances,intents")], kind))


def test_a_rare_label_of_the_first_line_is_a_header_only_where_others_recur(tmp_path: Path) -> None:
    few = [("t", "a"), ("u", "b"), ("v", "c"), ("w", "c")]
    for pairs in (few, [*GOOD, ("x", "a")], [GOOD[0], ("x", "c"), *GOOD[1:]]):
        assert "header" not in found(check_labels([open_labelled(rows(tmp_path / "a.tsv", pairs))]))
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in [("x", "c"), *GOOD]))
    assert "header" not in found(check_labels([open_labelled(path)]))


def test_a_set_without_a_usable_text_is_refused(tmp_path: Path) -> None:
    learned = [open_labelled(rows(tmp_path / "a.tsv", GOOD))]
    blank = open_labelled(rows(tmp_path / "b.tsv", [(" ", "a"), ("text", "")]))
    report = check_labels(learned, others={"the validation texts": blank})
    assert not report.usable
    assert found(report)["no texts"].examples[0][:2] == (str(tmp_path / "b.tsv"), 1)
    unlabelled = open_labelled(rows(tmp_path / "c.tsv", [("text", "")]))
    assert check_labels(learned, "multi", {"the validation texts": unlabelled}).usable


def test_texts_that_are_all_one_need_others_to_validate_on(tmp_path: Path) -> None:
    learned = [open_labelled(rows(tmp_path / "a.tsv", [("text", "a|b")]))]
    assert found(check_labels(learned, "multi"))["few texts"].severity == "fatal"
    others = {"the validation texts": open_labelled(rows(tmp_path / "b.tsv", [("another", "a")]))}
    assert "few texts" not in found(check_labels(learned, "multi", others))
