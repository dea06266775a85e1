"""Training of text to text: scores of a validation, the card; running text as spans; beginning from another model."""

import itertools
import json
import math
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.cli import main
from regard.config import recipe_from
from regard.data.corpora.corpus import no_progress
from regard.system.errors import RegardError, UsageError
from regard.tasks import job_class
from regard.tasks.assets import TextAssets, read_prefixes
from regard.tasks.metrics.bleu import exact_match, score
from regard.tasks.protocols import InputFiles
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.text_to_text.corpus import with_prefix
from regard.tasks.translation.text_to_text.training import SpansJob, TextToTextJob, TextToTextTraining
from regard.tasks.translation.text_to_text.writer import start_in
from regard.text.tokenizers.tokenizer import learn
from regard.training.checkpoints import manifest, resolved
from tests.refusals import refused
from tests.runs.convert.small_folders import folder_of
from tests.tasks.small_tasks import SPANNED, asker, filler, put, spanner
from tests.tasks.test_running_tasks import text
from tests.tasks.translation.text_to_text.test_corpus import PrefixedPair, prepared
from tests.training.toy import Counting, Fast

CPU: dict[str, Any] = {"device": "cpu", "threads": 1}
HERE: dict[str, Any] = {**CPU, "task": "text-to-text"}
MODEL = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
TRAINING = {"tokens": 256, "steps": 250, "validate_every": 250, "rate": 1e-2, "label_smoothing": 0.0}
RECIPE: dict[str, Any] = {
    "task": "text-to-text",
    "text": {"units": "characters"},
    "data": {"max_tokens": 24, "validation": 40},
    "model": {**MODEL, "norm_place": "pre"},
    "training": TRAINING,
    "decoding": {"beam": 2},
}
LESSON: dict[str, Any] = {
    **RECIPE,
    "text": {"vocabulary": 480},
    "data": {"max_tokens": 24, "documents": "line"},
    "model": {**MODEL, "positions": "relative"},
    "training": {**TRAINING, "tokens": 128, "steps": 60, "validate_every": 60},
    "text_to_text": {"spans": True},
}
"""The same of running text."""


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


STILL = ["training.steps=1", "training.rate=1e-12", "training.tokens=128"]
SPANS = ["text_to_text.spans=true", "data.documents=line", *STILL]


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, list[str]]:
    """A model of spans, of lines that count up."""
    folder, told = tmp_path_factory.mktemp("counting"), Counting()
    path = text(folder / "a.txt", 400)
    model = regard.train(train=path, output=folder / "model", recipe=LESSON, reporter=told, **CPU)
    return model, folder / "model", told.events


def test_spans_are_read_and_written_by_name(counting) -> None:
    model, folder, told = counting
    assert isinstance(model, regard.TextToText)
    assert any(re.match(r"400 documents, [\d,]+ characters", line) for line in told)
    assert "pairs of texts to learn from" in (folder / "card.md").read_text()
    written = model.ask(["one two <extra_0> four five", "six <extra_0> eight nine <extra_1>"])
    assert all(one.startswith("<extra_0>") for one in written)
    (best,) = model.nbest(["one two <extra_0> four five"])[0]
    assert best.tokens[0] == model.assets.tokenizer.sentinels[0]
    log = [json.loads(line) for line in (folder / "training" / "metrics.jsonl").read_text().splitlines()]
    assert any("<extra_0>" in entry["source"] for entry in log if entry["kind"] == "sample")
    assert [word.word for word in model.unseen_words("one zebra <extra_0> two")] == ["zebra"]


