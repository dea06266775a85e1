"""Catalogues in JSON and YAML, read by json and PyYAML as well."""

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.formats.catalogue import read_json, read_yaml
from regard.documents.segment import Document, SegmentTranslation, unchanged
from regard.system.errors import RegardError
from tests.documents.capitals import in_capitals

TEXTS = st.text("ab AB.,:#'\"\\{}[]&*!|>-?%@`~<é日😀\n\t\x07\u2028", max_size=20)


def texts(document: Document) -> list[str]:
    return [one.text for one in document.segments]


def test_values_are_translated_and_all_else_stays() -> None:
    raw = (
        '\ufeff{\r\n  "home":\t{"title" : "Hello, {{ user_name }}!\\n", "n": 1.50e3, "on": true},\r\n'
        '  "list": ["One \\u0026 two", [], "Zw\\u00f6lf", ""],\r\n'
        '  "trans": "Click <0>here</0> or <b>there</b>, $t(other.key) %{count} times"\r\n}\r\n\r\n'
    )
    document = read_json(raw.encode())
    assert document.write({}) == raw.encode()
    assert texts(document) == [
        "Hello, {{ user_name }}!\n",
        "One & two",
        "Zwölf",
        "",
        "Click here or there, $t(other.key) %{count} times",
    ]
    assert [one.where for one in document.segments] == ["home.title", "list", "list", "list", "trans"]
    shouted = raw.replace("One \\u0026 two", "ONE & TWO").replace("Zw\\u00f6lf", "ZWÖLF")
    for word in ("Hello", "Click", ">here", "or", ">there", "times"):
        shouted = shouted.replace(word, word.upper())
    assert in_capitals(document).decode() == shouted


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *(
            (value, True)
            for value in ("Save", "OK", "Yes/No", "e-mail", "Don't", "N/A", "Grüße_an", "登录/注册/x", "to be")
        ),
        *((value, True) for value in ("Hello,{{user_name}}!", "<b>Save</b><i>all</i>", "a_b c", "x=y, said he")),
        *(
            (value, False)
            for value in ("btn_ok", "home.title", "https://a.b", "mailto:a@b.c", "/usr/lib", "./x", "#fff")
        ),
        *((value, False) for value in ("camelCase", "mp3", "a/b/c", "text-align-left", "rgb(1, 2, 3)", "x=y", "C:\\x")),
        *(
            (value, False)
            for value in ("2024-01-01T10:00Z", f"data:image/png;base64,{'A' * 300}", "{first_name}.{last}")
        ),
    ],
)
def test_words_of_programs_are_left(value: str, read: bool) -> None:
    assert bool(read_json(json.dumps({"a": value}).encode()).segments) == read
    assert bool(read_yaml(yaml.safe_dump({"a": value}).encode()).segments) == read


def test_what_describes_a_message_is_left() -> None:
    chrome = {
        "hi": {"message": "Hi $X$", "description": "a", "placeholders": {"x": {"content": "$1", "example": "Ann"}}}
    }
    arb = {"@@locale": "en", "hi": "Hi", "@hi": {"description": "a", "placeholders": {"b": {"example": "c d"}}}}
    own = {"message": "Hi", "title": "You there", "description": "a"}
    plain = {"description": "All of it", "note": "b"}
    for value, found in ((chrome, ["Hi $X$"]), (arb, ["Hi"]), (own, ["Hi", "You there"]), (plain, ["All of it", "b"])):
        assert texts(read_json(json.dumps(value).encode())) == found


def test_texts_of_a_choice_are_translated_where_it_is_all_of_a_message() -> None:
    whole = (
        "{n, plural, offset:1 =0 {no file} one {# file} other {{g, select, f {her # <b>files</b>} other {{name}'s}}}}"
    )
    left = [
        "You have {n, plural, one {# file} other {# files}}",
        "{n, plural, one {it''s '{'} other {b}}",
        "{n, plural, one",
    ]
    raw = json.dumps([whole, *left, "{n, number} files"])
    document = read_json(raw.encode())
    assert texts(document) == ["no file", "# file", "her # files", "{name}'s", "{n, number} files"]
    shouted = whole
    for word in ("no file", "# file}", "{her ", "<b>files"):
        shouted = shouted.replace(word, word.upper().replace("<B>", "<b>"))
    shouted = shouted.replace("}'s", "}'S")
    assert json.loads(in_capitals(document)) == [shouted, *left, "{n, number} FILES"]
    first = SegmentTranslation("l'# \"d'{n}\"", ((2, 3),))
    assert json.loads(document.write({1: first}))[0] == whole.replace("# file}", "l''# \"d''{n}\"}")


YAML = """\ufeff# a comment: with a colon
en: &all
  title: Hello, world   # said
  'key one': "She said: \\"x\\"\\n"
  single: 'it''s   # here'
  folded plain: one
    two
  n: 12
  yes: no
  none: ~
  date: 2024-01-01
  list: [ One two, "three, four", {a: Five six} ]
  text: |-

    left
  literal: |
    Dear Ann,

      two
    three
  folded: >+
    one
    two

    three

  - not: a
"""
YAML = YAML.replace("\n  - not: a\n", "\n").replace("  text: |-\n\n    left\n", "")


