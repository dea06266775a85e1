"""Fragments with tags: untouched they come out byte for byte, translated with every tag once, and well-formed."""

import re
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from regard.documents.segment import SegmentTranslation, TextDocument, unchanged
from regard.serving.markup import markup_of, read
from regard.system.errors import RegardError
from tests.documents.capitals import shouted

X = frozenset(("x",))
NUMBERED = re.compile(r"</?[bfi]\d+ ?/?>")
TEXTS = st.sampled_from(
    "a|words here|. | |\n  |&lt;|&amp;|&#228;|ß 12 %s|<![CDATA[b < c]]>|<!-- c -->|<?pi a?>".split("|")
)
EMPTY = st.sampled_from(("<br/>", '<x id="12"></x>', "<č\n/>", "<x/>", '<g a=">" b=\'"\'/>'))
NAMES = st.sampled_from("b|i|par|x|ns:g|a|č".split("|"))
FRAGMENTS = st.recursive(
    TEXTS | EMPTY,
    lambda inner: st.builds(
        lambda name, parts: f"<{name} k='v'>{''.join(parts)}</{name}>", NAMES, st.lists(inner, max_size=4)
    ),
    max_leaves=20,
)
SETS = st.frozensets(st.sampled_from(("x", "par", "b", "br")), max_size=2)
SCRAPS = st.lists(
    st.sampled_from("<|>|/|<b>|</b>|<x|a|&|;|amp|'|\"|=| |!|--|[CDATA[|]]>|?|<!DOCTYPE a|\0|é".split("|"))
)


def translate(document: TextDocument) -> str:
    return document.splice({number: shouted(one) for number, one in enumerate(document.segments)})


def texts(text: str, *options: Any, **more: Any) -> list[str]:
    return [one.text for one in read(text, "xml", *options, **more).segments]


def shape(fragment: str) -> tuple[list[object], list[object]]:
    """All elements with what they are in, and all else without its place; an independent parser's."""
    root = etree.fromstring(
        f"<fragment xmlns:ns='urn:n'>{fragment}</fragment>".encode(), etree.XMLParser(strip_cdata=False)
    )
    found = [one for one in root.iter() if isinstance(one.tag, str)]
    ends = [one.getparent().tag if one is not root else "" for one in found]
    others = sorted((str(one.tag), one.text) for one in root.iter() if not isinstance(one.tag, str))
    return [(one.tag, dict(one.attrib), end) for one, end in zip(found, ends, strict=True)], list(others)


def content(fragment: str, *skip: str) -> str:
    """The text of a fragment in capitals, without blanks."""
    root = etree.fromstring(f"<fragment xmlns:ns='urn:n'>{fragment}</fragment>".encode())
    etree.strip_elements(root, *skip, with_tail=False)
    return "".join(
        "".join(root.itertext(etree.Element, "fragment", *{one.tag for one in root.iter(etree.Element)}))
        .upper()
        .split()
    )


@given(st.lists(FRAGMENTS, max_size=6).map("".join), SETS, SETS, SETS, st.booleans())
@example('<x id="1"></x> of <x id="2"></x> files', X, frozenset(), frozenset(), True)
def test_any_xml_keeps_its_elements(text: str, ignore: Any, splitting: Any, never: Any, outline: bool) -> None:
    document = read(text, "xml", ignore, splitting, never, outline)
    assert document.splice({}) == text
    written = translate(document)
    assert shape(written) == shape(text)
    assert content(written) == content(text)
    if "&" not in text and "CDATA" not in text:
        assert document.splice({number: unchanged(one) for number, one in enumerate(document.segments)}) == text
    kept = [tag for one in document.segments for tag in one.tags if tag.kept]
    assert all(tag.before in text and tag.before in written for tag in kept)


@given(SCRAPS.map("".join))
def test_what_is_no_xml_is_refused_and_the_rest_stays_well_formed(text: str) -> None:
    try:
        document = read(text, "xml", X)
    except RegardError:
        return
    assert document.splice({}) == text
    if "<!DOCTYPE" not in text:
        assert Counter(str(one) for one in shape(translate(document))[0]) == Counter(str(one) for one in shape(text)[0])


@given(SCRAPS.map("".join), SETS, SETS, SETS)
def test_any_html_comes_out_as_it_was(text: str, ignore: Any, splitting: Any, never: Any) -> None:
    document = read(text, "html", ignore, splitting, never)
    assert document.splice({}) == text
    assert translate(document).upper().count("<B>") == text.upper().count("<B>")


def test_placeholders_of_a_catalogue_come_back_once_where_the_words_went() -> None:
    document = read('Remove <x id="7"></x> of <x id="30"></x>\nfiles &amp; <b>folders</b>?', "xml", X)
    (segment,) = document.segments
    assert segment.text == "Remove of \nfiles & folders?"
    text = "Von die Dateien\n& Ordner < entfernen?"
    place = text.index("entfernen")
    moved = SegmentTranslation(text, ((place, place), (4, 4), (18, 24)))
    assert document.splice({0: moved}) == (
        'Von <x id="30"></x>die Dateien\n&amp; <b>Ordner</b> &lt; <x id="7"></x> entfernen?'
    )


def test_a_blank_on_either_side_of_a_placeholder_is_one_for_the_model() -> None:
    for text, read_as in (
        ("a <x/><x/> b", "a b"),
        ("a <x/> <x/> b", "a b"),
        ("a<x> </x>b", "a b"),
        ("a\n<x/> b", "a\nb"),
    ):
        document = read(text, "xml", X)
        assert [one.text for one in document.segments] == [read_as]
        assert document.splice({0: unchanged(document.segments[0])}) == text