def test_it_is_begun_from_and_begins_from_another(counting, tmp_path: Path) -> None:
    path, tokenizer = text(tmp_path / "b.txt", 60, 2), counting[0].assets.tokenizer
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"count\tone two {n}\tthree {n}\n" for n in range(60)))
    for train, settings in ((path, SPANS), (table, STILL)):
        given = {"train": train, "start_from": counting[1], "settings": settings, "task": "text-to-text"}
        again = regard.train(output=tmp_path / train.stem, **given, **CPU)
        assert again.assets.tokenizer.sha256 == tokenizer.sha256
        for name, weight in counting[0].model.state_dict().items():
            assert torch.allclose(weight, again.model.state_dict()[name], atol=1e-6), name
    with refused(UsageError, "start_from", "<extra_0>"):
        SpansJob.encoder(learn(["no symbols"], 300), counting[0].recipe)


def test_sentinels_of_a_table_are_symbols_too(counting, tmp_path: Path) -> None:
    table, settings = tmp_path / "a.tsv", (*STILL, "data.validation=5")
    table.write_text("".join(f"one <extra_0> {n}\t<extra_0> two {n} <extra_1>\n" for n in range(60)))
    given = {"train": table, "start_from": counting[1], "settings": settings, "task": "text-to-text"}
    model = regard.train(output=tmp_path / "model", **given, **CPU)
    prepared = TextToTextJob.of_prepared(model.recipe).open(tmp_path / "model" / "training" / "data")
    first, second = model.assets.tokenizer.sentinels[:2]
    for number in range(prepared.count):
        assert (prepared.text.sentence(number) == first).sum() == 1
        assert prepared.labels.sentence(number)[-2] == second


def job(path: Path, **sections: Any) -> SpansJob:
    recipe = recipe_from({**LESSON, **sections})
    found = job_class("text-to-text").of_files(
        InputFiles([path]), lambda count, seems=None: recipe, lambda line: None, False
    )
    assert isinstance(found, SpansJob)
    return found


