"""Whatever silently ruins a tagger is found, with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.checks.findings import Finding
from regard.data.checks.tags import TagReport, check_tags
from regard.data.corpora.tagged import open_tagged

Sentence = list[tuple[str, str]]
GOOD: list[Sentence] = [[(f"Ann{n}", "B-PER"), ("Lee", "I-PER"), ("ran", "O")] for n in range(40)] + [
    [("to", "O"), (f"Rome{n}", "B-LOC")] for n in range(40)
]
PLAIN: list[Sentence] = [[("the", "DET"), (f"dog{n}", "NOUN")] for n in range(40)]


def write(path: Path, sentences: list[Sentence]) -> Path:
    path.write_text("\n".join("".join(f"{w}\t{t}\n" for w, t in one) for one in sentences), encoding="utf-8")
    return path


def found(report: TagReport) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def test_a_good_set_shows_nothing(tmp_path: Path) -> None:
    report = check_tags([open_tagged(write(tmp_path / "a.conll", GOOD))])
    assert report.findings == ()
    assert (report.pairs, report.words, report.scheme) == (80, 200, "bio")
    assert report.labels == {"PER": 40, "LOC": 40}
    assert report.verdict == "Usable: 80 texts. 200 words, 80 spans of 2 kinds, written as BIO."
    assert report.target_characters == 2.5
    assert json.loads(json.dumps(report.to_dict()))["labels"] == {"PER": 40, "LOC": 40}


def test_plain_tags_are_counted_by_word(tmp_path: Path) -> None:
    report = check_tags([open_tagged(write(tmp_path / "a.conll", PLAIN))])
    assert report.labels == {"DET": 40, "NOUN": 40}
    assert report.verdict == "Usable: 40 texts. 80 words, 2 tags, one a word."


def test_every_kind_of_trouble_is_found_where_it_stands(tmp_path: Path) -> None:
    bad: list[Sentence] = [
        [("Ann0", "O"), ("Lee", "O"), ("ran", "O")],  # line 281: contradicts line 1
        [("TO", "O"), ("rome3", "B-LOC")],  # 285: repeats an earlier one
        [("x" * 300, "O"), ("y", "O")],  # 288
        [("Bob", "PER")],  # 291: no tag of the scheme
        [("Rome", "B-Loc")],  # 293
        [("sch\u00c3\u00b6n", "O")],  # 295
    ]
    path = write(tmp_path / "a.conll", GOOD + bad)
    report = check_tags([open_tagged(path)])
    lines = {kind: [line for _, line, _ in finding.examples] for kind, finding in found(report).items()}
    assert lines == {
        "conflict": [1, 281],
        "duplicate": [285],
        "long word": [288],
        "unexplained tag": [291],
        "rare label": [293],
        "like labels": [161, 293],
        "mojibake": [295],
    }
    assert found(report)["unexplained tag"].sentence.startswith("1 word has a tag that BIO does not explain: 'PER'.")
    assert found(report)["conflict"].examples[0] == (str(path), 1, "Ann0 Lee ran")
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
    report = check_tags([open_tagged(write(tmp_path / "a.conll", sentences))], scheme)
    assert not report.usable
    assert found(report)[kind].severity == "fatal"
    assert message in report.verdict


def test_a_file_that_breaks_off_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("a\tO\nb\n", encoding="utf-8")
    for scheme in (None, "bio"):
        (finding,) = check_tags([open_tagged(path)], scheme).findings
        assert (finding.kind, finding.examples) == ("unreadable", ((str(path), 2, ""),))


def test_validation_texts_are_looked_for(tmp_path: Path) -> None:
    other = write(tmp_path / "b.conll", [[("new", "O")], GOOD[5], [("Acme", "B-ORG"), ("Inc", "I-ORG")], *GOOD[:0]])
    train = open_tagged(write(tmp_path / "a.conll", GOOD))
    by_kind = found(check_tags([train], None, {"the validation texts": open_tagged(other)}))
    assert [line for _, line, _ in by_kind["leak"].examples] == [3]
    assert by_kind["unknown label"].sentence == (
        "1 span of the validation texts has a label that nothing is learned of: 'ORG'."
    )


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
    other = open_tagged(write(tmp_path / "b.conll", [[(f"new{n}", tag)] for n, tag in enumerate(tags)]))
    report = check_tags([open_tagged(write(tmp_path / "a.conll", GOOD))], None, {"the validation texts": other})
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.examples[0][0]) == (kind, severity, str(tmp_path / "b.conll"))
    assert holds in finding.sentence
    assert "the validation texts" in finding.sentence


def test_a_share_of_lines_is_of_the_lines_read(tmp_path: Path) -> None:
    """A text has many lines, of which each may be invalid."""
    path = tmp_path / "a.conll"
    path.write_bytes(b"f\xfcr\tB-X\nf\xfcr\tO\n\n")
    finding = found(check_tags([open_tagged(path)]))["invalid UTF-8"]
    assert (finding.count, finding.share) == (2, 2 / 3)
    path.write_bytes(b"a\tO\n\nf\xfcr\tB-X\nf\xfcr\n\n")
    finding = found(check_tags([open_tagged(path)]))["invalid UTF-8"]
    assert (finding.count, finding.share) == (2, 2 / 5)


def test_lines_of_something_else_are_no_tagged_text(tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_text("".join(f"what{n}\tDESC\nwho{n}\tHUM\n" for n in range(600)))
    report = check_tags([open_tagged(tmp_path / "labels.tsv")])
    assert [finding.kind for finding in report.findings if finding.severity == "fatal"] == ["one text"]
    assert "an empty line stands between texts" in report.verdict
    short = [line for sentence in GOOD for line in sentence]
    one = open_tagged(write(tmp_path / "a.conll", [short]))
    (finding,) = found(check_tags([one])).values()
    assert (finding.kind, finding.severity) == ("one text", "fatal")  # of which no part can be split off
    others = {"the validation texts": open_tagged(write(tmp_path / "b.conll", GOOD))}
    assert found(check_tags([one], None, others))["one text"].severity == "warning"
    assert f"{len(short)} words" in finding.sentence
