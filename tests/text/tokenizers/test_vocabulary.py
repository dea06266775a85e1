import json
from pathlib import Path

import numpy as np
import pytest

from regard.system.errors import RegardError
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.vocabulary import PAD, Vocabularies, learn_vocabularies, sample, start_of
from tests.refusals import refused
from tests.text.tokenizers import library_tokenizers as library

PAIRS = [("a red house", "ein rotes Haus"), ("a red boat", "ein rotes Boot")] * 3


@pytest.mark.parametrize("joint", [True, False])
def test_a_folder_gives_back_one_tokenizer_or_two(tmp_path: Path, joint: bool) -> None:
    with refused(RegardError, tmp_path):
        Vocabularies.load(tmp_path)
    made = learn_vocabularies(PAIRS, 300, joint)
    assert (made.source is made.target) == (made.source.sha256 == made.target.sha256) == joint
    made.save(tmp_path)
    names = ["tokenizer.json"] if joint else ["tokenizer.source.json", "tokenizer.target.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    again = Vocabularies.load(tmp_path)
    assert (again.joint, again.sha256, again.sizes) == (joint, made.sha256, made.sizes)


def test_both_sides_are_learned_as_wished() -> None:
    for joint in (True, False):
        both = learn_vocabularies(PAIRS, 300, joint, "nfkc", units="characters", lowercase=True)
        for one in (both.source, both.target):
            assert (one.units, one.lowercase, one.normalisation) == ("characters", True, "nfkc")
            assert one.decode(one.encode("Ein Haus").ids) == "ein haus"


def test_the_sample_is_a_function_of_the_seed_in_the_order_of_the_stream() -> None:
    found = sample(range(50_000), 100, seed=3)
    assert found == sample(iter(range(50_000)), 100, seed=3)
    assert found != sample(range(50_000), 100, seed=4)
    assert found == sorted(set(found))
    assert len(found) == 100
    assert (sample(range(5), 10, seed=1), sample(iter(()), 10, seed=1)) == ([0, 1, 2, 3, 4], [])


@pytest.mark.parametrize("draws", [800, pytest.param(3000, marks=pytest.mark.long(0.1))])
def test_every_item_is_as_likely_as_another(draws: int) -> None:
    hits = np.zeros(40)
    for seed in range(draws):
        hits[sample(range(40), 10, seed)] += 1
    expected, deviation = draws / 4, np.sqrt(draws * 0.25 * 0.75)
    assert np.abs(hits - expected).max() < 5 * deviation


def test_what_is_written_begins_with_the_start_symbol_but_with_the_pad_piece_of_a_t5() -> None:
    ours = learn_vocabularies([("a b", "b a")] * 3, 300).source
    assert start_of(ours) == ours.start == ours.size
    core = library.unigrams(["a dog runs", "the dog"], 40)
    roles = {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"}
    theirs = HuggingFaceTokenizer(json.loads(core.to_str()), roles)
    assert start_of(theirs) == theirs.pad == PAD