def test_what_is_ignored_is_kept_with_its_tags() -> None:
    text = 'Press <x><b>Save</b> &amp; "go"</x> or <x>leave</x>.'
    (segment,) = read(text, "xml", X).segments
    assert segment.text == 'Press Save & "go" or leave.'
    assert [(tag.before, tag.kept) for tag in segment.tags] == [
        ('<x><b>Save</b> &amp; "go"</x>', True), ("<x>leave</x>", True),
    ]  # fmt: skip
    assert texts("<x>all</x>", X) == []
    assert texts("a<x>b<par>c</par></x>d", X, frozenset(("par",))) == ["abcd"]


def test_elements_beside_which_no_text_stands_are_segments() -> None:
    text = "<doc>\n<title>A <i>t</i></title><body><par>One. Two.</par>\n<par>Three</par></body></doc>"
    assert texts(text) == ["A t", "One. Two.", "Three"]
    assert texts("<b>Hello</b> <i>you</i>") == ["Hello", "you"]
    assert texts("<b>Hello</b> <i>you</i>", non_splitting_tags=frozenset("bi")) == ["Hello you"]
    assert texts("<b>Hello</b> <i>you</i>", outline=False) == ["Hello you"]
    assert texts("So <b><i>they</i><u>say</u></b>.") == ["So theysay."]


def test_elements_that_split_do_so_anywhere() -> None:
    par = frozenset(("par", "br"))
    assert texts("He said <i>one <par>two</par> three<br/>four</i> five", X, par) == [
        "He said",
        "one",
        "two",
        "three",
        "four",
        "five",
    ]
    assert texts("He said <par>one</par>.", X, par, par) == ["He said one."]


def test_html_may_have_other_elements_that_split_or_are_kept() -> None:
    text = "<p>One <mark>two</mark> <li>three</li></p>"
    assert [one.text for one in read(text, "html").segments] == ["One two", "three"]
    assert [one.text for one in read(text, "html", splitting_tags=frozenset(("mark",))).segments] == [
        "One",
        "two",
        "three",
    ]
    assert [
        one.before for one in read("a <mark>b</mark> c", "html", frozenset(("mark",))).segments[0].tags if one.kept
    ] == ["<mark>b</mark>"]
    assert [one.text for one in read(text, "html", non_splitting_tags=frozenset(("li",))).segments] == ["One two three"]
    assert translate(read("<meta charset=latin1>für", "html")) == "<meta charset=latin1>FÜR"


@given(
    st.lists(st.sampled_from("<b0>|</b0>|<f1/>|<i12 />|</i12>|<i12>|a|words | & |<|<b>|\n| ".split("|"))).map("".join)
)
def test_numbered_tags_come_out_once_whether_they_are_pairs_or_not(text: str) -> None:
    document = read(text, "numbered")
    (segment,) = document.segments
    assert document.splice({0: unchanged(segment)}) == text == document.splice({})
    assert markup_of([segment.text]) == "text"
    tags = [one for tag in segment.tags for one in (tag.before.strip(), tag.after) if one]
    assert sorted(tags) == sorted(found[0] for found in NUMBERED.finditer(text))


def test_numbered_tags_are_pairs_where_they_can_be() -> None:
    (segment,) = read("Press <b0/> <f1>now & <i2>x < y</f1></i2>", "numbered").segments
    assert segment.text == "Press now & x < y"
    assert [(tag.begin, tag.end, tag.before, tag.after) for tag in segment.tags] == [
        (6, 6, "<b0/> ", ""), (6, 17, "<f1>", "</f1>"), (12, 12, "<i2>", ""), (17, 17, "</i2>", ""),
    ]  # fmt: skip
    assert markup_of(["<b>", "a <b 0>", "< b0>", "<B0>"]) == "text"
    assert markup_of(["a", "<b0>"]) == "numbered"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<b>a", "line 1: is not XML, or is cut off: mismatched tag"),
        ("a\n</b>", "line 2"),
        ("a & b", "not well-formed"),
        ("a < b", "not well-formed"),
        ("a</fragment><fragment>b", "junk"),
        ("&unknown;", "undefined entity"),
        ('<!DOCTYPE a [<!ENTITY b "cc">]><a>&b;</a>', "declares the entity 'b'"),
        ("<b>" * 1001 + "a" + "</b>" * 1001, "nested more than"),
    ],
)
def test_malformed_xml_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        read(text, "xml")


def test_whole_documents_and_entities_of_html_are_read() -> None:
    text = '<?xml version="1.0" encoding="latin-1"?>\n<!DOCTYPE a>\n<a>f&uuml;r&nbsp;dich</a>'
    assert texts(text) == ["für\N{NO-BREAK SPACE}dich"]
    assert translate(read(text, "xml")) == text.replace("f&uuml;r&nbsp;dich", "FÜR\N{NO-BREAK SPACE}DICH")


@pytest.mark.one_of(3, minutes=0.02)
@pytest.mark.parametrize(
    "text",
    [
        "<b>" * 999 + "a" + "</b>" * 999,
        "a <x/>" * 50_000,
        "<p><b>a</b></p>" * 20_000,
        "a &lt;" * 50_000,
        "&lt;" * 50_000,
        "<!-- -->" * 50_000 + "a",
        "<?b?>" * 50_000 + "a",
    ],
)
def test_large_texts_take_linear_time(text: str) -> None:
    begin = time.process_time()
    document = read(text, "xml", X)
    assert document.splice({}) == text
    assert time.process_time() - begin < 5
