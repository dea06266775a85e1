"""The site of the documents: what ``scripts/site.py`` puts together, and what it finds dead or foreign."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return load_script("scripts/site.py")


def built(folder: Path, **pages: str) -> Path:
    """A site of these pages, a style sheet and a picture."""
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "picture.svg").write_text("<svg/>")
    (folder / "style.css").write_text("/* @import 'https://x.org/c.css' */ b { background: url(a/picture.svg) }")
    for name, body in {"index": "", "other": '<h2 id="there">x</h2>', **pages}.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#there">x</a> <a href="#here" id="here">y</a> <a href="./">z</a>',
        '<img src="a/picture.svg"> <img src="data:image/png;base64,AA=="> <link rel="stylesheet" href="style.css?v=1">',
        '<a href="https://example.org/nowhere#x">led to, not loaded</a> <a href="mailto:a@example.org">m</a>',
        '<a href="a/picture.svg">file</a> <a href="%6fther.html#%74here">quoted</a>',
    ],
)
def test_sound_links(site: ModuleType, tmp_path: Path, body: str) -> None:
    assert site.faults(built(tmp_path / "site", index=body)) == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('<a href="nothing.html">x</a>', "nothing.html"),
        ('<a href="other.html#nowhere">x</a>', "other.html#nowhere"),
        ('<a href="#nowhere">x</a>', "#nowhere"),
        ('<a href="../secret.txt">x</a>', "../secret.txt"),
        ('<a href="a/">a folder without a page</a>', "a/"),
        ('<img src="nothing.png">', "nothing.png"),
        ('<img src="https://x.org/p.png">', "https://x.org/p.png"),
        ('<script src="//x.org/s.js"></script>', "//x.org/s.js"),
        ('<link rel="stylesheet" href="http://x.org/s.css">', "http://x.org/s.css"),
        ('<p style="background: url(https://x.org/p.png)">x</p>', "https://x.org/p.png"),
        ('<style>@import "https://x.org/s.css";</style>', "https://x.org/s.css"),
    ],
)
def test_dead_and_foreign_links(site: ModuleType, tmp_path: Path, body: str, named: str) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (fault,) = site.faults(built(tmp_path / "site", index=body))
    assert fault.startswith("index.html: ")
    assert fault.endswith(named)


def test_style_sheets_load_nothing_foreign(site: ModuleType, tmp_path: Path) -> None:
    folder = built(tmp_path / "site")
    (folder / "fonts.css").write_text("@font-face { src: url('https://x.org/f.woff2') }")
    assert site.faults(folder) == ["fonts.css: loads https://x.org/f.woff2"]


def test_an_empty_site_is_a_fault(site: ModuleType, tmp_path: Path) -> None:
    assert len(site.faults(tmp_path)) == 1
    assert site.main(["check", str(tmp_path)]) == 1


def test_every_document_has_its_place_in_the_contents(site: ModuleType, tmp_path: Path) -> None:
    site.stage(tmp_path / "source")
    index = (tmp_path / "source" / "index.md").read_text(encoding="utf-8")
    tables = re.findall(r"^```{toctree}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
    lines = [line for table in tables for line in table.splitlines() if line and not line.startswith(":")]
    listed = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
    assert sorted(listed) == sorted(set(listed))
    staged = {path.relative_to(tmp_path / "source").with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    assert staged - {"index"} <= set(listed)
    for name in listed:
        assert any((tmp_path / "source" / f"{name}{ending}").is_file() for ending in (".md", ".rst")), name


def test_citations_lead_to_the_papers(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    text = "As in [Vaswani17 §3.2; Ba16], `[Ba16]`, [a file](b.md), [a folder](../docs), [an entry](lab/1.md#x-y)."
    text += "\n\n```\n[Ba16]\n```\n"
    (tmp_path / "docs" / "x.md").write_text(text)
    first = "[[Vaswani17](papers.md#vaswani17) §3.2; [Ba16](papers.md#ba16)]"
    wanted = text.replace("[Vaswani17 §3.2; Ba16]", first).replace("[a folder](../docs)", "a folder")
    wanted = wanted.replace("[an entry](lab/1.md#x-y)", "an entry")
    assert site.markdown(tmp_path / "docs" / "x.md") == wanted
