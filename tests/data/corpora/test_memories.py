"""Translation memories and catalogues: which two texts of a unit, what of them is text, what is refused."""

import random
import re
import tracemalloc
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.data.checks.pairs import check_pairs
from regard.data.corpora import memories
from regard.data.corpora.memories import Catalogue, XmlMemory
from regard.data.corpora.pairs import open_corpora, open_pairs
from regard.system.errors import RegardError, UsageError
from tests.data.corpora.packed import write
from tests.refusals import refused

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en-US"/><body>\n'
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def unit(**texts: str) -> str:
    sides = "".join(f'<tuv xml:lang="{name.replace("_", "-")}"><seg>{text}</seg></tuv>' for name, text in texts.items())
    return f"<tu>{sides}</tu>\n"


def memory(path: Path, *units: str) -> Path:
    return write(path, HEAD + "".join(units) + "</body></tmx>\n")


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_the_sides_are_the_header_s_language_and_the_only_other_one(tmp_path: Path, ending: str) -> None:
    path = memory(
        tmp_path / f"a.tmx{ending}",
        unit(de="x", en_us="a"),
        unit(de="y"),
        unit(EN_US="b", de=" "),
        unit(en="c", de="z"),
    )
    corpus = open_pairs(path)
    assert isinstance(corpus, XmlMemory)
    assert list(corpus.examples()) == list(corpus.examples()) == [("a", "x"), ("c", "z")]
    assert corpus.left_out == 2
    assert corpus.where(1) == open_pairs(path).where(1) == f"{path}:7"
    turned = open_corpora([], [], [path], "DE, en")[0]
    assert list(turned.examples()) == [("x", "a"), ("z", "c")]
    found = next(one for one in check_pairs([corpus]).findings if one.kind == "untranslated")
    assert (found.count, found.share, found.severity) == (2, 0.5, "note")


def test_of_more_languages_two_are_chosen(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "a.tmx", unit(en_US="a", de_DE="x"), unit(fr="u", en_US="b"), unit(en_GB="c", de="z", sr="s")
    )
    with refused(RegardError, f"{path}:5", "'de', 'de-de', 'en-gb', 'en-us', 'fr', 'sr'", "columns='en,de'"):
        list(open_pairs(path).examples())
    for languages, pairs in ((("en", "de"), [("a", "x"), ("c", "z")]), (("fr", "en-us"), [("u", "b")])):
        assert list(open_pairs(path, keys=languages).examples()) == pairs
    with refused(RegardError, path.with_name("a.tmx:1"), "3 units", "'de', 'de-de', 'en-gb'"):
        list(open_pairs(path, keys=("en", "nl")).examples())
    with refused(UsageError, "columns"):
        open_corpora([], [], [path], "en")
    with refused(UsageError, tmp_path / "a.doc", ".tmx", ".po"):
        open_pairs(tmp_path / "a.doc")


def test_tags_and_codes_are_no_text(tmp_path: Path) -> None:
    code = '<bpt>&lt;b x="<sub>no</sub>"></bpt>Caf&#233; <hi>&amp;\n  <it>&lt;/i></it>bar</hi><ept>&lt;/b></ept>'
    note = "<note>no</note>"
    path = memory(
        tmp_path / "a.tmx", f'<tu>{note}<tuv lang="en"><prop>no</prop><seg>{code}</seg></tuv>{unit(fr="Café")[4:]}'
    )
    assert list(open_pairs(path).examples()) == [("Café & bar", "Café")]


