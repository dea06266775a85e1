"""Measuring, killed before any file operation or in the middle of a write: the next start measures all the same."""

from pathlib import Path

import pytest

from regard.training import measure
from regard.training.checkpoints.files import Files
from regard.training.trainer import Hooks
from tests.training.toy import Corpus, Count, Fast, Killer, Toy, in_child, recipe, reseed


def measured(folder: Path, files: Files) -> None:
    """Of two steps, which touch no file."""
    measure.measure(Toy(), Corpus(), recipe(), folder, Hooks(reseed=reseed, files=files), 1e9, most=2)


@pytest.mark.one_of(3, minutes=0.1)
@pytest.mark.parametrize("share", range(3))
def test_killed_before_each_operation_and_in_each_write(tmp_path: Path, share: int) -> None:
    files, left = Count(), set()
    measured(tmp_path, files)
    kills = [(number, False) for number in range(1, files.number + 1)]
    kills += [(number, True) for number, (operation, _) in enumerate(files.operations, 1) if operation == "write"][::4]
    for number, middle in kills[share::3]:
        assert in_child(lambda number=number, middle=middle: measured(tmp_path, Killer(number, middle))) == 137
        left |= {path.name.partition("-")[0] for path in tmp_path.iterdir()}
        measured(tmp_path, Fast())
        assert list(tmp_path.iterdir()) == []
    assert left == {"measured", "measured.partial"}


def test_killed_again_while_what_is_left_is_removed(tmp_path: Path) -> None:
    files = Fast()
    measured(tmp_path, files)
    for number in (files.number - 3, 1, 2):  # while the first removes its save; then the next starts, while they sweep
        assert in_child(lambda number=number: measured(tmp_path, Killer(number))) == 137
        assert list(tmp_path.iterdir()) != []
    measured(tmp_path, Fast())
    assert list(tmp_path.iterdir()) == []


def test_interrupted_in_the_middle_of_the_save_it_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted(Fast):
        def before(self, operation: str, path: Path) -> None:
            super().before(operation, path)
            if self.number == 6:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, Interrupted())
    assert list(tmp_path.iterdir()) == []
