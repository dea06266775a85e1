"""Damaged and hostile documents of every kind: a result or one sentence, in bounded time; never a crash."""

from __future__ import annotations

import io
import random
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from odf.opendocument import OpenDocumentText
from odf.text import P, Span

from regard.documents import kinds
from regard.documents.kinds import KINDS, read_document
from regard.documents.segment import SegmentTranslation
from regard.documents.tags.placement import place_in_proportion
from regard.system.errors import RegardError
from regard.tasks.translation.align import units_of

SECONDS = 5.0  # of processor time: neighbours do not count
"""Of a file at most, on a slow and busy machine."""
MUTATIONS = 30
XLIFF = (
    '<?xml version="1.0"?><xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file original="a" '
    'source-language="en" target-language="de" datatype="x"><body><trans-unit id="1"><source>One <g id="1">two</g>.'
    "</source></trans-unit></body></file></xliff>"
)


def saved(document: Any) -> bytes:
    """What a library saves."""
    held = io.BytesIO()
    document.save(held)
    return held.getvalue()


def docx_sample() -> bytes:
    document = docx.Document()
    paragraph = document.add_paragraph("One ")
    paragraph.add_run("two").bold = True
    return saved(document)


def pptx_sample() -> bytes:
    document = pptx.Presentation()
    document.slides.add_slide(document.slide_layouts[0]).shapes.title.text = "One two"
    return saved(document)


def xlsx_sample() -> bytes:
    document = openpyxl.Workbook()
    document.active.append(["One two", 3, "=A1", "Four"])
    return saved(document)


def odt_sample() -> bytes:
    document = OpenDocumentText()
    paragraph = P(text="One ")
    paragraph.addElement(Span(text="two"))
    document.text.addElement(paragraph)
    return saved(document)


def epub_sample() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/epub+zip")
        file.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="a.opf"/>'
            "</rootfiles></container>",
        )
        file.writestr(
            "a.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest><item id="a" href="a.xhtml" '
            'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>',
        )
        file.writestr("a.xhtml", "<html><body><p>One <i>two</i></p></body></html>")
    return held.getvalue()


SAMPLES: dict[str, bytes] = {
    "text": b"One two.\n\nThree\nfour.\n",
    "markdown": b"# One\n\n* two **three** `code`\n\n| a | b |\n|---|---|\n| c | d |\n\n"
    b'[x](http://e.org "t") <b>i</b>\n',
    "html": b"<!DOCTYPE html><html><head><title>A &amp; b</title></head><body><p title='t'>One <b>two</b><br>"
    b"<code>x</code><ul><li>three<li>four</ul><script>if (a<b) c</script></body></html>",
    "docx": docx_sample(),
    "pptx": pptx_sample(),
    "xlsx": xlsx_sample(),
    "opendocument": odt_sample(),
    "epub": epub_sample(),
    "srt": b"1\n00:00:01,000 --> 00:00:02,000\n<i>One</i> two\nthree.\n\n"
    b"2\n00:00:03,000 --> 00:00:04,000\n- Four.\n- Five.\n",
    "vtt": b"WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 align:start\n<v Tom>One <b>two</b>\n\n",
    "ass": b"[Script Info]\nTitle: x\n\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, "
    b"Effect, Text\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\i1}One{\\i0} two\\Nthree\n",
    "po": b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#: a.py\nmsgid "One %s"\nmsgstr ""\n\n'
    b'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n',
    "xliff": XLIFF.encode(),
    "json": b'{"a": "One two", "b": {"c": ["Three {x}", 4, null]}, "d": "id_x"}',
    "yaml": b"de:\n  a: One two\n  b: \"Three %{x}\"\n  c: |\n    Four\n    five\n  d: [Six seven, 'eight nine']\n",
    "latex": b"\\documentclass{article}\n\\begin{document}\n\\section{One}\nTwo \\emph{three} $x$ % c\n"
    b"\\end{document}\n",
}
BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(9))
OUTSIDE = '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'


def mutations(data: bytes, seed: int) -> Iterator[bytes]:
    """Cut off, with other bytes, with parts twice, and with parts left out."""
    draw = random.Random(seed)
    for number in range(MUTATIONS):
        one, two = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        kind = number % 5
        if kind == 0:
            yield data[:one]
        elif kind == 1:
            yield data[:one] + bytes(draw.randrange(256) for _ in range(draw.randrange(1, 5))) + data[one + 1 :]
        elif kind == 2:
            yield data[:two] + data[one:two] * 3 + data[two:]
        elif kind == 3:
            yield data[:one] + data[two:]
        else:
            yield data[:one] + draw.choice([b"<", b"&", b'"', b"\0", b"\xff", b"{", b"]]>", b"\\", b"-->"]) + data[one:]


