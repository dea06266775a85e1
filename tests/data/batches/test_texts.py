"""Batches of pairs, and of texts with labels: from any position on, the same with and without a thread."""

import copy
import itertools
import threading
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from regard.config import Recipe, recipe_from
from regard.data.batches.batch import Capacity, PairBatch, Position
from regard.data.batches.texts import Examples, PairBatches
from regard.data.prepare.bpe_dropout import Ragged
from regard.data.prepare.folder import PreparedPairs
from tests.data.prepare.preparing import WORDS, prepare_pairs, written
from tests.decoding.counted_calls import calls

TEXTS = [[5, 6, 7, 0], [8, 0], [9, 9, 9, 9, 9, 0], [5, 0], [6, 7, 8, 0]]


@pytest.mark.parametrize(
    "labels", [[[2], [0], [1], [1], [3]], [[2, 1], [], [0, 1, 2], [], [3]], [[1] * len(text) for text in TEXTS]]
)
def test_labels_lie_end_to_end_as_their_texts_do(labels: list[list[int]]) -> None:
    examples = Examples.of(Ragged(TEXTS), Ragged(labels), 16)
    batch = examples.batch(np.array([4, 0, 1]))
    assert batch.text.ids_T[:10].tolist() == TEXTS[4] + TEXTS[0] + TEXTS[1]
    assert batch.labels_X.tolist() == labels[4] + labels[0] + labels[1]
    assert batch.counts_B.tolist() == [len(labels[4]), len(labels[0]), len(labels[1])]
    assert (batch.tokens, batch.room, batch.text.count) == (10, 16, 3)
    every = examples.all()
    assert np.concatenate([one.labels_X for one in every]).tolist() == [one for some in labels for one in some]
    assert np.concatenate([one.sentences for one in every]).tolist() == [0, 1, 2, 3, 4]


def test_an_epoch_of_the_feed_has_every_text_once() -> None:
    side = Ragged([[2] * (1 + n % 7) for n in range(40)])
    examples = Examples.of(side, Ragged([[1]] * 40), 16)
    recipe = Recipe.model_validate({"task": "classification", "data": {"max_tokens": 16}})
    epochs: dict[int, list[int]] = {0: [], 1: []}
    epoch = 0
    for batch, position in examples.feed(recipe, "data", examples.plain).iterate():
        epochs[epoch] += batch.sentences.tolist()
        if (epoch := position.epoch) == 2:
            break
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(40))
    assert epochs[0] != epochs[1]


def test_word_dropout_hides_a_share_anew_at_every_position() -> None:
    every, texts = np.arange(3), Ragged([range(2, 12), range(5, 30), range(2, 40)])  # whose tokens are none of 1
    examples = Examples(texts, Ragged([[0], [1], [2]]), Capacity(128, 128, 8))
    make, plain = examples.with_word_dropout(0.5, 1, seed=3), examples.batch(every)
    first, again, other = (make(Position(0, 0, n), every) for n in (0, 0, 1))
    assert np.array_equal(first.text.ids_T, again.text.ids_T)
    assert not np.array_equal(first.text.ids_T, other.text.ids_T)
    hidden_T = first.text.ids_T == 1
    assert 0.3 < hidden_T[: texts.tokens].mean() < 0.7
    assert np.array_equal(first.text.ids_T[~hidden_T], plain.text.ids_T[~hidden_T])
    assert np.array_equal(first.labels_X, plain.labels_X)
    none = examples.with_word_dropout(0.0, 1, seed=3)(Position(), every)
    assert np.array_equal(none.text.ids_T, plain.text.ids_T)


def recipe(dropout: float = 0.0, **sections: dict[str, object]) -> Recipe:
    text = {"vocabulary": 320, "bpe_dropout": dropout}
    data = {"validation": 50, "max_tokens": 64, **sections.pop("data", {})}
    return recipe_from({"text": text, "data": data, "training": {"tokens": 256}, **sections})


