"""The command line: fast help, one-sentence errors, documented exit codes, and the completion that it installs."""

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import regard.cli as cli
from regard.cli import BEGIN, EXAMPLES
from regard.config import TASKS
from regard.system import kernels
from regard.system.errors import Diverged, NoValidCheckpoint, RegardError, Stopped, UsageError
from tests.cli.fakes import Unaware

TRAIN = ["train", "--source", "a", "--target", "b", "--output", "x"]
COMMANDS = [name for name in cli.app if not name.startswith("-")]
ASKED = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _regard; printf '%s\\n' "${COMPREPLY[@]}" """


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["regard", "regard.cli"])
def test_help_names_every_command(module: str) -> None:
    done = python("-m", module, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert all(name in done.stdout for name in COMMANDS)


HEAVY = ["torch", "numpy", "pydantic", "sacrebleu", "tokenizers", "regard.config"]
OTHERS = [f"regard.cli.{module}" for module in ("train", "attend", "evaluate", "generation", "model_folders")]


@pytest.mark.parametrize(("words", "modules", "there"), [([], HEAVY, []), (["pack"], OTHERS, OTHERS[-1:])])
def test_help_loads_nothing_heavy_and_a_command_no_other(
    words: list[str], modules: list[str], there: list[str]
) -> None:
    code = f"import sys, regard.cli; regard.cli.main([*{words}, '--help'])\n"
    done = python("-c", f"{code}print([module for module in {modules} if module in sys.modules])")
    assert done.stdout.splitlines()[-1] == str(there)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_explains_every_option_and_ends_with_examples_of_its_own(regard, command: str) -> None:
    """And each of them is a command line that is understood."""
    done = regard(command, "--help").succeeds()
    found = cli.app[command].assemble_argument_collection(default_parameter=cli.NO_NEGATIVES, parse_docstring=True)
    for argument in found:
        if argument.names == ("*",) or not argument.parse:  # a group of options, which follow; or for Python alone
            continue
        assert argument.parameter.help, (command, argument.name)
        assert max(argument.names, key=len) in done.out
    out = " ".join(done.out.split())
    assert EXAMPLES.keys() == set(COMMANDS)
    for line in EXAMPLES[command]:
        assert " ".join(line.split()) in out
        assert len(line) < 79
        words = shlex.split(re.sub(r"^.* \| | [<>] \S+", "", line))
        assert words[:2] == ["regard", command]
        cli._check_options(words[1:])
        cli.app.parse_args(words[1:], exit_on_error=False, print_error=False)


def test_help_names_what_comes_in_and_how_it_goes_on(regard) -> None:
    out = " ".join(regard("import", "--help").out.split())
    assert all(kind in out for kind in "Marian NLLB RoBERTa XLM-R DistilBERT CTranslate2 Argos PEFT".split())
    assert "adapt.rank" in regard("train", "--help").out


def test_help_says_how_to_begin_and_which_defaults_are_worth_telling(regard) -> None:
    out = regard("--help").out
    assert all(line in out for line in BEGIN)
    out = regard("train", "--help").out
    assert "default: False" not in out
    assert "[default: auto]" in out


def test_version(regard) -> None:
    import regard as package

    lines = regard("--version").out.splitlines()
    assert lines[0] == f"regard {package.__version__}"
    assert [line.split()[0] for line in lines] == ["regard", "Python", *cli.LIBRARIES, "kernels"]
    assert lines[-1].split()[1] == kernels.in_use()


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["trian"], "Did you mean 'train'?"),
        (["translat", "model"], "Did you mean 'translate'?"),
        (["train", "--sorce", "a", "--output", "b"], "Did you mean '--source'?"),
        (["translate", "model", "--beams", "5"], "Did you mean '--beam'?"),
        (["train", "--minuts=5"], "Did you mean '--minutes'?"),
        (["xyzzy"], "unknown command 'xyzzy'. Known: train, translate"),
        (["help"], "Did you mean '--help'?"),
        (["train", "--dropout", "0.1"], "Did you mean --set model.dropout=VALUE?"),
        (["train", "--verbose"], "unknown option '--verbose'. See regard train --help."),
        (["translate", "--dropout", "0.1"], "unknown option '--dropout'. See regard translate --help."),
        ([*TRAIN, "--set", "masking.foo=1"], "[masking] has share"),
        ([*TRAIN, "--set", "model=1"], "--set model.KEY=VALUE"),
        ([*TRAIN, "--preset", "t5"], "Did you mean 't5-tiny'?"),
        ([*TRAIN, "--steps", "0"], "--steps: must be greater than"),
        (["train", "--task", "ner", "--train", "a", "--output", "x"], "'ner' is not known. Did you mean 'tagging'"),
        (["train", "--minutes", "soon", "--output", "x"], "--minutes"),
        (["train", "--resume", "maybe", "--output", "x"], "'auto', 'must', 'never'"),
        (["attend", "model"], "TEXT"),
        (["train"], "--output DIR"),
        (["train", "--output", "x"], "--source FILE and --target FILE"),
        (["train", "--output", "x", "--source", "a"], "1 --source but 0 --target"),
        (["train", "--output"], "--output"),
        (["translate", "model", "--nbest", "0"], "--nbest"),
        (["translate", "model", "--nbest", "6", "--beam", "5"], "--beam"),
        (["evaluate", "model", "--source", "a"], "--reference is missing"),
        (["info", "base", "extra", "more"], "no place for 'extra' 'more'"),
        (["info", "bas"], "Did you mean 'base'?"),
        (["info", "base", "--vocabulary", "-4"], "-4 pieces"),
        (["info", "base", "--vocabulary", "99999999999999999999"], "--vocabulary"),
        (["translate", "model", "--threads", "100000000"], "--threads"),
        ([*TRAIN, "--processes", "1.5"], "--processes: must be a whole number, not 1.5"),
        ([*TRAIN, "--seed=2.5"], "--seed: must be a whole number, not 2.5"),
        (["translate", "model", "--beam", "4.7"], "--beam: must be a whole number, not 4.7"),
        ([*TRAIN, "--threads", "100000000"], "--threads"),
    ],
)
def test_usage_is_answered_with_one_sentence(regard, argv: list[str], said: str) -> None:
    regard(*argv).refuses(said)


def raises(error: BaseException, cause: Exception | None = None) -> Callable[..., None]:
    """What raises an error, whatever it is given."""

    def fail(*words: object, **options: object) -> None:
        raise error from cause

    return fail


def translator(error: BaseException) -> Unaware:
    """A translator that raises an error."""
    return type("Task", (Unaware,), {"info": TASKS["translation"], "write": raises(error)})()


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("closed", "code"), [("<", 1), (">", 1), ("2>", 0)])
def test_a_closed_stream_is_one_sentence(closed: str, code: int) -> None:
    command = f"{sys.executable} -m regard.cli info tiny {closed}&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == code
    assert "Traceback" not in done.stderr
    assert "unexpected error" not in done.stderr


@pytest.mark.parametrize(
    "error", [RuntimeError("DefaultCPUAllocator: can't allocate memory: 17 bytes."), MemoryError()]
)
def test_out_of_memory_is_one_sentence(regard, loaded, monkeypatch, tmp_path: Path, error: Exception) -> None:
    """Advice on batches is for trainings; of another command it is said what it was about."""
    monkeypatch.chdir(tmp_path)
    loaded(translator(error))
    Path("model").mkdir()
    done = regard("translate", "model", stdin=b"a\n")
    assert done.code == 1
    less = "shorter texts or a narrower beam need less"
    assert done.err == f"regard: there is not enough memory for regard translate of model; {less}\n"
    monkeypatch.setattr("regard.data.checks.pairs.check_pairs", raises(error))
    for name in ("a", "b"):
        Path(name).write_text("one\n")
    done = regard("check", "--source", "a", "--target", "b")
    assert (done.code, done.err) == (1, "regard: there is not enough memory for regard check of a, b\n")
    monkeypatch.setattr("regard.runs.train.train", raises(error))
    done = regard("train", "--source", "a", "--target", "b", "--output", "c")
    assert (done.code, done.err) == (1, f"regard: {cli.NO_MEMORY}\n")


@pytest.mark.parametrize("words", [["attend"], ["no-such-command"], []])
def test_out_of_memory_before_a_command_is_loaded_is_one_sentence(regard, words: list[str], monkeypatch) -> None:
    monkeypatch.setattr(cli, "_run", raises(MemoryError()))
    monkeypatch.setattr(cli, "app", {})  # nothing more can be loaded
    regard(*words).refuses("regard: there is not enough memory", 1)


def test_commands_of_texts_are_those_that_take_texts() -> None:
    taking = {"text", "texts"}
    found = [
        name for name in cli.EXAMPLES if taking & inspect.signature(cli.app[name].default_command).parameters.keys()
    ]
    assert sorted(found) == sorted(cli.OF_TEXTS)


@pytest.mark.parametrize(
    ("cause", "code", "said"),
    [
        (ModuleNotFoundError("no", name="sacrebleu"), 2, "sacrebleu"),
        (ModuleNotFoundError("no such thing"), 1, "ModuleNotFoundError: no such thing"),
    ],
)
def test_a_command_that_cannot_be_loaded_says_why(regard, monkeypatch, cause: Exception, code: int, said: str) -> None:
    monkeypatch.setattr(cli, "_run", raises(ImportError("Cannot import module 'regard.cli.pack'"), cause))
    done = regard("pack")
    assert (done.code, said in done.err, "Cannot import" in done.err) == (code, True, False)


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RegardError("wrong", "file:3"), 1),
        (UsageError("wrong"), 2),
        (NoValidCheckpoint("wrong"), 3),
        (Stopped("wrong"), 75),
        (Diverged("wrong"), 76),
        (OSError(28, "No space left on device", "out"), 1),
        (MemoryError(), 1),
        (ZeroDivisionError("wrong"), 1),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_errors_become_sentences_and_codes(regard, loaded, error: BaseException, code: int) -> None:
    loaded(translator(error))
    done = regard("translate", "model", stdin=b"a\n")
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    assert done.err == "" if code in (130, 0) else done.err.startswith("regard: ")


def test_debugging_shows_where(regard, loaded, monkeypatch) -> None:
    monkeypatch.setenv("REGARD_DEBUG", "1")
    loaded(translator(RegardError("wrong")))
    done = regard("translate", "model", stdin=b"a\n")
    assert done.code == 1
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1] == "regard: wrong"


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize("words", [["info", "tiny"], ["info", "tiny", "--json"]])
def test_a_full_disk_behind_stdout_is_named(words: list[str]) -> None:
    command = [sys.executable, "-m", "regard", *words]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    assert (done.returncode, done.stderr) == (1, "regard: stdout: No space left on device\n")


def test_a_dash_in_front_can_be_text(regard, loaded) -> None:
    done = regard("attend", "model", "--", "--strange")
    assert "unknown option" not in done.err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZSH", raising=False)
    monkeypatch.delenv("ZSH_CUSTOM", raising=False)
    return tmp_path


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    command = [shutil.which("bash") or "bash", "--norc", "-c", ASKED, "bash", str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=script.parent)
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


@pytest.mark.one_of(2)
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
    regard("--install-completion").refuses("--shell: ")
    monkeypatch.setenv("SHELL", "/usr/bin/pwsh")
    regard("--install-completion").refuses("--shell: ")
