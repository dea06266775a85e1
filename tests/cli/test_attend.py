"""``regard attend``: views of sentences and images, tables of heads, and invalid options."""

import json
import re
import xml.etree.ElementTree as Tree
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import MOST
from regard.training.checkpoints.files import Files
from tests.cli.conftest import reading
from tests.inspection.payloads import unpack
from tests.tasks import small_tasks

SOURCE, TARGET = small_tasks.SOURCE, small_tasks.TARGET
LONG = " ".join([SOURCE] * 4)


@pytest.fixture
def images(loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A classifier of images of 4 × 4 pixels in four patches, and files of these."""
    loaded(small_tasks.viewer(height=4, layers=3, d_model=16, heads=2))
    rows = np.random.default_rng(1).integers(0, 10, (5, 16)).tolist()
    (tmp_path / "a.csv").write_text("".join(",".join(map(str, row)) + ",b\n" for row in rows))
    (tmp_path / "u.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def spans(loaded) -> None:
    """A model of missing spans."""
    loaded(small_tasks.spanner(decoder_layers=1, d_model=16, heads=2))


def test_an_image_and_how_far_the_heads_attend(regard, images) -> None:
    done = regard("attend", "model", "a.csv", "--image", "2").succeeds()
    assert done.out.startswith("image 2, labelled b, read as ")
    for said in ("Where the class token looks", "layer 3 head 2", "5 images of 4 pixels", "3 x 3 convolutions"):
        assert said in done.out
    done = regard("attend", "model", "u.csv", "--head", "1", "--token", "2,1")
    assert "labelled" not in done.out
    assert "Where patch 2,1 looks, layer 3, head 1" in done.out


def test_an_image_as_json_and_as_a_picture(regard, images, tmp_path: Path) -> None:
    done = regard("attend", "model", "a.csv", "--json", "--layer", "2", "--svg", tmp_path / "a.svg")
    values = json.loads(done.out)
    assert (values["image"], values["label"], values["looks"]) == (1, "b", "class")
    assert [np.shape(head["patches"]) for head in values["heads"]] == [(2, 2)] * 2
    assert values["distances"]["images"] == 5
    assert len(values["distances"]["layers"]) == 3
    assert "wrote" in done.err
    Tree.parse(tmp_path / "a.svg")


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.csv", "--image", "6"), "there is no image 6; a.csv has 5"),
        (("a.csv", "--image", "0"), "they count from 1"),
        (("a.csv", "--words"), "--words: is not for this model, which reads images"),
        (("a.csv", "--target", "b"), "--target: is not for this model, which reads images"),
        (("a.csv", "--kind", "cross"), "--kind: is not for this model, which reads images"),
        (("a.csv", "--token", "9,9"), "no patch"),
        (("absent.csv",), "absent.csv: no such file"),
        ((".",), "is a folder; a file is needed"),
    ],
)
def test_what_is_not_there_of_images(regard, images, words: tuple[str, ...], said: str) -> None:
    regard("attend", "model", *words).refuses(said)
    assert regard("attend", "model", "a.csv", "--kind", "encoder").code == 0


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_text_with_gaps(regard, spans, kind: str) -> None:
    words = ("attend", "model", "the <extra_0> sleeps", "--target", "<extra_0> cat", "--kind", kind, "--json")
    values = json.loads(regard(*words).out)
    assert (values["source_text"], values["target_text"]) == ("the <extra_0> sleeps", "<extra_0> cat")
    assert "<extra_0>" in values["queries"]
    assert ("</s>" in values["keys"]) == (kind != "decoder")
    assert len(values["heads"]) == (4 if kind == "encoder" else 2)
    regard("attend", "model", "the <extra_0> sleeps", "--kind", kind).succeeds()
    assert regard("attend", "model", "the cat", "--image", "2").err.startswith("regard: --image: is not for this model")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translator and a classifier of images, as folders."""
    for name, make in (("translator", small_tasks.translator), ("viewer", small_tasks.viewer)):
        small_tasks.put(tmp_path / name, make())
    pixels = ",".join(map(str, small_tasks.PIXELS))
    (tmp_path / "one.csv").write_text(f"{pixels}\n{pixels}\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "words", [("translator", SOURCE), ("translator", SOURCE, "--target", "a"), ("viewer", "one.csv")]
)
def test_a_page_of_its_own(regard, folders, words: tuple[str, ...]) -> None:
    regard("attend", *words, "--html", "page.html").refuses("wrote page.html", 0)
    assert Path("page.html").read_text().startswith("<!doctype html>")


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("translator", "a", "--html", "p.html", "--layer", "1"), "--layer: does not go with --html"),
        (("translator", "a", "--html", "p.html", "--svg", "p.svg"), "--svg: does not go with --html"),
        (("translator", "a", "--html", "p.html", "--image", "1"), "which reads texts"),
        (("viewer", "one.csv", "--html", "p.html", "--target", "a"), "which reads images"),
        (("viewer", "one.csv", "--html", "p.html", "--image", "3"), "--image: there is no image 3; one.csv has 2"),
        (("viewer", "none.csv", "--html", "p.html"), "no such file"),
        (("translator", " ", "--html", "p.html"), "the text is empty"),
        (("nothing", "a", "--html", "p.html"), "no such folder"),
        (("translator", "a", "--html", "translator"), "translator: is a folder; name a file"),
        (("translator", "a", "--html", ""), "--html: name a file"),
        (("translator", "a", "--svg", ""), "--svg: name a file"),
        (("translator", LONG, "--window", 5), "--window: there is no part 5; the text has 4, counted from 1"),
        (("translator", LONG, "--window", 5, "--html", "p.html"), "--window: there is no part 5"),
        (("translator", LONG, "--window", 0), "--window: there is no part 0"),
        (("translator", SOURCE, "--window", 2), "--window: there is no part 2; the text has 1"),
        (("viewer", "one.csv", "--window", 1), "--window: is not for this model, which reads images"),
        (("viewer", "one.csv", "--window", 1, "--html", "p.html"), "--window: is not for this model"),
    ],
)
def test_a_page_or_a_part_that_cannot_be(regard, folders, words: tuple[Any, ...], said: str) -> None:
    regard("attend", *words).refuses(said, 1 if said in ("the text is empty", "no such folder") else 2)
    assert not Path("p.html").exists()