def test_xliff_of_both_kinds(tmp_path: Path) -> None:
    old = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" target-language="de"><body>
        <trans-unit id="1"><source>a <g id="1">b<x id="2"/></g></source><seg-source>no</seg-source>
        <target>x <g id="1">y</g></target><alt-trans><source>no</source><target>no</target></alt-trans></trans-unit>
        <trans-unit id="2"><source>c</source><target state="needs-translation">c</target></trans-unit>
        <trans-unit id="3"><source>d</source></trans-unit></body></file></xliff>"""
    new = """<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:2.0" xmlns:m="urn:m" srcLang="en" trgLang="de">
        <x:file id="f"><x:unit id="1"><m:match><x:source>no</x:source><x:target>no</x:target></m:match>
        <x:segment><x:source>a <x:pc id="1">b<x:ph id="2"/></x:pc></x:source><x:target>x <x:mrk>y</x:mrk></x:target>
        </x:segment><x:ignorable><x:source>no</x:source></x:ignorable><x:segment state="initial"><x:source>c</x:source>
        <x:target>c</x:target></x:segment><x:segment><x:source>d</x:source></x:segment></x:unit></x:file></x:xliff>"""
    for name, text in (("a.xlf", old), ("b.xliff", new)):
        corpus = open_pairs(write(tmp_path / name, text))
        assert isinstance(corpus, XmlMemory)
        assert (list(corpus.examples()), corpus.left_out) == ([("a b", "x y")], 2)
        assert list(open_pairs(tmp_path / name, keys=("de", "en")).examples()) == [("x y", "a b")]


def test_po(tmp_path: Path) -> None:
    text = PO + (
        '# a note\n#: a.c:1\n#, c-format\nmsgid ""\n"one\\n"\n"%d \\"two\\""\nmsgstr "eins\\n%d "\n"\\\\zwei"\n'
        '#, c-format, fuzzy\n#| msgid "no"\nmsgid "f"\nmsgstr "no"\n\nmsgctxt "menu"\nmsgid "cat"\n'
        'msgid_plural "cats"\nmsgstr[0] "Katze"\nmsgstr[1] "Katzen"\nmsgid "open"\nmsgstr ""\n\n'
        '#~ msgid "old"\n#~ msgstr "alt"\n#~| msgid "x"\n'
    )
    path = write(tmp_path / "a.po", text.replace("\n", "\r\n"))
    corpus = open_pairs(path)
    assert isinstance(corpus, Catalogue)
    assert list(corpus.examples()) == [('one %d "two"', "eins %d \\zwei"), ("cat", "Katze")]
    assert (corpus.left_out, corpus.where(0), corpus.where(1)) == (3, f"{path}:7", f"{path}:17")
    assert ("Katze", "cat") in open_corpora([], [], [path], "msgstr,msgid")[0].examples()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "windows-1252"])
def test_xml_in_every_encoding_that_it_names(tmp_path: Path, encoding: str) -> None:
    said = encoding.removesuffix("-sig").removesuffix("-be")
    text = HEAD.replace('"1.0"', f'"1.0" encoding="{said}"', 1) + unit(en="é", de="ü") + "</body></tmx>"
    (tmp_path / "a.tmx").write_bytes((b"\xfe\xff" if encoding.endswith("be") else b"") + text.encode(encoding))
    assert list(open_pairs(tmp_path / "a.tmx").examples()) == [("é", "ü")]


BOMB = (
    '<!DOCTYPE tmx [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
    + "]>"
)


@pytest.mark.parametrize(
    ("name", "content", "line", "holds"),
    [
        ("a.tmx", "", 1, "no element"),
        ("a.tmx", HEAD + unit(en="a", de="x") + "<tu><tuv", 5, "cut off"),
        ("a.tmx", HEAD + unit(en="a\udce9", de="x"), 4, "not well-formed"),
        ("a.tmx", '<?xml version="1.0" encoding="utf-16"?><tmx/>', 1, "encoding"),
        ("a.tmx", '<?xml version="1.0" encoding="undefined"?><tmx/>', 1, "encoding"),
        ("a.tmx", f"{BOMB}\n<tmx><body>{unit(en='&j;', de='x')}</body></tmx>", 1, "entity 'a'"),
        ("a.tmx", '<!DOCTYPE tmx\n[<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><tmx/>', 2, "entity 'x'"),
        ("a.tmx", HEAD + unit(en="caf&eacute;", de="x"), 4, "entity 'eacute'"),
        ("a.tmx", HEAD + "<a>" * 1000, 4, "deep"),
        ("a.xlf", HEAD + '<tu x="' + "a\n" * (9 << 16), None, "16 MiB"),
        ("a.xlf", HEAD + "<tu><tuv><seg>" + "a\n" * (9 << 16), None, "16 MiB"),
        ("a.po", PO + 'msgid "a"\nmsgstr "b\n', 5, "quote"),
        ("a.po", PO + 'msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', 4, "msgstr"),
        ("a.po", PO + 'msgid "a"\n', 4, "cut off"),
        ("a.po", '"a"\n', 1, "entry"),
        ("a.po", PO + 'msgid "a"\nmsgstr "b"\nmsgstr "c"\n', 6, "entry"),
        ("a.po", PO.replace("UTF-8", "CP1251"), 1, "msgconv"),
        ("a.po", PO + 'msgid "a"\nmsgstr ""\n', 1, "1 unit"),
        ("a.po", PO + "msgid\n" + '"a"\n', 4, "PO"),
        ("a.po", PO + 'msgid ""\n' + f'"{"a" * (1 << 16)}"\n' * 17, 20, "16 MiB"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, line: int | None, holds: str
) -> None:
    monkeypatch.setattr(memories, "LONGEST", 1 << 20)
    (tmp_path / name).write_bytes(content.encode(errors="surrogateescape"))
    with refused(RegardError, f"{name}:{line}" if line else None, holds):
        list(open_pairs(tmp_path / name).examples())


def test_nothing_but_pairs_or_a_refusal_comes_of_damaged_files(tmp_path: Path) -> None:
    random_ = random.Random(1)
    good = memory(tmp_path / "a.tmx", *(unit(en=f"a{i}", de=f"x{i}") for i in range(5))).read_bytes()
    for name, content in (("b.tmx", good), ("b.po", (PO + '#, fuzzy\nmsgid "a"\nmsgstr "b"\n' * 5).encode())):
        for _ in range(150):
            raw = bytearray(content[: random_.randrange(len(content))] if random_.random() < 0.3 else content)
            for _ in range(random_.randrange(4)):
                raw[random_.randrange(len(raw))] = random_.randrange(256) if raw else 0
            (tmp_path / name).write_bytes(raw)
            with suppress(RegardError):
                assert all(map(all, open_pairs(tmp_path / name).examples()))


@pytest.mark.long(minutes=0.04)
def test_a_long_segment_and_many_units_in_one_line_take_little_memory(tmp_path: Path) -> None:
    long, many = "x " * 500_000 + "x", unit(en="word " * 20, de="Wort " * 20).replace("\n", "") * 10_000
    assert list(open_pairs(memory(tmp_path / "a.tmx", unit(en=long, de="y"))).examples()) == [(long, "y")]
    path = memory(tmp_path / "b.tmx", many)
    tracemalloc.start()
    assert sum(1 for _ in open_pairs(path).examples()) == 10_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20 < path.stat().st_size


def test_real_files_give_what_a_reader_of_whole_trees_gives(data_folder: Path) -> None:
    for name in ("tmx/tmx.test-match-stat-en-ca.tmx", "tmx/tmx.TMXComplianceKit.ImportTest1G.tmx"):
        path = data_folder / "formats" / name
        texts = [
            re.sub("[ \n]+", " ", "".join(seg.itertext())).strip(" ") for seg in ElementTree.parse(path).iter("seg")
        ]
        assert list(open_pairs(path).examples()) == list(zip(texts[::2], texts[1::2], strict=True))
    corpus = open_pairs(data_folder / "formats/po/sphinx.de.po")
    assert isinstance(corpus, Catalogue)
    assert (sum(1 for _ in corpus.examples()), corpus.left_out) == (170, 699)  # the figures of the folder's README
