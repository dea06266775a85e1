"""Low-rank adapters: what is trained and saved, read as a whole model by torch and the engine, shared, and merged."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.cli.__main__ import main
from regard.config.adapter import BASE, LORA_A, LORA_B, Base, base_content
from regard.inspection.folders.folder import Folder, snapshots
from regard.inspection.folders.models import _load_task
from regard.models.store import named_tensors
from regard.runs import train as training
from regard.runs.model_folders import average, merge, slim
from regard.system.errors import Damaged, RegardError, Stopped, UsageError
from regard.tasks.model_folder import MODEL, load, open_without_torch
from regard.tasks.text.preparation import Pretrained
from regard.training.checkpoints import manifest
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, put, recurrent, translator
from tests.tasks.translation.test_adapting import SMALL, separate
from tests.training.toy import Counting, Fast, StopAt

ALL = 'adapt.projections=["query", "key", "value", "output", "feedforward"]'
LOW_RANK = ["adapt.rank=2", ALL, "training.rate=0.05"]
START = [*SMALL, "training.product=exact"]


def student() -> Any:
    """A translator whose decoder has an SSRU."""
    return translator(decoder_cell="ssru")


KINDS = {"tied": translator, "untied": separate, "ssru": student}


def going_on(folder: Path) -> Any:
    """Goes on from a translator with sixty pairs, for three steps."""
    for code, text in (("en", SOURCE), ("de", TARGET)):
        (folder / f"a.{code}").write_text("".join(f"{text[: 9 + n % 30]} {n}\n" for n in range(60)))

    def train(begun: Any, settings: Any = (), **wishes: Any) -> Any:
        base = begun if isinstance(begun, Path) else put(folder / "begun", begun)
        where = {"output": folder / "model", "start_from": base, "device": "cpu", "threads": 1}
        given = {"reporter": Counting(), "steps": 3, "despite_check": True, **where, **wishes}
        return training.train(folder / "a.en", folder / "a.de", settings=[*START, *settings], **given)

    return train


@pytest.fixture
def go_on(tmp_path: Path) -> Any:
    return going_on(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an adapter, the model that it began from, and its pairs."""
    folder = tmp_path_factory.mktemp("trained")
    going_on(folder)(translator(), LOW_RANK)
    return folder


@pytest.fixture
def adapter(trained: Path, tmp_path: Path) -> Path:
    """A copy of the adapter, beside which the others lie."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two adapters of one base, and a model merged of each."""
    folder = tmp_path_factory.mktemp("two")
    train = going_on(folder)
    for name, seed in (("one", 1), ("two", 2)):
        train(translator(), [*LOW_RANK, f"seed={seed}"], output=folder / name)
        merge(folder / name, folder / f"{name}-merged")
    return folder


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """The weights as a model of the folder has them."""
    return dict(named_tensors(load(folder, "cpu").model))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
