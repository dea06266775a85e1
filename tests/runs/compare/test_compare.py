"""Several recipes in one call: each run as if it were alone, gone on with, and held to what it was."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.config import dump_toml
from regard.data.corpora.pairs import Subset, open_corpora
from regard.data.prepare.folder import PreparedPairs
from regard.runs.compare import compare as comparing
from regard.runs.compare.compare import Budget, Texts, compare
from regard.runs.train import train
from regard.system.errors import Diverged, RegardError, Stopped, UsageError
from regard.tasks.model_folder import load
from regard.training.checkpoints.files import alone
from tests.refusals import refused
from tests.training.toy import Counting

WORDS = {"the": "die", "cat": "Katze", "dog": "Hündin", "sees": "sieht", "small": "kleine", "and": "und"}
SMALL: dict[str, Any] = {
    "text": {"vocabulary": 300},
    "data": {"max_tokens": 40},
    "training": {"tokens": 128, "precision": "mixed"},
    "decoding": {"beam": 2, "max_extra": 3},
}
NONE = {"family": "rnn", "score": "none", "d_model": 8}
ATTENTION = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}
PARTS = {"train": 120, "valid": 12, "test": 12}
"""Of so many pairs."""


def written(folder: Path, name: str, **sections: Any) -> Path:
    """A recipe, of the model without attention if no section says otherwise."""
    path = folder / f"{name}.toml"
    path.write_text(dump_toml({**SMALL, "model": NONE, **sections}))
    return path


@pytest.fixture
def recipes(tmp_path):
    return [written(tmp_path, "none"), written(tmp_path, "attention", model=ATTENTION)]


@pytest.fixture
def texts(tmp_path):
    draw = random.Random(1)
    for part, count in PARTS.items():
        sentences = [draw.choices(sorted(WORDS), k=draw.randint(3, 10)) for _ in range(count)]
        (tmp_path / f"{part}.en").write_text("".join(" ".join(words) + "\n" for words in sentences))
        (tmp_path / f"{part}.de").write_text("".join(" ".join(WORDS[w] for w in words) + "\n" for words in sentences))
    train, valid, test = (tuple(tmp_path / f"{part}.{code}" for code in ("en", "de")) for part in PARTS)
    return Texts([train[0]], [train[1]], valid, test)


@pytest.fixture
def run(recipes, texts, tmp_path):
    def compared(texts=texts, recipes=recipes, output="out", steps=4, heard=None, seeds=(1,), shares=(1.0,), **more):
        budget = more.pop("budget", None) or Budget(steps=steps, seeds=seeds, shares=shares)
        return compare(recipes, texts, budget, tmp_path / output, threads=1, reporter=heard, **more)

    return compared


def same(found: Any) -> Any:
    """What does not depend on the clock."""
    points = [(point.step, point.loss, point.bleu) for point in found.course.points]
    return found.run, found.rests, found.shape, found.valid, found.test, found.course.steps, points


def test_each_run_is_as_if_alone_and_is_not_made_twice(run, recipes, texts, tmp_path) -> None:
    heard, shown, path = Counting(), [], tmp_path / "out" / "results.jsonl"
    found = run(seeds=(1, 2), heard=heard, shown=lambda results: shown.append(len(results)))
    names = ["none-seed1", "attention-seed1", "none-seed2", "attention-seed2"]
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one.run for one in found] == [entry["run"] for entry in entries] == names
    assert {"date", "processor", "torch"} <= entries[0]["about"].keys()
    assert shown == [1, 2, 3, 4]
    assert any(text.startswith("run 3 of 4: none-seed2; all will take about") for text in heard.events)
    given = {"valid_source": texts.valid[0], "valid_target": texts.valid[1], "steps": 4, "seed": 2, "threads": 1}
    train(texts.sources, texts.targets, tmp_path / "alone", recipe=recipes[0], **given)
    for name in ("model.safetensors", "recipe.toml", "tokenizer.json"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "out" / "none-seed2" / name).read_bytes()
    heard, lines = Counting(), path.read_bytes()
    assert run(seeds=(1, 2), heard=heard) == found
    assert heard.starts == []
    assert path.read_bytes() == lines
    assert run(seeds=(2,)) == found[2:]  # a part of them


def test_a_second_process_and_a_folder_of_somebody_else_are_refused(run, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with alone(out / "lock", "", tmp_path), refused(RegardError, out):
        run()
    assert [path.name for path in out.iterdir()] == ["lock"]
    (out / "attention-seed1").mkdir()
    (out / "attention-seed1" / "letter.txt").write_text("dear")
    with refused(RegardError, "attention-seed1"):
        run()
    assert {path.name for path in out.iterdir()} == {"lock", "attention-seed1"}


def test_cards_name_the_command_and_scores_are_those_of_the_model_folder(run, texts, tmp_path) -> None:
    (found, _) = run()
    card = (tmp_path / "out" / found.run / "card.md").read_text()
    assert re.search(r"\| command \| `regard compare \S+\.toml .*--steps 4 .*--output out", card)
    assert re.search(r"^\| `.*\.en` \| [\d,]+ \| [0-9a-f]{64} \|$", card, re.MULTILINE)
    assert str(tmp_path) not in card
    model = load(tmp_path / "out" / found.run, "cpu")
    for part, name, files in (("valid", "validation", texts.valid), ("test", "test", texts.test)):
        sources, references = (path.read_text().splitlines() for path in files)
        scores, one = model.evaluate(sources, references), getattr(found, part)
        assert (one.bleu, one.chrf) == pytest.approx((scores.bleu, scores.chrf))
        said = (tmp_path / "out" / "translations" / f"{found.run}.{name}.txt").read_bytes().decode().split("\n")
        assert said == [*model.translate(sources), ""]
    sources = texts.valid[0].read_text().splitlines()
    mean = sum(len(model.vocabularies.source.ids_batch([s])[0]) + 1 for s in sources) / len(sources)
    assert found.shape.source_tokens == round(mean)
    assert found.shape.sequential.value == found.shape.source_tokens + found.shape.target_tokens
    assert found.course.parameters == sum(weight.numel() for weight in model.model.parameters())


@pytest.mark.one_of(4, minutes=0.1)
@pytest.mark.parametrize("after", [9, 1, 6, 40])
def test_stopped_anywhere_and_gone_on_is_never_stopped(run, after: int) -> None:
    whole, asked = run(output="whole"), iter(range(after))
    with pytest.raises(Stopped):
        run(output="stopped", should_stop=lambda: next(asked, None) is None)
    assert [same(one) for one in run(output="stopped")] == [same(one) for one in whole]


@pytest.mark.long(minutes=0.05)
def test_a_share_of_the_data_is_learned_from_and_all_is_validated_on(run, texts, tmp_path) -> None:
    found = run(steps=2, seeds=(3,), shares=(0.5, 1.0))
    assert [one.run for one in found][:2] == ["none-of0.5-seed3", "attention-of0.5-seed3"]
    kept = list(Subset(open_corpora(texts.sources, texts.targets)[0], 0.5, 3).examples())
    prepared = [PreparedPairs(tmp_path / "out" / one.run / "training" / "data") for one in found]
    assert [part.pairs for part in prepared] == [len(kept)] * 2 + [120] * 2
    assert len({part.validation_source.count for part in prepared}) == 1
    assert prepared[0].vocabularies.sha256 == prepared[1].vocabularies.sha256
    with refused(UsageError, "fraction", "valid_source"):
        run(shares=(0.5,), texts=replace(texts, valid=None))


@pytest.mark.long(minutes=0.03)
def test_a_part_is_split_off_where_no_validation_is_given(run, texts) -> None:
    found = run(steps=2, texts=replace(texts, valid=None, test=None))
    assert {one.valid.sentences for one in found} == {12}  # a tenth
    assert all(one.test is None for one in found)


@pytest.mark.long(minutes=0.03)
def test_a_test_set_may_be_asked_for_later_and_is_then_kept_but_no_other_run_of_the_name(run, recipes, texts) -> None:
    without, heard = run(texts=replace(texts, test=None)), Counting()
    with_test = run(heard=heard)
    assert heard.starts == []
    assert all(one.test is not None for one in with_test)
    assert [one.valid for one in with_test] == [one.valid for one in without]
    assert run(texts=replace(texts, test=None)) == with_test
    with refused(RegardError, "results.jsonl", "training.steps", "4", "5"):
        run(steps=5)
    recipes[1].write_text(recipes[1].read_text().replace("d_ff = 8", "d_ff = 16"))
    with refused(RegardError, "results.jsonl", "model.d_ff", "8", "16"):
        run()
    with refused(RegardError, "results.jsonl", "data.test"):
        run(texts=replace(texts, test=texts.valid), recipes=recipes[:1])


@pytest.mark.long(minutes=0.03)
def test_a_run_that_diverges_has_no_score_and_the_others_go_on(run, monkeypatch) -> None:
    def diverging(work, real=comparing.run):
        task = real(work)
        if work.output.name == "none-seed1":
            raise Diverged("went bad at step 3")
        return task

    monkeypatch.setattr(comparing, "run", diverging)
    first, second = run()
    assert (first.failed, first.valid, second.failed) == ("went bad at step 3", None, None)
    assert second.valid is not None
    heard = Counting()
    assert run(heard=heard) == [first, second]  # not tried again
    assert heard.starts == []


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [("text", "vocabulary", 310), ("text", "normalisation", "nfkc"), ("data", "max_tokens", 30)],
)
def test_recipes_that_read_otherwise_are_refused_before_the_data(
    run, recipes, tmp_path, monkeypatch, section, field, value
) -> None:
    monkeypatch.setattr(comparing, "scan_pairs", lambda *a: pytest.fail("the data was read"))
    other = written(tmp_path, "other", **{section: {**SMALL[section], field: value}})
    with refused(UsageError, f"{section}.{field}", str(value), "other", "none"):
        run(recipes=[*recipes, other])


BUDGETS = [
    (Budget(steps=2, seeds=(1, 1)), "seeds"),
    (Budget(steps=2, seeds=()), "seeds"),
    (Budget(steps=2, shares=(0.0,)), "fraction"),
    (Budget(minutes=-1.0), "minutes"),
    (Budget(steps=2, seeds=(-1,)), "seed"),
]


@pytest.mark.parametrize(("budget", "where"), BUDGETS)
def test_budgets_that_cannot_be(run, tmp_path, budget: Budget, where: str) -> None:
    with refused(UsageError, where):
        run(budget=budget)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_compared(run, recipes, texts, tmp_path) -> None:
    for name in ("below", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "model" / "recipe.toml").touch()
    (tmp_path / "tagger.toml").write_text('task = "tagging"\n')
    silent = written(tmp_path, "silent", text={})  # what it leaves to the size of the data is compared too
    for given, *where in (
        ({"recipes": [*recipes, tmp_path / "tagger.toml"]}, "tagger.toml"),
        ({"recipes": [*recipes, written(tmp_path / "below", "none")]}, "none.toml"),
        ({"recipes": [*recipes, silent]}, "text.vocabulary", "2000", "300"),
        ({"recipes": []}, None),
        ({"texts": replace(texts, test=(tmp_path / "gone", tmp_path / "gone"))}, "gone"),
        (
            {
                "texts": replace(
                    texts, sources=[*texts.sources, *texts.targets], targets=[*texts.targets, *texts.sources]
                )
            },
            "source",
            "several",
        ),
        ({"output": "model"}, "model"),
        ({"output": "train.en"}, "train.en"),
    ):
        with refused(UsageError, *where):
            run(**given)


@pytest.mark.long(minutes=0.03)
def test_batches_of_other_sizes_are_told_of(run, recipes, tmp_path) -> None:
    other, heard = written(tmp_path, "other", training={**SMALL["training"], "tokens": 256}), Counting()
    run(steps=1, recipes=[recipes[0], other], heard=heard)
    assert any("batches differ (128 and 256 target tokens)" in text for text in heard.events)