def use(data: bytes, kind: str) -> str:
    """Read a document, and write it as it is and in capitals; the sentence of what cannot be read."""
    began = time.process_time()
    try:
        document = read_document(data, kind, "file")
        assert document.write({}) == data
        found = {}
        for number, one in enumerate(document.segments):
            text = one.text.upper()
            found[number] = place_in_proportion(one.tags, units_of(one.text), text, units_of(text))
        document.write(found)
        sentence = ""
    except RegardError as error:
        sentence = str(error)
    assert time.process_time() - began < SECONDS
    assert len(sentence) < 500
    return sentence


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_sample_of_every_kind_has_segments(kind: str) -> None:
    document = read_document(SAMPLES[kind], kind)
    assert document.segments
    assert document.write({}) == SAMPLES[kind]
    words = SegmentTranslation("Éins <&> \"zwei\" 'drei'", ((0, 0),) * len(document.segments[0].tags))
    again = read_document(document.write({0: words}), kind)
    assert again.segments or kind in ("po", "xliff")  # there what has a translation is done


@pytest.mark.parametrize("kind", list(KINDS))
def test_damaged_files_end_in_a_result_or_a_sentence(kind: str) -> None:
    for data in mutations(SAMPLES[kind], seed=list(KINDS).index(kind)):
        use(data, kind)


@pytest.mark.one_of(5, minutes=0.03)
@pytest.mark.parametrize("kind", list(KINDS))
def test_large_and_deep_files_take_bounded_time(kind: str) -> None:
    deep, wide = b"<b>" * 50_000, b"one <b>two</b> " * 20_000
    for data in (
        b"",
        b"\0" * 1000,
        b"\xff\xfe" + b"a\0" * 100,
        deep,
        wide,
        b"a" * 1_000_000,
        b"[" * 50_000,
        b'{"a":' * 50_000,
    ):
        use(data, kind)


@pytest.mark.parametrize("kind", list(KINDS))
def test_text_and_marks_beyond_the_room_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_document(SAMPLES[kind], kind, "file", 1 << 20).segments
    for most, characters in ((1 << 20, 40 if kind == "latex" else 20), (1, 1 << 20)):
        monkeypatch.setitem(kinds._MOST, kind, most)
        with pytest.raises(RegardError, match=r"^file: (?s:.*)has more text, or more lines and marks, than"):
            read_document(SAMPLES[kind], kind, "file", characters)
        assert read_document(SAMPLES[kind], kind, "file").segments


@pytest.mark.parametrize(
    ("kind", "data"), [("markdown", b"a\n\n"), ("markdown", b"- "), ("json", b"1,"), ("html", b"<p>")]
)
def test_what_takes_most_memory_is_refused_at_once(kind: str, data: bytes) -> None:
    began = time.process_time()
    with pytest.raises(RegardError, match="than a server reads at once"):
        read_document(data * 1_100_000, kind, characters=32 << 20)
    assert time.process_time() - began < 1


def test_a_novel_is_read() -> None:
    paragraph = (
        "“It is,” she said, “as *good* as any;” and — as ever — he agreed: 'Quite so!' (He'd not (yet) seen it.)\n\n"
    )
    document = read_document(paragraph.encode() * 10_000, "markdown", characters=32 << 20)
    assert len(document.segments) == 10_000


MEMBERS = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "opendocument": "content.xml",
}
"""The members with text."""


@pytest.mark.parametrize("kind", ["xliff", *MEMBERS])
@pytest.mark.parametrize("doctype", [f"<!DOCTYPE a [{BOMB}]>", OUTSIDE], ids=["bomb", "outside"])
def test_entities_are_refused(kind: str, doctype: str) -> None:
    if kind == "xliff":
        data = XLIFF.replace("<xliff", f"{doctype}<xliff").replace("One", "&e8;&e;").encode()
    else:
        held = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(SAMPLES[kind])) as old, zipfile.ZipFile(held, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == MEMBERS[kind]:
                    at = content.find(b"?>") + 2 if content.startswith(b"<?") else 0
                    content = content[:at] + doctype.encode() + content[at:]
                new.writestr(name, content)
        data = held.getvalue()
    assert "entity" in use(data, kind)
