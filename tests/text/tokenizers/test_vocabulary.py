from pathlib import Path

from regard.system.errors import RegardError
from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies
from tests.refusals import refused

PAIRS = [("a red house", "ein rotes Haus"), ("a red boat", "ein rotes Boot")] * 3


def test_joint_is_one_tokenizer_and_one_file(tmp_path: Path) -> None:
    joint = learn_vocabularies(PAIRS, 300)
    assert joint.source is joint.target
    joint.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    again = Vocabularies.load(tmp_path)
    assert again.joint
    assert again.sha256 == joint.sha256


def test_separate_are_two(tmp_path: Path) -> None:
    two = learn_vocabularies(PAIRS, 300, joint=False)
    assert two.source.sha256 != two.target.sha256
    two.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.source.json", "tokenizer.target.json"]
    again = Vocabularies.load(tmp_path)
    assert (again.joint, again.source.sha256, again.target.sha256) == (False, two.source.sha256, two.target.sha256)


def test_a_folder_without_one_says_so(tmp_path: Path) -> None:
    with refused(RegardError, tmp_path):
        Vocabularies.load(tmp_path)


def test_both_sides_are_learned_as_wished() -> None:
    for joint in (True, False):
        both = learn_vocabularies(PAIRS, 300, joint, "nfkc", units="characters", lowercase=True)
        for one in (both.source, both.target):
            assert (one.units, one.lowercase, one.normalisation) == ("characters", True, "nfkc")
            assert one.decode(one.encode("Ein Haus").ids) == "ein haus"
