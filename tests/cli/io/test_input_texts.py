"""Texts as arguments, in a file or on stdin: the same results, and an error for probable mistakes."""

import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard

from regard.cli.io.input_texts import InputTexts
from regard.system.errors import UsageError
from tests.refusals import refused

OF_TEXTS = ("translate", "classify", "tag", "fill", "encode", "generate")
ONE_OBJECT = (
    '{"text": "--JSON", "tokens": [6, 0], "pieces": ["▁6", "▁0"], "score": -0.5, "confidence": 1.0, '
    '"words": [{"text": "--JSON", "begin": 0, "end": 6, "confidence": 0.5}], "calibrated": false}\n'
)


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("texts", "out"),
    [
        (["A man sleeps."], "A MAN SLEEPS.\n"),
        (["a", "b c", "a"], "A\nB C\nA\n"),
        ([""], "\n"),
        (["", "a", ""], "\nA\n\n"),
        (["a\nb\r\nc"], "A B C\n"),
        (["-1"], "-1\n"),
        (["--", "--beam", "-x", "-", "", "in.txt"], "--BEAM\n-X\n-\n\nIN.TXT\n"),
        (["a", "--", "--b"], "A\n--B\n"),
        (["a", "--beam", "2", "b"], "A\nB\n"),
        (["--beam", "2", "a", "b"], "A\nB\n"),
        (["--json", "--", "--json"], ONE_OBJECT),
        (["a=b", "['x']", '{"y": 1}'], "A=B\n['X']\n{\"Y\": 1}\n"),
        (["x" * 5000], "X" * 5000 + "\n"),
        (["日本 🙂"], "日本 🙂\n"),
        ([str(number) for number in range(2500)], "".join(f"{number}\n" for number in range(2500))),
    ],
    ids=lambda value: None if len(str(value)) > 40 else str(value),
)
def test_a_line_out_for_each_argument(shout, texts: list[str], out: str) -> None:
    done = shout(*texts, stdin=b"never read\n")
    assert (done.code, done.out, done.err) == (0, out, "")


def test_the_folder_may_stand_behind_two_dashes_too(shout, regard) -> None:
    assert regard("translate", "--", "model", "in.txt", "--a").out == "IN.TXT\n--A\n"


def test_bytes_that_are_not_valid_are_replaced(shout) -> None:
    done = shout("a", os.fsdecode(b"a\xffb"))
    assert done.out == "A\nA\ufffdB\n"
    assert done.err == "regard: arguments: 1 line was not valid UTF-8 and had bytes replaced: 2\n"


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.txt"], "in.txt: is a file, but arguments are texts; give it as --input, or put its name after --"),
        (["pipe"], "pipe: is a file, but arguments are texts"),
        (["-"], "stdin is read where there are no texts, or by --input -"),
        (["- item"], "there is no option '- item'; put a text that begins with - after --."),
        (["--item one"], "there is no option '--item one'; put a text that begins with - after --."),
        (["-x"], "there is no option '-x'; put a text that begins with - after --."),
        (["a", "--input", "in.txt"], "--input: the texts are arguments already; give these or a file of texts"),
        (["a", "--input", "-"], "--input: the texts are arguments already"),
        (["", "--input", "in.txt"], "--input: the texts are arguments already"),
        (["--input", "absent"], "absent: no such file"),
        (["--input"], "--input"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_loaded(shout, loaded, words: list[str], said: str) -> None:
    os.mkfifo("pipe")
    loaded(None)
    done = shout(*words, stdin=b"a\n")
    done.refuses(said)
    assert "between quotes" not in done.err


@pytest.mark.one_of(3)
@pytest.mark.parametrize("command", OF_TEXTS)
def test_every_command_that_reads_texts_takes_them_all_three_ways(regard, command: str, tmp_path: Path) -> None:
    out = " ".join(regard(command, "--help").out.split())
    assert "--input" in out
    assert "--output" in out
    assert "begins with -" in out
    (tmp_path / "in.txt").write_text("a\n")
    done = regard(command, tmp_path / "absent", tmp_path / "in.txt")
    assert (done.code, "is a file, but arguments are texts" in done.err) == (2, True)
    done = regard(command, tmp_path / "absent", "a", "--input", tmp_path / "in.txt")
    assert (done.code, "arguments already" in done.err) == (2, True)
    assert "no such folder" in regard(command, tmp_path / "absent", "A man sleeps.", "").err


def test_several_words_without_quotes_are_told_where_one_text_is_wanted(regard) -> None:
    said = "regard: there is no place for 'cat' 'sleeps'; a text of several words goes between quotes\n"
    regard("attend", "model", "The", "cat", "sleeps").refuses(said)
    for words in (["attend", "model", "The cat", "sleeps"], ["info", "base", "more"], ["export", "a", "b", "c"]):
        done = regard(*words)
        assert done.code == 2
        assert "there is no place for" in done.err
        assert "quotes" not in done.err


def test_words_without_quotes_are_texts_and_the_quotes_are_named(shout) -> None:
    done = shout("A", "man", "sleeps.")
    assert done.out == "A\nMAN\nSLEEPS.\n"
    assert done.err == "regard: 3 texts, a word each; put quotes around a text of several words\n"
    assert shout("A man", "sleeps", "well").err == ""


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress, zstandard.compress])
def test_a_file_of_texts(shout, packed: Any) -> None:
    Path("some").write_bytes(packed(b"\xef\xbb\xbfa\nb \xff\n\nd"))
    done = shout("--input", "some", stdin=b"never read\n")
    assert (done.code, done.out) == (0, "A\nB \ufffd\n\nD\n")
    assert done.err == "regard: some: 1 line was not valid UTF-8 and had bytes replaced: 2\n"


