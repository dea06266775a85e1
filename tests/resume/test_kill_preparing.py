"""Preparing and measuring, killed before any step that makes something last: the next start finds nothing or all.

Of preparing the steps are those of the system; of measuring the file operations, or the middle of a write.
"""

import os
import shutil
from types import SimpleNamespace

import pytest

from regard.config import recipe_from
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import verify_folder
from regard.runs.run import prepare_data
from regard.training import measure
from regard.training.trainer import Hooks
from tests.data.prepare.preparing import prepare_pairs
from tests.training.toy import Corpus, Count, Fast, Killer, Toy, in_child, recipe

STEPS = ((os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree"))


def counted(fatal=None):
    """From now on every step is counted, and the process dies before the step ``fatal``."""
    seen = []

    def counting(name, step):
        def call(*arguments, **options):
            seen.append(name)
            if len(seen) == fatal:
                os._exit(137)
            return step(*arguments, **options)

        return call

    for module, name in STEPS:
        setattr(module, name, counting(name, getattr(module, name)))
    return seen


def killed(made, folder, number):
    """The exit code of preparing in a process that dies before the step ``number``."""

    def work():
        counted(number)
        made(folder)

    return in_child(work)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def made(tmp_path):
    """Prepares a small corpus, with separate vocabularies, into a folder; ``never`` is one that is never killed."""
    for side in ("en", "de"):
        (tmp_path / f"a.{side}").write_text("".join(f"the {side} line {n % 7} of {n}\n" for n in range(60)))
    pairs = open_pairs(tmp_path / "a.en", tmp_path / "a.de")
    text, data = {"vocabulary": 320, "joint": False, "bpe_dropout": 0.1}, {"validation": 5, "max_tokens": 40}
    recipe = recipe_from({"text": text, "data": data, "model": {"tie": "two"}})
    prepare_pairs([pairs], recipe, tmp_path / "never")
    return lambda folder: prepare_pairs([pairs], recipe, folder) and None


@pytest.mark.one_of(4, minutes=0.05)
@pytest.mark.parametrize("share", range(4))
def test_killed_before_each_step(tmp_path, made, share):
    def counts():
        seen = counted()
        made(tmp_path / "counted")
        (tmp_path / "seen").write_text(" ".join(seen))

    assert in_child(counts) == 0
    steps = (tmp_path / "seen").read_text().split()
    assert {"fsync", "rename", "replace"} == set(steps)
    for number in range(len(steps) - share, 0, -4):
        folder = tmp_path / str(number)
        assert killed(made, folder, number) == 137
        assert not folder.exists()  # the rename into its place is the last step
        made(folder)
        assert contents(folder) == contents(tmp_path / "never")
        assert not folder.with_name(f"{number}.partial").exists()


def test_killed_again_and_again(tmp_path, made):
    """What one kill leaves half made is removed by the next start, which is killed while it removes."""
    for number in (9, 5, 2, 1):
        assert killed(made, tmp_path / "data", number) == 137
    made(tmp_path / "data")
    assert contents(tmp_path / "data") == contents(tmp_path / "never")


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize("share", range(3))
def test_killed_while_damaged_data_is_made_again(tmp_path, made, share):
    """In a run, which removes the damaged folder once another like it is whole; both cannot be lost at once."""

    class Small:
        def prepare(self, folder, progress):
            made(folder)
            return SimpleNamespace(fingerprint=verify_folder(folder)["fingerprint"])

    def run(folder):
        prepare_data(Small(), folder, lambda text: None)

    for number in range(1 + share, 100, 3):
        training = tmp_path / f"training-{number}"
        shutil.copytree(tmp_path / "never", training / "data")
        (training / "data" / "index.json").write_bytes(b"{")
        code = killed(run, training, number)
        for left in ("data.damaged-1", "data.partial"):  # of an earlier Regard, and of a kill
            (training / left).mkdir(exist_ok=True)
        run(training)
        assert contents(training / "data") == contents(tmp_path / "never")
        assert [path.name for path in training.iterdir()] == ["data"]
        if code == 0:
            break
    assert number > 10


def measured(folder, files):
    """Of two steps, which touch no file."""
    measure.measure(Toy(), Corpus(), recipe(), folder, Hooks(files=files), 1e9, most=2)


@pytest.mark.one_of(6, minutes=0.04)
@pytest.mark.parametrize("share", range(3))
def test_measuring_killed_before_each_operation_and_in_each_write(tmp_path, share):
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


def test_measuring_killed_again_while_what_is_left_is_removed(tmp_path):
    files = Fast()
    measured(tmp_path, files)
    for number in (files.number - 3, 1, 2):  # while the first removes its save; then the next starts, while they sweep
        assert in_child(lambda number=number: measured(tmp_path, Killer(number))) == 137
        assert list(tmp_path.iterdir()) != []
    measured(tmp_path, Fast())
    assert list(tmp_path.iterdir()) == []


def test_measuring_interrupted_in_the_middle_of_the_save_leaves_nothing(tmp_path):
    class Interrupted(Fast):
        def before(self, operation, path):
            super().before(operation, path)
            if self.number == 6:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, Interrupted())
    assert list(tmp_path.iterdir()) == []
