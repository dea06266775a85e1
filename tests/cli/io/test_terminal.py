"""Terminal capabilities are detected from the environment."""

import io

import pytest

from regard.cli.io.terminal import colour_scheme, say


class Stream(io.StringIO):
    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.terminal, self._encoding = terminal, encoding

    def isatty(self) -> bool:
        return self.terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


@pytest.mark.parametrize(
    ("environment", "terminal", "colours"),
    [
        ({"TERM": "xterm"}, True, "16"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "true"),
        ({"TERM": "xterm-direct"}, True, "true"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, "256"),
        ({"TERM": "dumb"}, True, "none"),
        ({}, True, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, "none"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1"}, False, "256"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False, "none"),
    ],
)
def test_colours(monkeypatch, environment: dict[str, str], terminal: bool, colours: str) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colour_scheme(Stream(terminal)).colours == colours


def test_letters_and_width(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "133")
    assert colour_scheme(Stream(True)).columns == 133
    assert colour_scheme(Stream(True)).unicode
    assert not colour_scheme(Stream(True, "ascii")).unicode
    assert not colour_scheme(Stream(True, "iso8859-1")).unicode


def test_what_is_said_does_not_steer_the_terminal(capsys) -> None:
    say("ev\x1b[31mil\x9b1m.en: ß is no fault")
    assert capsys.readouterr().err == "regard: ev\\x1b[31mil\\x9b1m.en: ß is no fault\n"


def test_a_file_name_does_not_steer_the_terminal(regard, tmp_path) -> None:
    for name, lines in (("ev\x1b[31mil.en", 3), ("a.de", 2)):
        (tmp_path / name).write_text("A line.\n" * lines)
    done = regard("check", "--source", tmp_path / "ev\x1b[31mil.en", "--target", tmp_path / "a.de")
    assert done.code == 1
    assert "misaligned" in done.out
    assert "\x1b" not in done.out + done.err
