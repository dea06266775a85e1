"""Output targets: pipes and devices are written directly, and the input is never overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.io.exchange import OutputFile, descriptor
from regard.cli.io.input_texts import InputTexts
from regard.system.errors import UsageError
from tests.cli.conftest import reading
from tests.refusals import refused


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "in.txt"], "in.txt: is the input itself; choose another --output"),
        (["--output", "link"], "link: is the input itself"),
        (["--output", "hard"], "hard: is the input itself"),
        (["--output", "./in.txt"], "in.txt: is the input itself"),
        (["--output", "folder"], "folder: is a folder; name a file"),
        (["--output", "absent/out"], "absent/out: cannot be written: there is no folder"),
        (["--output", ""], "--output: name a file"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_loaded(shout, loaded, words: list[str], said: str) -> None:
    Path("link").symlink_to("in.txt")
    os.link("in.txt", "hard")
    Path("folder").mkdir()
    loaded(None)
    before = sorted(os.listdir())
    shout("--input", "in.txt", *words).refuses(said)
    assert Path("in.txt").read_text() == "a\nb\n"
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("name", ["out.partial", "out.partial.log"])
def test_what_lies_beside_the_file_is_not_the_input_either(shout, name: str) -> None:
    Path(name).write_text("a\n")
    shout("--input", name, "--output", "out").refuses("out: is the input itself")
    assert Path(name).read_text() == "a\n"


def test_stdin_may_be_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("a\n")
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with refused(UsageError, "a"):
            OutputFile(path, InputTexts())
        assert OutputFile(path, InputTexts(["a text"])).file == path
        assert OutputFile(tmp_path / "b", InputTexts()).file == tmp_path / "b"


def test_a_link_stays_one_and_what_it_names_becomes_the_file(shout) -> None:
    Path("there").mkdir()
    for before in (None, "before"):
        if before:
            Path("there/out").write_text(before)
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("there/out")
        assert shout("a", "--output", "link").code == 0
        assert Path("link").is_symlink()
        assert Path("there/out").read_text() == "A\n"
        assert os.listdir("there") == ["out"]


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_by_its_names(shout, output: str) -> None:
    done = shout("a", "--output", output)
    assert (done.code, done.out, done.err) == (0, "A\n", "")


def test_a_pipe_gets_each_text_as_it_is_answered(shout) -> None:
    with reading("pipe") as found:
        done = shout("--input", "in.txt", "--output", "pipe")
    assert (done.code, done.out, done.err, found) == (0, "", "", [b"A\nB\n"])
    assert sorted(os.listdir()) == ["in.txt", "pipe"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_that_is_full_is_named(shout) -> None:
    assert shout("a", "--output", "/dev/null").code == 0
    said = "regard: /dev/full: cannot be written: No space left on device\n"
    shout("a", "--output", "/dev/full").refuses(said, 1)


def test_a_redirected_stdout_is_appended_to_under_its_name_too(tmp_path: Path) -> None:
    """A file behind ``>>`` is neither replaced nor cut."""
    (tmp_path / "out").write_text("before\n")
    code = "from regard.cli.io.exchange import *; from pathlib import Path\n"
    code += "with OutputFile(Path('/dev/fd/3'), InputTexts(['a'])).stream() as file: file.write(b'after\\n')"
    with (tmp_path / "out").open("ab") as file:
        script = f'exec {sys.executable} -c "$0" 3>&1'
        done = subprocess.run(["sh", "-c", script, code], stdout=file, check=False)
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == "before\nafter\n"


def test_descriptors_by_name() -> None:
    names = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/63", "/proc/self/fd/4", "/dev/null", "a", "/dev/fd/x"]
    assert [descriptor(Path(name)) for name in names] == [0, 1, 2, 63, 4, None, None, None]
