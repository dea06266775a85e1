"""``regard translate`` of documents: files, folders and patterns, resume, what is refused, and what is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main
from regard.data.corpora.pairs import open_pairs
from regard.documents import translate
from regard.inspection import SHIPPED

TEXT = "The dog sees the cat.\n\nThe horse\nsleeps.\n"
WANTED = "Der Hund sieht die Katze.\n\nDas Pferd schläft.\n"
MODEL = str(SHIPPED[0])


def run(*words: object) -> int:
    return main(["translate", MODEL, *map(str, words)])


def test_a_document_comes_out_in_its_format(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert run("--input", tmp_path / "a.txt", "--format", "text", "--output", tmp_path / "b.txt") == 0
    assert (tmp_path / "b.txt").read_text() == WANTED
    told = capsys.readouterr().err
    assert "2 segments translated; 0 left as they are" in told
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]
    assert run("--input", tmp_path / "a.txt", "--format", "text") == 0
    assert capsys.readouterr().out == WANTED
    (tmp_path / "c.html").write_text("<pre>A dog sleeps.</pre>")
    assert run("--input", tmp_path / "c.html", "--output", tmp_path / "d.html") == 0
    assert "nothing in it is text to translate" in capsys.readouterr().err


def test_a_run_that_was_ended_goes_on(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    (tmp_path / "a.txt").write_text("".join(f"The dog sees {n} cats.\n\n" for n in range(1, 40)))
    asked, real = list[int](), translate.SegmentTranslator.__call__

    def some(self: Any, segments: Any) -> Any:
        asked.append(len(segments))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(self, segments)

    monkeypatch.setattr(translate.SegmentTranslator, "__call__", some)
    monkeypatch.setattr("regard.cli.io.lines.chunks.__defaults__", (10, 1 << 15))
    monkeypatch.setattr("regard.runs.results_file.EVERY", 0.0)
    options = ["--input", tmp_path / "a.txt", "--format", "text", "--output", tmp_path / "b.txt", "--processes", "1"]
    assert run(*options) == 130
    assert not (tmp_path / "b.txt").exists()
    assert run(*options) == 0
    assert asked == [10, 10, 10, 10, 9]
    assert "resuming after text 10" in capsys.readouterr().err
    assert (tmp_path / "b.txt").read_text().count("Der Hund sieht") == 39


def test_folders_and_patterns(tmp_path: Path, capsys: Any) -> None:
    source, format = tmp_path / "in", ("--format", "text")
    (source / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt"):
        (source / name).write_text("The dog sees the cat.\n")
    assert run("--input", source, "--output", tmp_path / "out", *format) == 0
    for name in ("a.txt", "deep/b.txt"):
        assert (tmp_path / "out" / name).read_text() == "Der Hund sieht die Katze.\n"
    assert run("--input", source, "--output", tmp_path / "out", *format) == 0
    assert capsys.readouterr().err.count("it stays as it is") == 2
    assert run("--input", source / "**" / "b.txt", "--output", tmp_path / "other", *format) == 0
    assert [str(path.relative_to(tmp_path / "other")) for path in (tmp_path / "other").rglob("*.txt")] == ["deep/b.txt"]


def test_a_document_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.docx").write_bytes(b"no zip")
    (tmp_path / "in" / "b.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe dog sees the cat.\n")
    assert run("--input", tmp_path / "in", "--output", tmp_path / "out") == 1
    told = capsys.readouterr().err
    assert "a.docx: is no" in told
    assert "1 of 2 documents could not be translated" in told
    assert "Der Hund sieht die Katze." in (tmp_path / "out" / "b.srt").read_text()


@pytest.mark.parametrize("language", ["de_AT", "fr"])
def test_a_catalogue_in_another_language_is_told(language: str, tmp_path: Path, capsys: Any) -> None:
    header = f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: {language}\\n"\n\n'
    header = header.replace("\\nLanguage", '\\n"\n"Language')
    (tmp_path / "a.po").write_text(f'{header}msgid "The dog sees the cat."\nmsgstr ""\n')
    assert run("--input", tmp_path / "a.po", "--output", tmp_path / "b.po") == 0
    told = "a.po says that it is translated into fr, but the model writes de" in capsys.readouterr().err
    assert told == (language == "fr")
    assert 'msgstr "Der Hund sieht die Katze."' in (tmp_path / "b.po").read_text()


MEMORY = """<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>The horse sleeps.</seg></tuv><tuv xml:lang="de"><seg>PFERD!</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>The dog sees the black cat.</seg></tuv><tuv xml:lang="de"><seg>Schwarz.</seg></tuv></tu>
</body></tmx>"""


@pytest.mark.parametrize(("kind", "ending"), [("xliff", "xlf"), ("tmx", "tmx")])
def test_what_a_memory_has_and_what_is_learned_from(kind: str, ending: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "m.tmx").write_text(MEMORY)
    files = ("--input", tmp_path / "a.txt", "--format", "text", "--output", tmp_path / "b.txt")
    assert run(*files, "--memory", tmp_path / "m.tmx", "--bilingual", kind) == 0
    assert (tmp_path / "b.txt").read_text() == "Der Hund sieht die Katze.\n\nPFERD!\n"
    assert "1 of them by the memory" in capsys.readouterr().err
    beside = tmp_path / f"b.txt.{ending}"
    assert ("Schwarz." in beside.read_text()) == (kind == "xliff")
    pairs = [tuple(pair) for pair in open_pairs(beside).examples()]
    assert pairs == [("The dog sees the cat.", "Der Hund sieht die Katze."), ("The horse sleeps.", "PFERD!")]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--format", "word"], "is no kind of document"),
        (["--format", "text", "--json"], "is for texts"),
        (["--format", "text", "--nbest", "2"], "is for texts"),
        (["--format", "text", "--sample"], "draws"),
        (["--format", "text", "--memory", "none.tmx"], "none.tmx"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str], sentence: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert run("--input", tmp_path / "a.txt", *options) == 2
    assert sentence in capsys.readouterr().err


def test_files_that_are_no_documents(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    assert run("--input", tmp_path / "a.pdf", "--output", tmp_path / "b.pdf") == 2
    assert "is a document (.pdf)" in capsys.readouterr().err
    (tmp_path / "a.txt").write_bytes(b"ok \xff\n")
    assert run("--input", tmp_path / "a.txt", "--format", "text", "--output", tmp_path / "b.txt") == 1
    assert "a.txt: is not UTF-8 from line 1 on" in capsys.readouterr().err
    assert run("--input", tmp_path / "none.docx", "--output", tmp_path / "b.docx") == 2
    assert run("--input", tmp_path, "--output", tmp_path / "out") == 2
    assert "there is no document" in capsys.readouterr().err


def test_a_bilingual_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt.xlf").write_text("corrected")
    asked = ("--input", tmp_path / "a.txt", "--format", "text", "--bilingual", "xliff")
    assert run(*asked, "--output", tmp_path / "b.txt") == 2
    assert "perhaps with corrections" in capsys.readouterr().err
    assert (tmp_path / "b.txt.xlf").read_text() == "corrected"
    assert run(*asked) == 2
    assert "name that by --output" in capsys.readouterr().err


def test_a_folder_is_read_once_and_not_into_its_own_output(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe dog sees the cat.\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    for _ in range(2):
        assert run("--input", tmp_path / "**" / "*.srt", "--output", tmp_path / "out") == 0
    assert [str(path.relative_to(tmp_path)) for path in (tmp_path / "out").rglob("*.srt")] == ["out/a.srt"]
    assert run("--input", tmp_path, "--output", tmp_path) == 2
    assert "is the input itself" in capsys.readouterr().err
    assert run("--input", "/dev/zero", "--format", "html", "--output", tmp_path / "zero") == 1
    assert "is no file" in capsys.readouterr().err
