"""``regard check``: findings as text and as JSON; the exit code is the verdict."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Done


def rows(count: int = 30) -> str:
    return "text,label\n" + "".join(f"the cat sees {number},{'abc'[number % 3]}\n" for number in range(count))


@pytest.fixture
def check(regard, tmp_path: Path):
    """Checks a training file of a task."""

    def run(task: str, content: str | bytes, *more: object) -> Done:
        path = tmp_path / ("a.conll" if task == "tagging" else "a.csv")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return regard("check", "--task", task, "--train", path, *more)

    return run


MEASURED = """
import re, sys
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from regard.cli import main
code = main(sys.argv[1:])
status = Path("/proc/self/status")
held = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1] if status.exists() else getrusage(RUSAGE_SELF).ru_maxrss
print(held)
sys.exit(code)
"""


@pytest.mark.long(minutes=0.04)
def test_a_packed_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    """A quarter of a megabyte that would become a gigabyte."""
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"a\n") + lzma.compress(b"x" * (1 << 22), preset=0) * 256)
    assert (tmp_path / "a.xz").stat().st_size < 1 << 18
    words = ["check", "--source", tmp_path / "a.xz", "--target", tmp_path / "a.xz"]
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=False)
    unreadable = f"{tmp_path / 'a.xz'}:2: the line is longer than 16 MiB"
    assert done.returncode == 1
    assert done.stderr.startswith(f"regard: not usable: {unreadable}")
    assert done.stderr.count("\n") == 1
    assert f"unreadable: {tmp_path / 'a.xz'}:2: the line is longer than 16 MiB" in done.stdout
    assert int(done.stdout.split()[-1]) < 400_000


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_stderr_says_why_data_is_not_usable(check, json: list[str]) -> None:
    done = check("classification", b"\x89PNG\r\n\x1a\n\x00\x00", *json)
    assert done.code == 1
    assert "Not usable. " in done.out
    (line,) = done.err.splitlines()
    assert line.startswith("regard: not usable: ")
    assert line.removeprefix("regard: not usable: ") in done.out


def test_labels_are_listed_with_their_share(check) -> None:
    *lines, last = check("classification", rows()).out.splitlines()
    assert [line.split() for line in lines[:3]] == [["10", "(33%)", label] for label in "abc"]
    assert last == "Usable: 30 texts. 3 labels."
    values = json.loads(check("classification", rows(), "--json").out)
    assert (values["usable"], values["labels"]) == (True, {"a": 10, "b": 10, "c": 10})
    many = check("classification", "text,label\n" + "".join(f"text {n},label{n % 40}\n" for n in range(200))).out
    assert "… and 20 labels more" in many
    assert sum("label" in line for line in many.splitlines()) == 22


def test_texts_to_validate_and_to_test_on_are_looked_for(check, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("the cat sees 1,b\nnew,z\nnew too,a\nnewer,a\nnewest,b\nlast,c\n")
    (tmp_path / "t.csv").write_text(rows())
    done = check("classification", rows(), "--valid", tmp_path / "v.csv").succeeds()
    assert "1 text (17%) of the validation texts is in the training data too" in done.out
    assert "has a label that nothing is learned of: 'z'" in done.out
    done = check("classification", rows(), "--test", tmp_path / "t.csv")
    assert (done.code, "of the test texts" in done.out) == (1, True)
    two = ["--test", tmp_path / "t.csv", "--test", tmp_path / "v.csv"]
    assert str(tmp_path / "v.csv") in check("classification", rows(), *two).out


def test_numbers_have_no_labels_to_list(check) -> None:
    content = "text,score\n" + "".join(f"text {number},{number / 7}\n" for number in range(30))
    done = check("classification", content, "--kind", "regression")
    assert (done.code, done.out) == (0, "Usable: 30 texts.\n")


def test_tagged_texts_are_counted_in_spans_and_images_are_images(check) -> None:
    tagged = "".join(f"Anna\tB-PER\nsees\tO\nBonn{n}\tB-LOC\nCity\tI-LOC\n\n" for n in range(20))
    out = check("tagging", tagged).succeeds().out
    assert [line.split() for line in out.splitlines()[:2]] == [["20", "(50%)", one] for one in ("PER", "LOC")]
    done = check("image-classification", "".join(f"{n},{n % 7},{n % 5},1,{'ab'[n % 2]}\n" for n in range(40)))
    assert (done.code, done.out.splitlines()[-1]) == (0, "Usable: 40 images. 2 labels.")


def test_a_file_name_does_not_steer_the_terminal(regard, tmp_path: Path) -> None:
    for name, lines in (("ev\x1b[31mil.en", 3), ("a.de", 2)):
        (tmp_path / name).write_text("A line.\n" * lines)
    done = regard("check", "--source", tmp_path / "ev\x1b[31mil.en", "--target", tmp_path / "a.de")
    assert (done.code, "misaligned" in done.out) == (1, True)
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "classification"], "give --train FILE"),
        (["--task", "clasification", "--train", "a"], "Did you mean 'classification'"),
        (["--task", "classification", "--train", "absent.csv"], "absent.csv: no such file"),
        (["--task", "classification", "--train", "."], ".: is a folder; a file is needed"),
        (["--pairs", "."], ".: is a folder; a file is needed"),
        (["--task", "masked-lm", "--train", "a"], "--task: masked-lm learns from running text"),
        (["--task", "text-to-text", "--train", "a"], "--task: text-to-text learns from pairs"),
        (["--task", "encoding", "--train", "a"], "--task: encoding is not trained"),
        (["--task", "classification", "--train", "a", "--source", "b"], "--source: is not for this task"),
        (["--task", "classification", "--train", "a", "--model", "b"], "--model: is not for this task"),
        (["--train", "a"], "--train: is not for this task"),
        (["--source", "a", "--target", "b", "--valid", "c"], "--valid: is not for this task"),
    ],
)
def test_options_of_another_task_are_refused(regard, words: list[str], said: str) -> None:
    regard("check", *words).refuses(said)


def test_a_file_of_links_is_checked(regard, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a b\n" * 30)
    (tmp_path / "links").write_text("0-0 1-1\n" * 29 + "0-2\n")
    words = ["check", "--source", tmp_path / "a", "--target", tmp_path / "a", "--alignment", tmp_path / "links"]
    done = regard(*words)
    assert (done.code, f"{tmp_path / 'links'}:30" in done.err) == (1, True)
