import json
from pathlib import Path

import numpy as np

from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import PAD, Vocabularies, learn_vocabularies, sample, start_of
from tests.refusals import refused
from tests.text.tokenizers import library_tokenizers as library

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


def test_a_short_stream_is_kept_whole() -> None:
    assert sample(range(5), 10, seed=1) == [0, 1, 2, 3, 4]
    assert sample(iter(()), 10, seed=1) == []


def test_the_sample_is_a_function_of_the_seed_in_the_order_of_the_stream() -> None:
    found = sample(range(50_000), 100, seed=3)
    assert found == sample(iter(range(50_000)), 100, seed=3)
    assert found != sample(range(50_000), 100, seed=4)
    assert found == sorted(set(found))
    assert len(found) == 100


def test_every_item_is_as_likely_as_another() -> None:
    hits = np.zeros(40)
    for seed in range(3000):
        hits[sample(range(40), 10, seed)] += 1
    expected, deviation = 3000 / 4, np.sqrt(3000 * 0.25 * 0.75)
    assert np.abs(hits - expected).max() < 5 * deviation


def test_what_is_written_begins_with_the_start_symbol_but_with_the_pad_piece_of_a_t5() -> None:
    ours = learn_vocabularies([("a b", "b a")] * 3, 300).source
    assert start_of(ours) == ours.start == ours.size
    core = library.unigrams(["a dog runs", "the dog"], 40)
    roles = {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"}
    theirs = HuggingFaceTokenizer(json.loads(core.to_str()), roles)
    assert theirs.pad == PAD
    assert start_of(theirs) == PAD
    without = HuggingFaceTokenizer(json.loads(core.to_str()), {"eos": "</s>", "unk": "<unk>"})
    assert start_of(without) == (without.start if without.pad is None else PAD)
