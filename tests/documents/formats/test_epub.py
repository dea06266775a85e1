import io
import zipfile
from pathlib import Path

import pytest
from ebooklib import epub
from lxml import etree

from regard.documents.formats.epub import read
from regard.system.errors import RegardError
from tests.documents.capitals import in_capitals

CHAPTER = (
    '<h1>Chapter {n}</h1><p>It was a <em>dark &amp; stormy</em> night; <a href="two.xhtml" title="Go on">on</a>.<br/>'
    '<img src="a.png" alt="A cat"/> Two</p><pre>code</pre>'
)


@pytest.fixture
def book(tmp_path: Path) -> bytes:
    made = epub.EpubBook()
    made.set_identifier("id1")
    made.set_title("My book & yours")
    made.set_language("en")
    made.add_metadata("DC", "description", "About a night")
    chapters = [
        epub.EpubHtml(title=f"Night {n}", file_name=f"text/c {n}.xhtml", content=CHAPTER.format(n=n)) for n in (2, 1)
    ]
    for one in (*chapters, epub.EpubNcx(), epub.EpubNav()):
        made.add_item(one)
    made.add_item(epub.EpubItem(file_name="a.png", media_type="image/png", content=bytes(range(256))))
    made.toc, made.spine = chapters, ["nav", *chapters[::-1]]
    epub.write_epub(str(tmp_path / "a.epub"), made)
    return (tmp_path / "a.epub").read_bytes()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_book_in_capitals_opens_as_the_book_it_was(book: bytes, tmp_path: Path) -> None:
    document = read(book)
    assert document.write({}) == book
    texts = [one.text for one in document.segments]
    assert texts[:2] == ["My book & yours", "About a night"]
    assert texts.index("Chapter 1") < texts.index("Chapter 2"), "in the order of reading"
    assert "It was a dark & stormy night; on." in texts
    assert "code" not in texts
    written = in_capitals(document)
    (tmp_path / "b.epub").write_bytes(written)
    found = epub.read_epub(str(tmp_path / "b.epub"))
    assert found.get_metadata("DC", "title")[0][0] == "MY BOOK & YOURS"
    assert [one.title for one in found.toc] == ["NIGHT 2", "NIGHT 1"]
    before, after = members(book), members(written)
    assert list(before) == list(after)
    assert next(iter(after)) == "mimetype"
    assert zipfile.ZipFile(io.BytesIO(written)).infolist()[0].compress_type == zipfile.ZIP_STORED
    for name, data in after.items():
        if name.endswith("xhtml"):
            tags = [
                [(one.tag, one.get("href")) for one in etree.fromstring(some).iter()] for some in (before[name], data)
            ]
            assert tags[0] == tags[1]
            assert b"<pre>code</pre>" in data or b"nav" in data
        elif not name.endswith((".opf", ".ncx")):
            assert data == before[name], name


def test_what_is_no_book_is_refused_in_a_sentence(book: bytes) -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><container><rootfile full-path="x"/></container>'
    for name, data in (
        ("META-INF/container.xml", bomb),
        ("META-INF/container.xml", b"<a/>"),
        ("EPUB/content.opf", b"<a"),
    ):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for other, some in members(book).items():
                archive.writestr(other, data if other == name else some)
        with pytest.raises(RegardError):
            read(buffer.getvalue())
    with pytest.raises(RegardError, match="no zip archive"):
        read(book[:-100])


def test_a_locked_book_is_refused(book: bytes) -> None:
    buffer = io.BytesIO(book)
    with zipfile.ZipFile(buffer, "a") as archive:
        locks = '<encryption><enc:CipherReference xmlns:enc="x" URI="EPUB/text/c%201.xhtml"/></encryption>'
        archive.writestr("META-INF/encryption.xml", locks)
    with pytest.raises(RegardError, match="encrypted"):
        read(buffer.getvalue())
