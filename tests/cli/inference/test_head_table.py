"""``regard attend --input FILE --table``: files, stdin, JSON lines, and what does not go together."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tasks import small_tasks

SOURCE, TARGET = small_tasks.SOURCE, small_tasks.TARGET


@pytest.fixture
def files(loaded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translator, and files of texts and pairs."""
    loaded(small_tasks.translator())
    (tmp_path / "a.txt").write_text(f"{SOURCE}\n\n{SOURCE} {SOURCE}\n{SOURCE}\n")
    (tmp_path / "a.tsv").write_text(f"{SOURCE}\t{TARGET}\n{SOURCE}\t{TARGET} {TARGET}\n")
    (tmp_path / "a.jsonl").write_text(json.dumps({"source": SOURCE, "target": TARGET}) + "\n")
    (tmp_path / "wide.tsv").write_text(f"package\ttitle\t{SOURCE}\t{TARGET}\n")
    (tmp_path / "empty.txt").write_text("\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "texts"), [("a.txt", 2), ("a.tsv", 2), ("a.jsonl", 1)])
def test_a_table_of_a_file(regard: Any, files: None, name: str, texts: int) -> None:
    done = regard("attend", "model", "--input", name, "--table")
    assert done.code == 0, done.err
    for title in ("Encoder self-attention", "Decoder self-attention", "Encoder-decoder attention"):
        assert f"{title} · {texts} text" in done.out
    assert max(map(len, done.out.split("\n"))) <= 80
    assert ("1 empty lines" in done.err) == (name == "a.txt")


def test_one_object_a_head(regard: Any, files: None) -> None:
    done = regard("attend", "model", "--input", "-", "--table", "--json", stdin=f"{SOURCE}\n".encode())
    found = [json.loads(line) for line in done.out.splitlines()]
    assert len(found) == 3 * (2 + 3 + 3)
    assert [(one["kind"], one["layer"], one["head"]) for one in found[:4]] == [
        ("encoder", 1, 1), ("encoder", 1, 2), ("encoder", 1, 3), ("encoder", 2, 1)
    ]  # fmt: skip
    one = found[0]["estimates"]["previous"]
    assert one["low"] <= one["mean"] <= one["high"]
    assert found[0]["function"] is None  # one text names no head
    assert "next" not in found[-1]["estimates"]


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("--table",), "--table: ", 2),
        (("--input", "a.txt"), "--input: ", 2),
        ((SOURCE, "--input", "a.txt", "--table"), "--table: ", 2),
        (("--input", "a.txt", "--table", "--layer", "1"), "--layer: ", 2),
        (("--input", "absent.txt", "--table"), "absent.txt: ", 2),
        (("--input", "empty.txt", "--table"), "empty.txt: ", 1),
        (
            ("--input", "wide.tsv", "--table"),
            "wide.tsv: has 4 columns; pairs are the keys source and target, or two",
            1,
        ),
        ((), "TEXT: ", 2),
    ],
)
def test_what_does_not_go(regard: Any, files: None, words: tuple[str, ...], said: str, code: int) -> None:
    regard("attend", "model", *words).refuses(said, code)


def test_other_models(regard: Any, files: None, loaded: Any) -> None:
    loaded(small_tasks.classifier())
    regard("attend", "model", "--input", "a.tsv", "--table").refuses("a.tsv: ")
    assert regard("attend", "model", "--input", "a.txt", "--table").code == 0


def test_images(regard: Any, loaded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = small_tasks.viewer()
    loaded(viewer)
    monkeypatch.chdir(tmp_path)
    rows = [",".join([str((n + v) % 9) for v in range(viewer.cut.shape.values)]) for n in range(3)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    done = regard("attend", "model", "--input", "a.csv", "--table")
    assert done.code == 0, done.err
    assert "Encoder self-attention · 3 images" in done.out
    found = [
        json.loads(line) for line in regard("attend", "model", "--input", "a.csv", "--table", "--json").out.splitlines()
    ]
    assert set(found[0]["estimates"]) >= {"same_patch", "neighbours", "class_token", "distance"}
    monkeypatch.setattr("regard.cli.inference.head_table.MOST", 2)
    done = regard("attend", "model", "--input", "a.csv", "--table")
    assert "· 2 images" in done.out
    assert "the first 2 images" in done.err
    regard("attend", "model", "--input", "-", "--table", stdin=b"1").refuses("--input: ")
    regard("attend", "model", "--input", "absent.csv", "--table").refuses("absent.csv: ")