def test_validation_windows_are_a_few_and_are_whole_texts(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", 300)
    few = job(path, data={"max_tokens": 24, "documents": "line", "validation": 7}).prepare(tmp_path / "d", no_progress)
    assert few.validation_source.count == few.validation_target.count == len(few.validation_pairs()) == 7
    known = set(path.read_text().splitlines())
    for source, target in few.validation_pairs():
        whole = source
        for name, span in re.findall(r"(<extra_\d+>)([^<]*)", target):
            whole = whole.replace(f" {name}", span.rstrip()).replace(name, span.strip())
        assert whole in known


def test_a_validation_is_always_the_same(tmp_path: Path) -> None:
    found = job(text(tmp_path / "a.txt", 100))
    prepared = found.prepare(tmp_path / "data", no_progress)
    opened = TextToTextJob.of_prepared(found.recipe)  # as a worker does
    assert isinstance(opened, SpansJob)
    losses = []
    for data in (prepared, opened.open(tmp_path / "data")):
        model = found.task.build(found.recipe, found.assets(data).sizes, 5).eval()
        teaching = found.teach(found.task(found.recipe, found.assets(data), model), data, ProductPaths())
        assert isinstance(teaching, TextToTextTraining)
        losses.append(teaching.validate(False).loss)
        batch, _ = next(iter(teaching.batches.iterate()))
        assert batch.source.lengths_B.max() <= 24
    assert losses[0] == losses[1] == pytest.approx(math.log(480), rel=0.3)


def test_where_a_t5_begins_to_write(tmp_path: Path) -> None:
    """Its pad piece begins answers; where spans are learned it has our start symbol, a copy of it at first."""
    folder_of("T5ForConditionalGeneration", tmp_path / "theirs")
    main(["import", str(tmp_path / "theirs"), str(tmp_path / "t5")])
    task = regard.load(tmp_path / "t5", device="cpu")
    assert isinstance(task, regard.TextToText)
    assert not task.recipe.text_to_text.spans
    assert task.symbols.start == 0
    given = {"train": text(tmp_path / "a.txt", 60), "start_from": tmp_path / "t5", "task": "text-to-text"}
    spans = regard.train(output=tmp_path / "spans", settings=[*SPANS, "data.max_tokens=16"], **given, **CPU)
    tokenizer, table = spans.assets.tokenizer, spans.model.decoder.input.tokens.weight
    assert spans.symbols.start == start_in(spans.recipe, tokenizer) == tokenizer.start
    assert torch.allclose(table[tokenizer.start], table[0], atol=1e-6)
    assert main(["export", str(tmp_path / "spans"), str(tmp_path / "out")]) == 0
    assert main(["import", str(tmp_path / "out"), str(tmp_path / "again")]) == 0
    again = regard.load(tmp_path / "again", device="cpu")
    assert again.symbols.start in (0, tokenizer.start)
    assert again.nbest(["the <extra_id_0> is"])[0][0].tokens == spans.nbest(["the <extra_id_0> is"])[0][0].tokens


def rewritten(path: Path, content: str) -> Path:
    """The folder of a file, with another content of it."""
    path.write_text(content)
    names = json.loads((path.parent / manifest.NAME).read_text())["files"]
    manifest.replace(path.parent, {name: [(path.parent / name).read_bytes()] for name in names}, Fast())
    return path.parent


def test_a_folder_of_the_earlier_task_is_one_of_text_to_text(tmp_path: Path) -> None:
    plain = spanner()
    path = put(tmp_path / "old", plain) / "recipe.toml"
    lines = path.read_text().partition("# Several tasks in one model")[0].replace('"text-to-text"', '"span-corruption"')
    folder = rewritten(path, f"{lines}[masking]\nshare = 0.25\nmask = 0.8\nwhole_words = true\nspan = 2.0\n")
    task = regard.load(folder, device="cpu")
    assert isinstance(task, regard.TextToText)
    section = task.recipe.text_to_text
    assert (section.spans, section.span_share, section.span_length) == (True, 0.25, 2.0)
    found, wanted = (one.nbest([SPANNED], 2)[0] for one in (task, plain))
    assert [one.tokens for one in found] == [one.tokens for one in wanted]
    for name, weight in plain.model.state_dict().items():
        assert torch.equal(weight, task.model.state_dict()[name])


def test_a_model_of_masked_words_may_name_the_length_of_spans(tmp_path: Path) -> None:
    path = put(tmp_path / "old", filler()) / "recipe.toml"
    folder = rewritten(path, f"{path.read_text()}span = 3.0\n")
    assert isinstance(regard.load(folder, device="cpu"), regard.MaskedLm)


def test_what_left_is_named_with_what_to_use(tmp_path: Path) -> None:
    given: dict[str, Any] = {"train": text(tmp_path / "a.txt", 30), "output": tmp_path / "new", **CPU}
    length = {"task": "masked-lm", "masking": {"span": 2}}
    for where, said, more in (
        ("task", "text_to_text.spans = true", {"task": "span-corruption"}),
        ("recipe", "text_to_text.spans = true", {"recipe": {"task": "span-corruption"}}),
        ("recipe", "text_to_text.span_length", {"recipe": length}),
        (None, "text_to_text.span_length", {"task": "masked-lm", "settings": ["masking.span=2.0"]}),
    ):
        with refused(UsageError, where, said):
            regard.train(**given, **more)
    with refused(UsageError, "recipe", "text_to_text.spans"):
        regard.train(recipe={**LESSON, "text": {"vocabulary": 480, "bpe_dropout": 0.1}}, **given)


def test_a_run_of_the_earlier_task_is_refused_in_a_sentence(tmp_path: Path) -> None:
    given: dict[str, Any] = {"train": text(tmp_path / "a.txt", 60), "recipe": LESSON, "settings": STILL, **CPU}
    regard.train(output=tmp_path / "model", **given)
    fields = resolved.read_fields(tmp_path / "model" / "training") | {"recipe.task": "span-corruption"}
    resolved.write(tmp_path / "model" / "training", fields, Fast())
    with refused(RegardError, "recipe.task", "span-corruption", "output"):
        regard.train(output=tmp_path / "model", **given)
