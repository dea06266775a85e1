"""A translator that goes on with further pieces: trained, resumed, used without torch, sent out; what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.models.store import named_tensors
from regard.runs import train as training
from regard.runs.conversion import export_model, import_model
from regard.runs.model_folders import merge
from regard.system.errors import RegardError, Stopped, UsageError
from regard.tasks.model_folder import MODEL, load, open_without_torch
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import Vocabularies
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, polyglot, put, translator
from tests.tasks.translation.test_adapting import SMALL, separate
from tests.text.tokenizers import library_tokenizers as library
from tests.training.toy import Counting, StopAt

TEXTS = {"en": "An infarction of the heart is an infarction", "de": "Ein Herzinfarkt ist ein Infarkt des Herzens"}


@pytest.fixture
def go_on(tmp_path: Path) -> Any:
    """Goes on from a translator with sixty pairs of other words, for three steps."""
    for code, text in TEXTS.items():
        (tmp_path / f"a.{code}").write_text("".join(f"{text[: 20 + n % 30]} {n}\n" for n in range(60)))

    def train(begun: Any, settings: Any = (), **wishes: Any) -> Any:
        base = begun if isinstance(begun, Path) else put(tmp_path / "begun", begun)
        where = {"output": tmp_path / "model", "start_from": base, "device": "cpu", "threads": 1}
        given = {"extend_vocabulary": 20, "reporter": Counting(), "steps": 3, "despite_check": True, **where, **wishes}
        every = [*SMALL, "training.product=exact", *settings]
        return training.train(tmp_path / "a.en", tmp_path / "a.de", settings=every, **given)

    return train


@pytest.mark.one_of(2)
@pytest.mark.parametrize("make", [translator, separate, EVERY["recurrent"], polyglot])
def test_it_begins_as_the_model_was_and_keeps_what_is_the_models(go_on: Any, tmp_path: Path, make: Any) -> None:
    """A rate that changes nothing leaves the weights of step 0."""
    begun = make()
    wishes = {"target_language": "de"} if begun.assets.languages else {}
    made = go_on(begun, ["training.rate=1e-30"], **wishes)
    for side in ("source", "target"):
        was, now = (getattr(one.assets, side) for one in (begun, made))
        assert now.names[: was.size] == was.names
        assert now.size == was.size + 20
        text = SOURCE if side == "source" else TARGET
        assert now.encode(text).ids == was.encode(text).ids
        new = TEXTS["en" if side == "source" else "de"]
        assert len(now.encode(new).ids) < len(was.encode(new).ids)
    assert made.assets.languages == begun.assets.languages
    old, new = named_tensors(begun.model), named_tensors(made.model)
    assert all(torch.equal(new[name], old[name]) or new[name].shape != old[name].shape for name in old)
    table, before = new["encoder.input.tokens.weight"], old["encoder.input.tokens.weight"]
    assert torch.equal(table[: len(before) - 1], before[:-1])
    assert torch.equal(table[-1], before[-1])
    assert made.recipe.text.extend_vocabulary == 20
    lines = [line for line in (tmp_path / "model" / "card.md").read_text().splitlines() if line.startswith("* ")]
    assert [" before, " in line for line in lines] == [False] * 3 + [True] * 3
    again = go_on(begun, ["training.rate=1e-30"], output=tmp_path / "none", extend_vocabulary=0, **wishes)
    assert again.assets.sha256 == begun.assets.sha256


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long(0.1)), 2])
def test_a_run_resumes_to_the_bit_and_is_used_and_goes_on(go_on: Any, tmp_path: Path, rank: int) -> None:
    begun = put(tmp_path / "begun", translator())
    settings = [
        "training.rate=0.05",
        "training.shards=2",
        "training.validate_every=2",
        *([f"adapt.rank={rank}"] if rank else []),
    ]
    go_on(begun, settings, steps=4, processes=1, output=tmp_path / "whole")
    flag = StopAt(1)
    with pytest.raises(Stopped):
        go_on(begun, settings, steps=4, should_stop=flag, reporter=flag.reporter, processes=1)
    made = go_on(begun, settings, steps=4, processes=2)
    raw = (tmp_path / "model" / MODEL).read_bytes()
    assert raw == (tmp_path / "whole" / MODEL).read_bytes()
    table = load_file(tmp_path / "model" / MODEL)["encoder.input.tokens.weight"]  # whole in an adapter, too
    assert len(table) == made.assets.source.size + 1
    assert not torch.equal(table[:300], named_tensors(load(begun, "cpu").model)["encoder.input.tokens.weight"][:300])
    if rank:
        merge(tmp_path / "model", tmp_path / "merged")
        shared = regard.load(begun, "cpu").with_adapter(tmp_path / "model")
        assert shared.translate(TEXTS["en"]) == regard.load(tmp_path / "merged", "cpu").translate(TEXTS["en"])
    expected = load(tmp_path / "model", "cpu").nbest([TEXTS["en"]], 2)[0]
    found = open_without_torch(tmp_path / "model", "cpu").nbest([TEXTS["en"]], 2)[0]
    assert [one.text for one in found] == [one.text for one in expected]
    once_more = go_on(tmp_path / ("merged" if rank else "model"), extend_vocabulary=5, output=tmp_path / "more")
    assert once_more.assets.source.size == made.assets.source.size + 5


@pytest.mark.parametrize("make", [translator, separate])
def test_it_says_that_the_text_has_fewer_pieces(go_on: Any, make: Any) -> None:
    begun, told = make(), Counting()
    made = go_on(begun, extend_vocabulary=5000, steps=1, reporter=told)
    sides = {"source", "target"} if make is separate else {"target"}
    added = [getattr(made.assets, side).size - getattr(begun.assets, side).size for side in sorted(sides)]
    (line,) = (line for line in told.events if "5,000" in line)
    assert line.startswith(" and ".join(map(str, added)))


def test_it_goes_out_and_comes_back(go_on: Any, tmp_path: Path) -> None:
    made = go_on(translator(positions="sinusoidal"))
    export_model(tmp_path / "model", tmp_path / "out")
    back = import_model(tmp_path / "out", tmp_path / "back")
    first, second = (one.nbest([TEXTS["en"]], 2, max_extra=4)[0] for one in (load(tmp_path / "model", "cpu"), back))
    assert [one.text for one in first] == [one.text for one in second]
    assert back.assets.source.encode(TEXTS["en"]).ids == made.assets.source.encode(TEXTS["en"]).ids


def test_what_cannot_be_extended_is_refused(go_on: Any, tmp_path: Path) -> None:
    with refused(UsageError, "extend_vocabulary", "start_from"):
        go_on(translator(), start_from=None)
    with refused(UsageError, "extend_vocabulary", "start_from"):
        go_on(translator(), task="text-to-text")
    with refused(UsageError, "extend_vocabulary"):
        go_on(translator(), extend_vocabulary=-1)
    with refused(RegardError, tmp_path / "begun", "leave the sizes"):
        go_on(translator(), ["model.d_model=24"])
    core = library.unigrams([SOURCE, TARGET], 40)
    theirs = HuggingFaceTokenizer(json.loads(core.to_str()), {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"})
    characters = learn([SOURCE, TARGET], 340, units="characters")
    recipe = translator().recipe
    for one in (theirs, characters):
        assets = Vocabularies(one, one, joint=True)
        with refused(UsageError, "extend_vocabulary", "SentencePiece"):
            go_on(Translation(recipe, assets, Translation.build(recipe, assets.sizes)))
