"""``regard pack`` measures every precision, and says in one sentence what it cannot measure."""

from pathlib import Path

import pytest

from regard.runs.pack import pack
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.metrics.bleu import score
from regard.tasks.model_folder import open_without_torch
from regard.tasks.text.precisions import FILE, GUARD
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, asker, classifier, put, translator

LINES = [SOURCE, "The street", "was too tired because"] * 15


pytestmark = pytest.mark.usefixtures("compiled", "own_cache")


def data(folder: Path, model: Path) -> tuple[Path, Path]:
    """Sources, and as references what the model itself says in fp32."""
    task = open_without_torch(model, "cpu", "fp32")
    source, reference = folder / "source", folder / "reference"
    source.write_text("".join(f"{line}\n" for line in LINES))
    reference.write_text("".join(f"{found[0].text}\n" for found in task.nbest(LINES)))
    return source, reference


@pytest.mark.parametrize("make", [translator, asker])
def test_scores_are_those_of_the_outputs_in_each_precision(make, tmp_path: Path) -> None:
    folder = put(tmp_path / "m", make())
    source, reference = data(tmp_path, folder)
    found, path = pack(folder, source, reference)
    assert path == folder / FILE
    assert list(found.measured) == ["fp32", "bf16", "int8"]
    language = open_without_torch(folder, "cpu", "fp32").recipe.text.target_language
    for precision, one in found.measured.items():
        outputs = [hypotheses[0].text for hypotheses in open_without_torch(folder, "cpu", precision).nbest(LINES)]
        assert one.score == score(outputs, reference.read_text().splitlines(), language, samples=0).bleu
        assert (precision in found.kept) == (one.score >= found.measured["fp32"].score - GUARD)
    assert open_without_torch(folder, "cpu").precision == found.kept[0]


def test_what_cannot_be_measured_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "m", translator())
    source, reference = data(tmp_path, folder)
    with refused(UsageError, folder, "source", "reference"):
        pack(folder)
    with refused(UsageError, "reference"):
        pack(folder, source)
    with refused(UsageError, "source"):
        pack(folder, None, reference)
    with monkeypatch.context() as off, refused(UsageError, "m", "kernels"):
        off.setattr("regard.system.kernels.available", lambda: False)
        pack(folder, source, reference)
    with refused(UsageError, "c", "translate and ask"):
        pack(put(tmp_path / "c", classifier()), source, reference)
    reference.write_text("one line\n")
    with refused(RegardError, reference, str(len(LINES))):
        pack(folder, source, reference)
    for nothing in ("", "\n \n"):
        source.write_text(nothing)
        reference.write_text(nothing)
        with refused(RegardError, source):
            pack(folder, source, reference)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with refused(Damaged, "model.safetensors"):
        pack(folder, source, reference)
    assert not (folder / FILE).exists()