def test_the_image_that_is_named_is_on_the_page(regard, folders) -> None:
    """Counted from 1, and beyond those that a page of a server shows."""
    count = MOST + 2
    rows = [",".join(map(str, [*np.random.default_rng(number).integers(0, 10, 24), "b"])) for number in range(count)]
    Path("many.csv").write_text("\n".join(rows))
    for number in (1, 2, count):
        assert regard("attend", "viewer", "many.csv", "--html", "p.html", "--image", number).code == 0
        _, arrays = unpack(b64decode(re.search(r'id="payload"[^>]*>([^<]+)<', Path("p.html").read_text())[1]))
        seen = np.array([int(cell) for cell in rows[number - 1].split(",")[:-1]]).reshape(6, 4, 1)
        np.testing.assert_array_equal(arrays["pixels"], np.round(seen / 9 * 255))
    done = regard("attend", "viewer", "many.csv", "--html", "p.html", "--image", count + 1)
    assert f"there is no image {count + 1}; many.csv has {count:,}" in done.err


@pytest.mark.parametrize("option", ["--html", "--svg"])
@pytest.mark.parametrize(
    ("where", "said"), [("absent/p", "cannot be written: there is no folder"), ("one.csv/p", "there is no folder")]
)
def test_what_cannot_be_written_is_said_before_anything_is_computed(
    regard, folders, monkeypatch, option: str, where: str, said: str
) -> None:
    def never(*given: Any, **named: Any) -> Any:
        pytest.fail("the model was loaded")

    monkeypatch.setattr("regard.tasks.model_folder.load", never)
    done = regard("attend", "translator", SOURCE, option, where)
    done.refuses(said)
    assert done.err.startswith(f"regard: {where}: ")


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("option", ["--html", "--svg"])
def test_a_file_is_whole_or_as_it_was(regard, folders, monkeypatch, option: str) -> None:
    words = ("attend", "translator", SOURCE, option)
    Path("there").mkdir()
    Path("there/p").write_text("before")
    Path("link").symlink_to("there/p")

    def full(self: Files, handle: Any, piece: memoryview) -> None:
        handle.write(piece[: len(piece) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Files, "put", full)
        done = regard(*words, "there/p")
    assert done.code == 1
    assert done.err.endswith("there/p: cannot be written: No space left on device\n")
    assert [path.name for path in Path("there").iterdir()] == ["p"]
    assert Path("there/p").read_text() == "before"
    assert regard(*words, "link").code == 0
    assert Path("link").is_symlink()
    assert Path("there/p").read_text().startswith("<")


def test_what_is_no_file_is_written_as_it_is(regard, folders) -> None:
    with reading("pipe") as found:
        assert regard("attend", "translator", SOURCE, "--svg", "pipe").code == 0
    assert found[0].startswith(b"<svg")
    assert Path("pipe").is_fifo()


@pytest.mark.long(minutes=0.08)
def test_of_a_long_text_one_part_is_seen_and_said(regard, folders) -> None:
    """The first, or the one that is named; in the terminal, as numbers, and in files."""
    parts = [json.loads(regard("attend", "translator", LONG, "--json", *more).out) for more in ((), ("--window", 3))]
    for number, values in zip((1, 3), parts, strict=True):
        assert values["source_text"] == values["window"]["text"] == SOURCE
        assert [values["window"][name] for name in ("number", "count")] == [number, 4]
    assert "window" not in json.loads(regard("attend", "translator", SOURCE, "--json").out)
    done = regard("attend", "translator", LONG, "--window", 2)
    assert (done.code, done.out) == (0, regard("attend", "translator", SOURCE).out)
    told = "Of the text this is part 2 of 4: tokens 14–26 of 52."
    assert done.err == f"regard: {told} --window shows another.\n"
    for more in ((), ("--token", "it"), ("--kind", "cross", "--layer", 1, "--head", 1)):
        assert regard("attend", "translator", LONG, "--window", 2, "--svg", "a.svg", *more).code == 0
        drawn = " ".join(" ".join(Tree.parse("a.svg").getroot().itertext()).split())
        assert told in drawn
    done = regard("attend", "translator", LONG, "--window", 2, "--html", "p.html")
    assert told in done.err
    values, _ = unpack(b64decode(re.search(r'id="payload"[^>]*>([^<]+)<', Path("p.html").read_text())[1]))
    assert values["window"]["number"] == 2


def test_what_is_forced_and_a_second_sentence_may_be_long_too(regard, folders) -> None:
    done = regard("attend", "translator", LONG, "--target", f"{TARGET} " * 9, "--kind", "cross", "--json")
    assert json.loads(done.out)["target_window"]["number"] == 1
    assert "Of what it is made to write this is part 1 of" in done.err
    done = regard("attend", "translator", SOURCE, "--beside", LONG, "--token", "it", "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert "window" not in first
    assert second["window"]["count"] == 4


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


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("name", "texts"), [("a.txt", 2), ("a.tsv", 2), ("a.jsonl", 1)])
def test_a_table_of_a_file(regard: Any, files: None, name: str, texts: int) -> None:
    done = regard("attend", "model", "--input", name, "--table").succeeds()
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


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("--table",), "--table: ", 2),
        (("--input", "a.txt"), "--input: ", 2),
        ((SOURCE, "--input", "a.txt", "--table"), "--table: ", 2),
        (("--input", "a.txt", "--table", "--layer", "1"), "--layer: ", 2),
        (("--input", "absent.txt", "--table"), "absent.txt: ", 2),
        (("--input", "empty.txt", "--table"), "empty.txt: ", 1),
        (("--input", "wide.tsv", "--table"), "wide.tsv: has 4 columns; pairs are the keys source and target", 1),
        ((), "TEXT: ", 2),
    ],
)
def test_what_does_not_go_with_a_table(regard: Any, files: None, words: tuple[str, ...], said: str, code: int) -> None:
    regard("attend", "model", *words).refuses(said, code)


def test_a_table_of_other_models(regard: Any, files: None, loaded: Any) -> None:
    loaded(small_tasks.classifier())
    regard("attend", "model", "--input", "a.tsv", "--table").refuses("a.tsv: ")
    assert regard("attend", "model", "--input", "a.txt", "--table").code == 0


def test_a_table_of_images(regard: Any, images: None, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ("attend", "model", "--input", "u.csv", "--table")
    done = regard(*table).succeeds()
    assert "Encoder self-attention · 5 images" in done.out
    first, *_ = map(json.loads, regard(*table, "--json").out.splitlines())
    assert set(first["estimates"]) >= {"same_patch", "neighbours", "class_token", "distance"}
    monkeypatch.setattr("regard.cli.attend.MOST", 2)
    done = regard(*table)
    assert "· 2 images" in done.out
    assert "the first 2 images" in done.err
    regard("attend", "model", "--input", "-", "--table", stdin=b"1").refuses("--input: ")
    regard("attend", "model", "--input", "absent.csv", "--table").refuses("absent.csv: ")
