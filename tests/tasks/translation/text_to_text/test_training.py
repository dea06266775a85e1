"""Training of text to text: scores of a validation, the card, and beginning from another model."""

import itertools
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.tasks.assets import TextAssets, read_prefixes
from regard.tasks.metrics.bleu import exact_match, score
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.text_to_text.corpus import with_prefix
from regard.tasks.translation.text_to_text.training import TextToTextTraining
from tests.tasks.small_tasks import asker
from tests.tasks.translation.text_to_text.test_corpus import PrefixedPair, prepared

HERE: dict[str, Any] = {"device": "cpu", "threads": 1, "task": "text-to-text"}
MODEL = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
RECIPE: dict[str, Any] = {
    "task": "text-to-text",
    "text": {"units": "characters"},
    "data": {"max_tokens": 24, "validation": 40},
    "model": {**MODEL, "norm_place": "pre"},
    "training": {"tokens": 256, "steps": 250, "validate_every": 250, "rate": 1e-2, "label_smoothing": 0.0},
    "decoding": {"beam": 2},
}


def write(path: Path, count: int, seed: int = 1) -> Path:
    """Letters to be said again, or to be said in capitals."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        text = "".join(draw.choices("abcdef", k=draw.randint(2, 6)))
        prefix, target = (("same", text), ("large", text.upper()))[number % 2]
        lines.append(f"{prefix}\t{text}\t{target}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("taught")
    path = write(folder / "a.tsv", 900)
    return regard.train(train=path, output=folder / "model", recipe=RECIPE, quiet=True, **HERE), folder / "model"


def test_two_tasks_are_learned_in_one_model_and_the_card_has_their_scores(taught) -> None:
    model = taught[0]
    assert model.ask(["fade", "bee"], prefix="large") == ["FADE", "BEE"]
    assert [word.word for word in model.unseen_words("same: zebra") or ()] == ["zebra"]
    known = model.unseen_pieces("target")
    assert not known & {id for letter in "abcdefABCDEF" for id in model.assets.tokenizer.encode(letter).ids}
    card = (taught[1] / "card.md").read_text()
    assert "A text-to-text model" in card
    for word in ("exact match", "ROUGE-L", "* same: ", "* large: ", "prefixes of the latter: "):
        assert word in card
    assert set(read_prefixes(taught[1])) == {"same", "large"}
    log = [json.loads(line) for line in (taught[1] / "training" / "metrics.jsonl").read_text().splitlines()]
    (valid,) = [entry for entry in log if entry["kind"] == "valid"]
    assert valid["exact"] > 90
    assert {entry["source"].partition(": ")[0] for entry in log if entry["kind"] == "sample"} <= {"same", "large"}


def test_a_validation_scores_what_is_written_greedily(tmp_path: Path) -> None:
    found = prepared(tmp_path, [PrefixedPair(f"p{n % 2}", f"b a {n}", f"a b {n}") for n in range(80)])
    task = asker()
    values = task.recipe.training.model_copy(update={"tokens": 64, "validation_sentences": 4})
    task.recipe = task.recipe.model_copy(update={"training": values})
    teaching = TextToTextTraining(task, found, ProductPaths())
    assert teaching.max_extra == 16
    validation = teaching.validate(True)
    texts = found.validation_pairs()[:4]
    said = [best[0].text for best in task.nbest([one.source for one in texts], 1, 1, max_extra=16)]
    wanted = [one.target for one in texts]
    assert validation.scores == {"exact": exact_match(said, wanted), "bleu": score(said, wanted, samples=1).bleu}
    assert next(iter(validation.scores)) == "exact"
    assert [one.hypothesis for one in validation.samples] == said[:3]


def test_sources_are_segmented_anew_in_every_epoch_and_targets_are_not(tmp_path: Path) -> None:
    pairs = [PrefixedPair("say", f"banana bandana cabana {n}", f"banana bandana {n}") for n in range(80)]
    found, task = prepared(tmp_path, pairs), asker()
    text = task.recipe.text.model_copy(update={"bpe_dropout": 0.5})
    training = task.recipe.training.model_copy(update={"tokens": 64})
    task.recipe = task.recipe.model_copy(update={"text": text, "training": training})
    tokenizer = TextAssets.load(found.folder).tokenizer
    read, written = (defaultdict[str, set[bytes]](set) for _ in range(2))
    teaching = TextToTextTraining(task, found, ProductPaths())
    for batch, _ in itertools.takewhile(lambda one: one[1].epoch < 6, teaching.batches.iterate()):
        for number in range(batch.source.count):
            source, target = batch.source, batch.target
            left = source.ids_T[source.starts_B[number] :][: source.lengths_B[number]]
            right = batch.labels_T[target.starts_B[number] :][: target.lengths_B[number]]
            assert left[-1] == right[-1] == tokenizer.end
            read[tokenizer.decode(left)].add(left.tobytes())
            written[tokenizer.decode(right)].add(right.tobytes())
    held = {with_prefix(one.source, one.prefix) for one in found.validation_examples()}
    assert set(read) == {with_prefix(one.source, one.prefix) for one in pairs} - held
    assert all(len(ways) > 3 for ways in read.values())
    assert all(len(ways) == 1 for ways in written.values())


def test_it_begins_from_a_model_of_its_own(taught, tmp_path: Path) -> None:
    other = write(tmp_path / "a.tsv", 200)
    other.write_text(other.read_text().replace("large", "big"))
    still = ["training.steps=1", "training.rate=1e-12", "training.tokens=256"]
    begun = {"train": other, "start_from": taught[1], "settings": still}
    model = regard.train(output=tmp_path / "begun", quiet=True, **begun, **HERE)
    assert set(model.assets.prefixes) == {"same", "big", "large"}
    assert torch.allclose(model.model.output.weight, taught[0].model.output.weight, atol=1e-6)
