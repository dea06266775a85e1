"""Which precision a model is computed in, and which files that say so are believed."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import FORMAT, checksum
from regard.system.errors import UsageError
from regard.tasks.engine import step_of
from regard.tasks.model_folder import open_without_torch
from regard.tasks.text import precisions
from regard.tasks.text.precisions import FILE, GUARD, Measured, PrecisionFile, precision_of, read, weights_sha256, write
from regard.training.checkpoints.files import Files
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, asker, put, translator, viewer

pytestmark = pytest.mark.usefixtures("own_cache")


def measured(folder: Path, bf16: float = 30.0, int8: float = 30.0) -> PrecisionFile:
    """Scores beside 30 of fp32; int8 is fastest, then bf16."""
    scores = {"fp32": (30.0, 10.0), "bf16": (bf16, 20.0), "int8": (int8, 30.0)}
    return PrecisionFile(
        weights=weights_sha256(folder),
        sentences=3,
        signature="BLEU",
        processor="a processor",
        measured={name: Measured(score=score, speed=speed) for name, (score, speed) in scores.items()},
    )


def test_the_fastest_that_keeps_the_score_is_precision_of(tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    assert precision_of(folder, "auto") == "fp32"
    for bf16, int8, expected in ((30, 30, "int8"), (30, 29, "bf16"), (29, 29, "fp32"), (29, 30 - GUARD / 2, "int8")):
        write(folder, made := measured(folder, bf16, int8))
        assert precision_of(folder, "auto") == expected == made.kept[0]
        assert ("below" in "".join(made.lines())) == (min(bf16, int8) < 30 - GUARD)
    assert precision_of(folder, "bf16") == "bf16"
    with refused(UsageError, "precision"):
        precision_of(folder, "int4")  # type: ignore[arg-type]


def test_of_a_tie_the_precision_with_more_bits_is_used(tmp_path: Path) -> None:
    found = measured(put(tmp_path / "m", translator()))
    for speeds, expected in (((10, 10.2, 10.1), "fp32"), ((10, 20, 20.5), "bf16"), ((10, 20, 21), "int8")):
        scores = zip(("fp32", "bf16", "int8"), speeds, strict=True)
        tied = found.model_copy(update={"measured": {name: Measured(score=30, speed=one) for name, one in scores}})
        assert tied.kept[0] == expected
        assert set(tied.kept) == {"fp32", "bf16", "int8"}


def test_what_stands_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    path = folder / FILE
    path.symlink_to(tmp_path / "nothing")
    with refused(UsageError, path):
        write(folder, measured(folder))
    path.unlink()
    path.mkdir()
    with refused(UsageError, path):
        write(folder, measured(folder))


def test_a_damaged_file_and_one_of_other_weights_are_told_of_and_not_believed(tmp_path: Path) -> None:
    folder, other = put(tmp_path / "m", translator()), put(tmp_path / "n", translator(key=6))
    path = write(folder, measured(folder))
    whole = path.read_bytes()
    assert read(folder) == measured(folder)
    values = json.loads(whole)
    sealed = {name: one for name, one in values.items() if name != "sha256"}
    lying = [
        checksum.dump_json({**sealed, "measured": {"int8": {"score": 30, "speed": 1}}}),
        checksum.dump_json({**sealed, "measured": {"fp32": {"score": "NaN", "speed": 1}}}),
        checksum.dump_json({**sealed, "more": 1}),
        checksum.dump_json({**sealed, "sentences": 0}),
        checksum.dump_json({**sealed, "processor": "\x1b[31mred"}),
        checksum.dump_json({**sealed, "format": FORMAT + 1}),
        json.dumps(values).encode(),
        b"",
        whole[:-9],
    ]
    flipped = [bytearray(whole) for _ in range(0, len(whole), 7)]
    for place, content in enumerate(flipped):
        content[place * 7] ^= 1 << place % 8
    for content in [*lying, *flipped, (write(other, measured(other))).read_bytes()]:
        path.write_bytes(content)
        with pytest.warns(UserWarning, match=r"precisions\.json .* not used"):
            assert read(folder) is None
    path.write_bytes(whole)
    assert precision_of(folder, "auto") == "int8"


def test_where_the_folder_cannot_be_written_the_file_is_in_the_cache(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = put(tmp_path / "m", translator()), put(tmp_path / "n", translator(key=6))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    path = write(folder, measured(folder))
    assert path.is_relative_to(own_cache)
    assert weights_sha256(folder) in path.name
    assert not (folder / FILE).exists()
    assert precision_of(folder, "auto") == "int8"
    assert precision_of(other, "auto") == "fp32"
    path.write_bytes(b"x")
    with pytest.warns(UserWarning, match="not used"):
        assert precision_of(folder, "auto") == "fp32"


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("make", [translator, asker])
def test_the_engine_computes_in_the_precision_asked_for_and_alike_from_python(make: Any, tmp_path: Path) -> None:
    folder, scores = put(tmp_path / "m", make()), {}
    for precision in ("fp32", "bf16", "int8"):
        task = open_without_torch(folder, "cpu", precision)
        assert task.precision == precision
        scores[precision] = [one.score for one in task.nbest([SOURCE], 2, 2)[0]]
        model = regard.load(folder, "cpu", precision=precision)
        assert [one.score for one in model.nbest([SOURCE], 2, 2)[0]] == scores[precision]
    assert len({tuple(found) for found in scores.values()}) == 3
    assert scores["int8"] == pytest.approx(scores["fp32"], abs=0.3)
    write(folder, measured(folder))
    assert open_without_torch(folder, "cpu").precision == "int8"
    assert type(regard.load(folder, "cpu")).load(folder, "cpu").precision == "int8"


def test_where_torch_computes_only_fp32_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(UsageError, "precision", "int8", "vision Transformer"):
        regard.load(put(tmp_path / "v", viewer()), "cpu", precision="int8")
    folder = put(tmp_path / "m", translator())
    write(folder, measured(folder))
    monkeypatch.setattr("regard.system.kernels.available", lambda: False)
    with refused(UsageError, "precision", "bf16", "kernels"):
        regard.Translator.load(folder, "cpu", precision="bf16")
    assert regard.load(folder, "cpu", precision="fp32").translate("") == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert step_of(regard.Translator.load(folder, "cpu")) is not None


def test_of_derived_files_the_newest_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = precisions.write_derived(tmp_path, "ab12", "speeds.json", [b"of its owner"])
    os.utime(beside, (1, 1))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    mine = precisions.write_derived(tmp_path, "ab12", "speeds.json", [b"mine"])
    assert precisions.derived_files(tmp_path, "ab12", "speeds.json") == [mine, beside]
    os.utime(mine, (0, 0))
    assert precisions.derived_files(tmp_path, "ab12", "speeds.json") == [beside, mine]
    assert precisions.derived_files(tmp_path, "cd34", "speeds.json") == [beside]


def test_where_the_folder_has_no_space_the_cache_holds_a_derived_file(tmp_path: Path, own_cache: Path) -> None:
    class Full(Files):
        def replace(self, path: Path, content: object) -> None:  # type: ignore[override]
            if path.parent == tmp_path:
                raise OSError(28, "No space left on device")
            super().replace(path, content)  # type: ignore[arg-type]

    path = precisions.write_derived(tmp_path, "ab12", "speeds.json", [b"kept"], Full())
    assert path == own_cache / "regard" / "speeds" / "ab12.json"
