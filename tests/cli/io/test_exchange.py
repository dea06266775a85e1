"""Results in a file: equal to stdout, written atomically, and identical after being stopped or killed and resumed."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.cli import main
from regard.cli.io import lines
from regard.runs import results_file
from regard.runs.workers import processes
from regard.system.forks import SAFE
from regard.text.confidence import SeenWords
from regard.training.checkpoints.files import Files
from tests.cli.conftest import reading
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, classifier, put, translator

WORDS = SOURCE.split()
WAYS: dict[str, tuple[str, ...]] = {
    "translate": ("translate", "translator", "--beam", "1"),
    "nbest": ("translate", "translator", "--nbest", "3", "--json"),
    "classify": ("classify", "classifier", "--all"),
    "images": ("classify", "viewer"),
    "tag": ("tag", "tagger"),
    "conll": ("tag", "tagger", "--conll"),
    "fill": ("fill", "filler", "-k", "2"),
    "spans": ("ask", "spanner", "--json"),
    "vectors": ("encode", "encoder"),
    "arrays": ("encode", "encoder", "--each", "token"),
    "generate": ("generate", "speaker", "--n", "7", "--max-tokens", "4"),
    "objects": ("generate", "speaker", "--n", "2", "--max-tokens", "4", "--json"),
}
"""Commands without the end of --output, which says what kind of file it is."""
ENDS = {"vectors": ".jsonl", "arrays": ".npz"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in {words[1] for words in WAYS.values()}:
        put(folder / name, EVERY[name]())
    return folder


@pytest.fixture(autouse=True)
def _small(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks of three texts, each saved; one process, and one thread, whose pool forked children must not meet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "useful_processes", lambda most: 1)
    for model in models.iterdir():
        Path(model.name).symlink_to(model)
    monkeypatch.setattr(lines.chunks, "__defaults__", (3, 1 << 15))
    monkeypatch.setattr(results_file, "EVERY", -1.0)
    monkeypatch.setattr(Files, "sync", lambda files, handle: None)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def texts(way: str) -> list[str]:
    draw, count = random.Random(4), 7 if way in ("translate", "nbest", "spans") else 11
    if way == "images":
        return [",".join(str(draw.randrange(10)) for _ in PIXELS) for _ in range(count)]
    if way in ("fill", "spans"):
        return ["The [MASK] cat" if draw.random() < 0.7 else "" for _ in range(count)]
    found = [" ".join(draw.choices(WORDS, k=draw.randrange(4))) for _ in range(count)]
    return [word for text in found for word in [*text.split(), ""]] if way == "conll" else found


def written(way: str) -> bytes:
    """The input of a command, in a file."""
    content = "".join(f"{text}\n" for text in texts(way)).encode()
    Path("in").write_bytes(content)
    return content


def out(way: str, name: str = "out") -> Path:
    return Path(name + ENDS.get(way, ".txt"))


def command(way: str, *more: object) -> list[str]:
    return [str(word) for word in (*WAYS[way], "--input", "in", *more)]


def in_child(argv: list[str], prepared: Callable[[], None] = lambda: None) -> int:
    """The exit code of a process that runs a command; negative: the signal that killed it. It writes to ``said``."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            with open("said", "w") as said:
                os.dup2(said.fileno(), 2)
            sys.stderr, sys.stdout = open(2, "w", closefd=False), open(os.devnull, "w")  # noqa: SIM115
            prepared()
            code = main(argv)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def before(operation: int, do: Callable[[], None]) -> Callable[[], None]:
    """Makes a process do something before one of its file operations."""

    def prepared() -> None:
        seen = [0]

        def count(files: Files, name: str, path: Path) -> None:
            seen[0] += 1
            if seen[0] == operation:
                do()

        Files.before = count  # type: ignore[method-assign]

    return prepared


def struck(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if not path.is_symlink() and path.name not in ("in", "said"))


@pytest.mark.one_of(9)
@pytest.mark.parametrize("way", WAYS)
def test_a_file_has_the_bytes_of_stdout(regard, way: str) -> None:
    written(way)
    shown = regard(*command(way))
    done = regard(*command(way, "--output", out(way)))
    assert (done.code, done.out, done.err) == (0, "", f"{shown.err}regard: wrote {out(way)}\n")
    assert names() == [out(way).name]
    if way == "arrays":
        with np.load(out(way), allow_pickle=False) as found:
            assert len(found["vectors"]) == len(found["ids"]) == len(found["lines"]) > len(texts(way))
            assert found["lines"].tolist() == sorted(found["lines"].tolist())
    else:
        assert out(way).read_bytes().decode() == shown.out
        assert shown.out


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("conll", "arrays", "generate", "objects")])
@pytest.mark.one_of(6)
def test_arguments_become_what_lines_become(regard, way: str) -> None:
    given = texts(way)
    written(way)
    shown = regard(*command(way))
    done = regard(*WAYS[way], "--", *given)
    assert (done.code, done.out) == (0, shown.out)
    assert regard(*WAYS[way], "--output", out(way), "--", *given).code == 0
    assert out(way).read_bytes().decode() == shown.out