REFUSED = "page.html.gz post.mdx page.php notes.org book.asciidoc App.vue".split()
READ = "page.html README.md film.SRT messages.po letter.docx".split()


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("command", "name"),
    [*(("translate", name) for name in REFUSED), *(("ask", name) for name in (*REFUSED, *READ))],
)
def test_a_document_is_refused_where_its_lines_would_be_written_anew(
    command: str, name: str, regard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("<p>A man sleeps.</p>\n")
    done = regard(command, "model", "--input", name, "--output", "out")
    done.refuses(f"regard: {name}: is a document", 2)
    assert "take out its text, a sentence or paragraph a line" in done.err
    assert not Path("out").exists()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["texts.txt", "test.en", "texts", "v1.html.txt", "texts.txt.gz", "test.de.gz"])
def test_lines_of_text_are_no_document(name: str, shout) -> None:
    Path(name).write_bytes(gzip.compress(b"a\n") if name.endswith(".gz") else b"a\n")
    assert shout("--input", name).out == "A\n"


@pytest.mark.parametrize("words", [["--input", "-"], ["--input=-"], ["--input", "-", "--output", "-"]])
def test_a_dash_is_stdin(shout, words: list[str]) -> None:
    assert shout(*words, stdin=b"a\nb\n").out == "A\nB\n"


def test_a_file_that_is_no_text_is_told(shout) -> None:
    Path("photo").write_bytes(b"\x89PNG\0\0")
    shout("--input", "photo").refuses("regard: photo: is not UTF-8 text but a picture\n", 1)


def test_a_pipe_is_answered_as_it_comes(shout) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=[b"a\nb\n"])
    writer.start()
    assert shout("--input", "pipe").out == "A\nB\n"
    writer.join()


def test_a_terminal_is_told_how_it_ends(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"a\n")))
    assert list(InputTexts().lines()) == ["a"]
    assert capsys.readouterr().err == "regard: reading from the terminal, a text a line; Ctrl-D ends it\n"


def test_how_much_is_read_is_known_of_files_and_arguments(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(b"aaa\nbbb\ncc\n\n")
    packed.write_bytes(gzip.compress(b"aaa\n"))
    shares = []
    for given in (InputTexts((), plain), InputTexts(["aaa", "bbb", "cc", ""]), InputTexts((), packed)):
        lines = given.lines()
        next(lines)
        shares.append(given.share)
        list(lines)
        shares.append(given.share)
    assert shares == [4 / 12, 1, 4 / 12, 1, None, None]
    with refused(UsageError, "absent"):
        InputTexts((), tmp_path / "absent")
