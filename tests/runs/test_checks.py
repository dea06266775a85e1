"""The look before the work: what is suspect is told, what is fatal is refused at its place."""

from pathlib import Path

import pytest

from regard.data.corpora.corpus import Corpus
from regard.data.corpora.pairs import open_pairs
from regard.runs import train as training
from regard.runs.datasets import scan_pairs
from regard.system.errors import RegardError
from tests.refusals import refused


def made(folder: Path, source: list[str], target: list[str]) -> Corpus:
    (folder / "a.en").write_text("".join(f"{line}\n" for line in source))
    (folder / "a.de").write_text("".join(f"{line}\n" for line in target))
    return open_pairs(folder / "a.en", folder / "a.de")


def test_what_is_suspect_is_told_with_its_place(tmp_path: Path) -> None:
    source = [f"the cat number {n}" for n in range(60)]
    target = [f"die Katze Nummer {n}" for n in range(60)]
    source[4] = ""
    told: list[str] = []
    _, pairs = scan_pairs([made(tmp_path, source, target)], None, told.append)
    assert pairs == 60
    assert told[-1].startswith("Usable")
    (empty,) = [line for line in told if "empty" in line]
    assert empty.endswith(f"First: {tmp_path / 'a.en'}:5")


@pytest.mark.parametrize("lines", [0, 50])
def test_what_is_fatal_is_refused(tmp_path: Path, lines: int) -> None:
    told: list[str] = []
    with refused(RegardError):
        scan_pairs([made(tmp_path, [""] * lines, [""] * lines)], None, told.append)
    assert not any("usable" in line.lower() for line in told)


def test_validation_pairs_are_looked_at_too(tmp_path: Path) -> None:
    pairs = made(tmp_path, [f"the cat {n}" for n in range(60)], [f"die Katze {n}" for n in range(60)])
    told: list[str] = []
    with refused(RegardError, "a.en:1", "--despite-check"):
        scan_pairs([pairs], pairs, told.append)


def test_a_judgement_may_be_overruled(tmp_path: Path) -> None:
    copies = made(tmp_path, [f"the cat {n}" for n in range(60)], [f"the cat {n}" for n in range(60)])
    told: list[str] = []
    with refused(RegardError, "a.en:1", "--despite-check"):
        scan_pairs([copies], None, told.append)
    scan_pairs([copies], None, told.append, despite_check=True)
    assert [line for line in told if line.startswith("warning: 60 pairs (100%) have the same text on both sides")]
    assert told[-1] == "Usable, with 2 warnings: 60 pairs."


@pytest.mark.parametrize("sides", [(60, 59), (0, 0)])
def test_what_cannot_be_read_is_refused_all_the_same(tmp_path: Path, sides: tuple[int, int]) -> None:
    one = made(tmp_path, *([f"the cat {n}" for n in range(count)] for count in sides))
    for despite_check in (False, True):
        with pytest.raises(RegardError) as caught:
            scan_pairs([one], None, lambda _: None, despite_check)
        assert "--despite-check" not in str(caught.value)


@pytest.mark.parametrize("despite_check", [False, True])
def test_training_goes_on_past_the_check_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, despite_check: bool
) -> None:
    def run(*work: object) -> None:
        raise LookupError("beyond the check")

    monkeypatch.setattr(training, "run", run)
    made(tmp_path, [f"the cat {n}" for n in range(60)], [f"the cat {n}" for n in range(60)])
    with pytest.raises(LookupError if despite_check else RegardError):
        training.train(tmp_path / "a.en", tmp_path / "a.de", tmp_path / "model", despite_check=despite_check)
