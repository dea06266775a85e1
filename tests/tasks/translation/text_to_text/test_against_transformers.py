"""Fine-tuning an imported T5 equals fine-tuning it with ``transformers``: 20 steps on the same batches, in float64."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.config import recipe_from
from regard.data.batches.batch import PairBatch
from regard.data.corpora.corpus import no_progress
from regard.data.corpora.scan import DataScan
from regard.runs.conversion import export_model, import_model
from regard.system.errors import UsageError
from regard.tasks.text.preparation import Pretrained
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.text_to_text.corpus import open_prefixed
from regard.tasks.translation.text_to_text.training import TextToTextJob
from regard.text.tokenizers.vocabulary import PAD
from regard.training.optim import FlatOptimiser, schedule
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.runs.convert.small_folders import TEXTS, folder_of
from tests.runs.convert.small_peers import exact, transformers
from tests.tasks.small_tasks import asker, put

STEPS = 20
T5 = "T5ForConditionalGeneration"


@pytest.fixture(autouse=True)
def _exact():
    with exact():
        yield


def data(folder: Path) -> Path:
    """Sentences of a few words, to be written the other way round or as they are."""
    draw = random.Random(3)
    words = sorted({word for text in TEXTS for word in text.split()})
    lines = []
    for number in range(90):
        some = draw.choices(words, k=draw.randint(1, 7))
        prefix, said = (("turn", some[::-1]), ("say", some))[number % 2]
        lines.append(f"{prefix}\t{' '.join(some)} {number}\t{' '.join(said)}\n")
    (folder / "a.tsv").write_text("".join(lines))
    return folder / "a.tsv"


def taught(folder: Path) -> tuple[Any, Any]:
    """Our training of an imported T5, in float64, and their model."""
    peer, _ = folder_of(T5, folder / "theirs", dropout_rate=0.0)
    import_model(folder / "theirs", folder / "ours")
    begun = Pretrained.load(folder / "ours")
    training = {"tokens": 256, "optimiser": "adamw", "weight_decay": 0.05, "rate": 1e-2, "warmup": 2, "steps": STEPS}
    values = {"task": "text-to-text", "training": {**training, "label_smoothing": 0.0}, **begun.values("text-to-text")}
    recipe = recipe_from({**values, "data": {"max_tokens": 60, "validation": 9}})
    job = TextToTextJob(recipe, DataScan.of([open_prefixed(data(folder))], None), pretrained=begun)
    prepared = job.prepare(folder / "data", no_progress)
    assets = job.assets(prepared)
    model = job.task.build(recipe, assets.sizes)
    job.begin(model, assets)
    task = job.task(recipe, assets, model.double().train())
    return job.teach(task, prepared, ProductPaths()), peer.double().train()


def padded(batch: PairBatch) -> dict[str, torch.Tensor]:
    """The same sentences as ``transformers`` takes them."""
    rows = []
    for packed, ids_T in ((batch.source, batch.source.ids_T), (batch.target, batch.labels_T)):
        places = zip(packed.starts_B[: packed.count], packed.lengths_B[: packed.count], strict=True)
        rows.append([torch.as_tensor(ids_T[begin : begin + length]) for begin, length in places])
    sources, labels = (nn.utils.rnn.pad_sequence(row, batch_first=True, padding_value=-100) for row in rows)
    mask = sources != -100
    return {"input_ids": sources.masked_fill(~mask, PAD), "attention_mask": mask.long(), "labels": labels}


def their_optimiser(peer: nn.Module, section: Any) -> torch.optim.Optimizer:
    decayed = [p for p in peer.parameters() if p.dim() >= 2]
    others = [p for p in peer.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": section.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(section.beta1, section.beta2), eps=section.epsilon)


@pytest.mark.long(minutes=0.03)
def test_twenty_steps_are_those_of_transformers_and_so_is_what_is_written_then(tmp_path: Path) -> None:
    teaching, peer = taught(tmp_path)
    section = teaching.task.recipe.training
    assert teaching.task.symbols.start == PAD == peer.config.decoder_start_token_id
    optimiser, theirs, rate = FlatOptimiser(teaching.model, section), their_optimiser(peer, section), None
    rate = schedule(section, teaching.task.recipe.model.d_model)
    losses = []
    for step, (batch, _) in zip(range(1, STEPS + 1), teaching.batches.iterate(), strict=False):
        optimiser.begin_shard(0)
        loss = teaching.loss(batch)
        loss.total.backward()
        optimiser.end_shard(0)
        optimiser.exchange_gradients()
        optimiser.update(rate(step), 1 / loss.count)
        theirs.zero_grad()
        expected = peer(**padded(batch)).loss
        expected.backward()
        for group in theirs.param_groups:
            group["lr"] = rate(step)
        theirs.step()
        losses.append(float(expected.detach()))
        assert float(loss.total.detach()) / loss.count == pytest.approx(losses[-1], rel=1e-9), step
    assert step == STEPS
    assert losses[-1] < 0.9 * losses[0]  # so that there was something to differ in
    task = teaching.task  # which is the same there, and writes the same
    task.model.float().eval()
    put(tmp_path / "model", task)
    export_model(tmp_path / "model", tmp_path / "out")
    exported = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", attn_implementation="eager")
    assert exported.config.decoder_start_token_id == PAD
    for name, weight in exported.state_dict().items():
        assert_near(weight, peer.state_dict()[name].float()[: len(weight)], 1e-5, name)
    texts = ["turn: the grass is green", "say: Two men"]
    for text, (found,) in zip(texts, task.nbest(texts, 1, 1), strict=True):
        assert list(found.tokens) == greedy(exported, task, text)


def greedy(peer: Any, task: Any, text: str) -> list[int]:
    """What they write for a text, without what we never write."""
    ids, never = [*task.assets.tokenizer.encode(text).ids, task.symbols.end], sorted(task.symbols.without)
    most = len(ids) + task.recipe.decoding.max_extra
    options = {"num_beams": 1, "do_sample": False, "bad_words_ids": [[id] for id in never], "max_new_tokens": most}
    return [id for id in peer.generate(torch.tensor([ids]), **options)[0].tolist()[1:] if id != task.symbols.end]


def test_a_t5_is_asked_as_transformers_asks_it(tmp_path: Path) -> None:
    peer, _ = folder_of(T5, tmp_path / "theirs")
    task = import_model(tmp_path / "theirs", tmp_path / "ours", "text-to-text")
    assert (task.name, task.symbols.start) == ("text-to-text", PAD)
    (found,) = task.nbest(["say: the grass"], 1, 1)[0]
    assert list(found.tokens) == greedy(peer.eval(), task, "say: the grass")
    with refused(UsageError, "task", "tagging"):
        import_model(tmp_path / "theirs", tmp_path / "other", "tagging")


def test_what_was_learned_here_comes_back_for_its_task(tmp_path: Path) -> None:
    scaling = {"scale_scores": False, "scale_embedding": False, "scale_output": True}
    task = asker(positions="relative", norm="rms", norm_place="pre", biases=False, **scaling)
    put(tmp_path / "model", task)
    export_model(tmp_path / "model", tmp_path / "out")
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert again.name == "text-to-text"
    assert again.nbest(["sort: b a"], 2, max_extra=4) == task.nbest(["sort: b a"], 2, max_extra=4)
