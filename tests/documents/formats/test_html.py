import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from regard.documents.formats.html import VALUES, read
from regard.documents.segment import SegmentTranslation
from tests.documents.capitals import in_capitals

PIECES = st.sampled_from(
    "<p>|</p>|<b>|</b>|<i class='x'>|</i>|<A HREF=a title=Go>|</a>|<ul>|<li>|</ul>|<table>|<tr>|<td>|</table>|<div>|"
    "</div>|<span translate=no>|</span>|<br>|<img alt='A cat' src=x>|<code>|</code>|<pre>|</pre>|<script>a<b</script>|"
    "<title>|</title>|<!-- c -->|<!|&copy|&lt;|&nbsp;|<svg>|</svg>|<my-el>|</my-el>|<textarea>|</textarea>|<b/>|< |a|"
    "words| |\n|.|<button>|</button>|<option>|<p translate=yes>".split("|")
)


def shape(page: bytes) -> tuple[list[object], str]:
    """The elements as a browser's parser sees them, values that people read left out, and the text in capitals."""
    elements, text = list[object](), list[str]()
    for node in LexborHTMLParser(page.decode()).root.traverse(include_text=True):  # type: ignore[union-attr]
        if node.tag == "-text":
            text.append(node.text_content or "")
        elif node.tag[0] not in "-_!":
            own = {key: "" if key in VALUES else value for key, value in node.attributes.items()}
            elements.append((node.tag, node.parent.tag if node.parent else "", own))
    return elements, "".join("".join(text).upper().split())


@given(st.lists(PIECES, max_size=30))
@example(["<b>", "a", "<i class='x'>", "words", "</b>", "a", "</i>"])
def test_any_markup_keeps_its_elements(pieces: list[str]) -> None:
    page = "".join(pieces).encode()
    document = read(page)
    assert document.write({}) == page
    assert shape(in_capitals(document)) == shape(page)


def texts(page: str) -> list[str]:
    return [one.text for one in read(page.encode()).segments]


def test_blocks_are_segments_and_inline_elements_their_tags() -> None:
    document = read(b"<ul><LI>One <b>big <i>world</i></b>, <br>\r\n and more<li>two</ul><td>x<td><em>whole</em>")
    assert [one.text for one in document.segments] == ["One big world, and more", "two", "x", "whole"]
    tags = [(tag.begin, tag.end, tag.before, tag.after, tag.parent) for tag in document.segments[0].tags]
    assert tags == [(4, 13, "<b>", "</b>", -1), (8, 13, "<i>", "</i>", 0), (15, 15, "<br> ", "", -1)]
    moved = SegmentTranslation("Welt eins", ((0, 4), (0, 4), (9, 9)))
    assert document.write({0: moved}).startswith(b"<ul><LI><b><i>Welt</i></b> eins<br> <li>two")


def test_a_line_break_ends_a_segment_unless_a_small_letter_follows() -> None:
    assert texts("Anna Bell<br>Mill Lane 5<br><br>see you<br>soon") == ["Anna Bell", "Mill Lane 5", "see you soon"]


def test_code_and_what_says_so_are_not_translated() -> None:
    page = (
        "<p>Call <code>f(<b>x</b>)</code> of <span class='a notranslate'>ACME</span> now<svg><title>t</title></svg> and"
        "<pre>text</pre><p translate=no>No<div translate=no>no <p translate=yes>Yes</div><script>a<b</script>"
        "<textarea>t</textarea><style>p{}</style><p>on<kbd>x"
    )
    assert texts(page) == ["Call f(x) of ACME now and", "Yes", "on"]
    kept = [tag.before for tag in read(page.encode()).segments[0].tags if tag.kept]
    assert kept == ["<code>f(<b>x</b>)</code>", "<span class='a notranslate'>ACME</span>"]


def test_tags_without_a_partner_in_their_block_end_the_segment() -> None:
    assert texts("<p>a <b>bold <i>both</b> rest</i> z") == ["a", "bold", "both", "rest", "z"]
    assert texts("<p>a <b>bold<p>more</b> z") == ["a", "bold", "more", "z"]


def test_links_and_buttons_without_other_words_are_segments() -> None:
    assert texts("<nav><a>Home</a> | <a>About <b>us</b></a> <button>Go</button></nav>") == ["Home", "About us", "Go"]
    assert texts("<p>Read <a>this</a> and <a>that</a></p>") == ["Read this and that"]


def test_values_that_people_read_are_segments_also_within_a_tag() -> None:
    page = (
        b"<meta name=description content=Cats><meta name=author content=Ann><p>See <a title='Go &amp; \"look\"' href=x>"
        b'it <img alt=Cat></a> there<input type=submit value=Send><input value=no placeholder="Name">'
    )
    document = read(page)
    assert [one.text for one in document.segments] == [
        "Cats", "See it there", 'Go & "look"', "Cat", "Send", "Name",
    ]  # fmt: skip
    capitals = in_capitals(document).decode()
    assert '<meta name=description content="CATS">' in capitals
    assert "SEE <a title='GO &amp; &quot;LOOK&quot;' href=x>IT <img alt=\"CAT\"> </a>THERE<input" in capitals
    assert 'value="SEND"><input value=no placeholder="NAME">' in capitals
    assert document.write({3: SegmentTranslation("Katze")}) == page.replace(b"alt=Cat", b'alt="Katze"')


def test_old_encodings_are_kept_and_what_they_lack_is_a_reference() -> None:
    page = '<meta charset="ISO-8859-1"><p>“naïve” &eacute'.encode("cp1252")
    document = read(page)
    assert document.encoding == "cp1252"
    assert document.segments[0].text == "“naïve” é"
    assert document.write({0: SegmentTranslation("“łódź” & é")}) == page[:30] + "“&#322;ód&#378;” &amp; é".encode(
        "cp1252"
    )
    assert read("naïve".encode("cp1252")).encoding == "cp1252"
    assert texts("<?xml version='1.0' encoding='utf-8'?><html><p>Größe<br/>x</p></html>") == ["Größe x"]


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "page",
    [
        "<b>" * 50_000 + "text",
        "<code>" * 30_000 + "</i>" * 30_000,
        "<pre>" + "<i>" * 30_000 + "</u>" * 30_000,
        "<!--" * 200_000,
        "<![CDATA[ <! <? <!DOCTYPE [" * 30_000,
        "<a b=\"'" * 100_000,
        "<a ='\" <a" * 100_000,
        "<a title=" * 100_000 + ">",
        "words and <b>more</b> <br> " * 10_000,
        "<a><img alt=x></a>" * 10_000 + "x",
        "&" * 1_000_000 + "x",
        " " * 1_000_000 + "x" + " " * 1_000_000,
        "</p" * 300_000,
    ],
    ids=range(13),
)
def test_hostile_pages_take_bounded_time(page: str) -> None:
    begin = time.process_time()
    document = read(page.encode())
    assert in_capitals(document).decode().upper().count("<") == page.count("<")
    assert time.process_time() - begin < 10
