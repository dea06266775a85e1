"""A pair is two segments of one sequence, in training, in use and on the page; it trains to the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.data.batches.batch import pack_sources
from regard.inspection.forward.inputs import text_inputs
from regard.inspection.forward.record import record
from regard.models.inputs import separate, tokens
from regard.system.errors import UsageError
from regard.tasks.classification.classifier import NOTHING
from regard.tasks.classification.pairs.classifier import PairClassification, split_pair
from regard.tasks.classification.pairs.corpus import join_pieces
from regard.tasks.model_folder import corpus_opener
from tests.refusals import refused
from tests.tasks.small_tasks import pairs


@pytest.fixture(scope="module")
def task() -> Any:
    return pairs()


def test_the_second_text_is_another_segment() -> None:
    given = tokens(pack_sources([np.array([7, 3, 0, 4, 4, 0]), np.array([7, 0, 0]), np.array([7, 5, 0, 6, 0])]))
    assert separate(given, 0).segments_T.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1]  # type: ignore[union-attr]


def test_scores_are_those_of_the_model_with_segments(task: Any) -> None:
    ids = [task.assets.tokenizer.ids_batch([text])[0] for text in ("The animal", "was tired")]
    joined = join_pieces(task.frame, *ids)
    segments = np.arange(len(joined)) > len(ids[0]) + len(task.frame.begin)
    given = tokens(pack_sources([joined]))
    given = type(given)(given.ids_T, given.sequences, torch.from_numpy(segments.astype(np.int64)))
    with torch.inference_mode():
        expected = task.model(given).numpy()
    both = [("The animal", "was tired"), ("was tired", "The animal")]
    found = task.scores(both)
    np.testing.assert_allclose(found[:1], expected, atol=1e-6)
    assert not np.allclose(found[0], found[1])
    np.testing.assert_allclose(task.scores(["The animal\twas tired"]), expected, atol=1e-6)


def test_one_pair_or_several_as_texts_or_tuples(task: Any) -> None:
    one = task.classify("The animal [SEP] was tired")
    assert one == task.classify(("The animal", "was tired"))
    assert task.classify([("The animal", "was tired"), ("", "x")]) == [one, NOTHING]
    assert task.parse_line("a\tb", 1) == ("a", "b")
    assert task.parse_line(" ", 1) is None
    for wrong in ("one text", "a\tb\tc"):
        with refused(UsageError, "line 3"):
            task.parse_line(wrong, 3)
    with refused(UsageError, "text"):
        split_pair(("a", "b", "c"))  # type: ignore[arg-type]


def test_the_page_reads_what_the_model_reads(task: Any) -> None:
    text = "The animal [SEP] was too tired"
    seen = text_inputs(task, text)
    assert seen.source_text == text
    assert "".join(text[one.start : one.end] for one in seen.source) == "The animalwas too tired"
    hidden_TD = seen.run()
    with torch.inference_mode():
        score_BC = task.model.head(hidden_TD, task.pack(seen.read_ids).sequences)
    np.testing.assert_allclose(score_BC.numpy(), task.scores([text]), atol=1e-6)
    assert record(task, text).weights["encoder"][0].shape[1:] == (len(seen.source),) * 2


def write(path: Path, count: int, shift: int = 0) -> Path:
    words = "cat dog cow hen fox".split()
    rows = [(words[n % 5], words[n // 5 % 5]) for n in range(shift, shift + count)]
    path.write_text("".join(f"the {a} runs\tit is a {b} now\t{'same' if a == b else 'other'}\n" for a, b in rows))
    return path


def test_it_trains_to_the_same_bits_and_is_scored(tmp_path: Path) -> None:
    files = {"train": write(tmp_path / "a.tsv", 100), "valid": write(tmp_path / "v.tsv", 25, 7)}
    sizes = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.layers=1", "text.vocabulary=300"]
    options: dict[str, Any] = {"task": "sentence-pairs", "settings": sizes, "threads": 1, **files}
    options |= {"despite_check": True, "quiet": True, "steps": 4}
    whole, again = (regard.train(output=tmp_path / name, **options) for name in ("whole", "again"))
    assert isinstance(whole, PairClassification)
    assert whole.recipe.model.segments == 2
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name]), name
    unseen = regard.load(tmp_path / "whole").unseen_words("the zebra runs [SEP] it is a cat")
    assert [(word.word, word.begin) for word in unseen] == [("zebra", 4)]
    found = whole.evaluate(corpus_opener("sentence-pairs")(files["valid"]))
    assert found.to_dict()["accuracy"] <= 100
    with refused(UsageError, "settings"):
        regard.train(output=tmp_path / "no", **{**options, "settings": [*sizes, "text.bpe_dropout=0.1"]})
