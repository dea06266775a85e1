"""XLIFF 1 and 2: parsed by lxml."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from regard.data.corpora.memories import XmlMemory
from regard.documents.formats.xliff import read
from regard.documents.segment import render, unchanged
from regard.system.errors import RegardError
from regard.text.lines import InvalidLines
from tests.documents.capitals import in_capitals

OLD = '<xliff version="1.2"><file source-language="en" target-language="de"><body>{}</body></file></xliff>'
NEW = '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="u">{}</unit></file></xliff>'
BROKEN = {"filters.xliff.filters3.file-XLIFFFilter-invalid-content.xlf", "modules.valid.Good-pgs_plural.xlf"}
REVIEW = 'state="needs-review-translation" state-qualifier="leveraged-mt"'


def test_files_come_out_as_they_went_in_and_parse_when_translated(data_folder: Path) -> None:
    found = 0
    for folder in ("xliff1", "xliff2"):
        for path in sorted((data_folder / "formats" / folder).iterdir()):
            data = path.read_bytes()
            if path.name in BROKEN:
                with pytest.raises(RegardError, match="is not XML"):
                    read(data)
                continue
            document = read(data)
            assert document.write({}) == data
            after = in_capitals(document)
            etree.fromstring(after)
            assert not read(after).segments  # and nothing is translated twice
            for one in document.segments:
                assert sorted(re.findall(r"<[^>]*>", render(one, unchanged(one))))
            found += len(document.segments)
    assert found > 70


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        ("<source>a</source>", f"<source>a</source><target {REVIEW}>A</target>"),
        ("\n  <source> a\n</source>\n", f"\n  <source> a\n</source>\n  <target {REVIEW}> A\n</target>\n"),
        ('<source>a</source><target xml:lang="de"/>', f'<source>a</source><target xml:lang="de" {REVIEW}>A</target>'),
        (
            '<source>a</source><target state="new">a</target>',
            f"<source>a</source><target {REVIEW.replace('e-', 'e-', 1)}>A</target>",
        ),
        ('<source>a</source><target state="new">b</target>', None),
        ("<source>a</source><target>a</target>", None),
        (
            "<source>a</source><alt-trans><source>c</source><target>b</target></alt-trans>",
            f"<source>a</source><target {REVIEW}>A</target><alt-trans><source>c</source><target>b</target></alt-trans>",
        ),
        (
            '<source>a b</source><seg-source><mrk mid="1" mtype="seg">a b</mrk></seg-source>',
            '<source>a b</source><seg-source><mrk mid="1" mtype="seg">a b</mrk></seg-source>'
            f'<target {REVIEW}><mrk mid="1" mtype="seg">A B</mrk></target>',
        ),
        (
            "<source>&lt;b class='a'&gt;b&lt;/b&gt; &amp;nbsp;c</source>",
            "<source>&lt;b class='a'&gt;b&lt;/b&gt; &amp;nbsp;c</source>"
            f"<target {REVIEW}>&lt;b class='a'&gt;B&lt;/b&gt; &amp;nbsp;C</target>",
        ),
        (
            '<source xml:space="preserve">a  <g id="1">b<x id="2"/></g> &amp; &lt;<bpt id="3">&lt;i></bpt>c'
            '<ept id="3">&lt;/i></ept><mrk mtype="protected">d</mrk></source>',
            '<source xml:space="preserve">a  <g id="1">b<x id="2"/></g> &amp; &lt;<bpt id="3">&lt;i></bpt>c'
            '<ept id="3">&lt;/i></ept><mrk mtype="protected">d</mrk></source>'
            f'<target xml:space="preserve" {REVIEW}>A  <g id="1">B<x id="2"/></g> &amp; &lt;<bpt id="3">&lt;i></bpt>C'
            '<ept id="3">&lt;/i></ept><mrk mtype="protected">d</mrk></target>',
        ),
    ],
)
def test_target_of_version_1(unit: str, written: str | None) -> None:
    data = OLD.format(f"<trans-unit id='1'>{unit}</trans-unit>").encode()
    after = in_capitals(read(data)).decode()
    assert after == OLD.format(f"<trans-unit id='1'>{written or unit}</trans-unit>")


def test_what_is_not_to_be_translated_stays() -> None:
    unit, group = "<trans-unit id='1'{}><source>a</source></trans-unit>", "<group translate='no'>{}</group>"
    for attribute, count in (("", 1), (" translate='no'", 0), (" approved='yes'", 0)):
        assert len(read(OLD.format(unit.format(attribute)).encode()).segments) == count
    for attribute, count in (("", 0), (" translate='yes'", 1)):
        assert len(read(OLD.format(group.format(unit.format(attribute))).encode()).segments) == count


def test_target_of_version_2_has_the_state_translated() -> None:
    source = (
        '<source>One <pc id="1">two<ph id="2"/></pc> <sc id="3"/>three<ec startRef="3"/> <cp hex="0001"/>'
        '<mrk id="m" translate="no">four</mrk></source>'
    )
    raw = NEW.format(f'<notes><note>n</note></notes><segment state="initial">\n {source}\n</segment>')
    document = read(raw.encode())
    (one,) = document.segments
    assert one.text == "One two three four"
    assert [(tag.before[:4], one.text[tag.begin : tag.end], tag.kept) for tag in one.tags] == [
        ("<pc ", "two", False),
        ("<ph ", "", False),
        ("<sc ", "three", False),
        ("<cp ", "", False),
        ("<mrk", "four", True),
    ]
    target = source.replace("source", "target").replace("One", "ONE").replace("two", "TWO").replace("three", "THREE")
    written = raw.replace("initial", "translated").replace(source, f"{source}\n {target}")
    assert in_capitals(document).decode() == written


def test_codes_that_cross_are_elements_without_text() -> None:
    source = '<source>a <sc id="1"/>b <sc id="2"/>c<ec startRef="1"/> d<ec startRef="2"/> <ec isolated="yes"/></source>'
    (one,) = read(NEW.format(f"<segment>{source}</segment>").encode()).segments
    assert [(tag.before[:3], tag.after[:3]) for tag in one.tags] == [
        ("<sc", "<ec"),
        ("<sc", ""),
        ("<ec", ""),
        ("<ec", ""),
    ]


def test_a_span_that_is_not_translated_and_may_end_elsewhere_is_left() -> None:
    segment = "<segment><source>a <sm id='1' translate='no'/>b</source></segment>"
    assert not read(NEW.format(segment).encode()).segments


def test_what_it_writes_is_read_as_pairs(tmp_path: Path) -> None:
    for number, raw in enumerate(
        (
            OLD.format("<trans-unit id='1'><source>a</source></trans-unit>"),
            NEW.format("<segment><source>a</source></segment>"),
        )
    ):
        path = tmp_path / f"{number}.xlf"
        path.write_bytes(in_capitals(read(raw.encode())))
        assert [pair.sides() for _, pair in XmlMemory(path).records(InvalidLines())] == [("a", "A")]


@given(st.text("ab <>&\"'\n\t]é", min_size=1), st.sampled_from([OLD, NEW]), st.sampled_from(["utf-8", "utf-16"]))
def test_any_text(text: str, outer: str, encoding: str) -> None:
    name = "trans-unit" if outer is OLD else "segment"
    text = re.sub("<(?=[ab/])", "< ", text)
    root = etree.fromstring(outer.format(f'<{name}><source xml:space="preserve"/></{name}>'))
    source = next(root.iter("source"))
    source.text = text
    data = etree.tostring(root, encoding=encoding, xml_declaration=True)
    document = read(data)
    assert document.write({}) == data
    targets = [one.text for one in etree.fromstring(in_capitals(document)).iter("target")]
    assert targets == ([source.text.upper()] if text.strip() else [])


CODES = st.recursive(
    st.sampled_from(
        ["word", " ", '<x id="1"/>', '<ph id="2">&lt;br></ph>', '<bx id="3"/>', '<ex id="3"/>', "<!-- c -->"]
    )
    | st.sampled_from(['<bpt id="4">{</bpt>', '<ept id="4">}</ept>', '<mrk mtype="protected">a <g id="5">b</g></mrk>']),
    lambda inner: st.lists(inner, max_size=4).map(lambda some: f'<g id="6">{"".join(some)}</g>'),
)


@given(st.lists(CODES, min_size=1, max_size=6).map("".join))
def test_nested_codes_come_out_as_they_went_in(inner: str) -> None:
    unit = "<trans-unit id='1'><source xml:space=\"preserve\">{}</source>{}</trans-unit>"
    document = read(OLD.format(unit.format(inner, "")).encode())
    for one in document.segments:
        target = f'<target xml:space="preserve" {REVIEW}>{inner.replace("<!-- c -->", "")}</target>'
        assert document.write({0: unchanged(one)}).decode() == OLD.format(unit.format(inner, target))
    assert bool(document.segments) == any(word in inner for word in ("word", "a <g"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<html><body/></html>", "begins with <html>; it is no XLIFF"),
        (b"<xliff", "is not XML"),
        (b"", "is not XML"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "declares the entity 'a'"),
        (b'<?xml version="1.0" encoding="utf-8"?><xliff>\xe4</xliff>', "is not XML"),
        (b"<xliff>" + b"<group>" * 2000 + b"</group>" * 2000 + b"</xliff>", "nested more than 1000 deep"),
    ],
)
def test_what_is_no_xliff_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read(data)


@pytest.mark.long(minutes=0.03)
def test_a_long_text_in_one_unit_takes_no_more_than_its_size() -> None:
    for piece in (
        "a b ",
        '<x id="1"/>',
        "<g>a</g>",
        '<bx id="1"/>a',
        "<!-- -->a",
        "<![CDATA[a]]>",
        '<ph id="1">a</ph> b',
    ):
        source = f"<trans-unit><source>{piece * (50_000 // len(piece))}</source></trans-unit>"
        assert len(in_capitals(read(OLD.format(source).encode()))) > 50_000
    deep = f"<trans-unit><source>{'<g>' * 900}a{'</g>' * 900}</source></trans-unit>"
    etree.fromstring(in_capitals(read(OLD.format(deep).encode())), etree.XMLParser(huge_tree=True))
