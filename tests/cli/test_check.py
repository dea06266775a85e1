"""``regard check``: findings as text and as JSON; the exit code is the verdict."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest


def rows(count: int = 30) -> str:
    return "text,label\n" + "".join(f"the cat sees {number},{'abc'[number % 3]}\n" for number in range(count))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(rows())
    return tmp_path / "a.csv"


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
def test_stderr_says_why_data_is_not_usable(regard, tmp_path: Path, json: list[str]) -> None:
    (tmp_path / "a.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    done = regard("check", "--task", "classification", "--train", tmp_path / "a.csv", *json)
    assert done.code == 1
    assert "Not usable. " in done.out
    (line,) = done.err.splitlines()
    assert line.startswith("regard: not usable: ")
    assert line.removeprefix("regard: not usable: ") in done.out


def test_labels_are_listed_with_their_share(regard, texts: Path) -> None:
    done = regard("check", "--task", "classification", "--train", texts)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split() for line in lines[:3]] == [["10", "(33%)", label] for label in "abc"]
    assert lines[-1] == "Usable: 30 texts. 3 labels."


def test_many_labels_are_listed_in_part(regard, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"text {n} of {n % 40},label{n % 40}\n" for n in range(200)))
    done = regard("check", "--task", "classification", "--train", path)
    assert "… and 20 labels more" in done.out
    assert sum("label" in line for line in done.out.splitlines()) == 22


def test_json_has_it_all(regard, texts: Path) -> None:
    values = json.loads(regard("check", "--task", "classification", "--train", texts, "--json").out)
    assert values["usable"] is True
    assert values["labels"] == {"a": 10, "b": 10, "c": 10}


def test_texts_to_validate_and_to_test_on_are_looked_for(regard, texts: Path, tmp_path: Path) -> None:
    for name, content in (
        ("v.csv", "the cat sees 1,b\nnew,z\nnew too,a\nnewer,a\nnewest,b\nlast,c\n"),
        ("t.csv", rows()),
    ):
        (tmp_path / name).write_text(content)
    done = regard("check", "--task", "classification", "--train", texts, "--valid", tmp_path / "v.csv")
    assert done.code == 0
    assert "1 text (17%) of the validation texts is in the training data too" in done.out
    assert "has a label that nothing is learned of: 'z'" in done.out
    done = regard("check", "--task", "classification", "--train", texts, "--test", tmp_path / "t.csv")
    assert done.code == 1
    assert "of the test texts" in done.out
    two = ["--test", tmp_path / "t.csv", "--test", tmp_path / "v.csv"]
    assert str(tmp_path / "v.csv") in regard("check", "--task", "classification", "--train", texts, *two).out


def test_numbers_have_no_labels_to_list(regard, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,score\n" + "".join(f"text {number},{number / 7}\n" for number in range(30)))
    done = regard("check", "--task", "classification", "--train", path, "--kind", "regression")
    assert (done.code, done.out) == (0, "Usable: 30 texts.\n")


def test_tagged_texts_are_counted_in_spans(regard, tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("".join(f"Anna\tB-PER\nsees\tO\nBonn{n}\tB-LOC\nCity\tI-LOC\n\n" for n in range(20)))
    done = regard("check", "--task", "tagging", "--train", path)
    assert done.code == 0
    assert [line.split() for line in done.out.splitlines()[:2]] == [["20", "(50%)", one] for one in ("PER", "LOC")]


def test_images_are_images(regard, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{n},{n % 7},{n % 5},1,{'ab'[n % 2]}\n" for n in range(40)))
    done = regard("check", "--task", "image-classification", "--train", path)
    assert done.code == 0
    assert done.out.endswith("Usable: 40 images. 2 labels.\n")


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
