"""Catalogues of gettext: read by polib, checked by msgfmt where it is installed."""

import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.formats.po import read
from regard.documents.segment import SegmentTranslation, unchanged
from regard.system.errors import RegardError
from tests.documents.capitals import in_capitals

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
FILES = ["sphinx.de", "sphinx.fr", "drf.de", "drf.fr", "pydocs-fr/appendix", "pydocs-fr/floatingpoint"]
WITH_PLURALS = (
    HEADER
    + '"Plural-Forms: nplurals=3; plural=n%10==1 ? 0 : n%10>=2 ? 1 : 2;\\n"\n\n'
    + 'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
)


def checked(data: bytes, folder: Path) -> None:
    """As msgfmt has it; where it is not installed, as polib reads it."""
    (folder / "x.po").write_bytes(data)
    polib.pofile(str(folder / "x.po"))
    if program := shutil.which("msgfmt"):
        done = subprocess.run([program, "--check", "--use-fuzzy", "-o", "/dev/null", "x.po"], cwd=folder, stderr=-1)
        assert not done.returncode, done.stderr.decode()


@pytest.mark.parametrize("name", FILES)
def test_entries_without_a_translation_get_one(name: str, data_folder: Path, tmp_path: Path) -> None:
    data = (data_folder / "formats" / "po" / f"{name}.po").read_bytes()
    document, before = read(data), polib.pofile(data.decode())
    assert document.write({}) == data
    after = in_capitals(document)
    checked(after, tmp_path)
    for old, new in zip(before, polib.pofile(after.decode()), strict=True):
        assert (old.msgid, old.msgctxt, old.comment) == (new.msgid, new.msgctxt, new.comment)
        if old.translated() or old.fuzzy or old.obsolete:
            assert (old.msgstr, old.msgstr_plural, old.flags) == (new.msgstr, new.msgstr_plural, new.flags)
        else:
            assert new.fuzzy
            assert (new.msgstr or new.msgstr_plural[0]).lower() == old.msgid.lower()


@given(st.lists(st.text('ab \n\t"\\%<>*`:|é', min_size=1, max_size=30), max_size=5), st.booleans())
def test_any_text_comes_out_as_it_went_in(texts: list[str], crlf: bool) -> None:
    made = polib.POFile(wrapwidth=20)
    made.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for number, text in enumerate(texts):
        made.append(polib.POEntry(msgid=text, msgctxt=str(number), flags=["c-format"] * (number % 2)))
    data = (str(made) + "\n").replace("\n", "\r\n" if crlf else "\n").encode()
    document = read(data)
    assert document.write({}) == data
    after = document.write({number: unchanged(one) for number, one in enumerate(document.segments)})
    assert [entry.msgstr for entry in polib.pofile(after.decode())] == texts


def test_flag_stands_before_the_entry_and_line_feeds_break_the_string() -> None:
    entry = '#: a.c:1\n#, c-format\n#| msgid "old"\nmsgid ""\n"one %d\\n"\n"two\\n"\nmsgstr ""\n'
    raw = f'{HEADER}\n{entry}\n#: b\nmsgid "x y"\nmsgstr ""'
    written = in_capitals(read(raw.encode())).decode()
    assert written == (
        f'{HEADER}\n#: a.c:1\n#, fuzzy, c-format\n#| msgid "old"\nmsgid ""\n"one %d\\n"\n"two\\n"\n'
        'msgstr ""\n"ONE %d\\n"\n"TWO\\n"\n\n#: b\n#, fuzzy\nmsgid "x y"\nmsgstr "X Y"'
    )


def test_roles_and_code_are_kept_and_titles_are_read() -> None:
    text = "See :ref:`the *list* <a-b>` of ``x = 1``, :meth:`~list.pop`, `more <http://x>`_ and "
    text += "<b>all &amp; <br>some</b> of `it'."
    (one,) = read(f'{HEADER}\nmsgid "{text}"\nmsgstr ""\n'.encode()).segments
    assert one.text == "See the *list* of x = 1, list.pop, more and all & some of `it'."
    tags = [(tag.before, tag.after, one.text[tag.begin : tag.end], tag.kept) for tag in one.tags]
    assert tags == [
        (":ref:`", " <a-b>`", "the *list*", False),
        ("``x = 1``", "", "x = 1", True),
        (":meth:`~list.pop`", "", "list.pop", True),
        ("`", " <http://x>`_", "more", False),
        ("<b>", "</b>", "all & some", False),
        ("&amp;", "", "&", True),
        ("<br>", "", "", False),
    ]


def test_plural_stands_in_all_forms_that_print_a_number(tmp_path: Path) -> None:
    for rule, first in (("", "%d FILES"), ("n==1 ? 0 : ", "ONE FILE")):
        data = WITH_PLURALS.replace("plural=", f"plural={rule}").encode()
        after = in_capitals(read(data))
        forms = polib.pofile(after.decode())[0].msgstr_plural
        assert forms == {0: first, 1: "%d FILES", 2: "%d FILES"}
    german = WITH_PLURALS.replace('msgstr[2] ""\n', "")
    assert [one.text for one in read(german.encode()).segments] == ["one file", "%d files"]
    only_plural = read(german.encode()).write({1: SegmentTranslation("%d Dateien")})
    assert polib.pofile(only_plural.decode())[0].msgstr_plural == {0: "one file", 1: "%d Dateien"}


@pytest.mark.parametrize(
    ("text", "given", "written"),
    [
        ("%s of %s, %d%%", "% von %s %s% %s, %d%% %", " von %s %s , %d%% "),
        ("%(a)s %(b)d", "%(b)d %(a)s %(a)s %x", "%(b)d %(a)s  x"),
        ("all", "alle %", "alle "),
    ],
)
def test_a_placeholder_too_many_is_left_out_of_a_format(text: str, given: str, written: str) -> None:
    raw = f'{HEADER}\n#, python-format\nmsgid "{text}"\nmsgstr ""\n'
    document = read(raw.encode())
    assert not document.segments[0].tags
    assert polib.pofile(document.write({0: SegmentTranslation(given)}).decode())[0].msgstr == written
    other = read(raw.replace("python-format", "no-c-format").encode())
    assert polib.pofile(other.write({0: SegmentTranslation(given)}).decode())[0].msgstr == given


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'msgid "a\nmsgstr ""\n', "line 1.*no line of a PO file"),
        (b'"a"\n', "line 1.*does not belong"),
        (b'msgid "a"\nmsgstr "\xe4"\n', "is not UTF-8 from line 2"),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=klingon\\n"\n', "klingon"),
    ],
)
def test_what_is_no_catalogue_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=f"(?s){message}"):
        read(data)


@pytest.mark.long(minutes=0.03)
def test_a_long_text_in_one_entry_takes_no_more_than_its_size() -> None:
    for piece in ("a b ", "`", "<a ", ":a.", "*a ", "|a", "&", '\\"', "<b>", "``a "):
        text = piece * (50_000 // len(piece))
        document = read(
            f'{HEADER}\nmsgid ""\n"{text}"\n\nmsgid "b"\nmsgstr ""\n'.replace(
                '\n\nmsgid "b"', '\nmsgstr ""\n\nmsgid "b"'
            ).encode()
        )
        assert len(in_capitals(document)) > len(text)
    lines = "".join('"a"\n' for _ in range(20_000))
    assert len(read(f'{HEADER}\nmsgid ""\n{lines}msgstr ""\n'.encode()).segments[0].text) == 20_000