def test_prompts_as_arguments_are_written_on_as_if_they_were_alone(regard) -> None:
    words = "generate", "speaker", "--n", "2", "--max-tokens", "4"
    alone = [regard(*words, "--prompt", prompt).out for prompt in ("The", "", "a\nb")]
    assert len(set(alone)) == 3
    done = regard(*words, "The", "", "a\nb")
    assert done.out == "---\n".join(alone)
    assert regard(*words, "The", "", "a\nb", "--output", "out.txt").code == 0
    assert Path("out.txt").read_bytes().decode() == done.out
    objects = regard(*WAYS["objects"], "The", "a\nb").out
    assert [json.loads(line)["prompt"] for line in objects.splitlines()] == ["The", "The", "a\nb", "a\nb"]
    Path("in").touch()
    for more in (["The"], ["--input", "in"]):
        assert "--prompt: a prompt is there already" in regard(*words, "--prompt", "a", *more).err


def test_a_text_with_line_feeds_is_one_text(regard) -> None:
    found = [regard(*WAYS["tag"], *words).out.split() for words in (["--words", "The cat\nsleeps"], ["The cat sleeps"])]
    assert found[0] == found[1]
    for way in ("translate", "classify", "vectors"):
        assert len(regard(*WAYS[way], "a\nb", "c").out.splitlines()) == 2