def test_only_factors_are_saved_and_a_model_is_read_of_them_and_its_base(go_on: Any, tmp_path: Path, kind: str) -> None:
    begun = KINDS[kind]()
    go_on(begun, LOW_RANK)
    own = load_file(tmp_path / "model" / MODEL)
    assert own
    assert all(name.endswith((LORA_A, LORA_B)) for name in own)
    assert not [*(tmp_path / "model").glob("*tokenizer*.json")]  # the base has them
    base, whole = named_tensors(begun.model), weights_of(tmp_path / "model")
    assert whole.keys() == base.keys()
    changed = set()
    for name, tensor in whole.items():
        stem = name.removesuffix(".weight")
        if stem + LORA_A in own:
            product = own[stem + LORA_B].double() @ own[stem + LORA_A].double()
            torch.testing.assert_close(tensor.double(), base[name].double() + product, atol=1e-6, rtol=0)
            changed.add(name)
        else:
            assert torch.equal(tensor, base[name]), name
    assert changed
    assert not any(torch.equal(whole[name], base[name]) for name in changed)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_run_its_folder_the_engine_and_the_merged_model_say_the_same(
    go_on: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []
    own = training.run.__globals__["ModelFolderWriter"].best

    def best(self: Any, weights: Any, *rest: Any) -> None:
        ended.append({name: one.clone() for name, one in named_tensors(self.teaching.model).items()})
        ended.append({name: one.weight.clone() for name, one in self.teaching.model.named_modules() if "query" in name})
        own(self, weights, *rest)

    monkeypatch.setattr("regard.runs.run.ModelFolderWriter.best", best)
    go_on(KINDS[kind](), LOW_RANK)
    merged = merge(tmp_path / "model", tmp_path / "merged")
    whole = weights_of(tmp_path / "model")
    for name, weight in ended[-1].items():  # what was trained is what is read
        torch.testing.assert_close(whole[f"{name}.weight"], weight, atol=1e-6, rtol=0)
    shutil.rmtree(tmp_path / "begun")  # the merged model needs it no more
    assert named_tensors(merged.model).keys() == whole.keys()
    for name, tensor in weights_of(tmp_path / "merged").items():
        assert torch.equal(tensor, whole[name]), name
    put(tmp_path / "begun", KINDS[kind]())
    by_torch = load(tmp_path / "model", "cpu").nbest([SOURCE], 2)
    for folder in ("model", "merged"):
        found = open_without_torch(tmp_path / folder, "cpu").nbest([SOURCE], 2)
        for text, other in zip(*found, *by_torch, strict=True):
            assert text.text == other.text
            np.testing.assert_allclose(text.score, other.score, atol=1e-5)
    assert not (tmp_path / "merged" / "base.json").exists()
    assert regard.load(tmp_path / "merged").recipe.adapt.rank == 0


@pytest.mark.long(minutes=0.2)
def test_a_run_resumes_to_the_bit_with_more_processes(go_on: Any, tmp_path: Path) -> None:
    begun, wishes = put(tmp_path / "begun", translator()), {"steps": 4, "processes": 2}
    settings = [*LOW_RANK, "training.shards=2", "training.ema=0.9", "training.validate_every=2"]
    go_on(begun, settings, output=tmp_path / "whole", **{**wishes, "processes": 1})
    flag = StopAt(1)
    with pytest.raises(Stopped):
        go_on(begun, settings, should_stop=flag, reporter=flag.reporter, **wishes)
    go_on(begun, settings, **wishes)
    assert (tmp_path / "model" / MODEL).read_bytes() == (tmp_path / "whole" / MODEL).read_bytes()
    moments = load_file(sorted((tmp_path / "model" / "training").glob("checkpoints/step-*/optimiser.safetensors"))[-1])
    assert all(name == "updates" or name.endswith((LORA_A, LORA_B)) for name in moments)


def test_an_adapter_finds_its_base_again_or_says_what_is_missing(adapter: Path, tmp_path: Path) -> None:
    says = regard.load(adapter, "cpu").translate(SOURCE)
    shutil.copytree(adapter, tmp_path / "far" / "away" / "model")
    adapter = tmp_path / "far" / "away" / "model"
    openers = [partial(load, adapter, "cpu"), partial(open_without_torch, adapter, "cpu")]
    for opened in openers:
        with refused(RegardError, adapter, "is not there", "away/begun"):
            opened()
    put(tmp_path / "far" / "away" / "begun", translator(key=6))
    for opened in openers:
        with refused(RegardError, adapter, "has others"):
            opened()
    shutil.rmtree(tmp_path / "far" / "away" / "begun")
    put(tmp_path / "far" / "away" / "begun", translator())
    assert regard.load(adapter, "cpu").translate(SOURCE) == says
    raw = bytearray((tmp_path / "far" / "away" / "begun" / MODEL).read_bytes())
    raw[-1] ^= 1
    (tmp_path / "far" / "away" / "begun" / MODEL).write_bytes(raw)
    for opened in openers:
        with refused(Damaged, tmp_path / "far" / "away" / "begun" / MODEL, "sha256"):
            opened()


@pytest.mark.parametrize("name", ["x" * 300, "long/" * 2000])
def test_a_long_name_of_a_base_is_shown_in_part(adapter: Path, tmp_path: Path, name: str) -> None:
    manifest.replace(adapter, {BASE: [base_content(adapter, tmp_path / name, "0" * 64, [])]}, Fast())
    with refused(RegardError, adapter, "…", "is not there; put it at") as caught:
        load(adapter, "cpu")
    assert len(caught.value.message) < 700


def test_a_base_file_that_names_what_lies_outside_is_refused(adapter: Path, tmp_path: Path) -> None:
    content = base_content(adapter, tmp_path / "begun", "0" * 64, ["../../secret"])
    manifest.replace(adapter, {BASE: [content]}, Fast())
    with refused(RegardError, BASE, "outside"):
        load(adapter, "cpu")


def test_a_file_that_the_base_lacks_is_named(adapter: Path, tmp_path: Path) -> None:
    found = Base.of(adapter)
    assert found
    content = base_content(adapter, tmp_path / "begun", found.sha256, ["tokenizer.json", "frame.json"])
    manifest.replace(adapter, {BASE: [content]}, Fast())
    with refused(RegardError, adapter, "has no frame.json"):
        load(adapter, "cpu")


def test_what_adapts_nothing_is_refused(go_on: Any, tmp_path: Path) -> None:
    begun = put(tmp_path / "begun", translator())
    go_on(translator(), ["adapt.rank=2"], output=tmp_path / "adapter")
    with refused(UsageError, f"start_from {tmp_path / 'adapter'}", "merge it first"):
        go_on(tmp_path / "adapter", ["adapt.rank=2"])
    with refused(RegardError, tmp_path / "adapter", "mean of factors"):
        average(tmp_path / "adapter", tmp_path / "mean")
    with refused(RegardError, begun, "no adapter"):
        merge(begun, tmp_path / "merged")
    assert Pretrained.load(tmp_path / "adapter").vocabularies.sha256 == translator().assets.sha256
    go_on(tmp_path / "adapter")  # trained whole it is a base like others


@pytest.mark.parametrize(
    ("settings", "where", "word", "wishes"),
    [
        (["adapt.rank=2"], "adapt.rank", "name it", {"start_from": None}),
        (["adapt.alpha=2"], "settings", "needs adapt.rank", {}),
        (["adapt.rank=2", 'adapt.freeze=["encoder"]'], "settings", "freeze", {}),
        (["adapt.rank=2", 'adapt.projections=["query", "recurrence"]'], "adapt.projections", "no recurrence", {}),
        (["adapt.rank=2", 'adapt.whole=["head"]'], "adapt.whole", "no head", {}),
        (['adapt.freeze=["head"]'], "adapt.freeze", "no head", {}),
        (["adapt.rank=13"], "adapt.rank", "12", {}),
        (["adapt=3"], "settings", "adapt", {}),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_data_is_read(
    go_on: Any, tmp_path: Path, settings: list[str], where: str, word: str, wishes: dict[str, Any]
) -> None:
    (tmp_path / "a.en").unlink()
    with pytest.raises(RegardError) as caught:
        go_on(translator(), settings, **wishes)
    assert (caught.value.where or "").startswith(where)
    assert word in caught.value.message


def test_a_recurrent_model_has_no_projections(go_on: Any) -> None:
    with refused(RegardError, "adapt.projections", "no query or value"):
        go_on(recurrent(), ["adapt.rank=2"])


def test_parts_that_are_trained_whole_are_saved_whole(go_on: Any, tmp_path: Path) -> None:
    begun = translator()
    go_on(begun, ["adapt.rank=2", 'adapt.whole=["embeddings", "norms"]', "training.rate=0.05"])
    base, whole = named_tensors(begun.model), weights_of(tmp_path / "model")
    moved = {name for name in base if not torch.equal(base[name], whole[name])}
    assert "encoder.input.tokens.weight" in moved
    assert any("norm" in name for name in moved)
    assert all("norm" in n or "final" in n or "tokens" in n or "query" in n or "value" in n for n in moved)
    assert "encoder.input.tokens.weight" in load_file(tmp_path / "model" / MODEL)


def test_parts_may_be_frozen_without_factors(go_on: Any, tmp_path: Path) -> None:
    begun = translator()
    go_on(begun, ['adapt.freeze=["encoder", "embeddings"]', "training.rate=0.05"])
    base, whole = named_tensors(begun.model), load_file(tmp_path / "model" / MODEL)
    assert whole.keys() == base.keys()  # an ordinary model folder
    assert all(name.startswith("decoder.") != torch.equal(base[name], whole[name]) for name in base)


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_in_every_precision_adapters_say_what_their_merged_models_say(two: Path, precision: Any) -> None:
    """Alone, without torch, and beside each other on one base, which says what it said."""
    text = [SOURCE, SOURCE[:30], TARGET]
    base = regard.Translator.load(two / "begun", "cpu", precision=precision)
    before = base.nbest(text, 2)
    beside = {name: base.with_adapter(two / name) for name in ("one", "two")}
    said = {name: found.nbest(text, 2) for name, found in beside.items()}
    for name, found in beside.items():
        whole = regard.Translator.load(two / f"{name}-merged", "cpu", precision=precision)
        assert found.precision == whole.precision == precision
        assert said[name] == found.nbest(text, 2) == whole.nbest(text, 2)
        bare = open_without_torch(two / name, "cpu", precision).nbest(text, 2)
        assert [[one.tokens for one in each] for each in bare] == [[one.tokens for one in each] for each in said[name]]
    assert said["one"] != said["two"] != before
    assert base.nbest(text, 2) == before


@pytest.mark.long(minutes=0.08)
def test_adapters_share_their_base_in_memory_and_say_what_they_say_alone(go_on: Any, tmp_path: Path) -> None:
    go_on(translator(), LOW_RANK[:1] + LOW_RANK[2:], output=tmp_path / "one")
    go_on(translator(), [*LOW_RANK[:1], *LOW_RANK[2:], "seed=2"], output=tmp_path / "two")
    base = regard.Translator.load(tmp_path / "begun", "cpu")
    before, alone = base.translate(SOURCE), len(base.engine.packed)
    for name in ("one", "two"):
        found = base.with_adapter(tmp_path / name)
        assert found.nbest([SOURCE], 1) == regard.load(tmp_path / name, "cpu").nbest([SOURCE], 1)
        mine, known = named_tensors(found.model), named_tensors(base.model)
        for part, tensor in mine.items():
            changed = part.endswith(("query.weight", "value.weight"))
            assert (tensor.data_ptr() == known[part].data_ptr()) is not changed, part
        assert base.engine.packed is found.engine.packed
        alone += 2 + 3 * 3  # of two layers self-attention; of three also the query of cross-attention, and the memory's
        assert len(base.engine.packed) == alone
    assert base.translate(SOURCE) == before
    put(tmp_path / "other", translator(key=6))
    with refused(RegardError, tmp_path / "one", "no adapter of this model"):
        regard.load(tmp_path / "other", "cpu").with_adapter(tmp_path / "one")


def test_a_snapshot_of_the_run_is_looked_at_and_nothing_is_lost_when_it_is_slim(adapter: Path, tmp_path: Path) -> None:
    found = regard.load(adapter, "cpu")
    folder = Folder(adapter)
    place = [*snapshots(folder.path).values()][-1]
    looked = named_tensors(_load_task(folder.path, place).model)
    assert {name for name in looked if name.endswith(LORA_B)}
    says = found.translate(SOURCE)
    files = ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.de")]
    assert main(["check", *files, "--model", str(adapter)]) == main(["check", *files])
    slim(adapter)
    assert regard.load(adapter, "cpu").translate(SOURCE) == says
    assert folder.parameters == sum(one.numel() for one in named_tensors(found.model).values())


LINES = "".join(f"{SOURCE[: 30 + n % 30]} {n}\n" for n in range(60))


@pytest.mark.one_of(3, minutes=0.02)
@pytest.mark.parametrize("name", ["speaker", "filler", "classifier", "fresh"])
def test_other_tasks_are_adapted_alike(tmp_path: Path, name: str) -> None:
    """A model of labels learns its head whole: a classifier its own, and that of one of masked words, which is lost."""
    labelled = name in ("classifier", "fresh")
    begun = EVERY["filler" if name == "fresh" else name]()
    base = put(tmp_path / "begun", begun)
    rows = "".join(f"{label}\t{line}\n" for label, line in zip(["good", "bad"] * 30, LINES.splitlines(), strict=True))
    (tmp_path / "a.tsv").write_text(rows if labelled else LINES)
    (tmp_path / "a.txt").write_text(LINES)
    task = "classification" if labelled else begun.recipe.task
    settings = ["adapt.rank=2", "training.tokens=128", "data.validation=12", "training.product=exact"]
    settings += ["classification.ngrams=false"] if labelled else []
    given = {"train": tmp_path / ("a.tsv" if labelled else "a.txt"), "columns": "2,1" if labelled else None}
    given |= {"start_from": base, "task": task, "steps": 2, "reporter": Counting(), "threads": 1, "device": "cpu"}
    training.train(output=tmp_path / "model", despite_check=True, settings=settings, **given)
    own = load_file(tmp_path / "model" / MODEL)
    assert any(part.endswith(LORA_B) for part in own)
    assert all(part.endswith((LORA_A, LORA_B)) or (labelled and part.startswith("head.")) for part in own)
    whole = weights_of(tmp_path / "model")
    merged = merge(tmp_path / "model", tmp_path / "merged")
    assert all(torch.equal(one, whole[part]) for part, one in named_tensors(merged.model).items())
    opened = open_without_torch(tmp_path / "model", "cpu")
    assert opened is not None
