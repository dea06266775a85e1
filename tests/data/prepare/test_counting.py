"""A sample of pairs counted in blocks: the pairs, and the vocabularies, that drawing them one by one gives."""

from pathlib import Path

import numpy as np
import pytest

from regard.config import recipe_from
from regard.data.checks.pairs import PairScan
from regard.data.corpora import pairs
from regard.data.corpora.corpus import TextPair
from regard.data.corpora.pairs import TwoFiles, open_pairs
from regard.data.corpora.scan import DataScan
from regard.data.prepare.counting import count_sample
from regard.data.prepare.split import TRAIN, Split, SplitCorpora
from regard.system.forks import SAFE
from regard.text.tokenizers.vocabulary import learn_vocabularies, sample

LINES = 120
PROCESSES = [1, *(pytest.param(count, marks=pytest.mark.skipif(not SAFE, reason="no copies")) for count in (2, 3))]


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SplitCorpora[TextPair]:
    """Lines of two files, then rows of a table; some pairs are not learned from."""
    monkeypatch.setattr(pairs, "BLOCK", 300)
    monkeypatch.setattr("regard.text.lines.HEAD", 100)
    words = ["red", "Haus", "Ärger", "猫", "it's", "runs"]
    rows = [[f"{words[(n + side) % 6]} {words[n * 7 % 6]} {n % 9}" for side in (0, 1)] for n in range(2 * LINES)]
    for side, name in enumerate(("a.en", "a.de")):
        content = "".join(f"{row[side]}\n" for row in rows[:LINES]).encode()
        (tmp_path / name).write_bytes(content + b"f\xfcr\n")
    (tmp_path / "b.tsv").write_text("".join("\t".join(row) + "\n" for row in rows[LINES:]))
    learned = [TwoFiles(tmp_path / "a.en", tmp_path / "a.de"), open_pairs(tmp_path / "b.tsv")]
    scans = [PairScan(corpus).run() for corpus in learned]
    held_B = np.arange(2 * LINES + 1) % 11 == 3
    return SplitCorpora(DataScan(scans), lambda: Split(held_B, np.roll(held_B, 2)))


@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize(
    ("count", "joint", "units"), [(50, True, "pieces"), (9999, False, "characters"), (1, True, "pieces")]
)
def test_the_sample_is_what_drawing_gives(corpora, processes: int, count: int, joint: bool, units: str) -> None:
    text = {"sample": count, "joint": joint, "units": units, "vocabulary": 300}
    recipe = recipe_from({"text": text, "model": {"tie": "three" if joint else "two"}}).text
    wanted = sample(corpora.train_examples(), count, 5)
    counter, given = count_sample(corpora, recipe, 10, 5, processes)
    assert given == wanted[:: 1 + len(wanted) // 10]
    found = counter.learn(300)
    assert found.sha256 == learn_vocabularies(wanted, 300, joint, recipe.normalisation, units=recipe.units).sha256
    assert [note.invalid_lines for note in corpora.notes[:2]] == [[LINES + 1]] * 2


def test_as_many_pairs_are_learned_from_as_there_are(corpora) -> None:
    assert corpora.train_count == len(list(corpora.train_examples()))
    marks = np.concatenate([block.marks_B for block in corpora.train_blocks(len)])
    assert (marks == TRAIN).sum() == corpora.train_count
