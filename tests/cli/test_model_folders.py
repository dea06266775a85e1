"""``regard pack``, ``--precision`` and ``terms``: what people see of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.prepare.folder import VALIDATION
from regard.system import kernels
from tests.runs.test_pack import LINES, data
from tests.tasks.small_tasks import SOURCE, asker, classifier, put, translator, viewer

pytestmark = pytest.mark.usefixtures("compiled", "own_cache")


def test_the_validation_data_of_the_run_is_the_default(regard, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    regard("pack", folder).refuses("--source FILE and --reference FILE")
    regard("pack", folder, "--source", "nowhere").refuses("nowhere")
    for path, name in zip(data(tmp_path, folder), VALIDATION, strict=True):
        kept = folder / "training" / "data" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        path.rename(kept)
    told = regard("pack", folder)
    assert [line.split()[0] for line in told.out.splitlines()[1:4]] == ["fp32", "bf16", "int8"]
    values = json.loads(regard("pack", folder, "--json").out)
    assert values["sentences"] == len(LINES)
    shown = regard("info", folder).out.splitlines()
    assert any(line.startswith("int8") for line in shown)
    assert json.loads(regard("info", folder, "--json").out)["precisions"]["kept"] == values["kept"]


def test_texts_are_answered_in_the_precision_asked_for(regard, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    scores = {}
    for precision in ("fp32", "bf16", "int8", "auto"):
        told = regard("translate", folder, SOURCE, "--json", "--device", "cpu", "--precision", precision)
        scores[precision] = json.loads(told.out)["score"]
    assert scores["auto"] == scores["fp32"]
    assert len(set(scores.values())) == 3
    regard("translate", folder, SOURCE, "--precision", "int4").refuses("int4")
    out = tmp_path / "out"
    regard("translate", folder, SOURCE, "--output", out, "--precision", "int8", "--device", "cpu")
    assert out.read_text().splitlines() == [
        regard("translate", folder, SOURCE, "--precision", "int8", "--device", "cpu").out.rstrip("\n")
    ]


def test_where_torch_computes_a_precision_is_refused_in_one_sentence(regard, tmp_path: Path, monkeypatch) -> None:
    folder = put(tmp_path / "m", translator())
    regard("encode", folder, SOURCE, "--layer", 1, "--precision", "int8").refuses("--precision")
    monkeypatch.setenv(kernels.VARIABLE, "off")
    kernels.available.cache_clear()
    regard("translate", folder, SOURCE, "--precision", "bf16").refuses("kernels")
    assert regard("translate", folder, SOURCE, "--precision", "fp32").code == 0
    monkeypatch.undo()
    kernels.available.cache_clear()


def test_weights_of_any_task_are_packed_without_measuring(regard, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", classifier())
    asked = ("classify", folder, SOURCE, "--json", "--device", "cpu", "--precision", "int8")
    before = regard(*asked).out
    assert "packed.safetensors" in regard("pack", folder, "--precision", "int8").err
    values = json.loads(regard("pack", folder, "--precision", "int8", "--json").out)
    assert values == {"packed": str(folder / "packed.safetensors"), "precision": "int8"}
    assert regard(*asked).out == before
    regard("pack", folder).refuses("--precision")
    regard("pack", folder, "--precision", "int8", "--source", folder / "recipe.toml").refuses("--source")
    regard("pack", folder, "--precision", "int4").refuses("int4")
    regard("pack", put(tmp_path / "v", viewer()), "--precision", "int8").refuses("torch computes")


@pytest.mark.parametrize(("command", "made"), [("translate", translator), ("ask", asker)])
def test_terms_are_shown_changed_and_kept_in_what_is_written(regard, tmp_path: Path, command: str, made: Any) -> None:
    folder, word = put(tmp_path / "m", made()), SOURCE.split()[0]
    (tmp_path / "t.tsv").write_text(f"{word}\tQuax\nx\t=\n")
    assert regard("terms", folder).err == "regard: there are no terms; add some by --add FILE\n"
    plain = regard(command, folder, SOURCE).out
    once = regard(command, folder, SOURCE, "--terms", tmp_path / "t.tsv").out
    assert "Quax" in once
    assert "Quax" not in plain
    assert regard("terms", folder, "--add", tmp_path / "t.tsv").out == f"{word}\tQuax\nx\t=\n"
    assert regard(command, folder, SOURCE).out == once
    shown = regard("terms", folder, "--remove", word, "--json").out
    assert json.loads(shown) == {"terms": [{"source": "x", "forms": ["="]}]}
    assert regard(command, folder, SOURCE).out == plain
    (tmp_path / "f.txt").write_text("# no\n\nQuax\n")
    regard(command, folder, SOURCE, "--terms", tmp_path / "t.tsv", "--forbid", tmp_path / "f.txt").refuses("--forbid")
    kept = regard(command, folder, f"{SOURCE} %(y)s 12", "--protect", "--forbid", tmp_path / "f.txt").out
    assert {"%(y)s", "12"} <= {kept[place : place + size] for place in range(len(kept)) for size in (2, 5)}
    regard(command, folder, SOURCE, "--protect", "--sample").refuses("--protect")
    regard("translate", folder, SOURCE, "--protect", "--alternatives=2").refuses("--protect")
    regard(command, folder, SOURCE, "--terms", tmp_path / "none").refuses("none")
    regard("terms", put(tmp_path / "c", classifier())).refuses("classifier")
