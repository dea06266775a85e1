"""Whatever silently ruins a tagger is found, with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.checks.findings import Finding
from regard.data.checks.labels import TagReport, check_tags
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.tagged import open_tagged

Sentence = list[tuple[str, str]]
GOOD: list[Sentence] = [[(f"Ann{n}", "B-PER"), ("Lee", "I-PER"), ("ran", "O")] for n in range(40)]
GOOD += [[("to", "O"), (f"Rome{n}", "B-LOC")] for n in range(40)]
PLAIN: list[Sentence] = [[("the", "DET"), (f"dog{n}", "NOUN")] for n in range(40)]


def write(folder: Path, sentences: list[Sentence], name: str = "a.conll") -> Corpus:
    text = "\n".join("".join(f"{w}\t{t}\n" for w, t in one) for one in sentences)
    (folder / name).write_text(text, encoding="utf-8")
    return open_tagged(folder / name)


def check(folder: Path, sentences: list[Sentence], scheme=None, others: list[Sentence] | None = None) -> TagReport:
    more = {} if others is None else {"the validation texts": write(folder, others, "b.conll")}
    return check_tags([write(folder, sentences)], scheme, more)


def found(report: TagReport) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def test_a_good_set_shows_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, GOOD)
    assert report.findings == ()
    assert (report.pairs, report.words, report.scheme, report.target_characters) == (80, 200, "bio", 2.5)
    assert report.labels == {"PER": 40, "LOC": 40} == json.loads(json.dumps(report.to_dict()))["labels"]
    assert report.verdict == "Usable: 80 texts. 200 words, 80 spans of 2 kinds, written as BIO."
    plain = check(tmp_path, PLAIN)  # counted by word
    assert plain.labels == {"DET": 40, "NOUN": 40}
    assert plain.verdict == "Usable: 40 texts. 80 words, 2 tags, one a word."


def test_every_kind_of_trouble_is_found_where_it_stands(tmp_path: Path) -> None:
    bad: list[Sentence] = [
        [("Ann0", "O"), ("Lee", "O"), ("ran", "O")],  # line 281: contradicts line 1
        [("TO", "O"), ("rome3", "B-LOC")],  # 285: repeats an earlier one
        [("x" * 300, "O"), ("y", "O")],  # 288
        [("Bob", "PER")],  # 291: no tag of the scheme
        [("Rome", "B-Loc")],  # 293
        [("sch\u00c3\u00b6n", "O")],  # 295
    ]
    report = check(tmp_path, GOOD + bad)
    lines = {"conflict": [1, 281], "duplicate": [285], "long word": [288], "unexplained tag": [291]}
    lines |= {"rare label": [293], "like labels": [161, 293], "mojibake": [295]}
    by_kind = found(report)
    assert {kind: [line for _, line, _ in finding.examples] for kind, finding in by_kind.items()} == lines
    assert by_kind["unexplained tag"].sentence.startswith("1 word has a tag that BIO does not explain: 'PER'.")
    assert by_kind["conflict"].examples[0] == (str(tmp_path / "a.conll"), 1, "Ann0 Lee ran")
    assert report.usable


@pytest.mark.parametrize(
    ("sentences", "scheme", "kind", "message"),
    [
        (PLAIN, "bio", "unexplained tag", "80 words have tags that BIO does not explain"),
        ([[("a", "O"), ("b", "O")]] * 3, "bio", "one label", "No word is part of a span"),
        ([[("a", "X"), (f"{n}", "X")] for n in range(9)], None, "one label", "All words have one tag, 'X'"),
        ([[("a", f"t{n}")] for n in range(600)], None, "too many labels", "600 different tags: are the columns"),
    ],
)
def test_what_nothing_can_be_learned_from_is_fatal(tmp_path: Path, sentences, scheme, kind, message) -> None:
    report = check(tmp_path, sentences, scheme)
    assert (report.usable, found(report)[kind].severity) == (False, "fatal")
    assert message in report.verdict


def test_validation_texts_are_looked_for(tmp_path: Path) -> None:
    others: list[Sentence] = [[("new", "O")], GOOD[5], [("Acme", "B-ORG"), ("Inc", "I-ORG")]]
    by_kind = found(check(tmp_path, GOOD, others=others))
    assert [line for _, line, _ in by_kind["leak"].examples] == [3]
    said = "1 span of the validation texts has a label that nothing is learned of: 'ORG'."
    assert by_kind["unknown label"].sentence == said


@pytest.mark.parametrize(
    ("tags", "kind", "severity", "holds"),
    [
        (["NOUN", "VERB"], "unexplained tag", "fatal", "'NOUN', 'VERB'"),
        (["B-PER", "I-PER", "B-LOC", "NOUN"], "unexplained tag", "warning", "'NOUN'"),
        (["B-ORG", "O"], "unknown label", "fatal", "'ORG'"),
        (["B-ORG", "B-PER"], "unknown label", "warning", "'ORG'"),
    ],
)
def test_validation_tags_that_training_never_has(tmp_path: Path, tags, kind, severity, holds) -> None:
    (finding,) = check(tmp_path, GOOD, others=[[(f"new{n}", tag)] for n, tag in enumerate(tags)]).findings
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
    short = [[line for sentence in GOOD for line in sentence]]
    (finding,) = check(tmp_path, short).findings
    assert (finding.kind, finding.severity) == ("one text", "fatal")  # of which no part can be split off
    assert f"{len(short[0])} words" in finding.sentence
    assert found(check(tmp_path, short, others=GOOD))["one text"].severity == "warning"