def operations(way: str) -> int:
    """How many file operations a run has that is not killed; it leaves ``never``."""
    counted = [0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Files, "before", lambda files, name, path: counted.__setitem__(0, counted[0] + 1))
        assert main(command(way, "--output", out(way, "never"))) == 0
    return counted[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.one_of(9, minutes=0.05)
def test_killed_at_some_moment_and_resumed(regard, way: str) -> None:
    written(way)
    count, draw = operations(way), random.Random(f"moments of {way}")
    argv, whole = command(way, "--output", out(way)), out(way, "never").read_bytes()
    for fatal in sorted(draw.sample(range(1, count + 1), 2)):
        out(way).write_text("before")
        assert in_child(argv, before(fatal, struck)) == -signal.SIGKILL
        assert out(way).read_bytes() in (b"before", whole)
        regard(*argv).succeeds()
        assert out(way).read_bytes() == whole
        assert names() == sorted([out(way).name, out(way, "never").name])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("way", ["translate", "arrays", "generate"])
@pytest.mark.one_of(9, minutes=0.02)
def test_stopped_it_saves_and_says_how_it_goes_on(regard, way: str, number: signal.Signals) -> None:
    written(way)
    count = operations(way)
    argv = command(way, "--output", out(way))
    assert in_child(argv, before(count // 2, lambda: struck(number))) == 75
    assert Path("said").read_text().splitlines() == [
        "regard: stopping: saving the results so far (a second signal ends it at once)",
        f"regard: {out(way)}: stopped; rerun the same command to resume",
    ]
    assert not out(way).exists()
    done = regard(*argv).succeeds()
    assert f"{out(way)}: resuming after text " in done.err
    assert out(way).read_bytes() == out(way, "never").read_bytes()


DIVIDED = [way for way in WAYS if way not in ("generate", "objects")]
"""Those that several processes answer."""


@pytest.mark.one_of(12, minutes=0.02)
@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
@pytest.mark.parametrize("way", DIVIDED)
def test_several_processes_answer_as_one(regard, way: str) -> None:
    given = written(way)
    one, two = regard(*command(way)), regard(*command(way, "--processes", 2))
    assert (two.code, two.out) == (0, one.out)
    assert regard(*WAYS[way], "--processes", 2, stdin=given).out == one.out
    for count in (1, 3):
        name = out(way, f"by{count}")
        assert regard(*command(way, "--output", name, "--processes", count)).code == 0
    assert out(way, "by1").read_bytes() == out(way, "by3").read_bytes()


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
def test_several_processes_note_what_one_does(regard, tmp_path: Path) -> None:
    """Unseen words and doubted translations of a file, whatever answers it; a greedy search screens without scores."""
    task = translator()
    task.assets = replace(task.assets, seen=SeenWords.of({"the": 3, "animal": 2}), doubted_below=1.0)
    put(tmp_path / "doubting", task)
    Path("in").write_text("The animal\nThe zebra\n\nzebra zebra\n" * 3)
    given = ["translate", "doubting", "--input", "in"]
    one, two = regard(*given), regard(*given, "--processes", 2)
    assert (one.out, one.err) == (two.out, two.err)
    named = "; ".join(f"line {number} “zebra”" for number in (2, 4, 6, 8, 10))
    unseen = f"regard: 6 of 12 lines have words or signs that no training text has: {named}; …\n"
    assert one.err.startswith(unseen)
    assert "unsure of 9 of 12 lines" in one.err
    written = regard(*given, "--processes", 2, "--output", "out")
    assert written.err == one.err + "regard: wrote out\n"
    assert regard(*given, "--beam", 1).err == unseen
    assert regard(*given, "--beam", 1, "--json").err == ""
    typed = regard("translate", "doubting", "--beam", 1, "zebra", "The animal").err.splitlines()
    assert [line.partition("line ")[2][:6] for line in typed] == ["1: “ze", "1: the", "2: the"]


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("way", ["translate", "arrays"])
@pytest.mark.one_of(2)
def test_several_processes_are_stopped_and_another_number_resumes(regard, way: str, number: signal.Signals) -> None:
    written(way)
    count = operations(way)
    argv = command(way, "--output", out(way))
    code = in_child([*argv, "--processes", "2"], before(count // 2, lambda: struck(number)))
    assert code == (75 if number == signal.SIGTERM else -number)
    assert not out(way).exists()
    done = regard(*argv).succeeds()
    assert "resuming after text " in done.err
    assert out(way).read_bytes() == out(way, "never").read_bytes()


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
def test_a_process_that_is_killed_ends_the_command_with_a_sentence(regard, monkeypatch: pytest.MonkeyPatch) -> None:
    written("tag")
    first = os.getpid()

    def encoded(line: str) -> bytes:
        if os.getpid() != first:
            struck()
        return b""

    monkeypatch.setattr("regard.cli.io.exchange.encode_line", encoded)
    said = "regard: a process of this command was ended by SIGKILL; rerun the same command\n"
    regard(*command("tag", "--processes", 2)).refuses(said, 1)


@pytest.mark.parametrize("more", [["--processes", 0], ["--processes", -1], ["--processes", 100_000], ["--conll", "a"]])
def test_what_cannot_work_is_named_by_its_option(regard, more: list[object]) -> None:
    """CoNLL has a word a line, and so is no argument."""
    regard(*WAYS["tag"], *more).refuses(f"{more[0]}: ")


def test_stopped_while_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    written("classify")
    monkeypatch.setattr("regard.tasks.model_folder.open_without_torch", lambda *given, **named: struck(signal.SIGTERM))
    assert in_child(command("classify", "--output", "out.txt")) == 75
    assert names() == []


def test_stopped_while_it_waits_for_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def waiting() -> Iterator[bytes]:
        yield b"a\n"
        struck(signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr("regard.cli.io.input_texts.raw_lines", waiting)
    before = time.monotonic()
    assert in_child([*WAYS["classify"], "--output", "out.txt"]) == 75
    assert time.monotonic() - before < 60
    assert names() == []


def test_another_option_or_model_begins_anew(regard) -> None:
    written("classify")
    argv = command("classify", "--output", "out.txt")
    fewer = [word for word in argv if word != "--all"]
    stop = before(operations("classify") // 2, lambda: struck(signal.SIGTERM))
    for name, words in (("--all", fewer), ("model", argv)):
        assert in_child(argv, stop) == 75
        if name == "model":
            Path("classifier").unlink()
            put(Path("classifier"), classifier(layers=1))
        assert f"out.txt.partial was made with other values of {name}; starting over" in regard(*words).err
        assert Path("out.txt").read_bytes().decode() == regard(*words[:-2]).out


def test_what_comes_on_stdin_is_resumed_too(regard) -> None:
    given = written("classify")
    argv = [*WAYS["classify"], "--output", "out.txt"]
    wanted = regard(*command("classify")).out

    def stdin() -> None:
        sys.stdin = open("in")  # noqa: SIM115
        before(20, struck)()

    assert in_child(argv, stdin) == -signal.SIGKILL
    done = regard(*argv, stdin=given)
    assert "resuming after text" in done.err
    assert Path("out.txt").read_text() == wanted


def test_what_is_told_after_resuming_is_of_the_rest(regard) -> None:
    task = translator()
    task.assets = replace(task.assets, seen=SeenWords.of({"the": 3}))
    put(Path("taught"), task)
    Path("in").write_text("The zebra\n" * 12)
    argv = ["translate", "taught", "--input", "in", "--output", "out.txt", "--beam", "1"]
    assert in_child(argv, before(20, struck)) == -signal.SIGKILL
    done = regard(*argv)
    kept = int(done.err.partition("resuming after text ")[2].split()[0])
    assert 0 < kept < 12
    assert f"{12 - kept} of {12 - kept} lines after line {kept} have words" in done.err


def test_a_line_that_cannot_be_read_keeps_what_was_before_it(regard) -> None:
    given = texts("images")
    Path("in").write_text("\n".join([*given[:10], "1,2", *given[11:]]) + "\n")
    argv = command("images", "--output", "out.txt")
    regard(*argv).refuses("line 11: has 2 values", 1)
    assert names() == ["out.txt.partial", "out.txt.partial.log"]
    written("images")
    done = regard(*argv)
    assert "resuming after text 9" in done.err
    assert Path("out.txt").read_bytes().decode() == regard(*argv[:-2]).out


def test_a_pipe_gets_arrays_whole(regard) -> None:
    written("arrays")
    assert regard(*command("arrays", "--output", "out.npz")).code == 0
    with reading("pipe.npz") as found:
        assert regard(*command("arrays", "--output", "pipe.npz")).code == 0
    assert found == [Path("out.npz").read_bytes()]
