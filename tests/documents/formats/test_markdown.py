import time
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from regard.documents.formats.markdown import MarkdownDocument, read
from regard.documents.segment import Place, SegmentTranslation
from tests.documents.capitals import in_capitals

TABLE = "| a | b |\n|---|---|\n| c `\\|` d | *e* |"
PIECES = st.sampled_from(
    [
        *"# ;## ;- ;1. ;> ;    ;\t;\n;\n\n;  \n;\\\n;*;**;_;~~;`a*b`;``c```d``;[;];](x);](x 'T')".split(";"),
        *"![;[ref];[a][ref];|;```\n;<div>\n;</div>\n;- [x] ;(;);---\n;***\n".split(";"),
        *"[];\n\n[ref]: u\n\n;<b>;</b>;<br>;<u@x.y>;<http://x.y>;&amp\\;;&;\\*;\\;words;a;Zwei;. ; ;!;===\n".split(";"),
        TABLE,
    ]
)
SIGNS = st.lists(
    st.sampled_from("* _ ** [ ] ](x) ` # - 1. + > = ~~ $x$ <b> &amp; & \\ | ! :: word Über ， “x”   ".split(" ")),
    max_size=8,
).map("".join)
JUDGE = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])


def shape(text: str) -> tuple[list[object], str]:
    """The elements of the page that a Markdown text becomes, and its text in capitals."""
    elements, words = list[object](), list[str]()
    for node in LexborHTMLParser(JUDGE.render(text)).root.traverse(include_text=True):  # type: ignore[union-attr]
        if node.tag == "-text":
            words.append(node.text_content or "")
        elif node.tag[0] not in "-_!":
            own = {key: "" if key == "alt" else value for key, value in node.attributes.items()}
            elements.append((node.tag, node.parent.tag if node.parent else "", own))
    return elements, "".join("".join(words).upper().split())


@given(st.lists(PIECES, max_size=25))
@example(["*", "a", "**", "a", "*", " ", "a", "**"])
@example(["***", "a", "**", "Zwei", "*", " ", "[ref]", "\n\n[ref]: u\n\n"])
def test_any_markup_keeps_its_structure(pieces: list[str]) -> None:
    text = "".join(pieces)
    document = read(text.encode())
    assert document.write({}) == text.encode()
    assert shape(in_capitals(document).decode()) == shape(text)


def nested_places(data: st.DataObject, document: MarkdownDocument, number: int, size: int) -> tuple[Place, ...]:
    """Any places of a segment's tags that are nested as the tags are, neighbours apart."""
    found, free = list[Place](), dict[int, int]()
    for tag in document.segments[number].tags:
        begin, end = found[tag.parent] if tag.parent >= 0 else (0, size)
        begin = data.draw(st.integers(max(begin, free.get(tag.parent, 0)), end))
        free[tag.parent] = begin if tag.begin == tag.end else data.draw(st.integers(begin, end))
        found.append((begin, free[tag.parent]))
    return tuple(found)


@given(
    st.sampled_from(["", "# ", "> - ", "| x |\n|---|\n| "]),
    st.lists(
        st.sampled_from("a |**b** |*c* |_d_ |***e** f* |[g](u) |[ref] |~~h~~ |`i` |![j](k) |[**l** m][ref] ".split("|"))
    ),
    st.data(),
)
def test_any_translation_is_read_as_it_was_meant(before: str, marks: list[str], data: st.DataObject) -> None:
    text = f"{before}word {''.join(marks)}\n\n[ref]: u\n"
    document = read(text.encode())
    number = next(n for n, one in enumerate(document.segments) if one.text.startswith("word"))
    words = data.draw(SIGNS.filter(str.strip))
    places = nested_places(data, document, number, len(words))
    written = document.write({number: SegmentTranslation(words, places)}).decode()
    (before_elements, _), (elements, _) = shape(text), shape(written)
    assert Counter(map(repr, (one[::2] for one in elements))) == Counter(
        map(repr, (one[::2] for one in before_elements))
    )


def texts(text: str) -> list[str]:
    return [one.text for one in read(text.encode()).segments]


