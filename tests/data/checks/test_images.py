"""A look at labelled images finds what a look at texts finds, and speaks of images."""

from pathlib import Path

from regard.data.checks.labels import check_images
from regard.data.corpora.images import open_images


def test_findings_speak_of_images(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("0,1,2,3,a\n0,1,2,3,b\n5,1,2,3,a\n5,1,2,3,a\n7,7,7,7,\n8,8,8,8,b\n")
    other = tmp_path / "valid.csv"
    other.write_text("8,8,8,8,b\n1,2,8,8,c\n")
    report = check_images([open_images(path)], "single", {"the validation images": open_images(other)})
    kinds = {finding.kind for finding in report.findings}
    assert {"conflict", "duplicate", "no label", "leak", "unknown label"} <= kinds
    assert not any("text" in finding.sentence.lower() for finding in report.findings)
    assert report.pairs == 6
    assert "images" in report.verdict


def test_swapped_columns_are_asked_about_in_the_words_of_images(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("".join(f"1,{place},2,3,l{place}\n" for place in range(200)))
    report = check_images([open_images(path)], "single")
    assert not report.usable
    assert "--columns" in report.verdict