@pytest.fixture(scope="module", params=[0.0, 0.3], ids=["plain", "dropout"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[PreparedPairs, Recipe]:
    folder = tmp_path_factory.mktemp("corpus")
    draws = np.random.default_rng(0)
    parts = []
    for name, count in (("a", 500), ("b", 60)):
        texts = [f"{' '.join(draws.choice(WORDS, draws.integers(2, 9)))} {name}{number}" for number in range(count)]
        parts.append(written(folder, name, texts, [text.title() for text in texts]))
    chosen = recipe(request.param)
    return prepare_pairs(parts, chosen, folder / "data"), chosen


def texts_of(batch: PairBatch, prepared: PreparedPairs) -> list[tuple[str, str]]:
    found = []
    for n in range(batch.source.count):
        places = [slice(s.starts_B[n], s.starts_B[n] + s.lengths_B[n]) for s in (batch.source, batch.target)]
        left, right, read = batch.source.ids_T[places[0]], batch.labels_T[places[1]], batch.target.ids_T[places[1]]
        assert left[-1] == right[-1] == 0
        assert read.tolist() == [prepared.vocabularies.target.start, *right[:-1].tolist()]
        found.append((prepared.vocabularies.source.decode(left), prepared.vocabularies.source.decode(right)))
    return found


def test_pairs_that_dropout_makes_as_long_as_may_be_still_fit(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    texts = [" ".join(draws.choice(WORDS, draws.integers(2, 30))) for _ in range(300)]
    corpus = written(tmp_path, "a", texts, [" ".join([text.title()] * 3) for text in texts])
    chosen = recipe(0.3, data={"max_tokens": 128, "validation": 20}, training={"tokens": 128})
    prepared = prepare_pairs([corpus], chosen, tmp_path / "data")
    epochs = itertools.takewhile(lambda found: found[1].epoch < 8, PairBatches(prepared, chosen).iterate())
    longest = [(batch.source.lengths_B.max(), batch.target.lengths_B.max()) for batch, _ in epochs]
    assert max(source for source, _ in longest) > 64  # without dropout, none has more and batches need not either
    assert max(target for _, target in longest) <= 128


@pytest.mark.usefixtures("watch_shapes")
def test_an_epoch_holds_every_pair_once_in_batches_of_one_shape(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    batches = PairBatches(prepared, chosen)
    seen, count, position = [], 0, Position()
    stream = batches.iterate()
    while position.epoch == 0:
        batch, position = next(stream)
        pairs = texts_of(batch, prepared)
        assert all(source.title() == target for source, target in pairs)
        assert (len(batch.source.ids_T), len(batch.target.ids_T)) == (batches.capacity.source, 256)
        assert len(batch.source.starts_B) == batches.capacity.sentences
        seen += pairs
        count += 1
    assert len(set(seen)) == len(seen) == batches.pairs == 510
    assert count - 1.5 <= batches.batches_per_epoch <= count


def test_any_position_is_reached_at_once_with_and_without_a_thread(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    walk = list(itertools.islice(PairBatches(prepared, chosen).iterate(), 150))
    positions = [Position(), *(position for _, position in walk)]
    assert positions[140].epoch > 0
    for number in (0, 1, 17, 70, 140):
        stream = PairBatches(prepared, chosen).iterate(positions[number])
        for (expected, after), (batch, position) in zip(walk[number:], itertools.islice(stream, 2), strict=False):
            assert position == after
            np.testing.assert_equal(asdict(batch), asdict(expected))
        stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("regard-batches")]


def test_validation_is_every_pair_once_in_order(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    batches = PairBatches(prepared, chosen)
    found = [pair for batch in batches.validation for pair in texts_of(batch, prepared)]
    assert found == prepared.validation_pairs()
    assert {len(batch.target.ids_T) for batch in batches.validation} == {256}
    assert np.concatenate([batch.sentences for batch in batches.validation]).tolist() == list(range(50))


def test_the_fingerprint_knows_what_the_plan_rests_on(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    prints = {PairBatches(prepared, chosen).fingerprint}
    for part, values in (("training", {"tokens": 320}), ("data", {"look_ahead": 8}), ("data", {"weights": (1, 1)})):
        section = getattr(chosen, part).model_copy(update=values)
        prints.add(PairBatches(prepared, chosen.model_copy(update={part: section})).fingerprint)
    prints.add(PairBatches(prepared, chosen.model_copy(update={"seed": 2})).fingerprint)
    other = copy.copy(prepared)
    other.fingerprint = "of other data"
    prints.add(PairBatches(other, chosen).fingerprint)
    assert len(prints) == 6
    same = chosen.model_copy(update={"training": chosen.training.model_copy(update={"rate": 0.1})})
    assert PairBatches(prepared, same).fingerprint in prints


def test_weights_shape_a_virtual_epoch(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    data = chosen.data.model_copy(update={"weights": (1.0, 1.0), "epoch": 100})
    draws = PairBatches(prepared, chosen.model_copy(update={"data": data})).plan.draws
    assert (draws.epoch, (draws.of(0) < prepared.sizes[0]).sum()) == (100, 50)


def test_gathering_takes_a_few_calls_a_token(made: tuple[PreparedPairs, Recipe]) -> None:
    prepared, chosen = made
    stream = PairBatches(prepared, chosen).iterate()
    batches: list[PairBatch] = []
    done = calls(lambda: batches.extend(batch for batch, _ in itertools.islice(stream, 500)))
    assert done < 4 * sum(batch.tokens for batch in batches)