def test_blocks_are_segments_and_marks_their_tags() -> None:
    text = (
        "# One *two* #\r\n\r\n> A **b** [c](d 'e')\r\n> and `f` <u@x.y>.\r\n> - [x] g\r\n\r\nH\r\n===\r\n\r\n"
        "| a | b \\| c |\r\n|---|---|\r\n| d `e \\| f` | **g** |\r\n\r\n```\r\nno\r\n```\r\n\r\n    no\r\n\r\n---\r\n"
    )
    document = read(text.encode())
    assert [one.text for one in document.segments] == [
        "One two", "A b c and f u@x.y.", "g", "H", "a", "b | c", "d e | f", "g",
    ]  # fmt: skip
    capitals = in_capitals(document).decode()
    assert capitals == (
        "# ONE *TWO* #\r\n\r\n> A **B** [C](d 'e') AND `f` <u@x.y>.\r\n> - [x] G\r\n\r\nH\r\n===\r\n\r\n"
        "| A | B \\| C |\r\n|---|---|\r\n| D `e \\| f` | **G** |\r\n\r\n```\r\nno\r\n```\r\n\r\n    no\r\n\r\n---\r\n"
    )


def test_a_hard_break_ends_a_segment_unless_a_small_letter_follows() -> None:
    document = read(b"> Anna Bell  \n> Mill Lane\\\n> and more\n")
    assert [one.text for one in document.segments] == ["Anna Bell", "Mill Lane and more"]
    assert in_capitals(document) == b"> ANNA BELL  \n> MILL LANE\\\n>  AND MORE\n"


def test_title_and_description_of_the_front_matter_are_segments() -> None:
    document = read(b'---\ntitle: A "b": c\n---\n')
    assert [one.text for one in document.segments] == []
    document = read(b"\xef\xbb\xbf---\ntitle: Hello\ntags: [no]\ndescription: 'Big thing'\n---\nText\n")
    assert [one.text for one in document.segments] == ["Hello", "Big thing", "Text"]
    written = document.write({0: SegmentTranslation('Sag "Hallo"')})
    assert written.startswith(b'\xef\xbb\xbf---\ntitle: "Sag \\"Hallo\\""\ntags: [no]\ndescription: \'Big thing\'\n')


def test_references_keep_their_names() -> None:
    document = read(b"See [here] and [*it*][] and ![logo] [^1].\n\n[^1]: The note\n\n[here]: u\n[*it*]: v\n[logo]: w\n")
    assert [one.text for one in document.segments] == ["See here and it and .", "The note"]
    assert in_capitals(document).startswith(
        b"SEE [HERE][here] AND [*IT*][*it*] AND ![logo] [^1].\n\n[^1]: THE NOTE\n\n[here]: u"
    )


def test_images_html_formulas_and_directives() -> None:
    text = (
        "![A cat](cat.png) sits $x_1*y_2*z$ <b>here</b> <!-- no --> now\n\n"
        "<div><h1>Title</h1>\n<img alt=Logo></div>\n\n:::{note}\nInside\n:::\n"
    )
    document = read(text.encode())
    assert [one.text for one in document.segments] == [
        "sits $x_1*y_2*z$ here now", "A cat", "Title", "Logo", "Inside",
    ]  # fmt: skip
    assert in_capitals(document).decode() == (
        "![A CAT](cat.png) SITS $x_1*y_2*z$ <b>HERE</b> <!-- no --> NOW\n\n"
        '<div><h1>TITLE</h1>\n<img alt="LOGO"></div>\n\n:::{note}\nINSIDE\n:::\n'
    )


def test_what_would_be_markup_is_escaped_and_what_flanks_badly_is_html() -> None:
    document = read(b"A **b** c\n")

    def written(text: str, begin: int, end: int) -> str:
        return document.write({0: SegmentTranslation(text, ((begin, end),))}).decode().rstrip("\n")

    assert written("2 * 3_4 [x] & b.", 14, 15) == "2 * 3_4 [x] & **b**."
    assert written("1986. Ein *b*", 6, 9) == "1986\\. **Ein** \\*b\\*"
    assert written("これは「重要」です", 3, 7) == "これは<strong>「重要」</strong>です"


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 30_000, "![" * 30_000, "*a " * 10_000, "**_ a" * 5_000, "> " * 30_000 + "a", "- " * 30_000 + "a",
        "$$ a" * 8_000, "[a](" * 20_000, "<a " * 30_000, "a <!--" * 8_000, "\\" * 30_000, "words  \n" * 8_000,
        "<div>\n" * 20_000, "".join("`" * (n % 300) + "a" for n in range(300)), "---\n" + "a: b\n" * 10_000,
        "".join(f"[{n}]: u\n" for n in range(3_000)) + "\n" + "[1] a\n\n" * 3_000, "-\ta\n\n\tb\n\n" * 2_000,
    ],
    ids=range(17),
)  # fmt: skip
def test_hostile_texts_take_bounded_time(text: str) -> None:
    begin = time.process_time()
    document = read(text.encode())
    assert document.write({}) == text.encode()
    in_capitals(document)
    assert time.process_time() - begin < 10
