"""The completion that ``regard --install-completion`` installs, asked as a shell asks it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from regard.cli import app
from regard.cli.completion import current_shell
from regard.system.errors import UsageError
from tests.refusals import refused

COMMANDS = [name for name in app if not name.startswith("-")]
ASKED = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _regard; printf '%s\\n' "${COMPREPLY[@]}" """


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZSH", raising=False)
    monkeypatch.delenv("ZSH_CUSTOM", raising=False)
    return tmp_path


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    done = subprocess.run(
        [shutil.which("bash") or "bash", "--norc", "-c", ASKED, "bash", str(script), *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=script.parent,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_choices_and_paths(regard, home: Path) -> None:
    script = home / "regard.bash"
    assert regard("--install-completion", "--shell", "bash", "--output", script).code == 0
    (home / "model").mkdir()
    assert completed(script, "regard", "") == COMMANDS
    assert completed(script, "regard", "tr") == ["train", "translate"]
    assert "--nbest" in completed(script, "regard", "translate", "model", "--")
    assert completed(script, "regard", "train", "--resume", "") == ["auto", "must", "never"]
    assert completed(script, "regard", "translate", "mo") == ["model"]


@pytest.mark.parametrize(("shell", "startup"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", None)])
def test_startup_file_is_changed_once(regard, home: Path, shell: str, startup: str | None) -> None:
    for _ in range(2):
        done = regard("--install-completion", "--shell", shell)
        assert (done.code, done.out) == (0, "")
    (script,) = (path for path in home.rglob("*regard*") if path.is_file())
    assert "regard" in script.read_text(encoding="utf-8")
    assert str(script) in done.err
    written = [path.name for path in home.iterdir() if path.is_file()]
    assert written == ([startup] if startup else [])
    if startup:
        named = str(script if shell == "bash" else script.parent)
        assert sum(named in line for line in (home / startup).read_text(encoding="utf-8").splitlines()) == 1


def test_a_named_file_leaves_the_startup_file_alone(regard, home: Path) -> None:
    assert regard("--install-completion", "--shell", "zsh", "--output", home / "here").code == 0
    assert [path.name for path in home.iterdir()] == ["here"]


def test_unknown_shell_is_refused(regard, monkeypatch: pytest.MonkeyPatch) -> None:
    regard("--install-completion", "--shell", "tcsh").refuses("'fish'")
    for name in ("ZSH_VERSION", "BASH_VERSION", "FISH_VERSION", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: subprocess.CompletedProcess(words, 1, "", ""))
    with refused(UsageError, "--shell"):
        current_shell()
    monkeypatch.setenv("SHELL", "/usr/bin/pwsh")
    with refused(UsageError, "--shell"):
        current_shell()