def test_yaml_keeps_comments_anchors_and_styles() -> None:
    for raw in (YAML, YAML.replace("\n", "\r\n")):
        document = read_yaml(raw.encode())
        assert document.write({}) == raw.encode()
        assert texts(document) == [
            "Hello, world",
            'She said: "x"\n',
            "it's   # here",
            "one two",
            "One two",
            "three, four",
            "Five six",
            "Dear Ann,\n\n  two\nthree",
            "one two\nthree",
        ]
        assert document.segments[6].where == "en.list.a"
        written = in_capitals(document).decode()
        shouted = raw.replace("one\r\n    two", "one two").replace("one\n    two", "one two")
        for word in (
            "Hello, world",
            "She said",
            "\\x",
            "it''s   # here",
            "one two",
            "One two",
            "three, four",
            "Five six",
            "Dear Ann",
            "  two",
            "three",
        ):
            shouted = shouted.replace(word, word.upper())
        assert written == shouted.replace('\\"x\\"', '\\"X\\"')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Ja: nein", '"Ja: nein"'),
        ("Ja #1", '"Ja #1"'),
        ("ja", "ja"),
        ("yes", '"yes"'),
        ("12", '"12"'),
        ("- x", '"- x"'),
        ("a:", '"a:"'),
        ('a "b" [c]', 'a "b" [c]'),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("@x", '"@x"'),
    ],
)
def test_a_value_is_quoted_where_it_needs_it(text: str, written: str) -> None:
    document = read_yaml(b"a: Some text\nb: 1\n")
    assert document.write({0: SegmentTranslation(text)}).decode() == f"a: {written}\nb: 1\n"
    flow = read_yaml(b"[Some text, 1]").write({0: SegmentTranslation("a, b")})
    assert yaml.safe_load(flow) == ["a, b", 1]


def capitals(value: object) -> object:
    if isinstance(value, dict):
        return {key: capitals(one) for key, one in value.items()}
    if isinstance(value, list):
        return [capitals(one) for one in value]
    return value


VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(VALUES, TEXTS, st.sampled_from([None, 2]), st.booleans())
def test_any_json(value: object, text: str, indent: int | None, ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()
    document = read_json(data)
    assert document.write({}) == data
    again = document.write({number: unchanged(one) for number, one in enumerate(document.segments)})
    assert json.loads(again) == value
    other = document.write(
        {number: SegmentTranslation(text) for number, one in enumerate(document.segments) if not one.tags}
    )
    assert re.sub('"[^"]*"', "", re.sub(r"\\.", "", other.decode())) == re.sub(
        '"[^"]*"', "", re.sub(r"\\.", "", data.decode())
    )


@given(VALUES, TEXTS, st.sampled_from([None, "'", '"', "|", ">"]), st.sampled_from([None, True, False]))
def test_any_yaml(value: object, text: str, style: str | None, flow: bool | None) -> None:
    data = yaml.safe_dump(value, default_style=style, default_flow_style=flow, allow_unicode=True, width=30).encode()
    document = read_yaml(data)
    assert document.write({}) == data
    again = document.write({number: unchanged(one) for number, one in enumerate(document.segments)})
    assert yaml.safe_load(again) == value
    if "\n" not in text and style not in ("|", ">"):
        other = document.write(
            {number: SegmentTranslation(text) for number, one in enumerate(document.segments) if not one.tags}
        )
        assert shape(yaml.safe_load(other)) == shape(value)


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        (read_json, b'{"a": "b",}', "line 1: is not JSON"),
        (read_json, b'{\n"a": "b', "line 2: is not JSON: Unterminated string"),
        (read_json, b"[" * 100_000, "nested more than 100 deep"),
        (read_json, b"[" * 300 + b"]" * 300, "nested more than 100 deep"),
        (read_json, b"1" * 5000, "too many digits"),
        (read_json, b"", "line 1: is not JSON"),
        (read_json, b'{"a": "\xff"}', "is not UTF-8"),
        (read_yaml, b"a: [b\nc: d", "line 2: is not YAML"),
        (read_yaml, b"[" * 100_000, "nested more than 100 deep"),
        (read_yaml, b"- " * 5000 + b"a", "nested more than 100 deep"),
        (read_yaml, b"a: \x00", "holds NUL characters"),
        (read_yaml, b"a: 'b", "is not YAML"),
    ],
)
def test_what_cannot_be_read_is_refused(read: object, data: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read(data)


@pytest.mark.long(minutes=0.06)
def test_bombs_and_long_texts_take_no_more_than_their_size() -> None:
    bomb = "a0: &a0 [x y]\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert texts(read_yaml(bomb.encode())) == ["x y"]
    for piece in ("a b ", "/", "/ ", "{", "{a, plural, one {", "`", "%", "a_", "$t(", "<b>", "\\n", "' "):
        text = piece * (20_000 // len(piece))
        in_capitals(read_json(f'["{text}"]'.encode()))
        in_capitals(read_yaml(f'- "{text}"\n'.encode()))
        in_capitals(read_yaml(f"- |\n  x{text}\n- >\n  x{text}\n".encode()))
    many = json.dumps([f"text {number}" for number in range(5_000)]).encode()
    assert len(in_capitals(read_json(many))) == len(many)
    assert len(in_capitals(read_yaml(many.replace(b", ", b",\n")))) == len(many)
