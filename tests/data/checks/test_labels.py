"""Whatever silently ruins a classifier of texts or images, or a tagger, is found, with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.checks.findings import Finding
from regard.data.checks.labels import ImageScan, LabelReport, TagReport, check_labels, check_tags
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.images import open_images
from regard.data.corpora.labelled import Kind, open_labelled
from regard.data.corpora.tagged import open_tagged

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


FATAL = [
    ([(f"t{n}", "x") for n in range(9)], "one label", "All texts have one label, 'x'"),
    ([(f"{n % 3}", f"text {n}") for n in range(99)], "too many labels", "columns of text and label swapped"),
    ([(f"t{n}", "") for n in range(9)], "no label", "9 texts (100%) have no label"),
    ([("", f"{n % 2}") for n in range(9)], "empty", "9 texts (100%) are empty"),
    ([], "no texts", "There are no texts"),
]


@pytest.mark.parametrize(("pairs", "kind", "message"), FATAL)
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
        assert "columns" in finding.sentence
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
    report = check_labels([open_images(path)], "single", {"the validation images": open_images(other)}, ImageScan)
    assert {"conflict", "duplicate", "no label", "leak", "unknown label"} <= found(report).keys()
    assert not any("text" in finding.sentence.lower() for finding in report.findings)
    assert (report.pairs, "images" in report.verdict) == (6, True)
    wide.write_text("".join(f"1,{place},2,3,l{place}\n" for place in range(200)))
    swapped = check_labels([open_images(wide)], scan=ImageScan)
    assert (swapped.usable, "columns" in swapped.verdict) == (False, True)


Sentence = list[tuple[str, str]]
TAGGED: list[Sentence] = [[(f"Ann{n}", "B-PER"), ("Lee", "I-PER"), ("ran", "O")] for n in range(40)]
TAGGED += [[("to", "O"), (f"Rome{n}", "B-LOC")] for n in range(40)]
PLAIN: list[Sentence] = [[("the", "DET"), (f"dog{n}", "NOUN")] for n in range(40)]


def tagged_rows(folder: Path, sentences: list[Sentence], name: str = "a.conll") -> Corpus:
    text = "\n".join("".join(f"{w}\t{t}\n" for w, t in one) for one in sentences)
    (folder / name).write_text(text, encoding="utf-8")
    return open_tagged(folder / name)


def check_tagged(
    folder: Path, sentences: list[Sentence], scheme=None, others: list[Sentence] | None = None
) -> TagReport:
    more = {} if others is None else {"the validation texts": tagged_rows(folder, others, "b.conll")}
    return check_tags([tagged_rows(folder, sentences)], scheme, more)


def test_tagged_a_good_set_shows_nothing(tmp_path: Path) -> None:
    report = check_tagged(tmp_path, TAGGED)
    assert report.findings == ()
    assert (report.pairs, report.words, report.scheme, report.target_characters) == (80, 200, "bio", 2.5)
    assert report.labels == {"PER": 40, "LOC": 40} == json.loads(json.dumps(report.to_dict()))["labels"]
    assert report.verdict == "Usable: 80 texts. 200 words, 80 spans of 2 kinds, written as BIO."
    plain = check_tagged(tmp_path, PLAIN)  # counted by word
    assert plain.labels == {"DET": 40, "NOUN": 40}
    assert plain.verdict == "Usable: 40 texts. 80 words, 2 tags, one a word."


def test_tagged_every_kind_of_trouble_is_found_where_it_stands(tmp_path: Path) -> None:
    bad: list[Sentence] = [
        [("Ann0", "O"), ("Lee", "O"), ("ran", "O")],  # line 281: contradicts line 1
        [("TO", "O"), ("rome3", "B-LOC")],  # 285: repeats an earlier one
        [("x" * 300, "O"), ("y", "O")],  # 288
        [("Bob", "PER")],  # 291: no tag of the scheme
        [("Rome", "B-Loc")],  # 293
        [("sch\u00c3\u00b6n", "O")],  # 295
    ]
    report = check_tagged(tmp_path, TAGGED + bad)
    lines = {"conflict": [1, 281], "duplicate": [285], "long word": [288], "unexplained tag": [291]}
    lines |= {"rare label": [293], "like labels": [161, 293], "mojibake": [295]}
    by_kind = found(report)
    assert {kind: [line for _, line, _ in finding.examples] for kind, finding in by_kind.items()} == lines
    assert by_kind["unexplained tag"].sentence.startswith("1 word has a tag that BIO does not explain: 'PER'.")
    assert by_kind["conflict"].examples[0] == (str(tmp_path / "a.conll"), 1, "Ann0 Lee ran")
    assert report.usable


FATAL_TAGS = [
    (PLAIN, "bio", "unexplained tag", "80 words have tags that BIO does not explain"),
    ([[("a", "O"), ("b", "O")]] * 3, "bio", "one label", "No word is part of a span"),
    ([[("a", "X"), (f"{n}", "X")] for n in range(9)], None, "one label", "All words have one tag, 'X'"),
    ([[("a", f"t{n}")] for n in range(600)], None, "too many labels", "600 different tags: are words"),
]


@pytest.mark.parametrize(("sentences", "scheme", "kind", "message"), FATAL_TAGS)
def test_tagged_what_nothing_can_be_learned_from_is_fatal(tmp_path: Path, sentences, scheme, kind, message) -> None:
    report = check_tagged(tmp_path, sentences, scheme)
    assert (report.usable, found(report)[kind].severity) == (False, "fatal")
    assert message in report.verdict


def test_tagged_validation_texts_are_looked_for(tmp_path: Path) -> None:
    others: list[Sentence] = [[("new", "O")], TAGGED[5], [("Acme", "B-ORG"), ("Inc", "I-ORG")]]
    by_kind = found(check_tagged(tmp_path, TAGGED, others=others))
    assert [line for _, line, _ in by_kind["leak"].examples] == [3]
    said = "1 span of the validation texts has a label that nothing is learned of: 'ORG'."
    assert by_kind["unknown label"].sentence == said


STRANGE = [
    (["NOUN", "VERB"], "unexplained tag", "fatal", "'NOUN', 'VERB'"),
    (["B-PER", "I-PER", "B-LOC", "NOUN"], "unexplained tag", "warning", "'NOUN'"),
    (["B-ORG", "O"], "unknown label", "fatal", "'ORG'"),
    (["B-ORG", "B-PER"], "unknown label", "warning", "'ORG'"),
]


@pytest.mark.parametrize(("tags", "kind", "severity", "holds"), STRANGE)
def test_validation_tags_that_training_never_has(tmp_path: Path, tags, kind, severity, holds) -> None:
    (finding,) = check_tagged(tmp_path, TAGGED, others=[[(f"new{n}", tag)] for n, tag in enumerate(tags)]).findings
    assert (finding.kind, finding.severity, finding.examples[0][0]) == (kind, severity, str(tmp_path / "b.conll"))
    assert holds in finding.sentence
    assert "the validation texts" in finding.sentence


def test_a_file_that_breaks_off_is_said_with_its_line_and_a_share_is_of_the_lines_read(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("a\tO\nb\n", encoding="utf-8")
    for scheme in (None, "bio"):
        (finding,) = check_tags([open_tagged(path)], scheme).findings
        assert (finding.kind, finding.examples) == ("unreadable", ((str(path), 2, ""),))
    for content, share in ((b"f\xfcr\tB-X\nf\xfcr\tO\n\n", 2 / 3), (b"a\tO\n\nf\xfcr\tB-X\nf\xfcr\n\n", 2 / 5)):
        path.write_bytes(content)  # a text has many lines, of which each may be invalid
        finding = found(check_tags([open_tagged(path)]))["invalid UTF-8"]
        assert (finding.count, finding.share) == (2, share)


def test_lines_of_something_else_are_no_tagged_text(tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_text("".join(f"what{n}\tDESC\nwho{n}\tHUM\n" for n in range(600)))
    report = check_tags([open_tagged(tmp_path / "labels.tsv")])
    assert [finding.kind for finding in report.findings if finding.severity == "fatal"] == ["one text"]
    assert "an empty line stands between texts" in report.verdict
    short = [[line for sentence in TAGGED for line in sentence]]
    (finding,) = check_tagged(tmp_path, short).findings
    assert (finding.kind, finding.severity) == ("one text", "fatal")  # of which no part can be split off
    assert f"{len(short[0])} words" in finding.sentence
    assert found(check_tagged(tmp_path, short, others=TAGGED))["one text"].severity == "warning"
