"""What a demonstration measured without an idea is told beside its model, and nothing of any other file."""

import json
from pathlib import Path

import pytest

from regard.config import checksum
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from regard.runs.demo import NAME
from regard.runs.demo.grammar.scores import Accuracy
from regard.runs.demo.translation import DemoScores
from regard.runs.demo.without import Comparison, Measured, write
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import put, translator

SCORES = DemoScores(0.5, 70.25, "nrefs:1", Accuracy(3, 4))
WHOLE = Measured(
    1, 9, 100, [(9, 0.5)], ["encoder"], [(5, [0.1])], None, SCORES, {"cross 1": (2.0, 1.0)}, ("Das Tier.",)
)
FAILED = Measured(1, 4, 100, [], [], [], "the loss is not finite")


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    put(tmp_path / "demo" / "model", translator())
    (tmp_path / "demo" / "corpus").mkdir()
    write(tmp_path / "demo" / NAME, Comparison(("The animal.",), ("Das Tier.",), {"whole": WHOLE, "norm": FAILED}))
    return tmp_path / "demo"


def test_the_values_are_those_of_the_file(demo: Path) -> None:
    models = Models([demo])
    assert models.states()[0]["without"] is True
    values, arrays = unpack(answer(models, "without", {"model": 0}))
    told = json.loads((demo / NAME).read_text(encoding="utf-8"))
    assert not arrays
    assert {name: values[name] for name in ("sources", "references", "models")} == {
        name: told[name] for name in ("sources", "references", "models")
    }
    assert values["models"]["whole"]["scores"]["pronoun"] == {"correct": 3, "total": 4}
    assert values["models"]["norm"]["diverged"] == "the loss is not finite"


def test_nothing_was_measured(demo: Path) -> None:
    (demo / NAME).unlink()
    models = Models([demo])
    assert models.states()[0]["without"] is False
    with refused(UsageError, "model", "--without"):
        answer(models, "without", {"model": 0})


@pytest.mark.parametrize("content", [b"{}", b"[" * 10_000, b"", checksum.dump_json({"format": 1, "models": {}})])
def test_another_file_is_refused(demo: Path, content: bytes) -> None:
    (demo / NAME).write_bytes(content)
    with refused(RegardError, str(demo / NAME), NAME, "rerun"):
        answer(Models([demo]), "without", {"model": 0})
