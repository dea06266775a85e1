"""A toy task for tests of the trainer: a tied model with keyed dropout, and data in epochs, blocks and batches."""

import errno
import json
import os
import random
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from regard.config import Recipe, Training, TransformerSection
from regard.data.batches.batch import EVERY_BATCH, BatchRange, Packed, PairBatch, Position
from regard.models import store
from regard.system.keys import generator
from regard.training.checkpoints import checkpoint, manifest
from regard.training.checkpoints.files import Files
from regard.training.log import Reporter, Summary
from regard.training.objective import Done, Loss, Sample, Validation
from regard.training.progress import Best
from regard.training.trainer import Hooks, fit
from regard.training.world import ALONE, World

VOCABULARY, SIZE, CAPACITY = 13, 8, 24


class Bigram(nn.Module):
    """Predicts the next token from this one; both embeddings are tied, dropout is keyed, one buffer counts."""

    def __init__(self, seed: int = 3) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(VOCABULARY, SIZE)
        self.layers = nn.ModuleList(nn.Linear(SIZE, SIZE) for _ in range(2))
        self.norm = nn.LayerNorm(SIZE)
        self.output = nn.Linear(SIZE, VOCABULARY)
        self.output.weight = self.embedding.weight
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, ids_T: torch.Tensor) -> torch.Tensor:
        x_TD = self.embedding(ids_T)
        for layer in self.layers:
            y_TD = torch.tanh(layer(x_TD))
            if self.training:
                keep = torch.rand(y_TD.shape) > 0.2
                y_TD = y_TD * keep / 0.8
                self.seen += 1
            x_TD = self.norm(x_TD + y_TD)
        return self.output(x_TD)


class Corpus:
    """Epochs of two blocks of three batches over 60 sentences; a pure function of the position."""

    fingerprint = "toy"
    blocks, batches = 2, 3

    def __init__(self, seed: int = 5, poison: Callable[[Position], bool] = lambda position: False) -> None:
        self.seed, self.poison = seed, poison
        self.drawn: list[tuple[int, ...]] = []

    def batch(self, position: Position) -> PairBatch:
        order = generator(self.seed, "plan", position.epoch, position.block).permutation(30) + 30 * position.block
        chosen = order[position.batch * 10 : position.batch * 10 + 3 + position.batch]
        sentences = [generator(self.seed, "sentence", int(i)).integers(3, VOCABULARY, 2 + int(i) % 4) for i in chosen]
        sentences = [np.sort(s) for s in sentences]
        return packed(sentences, chosen, poisoned=self.poison(position))

    def iterate(self, position: Position, among: BatchRange = EVERY_BATCH) -> Iterator[tuple[PairBatch, Position]]:
        while True:
            places = []
            for _ in range(among.of):
                places.append(position)
                position = self.after(position)
            for place in places[among.first : among.end]:
                batch = self.batch(place)
                self.drawn.append(tuple(int(i) for i in batch.sentences))
                yield batch, position

    def after(self, position: Position) -> Position:
        if position.batch + 1 < self.batches:
            return Position(position.epoch, position.block, position.batch + 1)
        if position.block + 1 < self.blocks:
            return Position(position.epoch, position.block + 1, 0)
        return Position(position.epoch + 1, 0, 0)


def packed(sentences: list[np.ndarray], chosen: np.ndarray, poisoned: bool = False) -> PairBatch:
    ids_T = np.zeros(CAPACITY, np.int64)
    labels_T = np.zeros(CAPACITY, np.int64)
    weight_T = np.zeros(CAPACITY, np.float32)
    starts, lengths, end = [], [], 0
    for ids in sentences:
        starts.append(end)
        lengths.append(len(ids))
        ids_T[end : end + len(ids)] = [VOCABULARY - 1, *ids[:-1]]
        labels_T[end : end + len(ids)] = ids
        weight_T[end : end + len(ids)] = np.nan if poisoned else 1.0
        end += len(ids)
    side = Packed(ids_T, np.array(starts), np.array(lengths), len(sentences))
    return PairBatch(side, side, labels_T, weight_T, np.asarray(chosen))


class Toy:
    """The objective: cross-entropy; 'BLEU' is the accuracy in per cent."""

    def __init__(self, seed: int = 3, validate: Callable[[int, Validation], Validation] = lambda n, v: v) -> None:
        self.model = Bigram(seed)
        self.held_out = Corpus(77).batch(Position())
        self.change, self.validations = validate, 0

    def _losses(self, batch: PairBatch) -> tuple[torch.Tensor, torch.Tensor]:
        logits_TV = self.model(torch.from_numpy(batch.target.ids_T))
        nll_T = functional.cross_entropy(logits_TV, torch.from_numpy(batch.labels_T), reduction="none")
        return logits_TV, nll_T * torch.from_numpy(batch.weight_T)

    def loss(self, batch: PairBatch) -> Loss:
        _, nll_T = self._losses(batch)
        return Loss(nll_T.sum(), nll_T.sum().detach(), batch.tokens)

    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        logits_TV, nll_T = self._losses(self.held_out)
        right = (logits_TV.argmax(-1).numpy() == self.held_out.labels_T) @ self.held_out.weight_T
        score = 100.0 * float(right) / self.held_out.tokens
        samples = (Sample("a", "b", str(logits_TV.argmax(-1)[:3].tolist())),)
        self.validations += 1
        loss = float(nll_T.sum()) / self.held_out.tokens
        found = Validation(loss, {"bleu": score, "chrf": score} if generate else {}, samples)
        return self.change(self.validations, found)

    def trial(self, generate: bool, done: Done) -> None:
        self._losses(self.held_out)
        done(1.0)


def recipe(**training: Any) -> Recipe:
    values = {"steps": 40, "tokens": 256, "warmup": 4, "rate": 0.02, "validate_every": 5, "keep": 3, **training}
    return Recipe(seed=9, model=TransformerSection(d_model=SIZE, heads=1), training=Training(**values))


@dataclass
class Ended:
    """A run that ended, all of it as comparable bytes."""

    weights: dict[str, bytes]
    moments: dict[str, bytes]
    averages: dict[str, bytes]
    lines: list[dict[str, Any]]
    model: bytes


class StopAt:
    """The stop flag goes up once, after ``step`` steps of this process's run."""

    def __init__(self, *steps: int) -> None:
        self.steps = set(steps)
        self.reporter = Counting()

    def __call__(self) -> bool:
        return self.reporter.step in self.steps


class Counting(Reporter):
    """Remembers what it was told."""

    step = -1

    def __init__(self) -> None:
        self.events: list[str] = []
        self.starts: list[tuple[int, int | None]] = []

    def on_start(self, start: Any) -> None:
        self.starts.append((start.step, start.steps))
        self.step = start.step

    def on_step(self, metrics: Any) -> None:
        self.step = metrics.step

    def on_event(self, text: str) -> None:
        self.events.append(text)


@dataclass
class Play:
    """One output folder of the toy task, which any number of processes may work at in turn."""

    output: Path
    recipe: Recipe = field(default_factory=recipe)
    poison: Callable[[Position], bool] = lambda position: False

    def fit(
        self,
        files: Files | None = None,
        stop: StopAt | None = None,
        objective: Toy | None = None,
        world: World = ALONE,
        **more: Any,
    ) -> Summary:
        stop = stop or StopAt()
        self.reporter = stop.reporter
        files = files or Fast()
        self.objective = objective or Toy()
        self.corpus = Corpus(poison=self.poison)
        self.output.mkdir(parents=True, exist_ok=True)

        def save_model(weights: Mapping[str, torch.Tensor], best: Best, validation: Validation, _: float) -> None:
            chunks = store.chunks(weights, {"step": str(best.step)})
            manifest.replace(self.output, {"model.safetensors": chunks}, files)

        hooks = Hooks(self.reporter, stop, save_model, files=files, **more)
        return fit(self.objective, self.corpus, self.recipe, self.output / "training", hooks, world)

    def ended(self) -> Ended:
        """What the last checkpoint, the log and the model folder hold."""
        newest = sorted((self.output / "training" / "checkpoints").glob("step-??????"))[-1]
        manifest.verify(newest)
        manifest.verify(self.output, extra=True)
        averages = newest / "ema.safetensors"
        return Ended(
            whole(newest / "weights.safetensors"),
            whole(newest / "optimiser.safetensors"),
            whole(averages) if averages.exists() else {},
            lines(self.output / "training" / "metrics.jsonl"),
            (self.output / "model.safetensors").read_bytes(),
        )


def log(play: Play, *kinds: str) -> list[dict[str, Any]]:
    """The lines of these kinds in the log of a run."""
    found = [json.loads(line) for line in (play.output / "training" / "metrics.jsonl").read_text().splitlines()]
    return [line for line in found if line["kind"] in kinds]


def assert_same(play: Play, never: Ended) -> None:
    """The run ended with the same bits as another."""
    ended = play.ended()
    for part in ("weights", "moments", "averages", "lines", "model"):
        assert getattr(ended, part) == getattr(never, part), part


def whole(path: Path) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in checkpoint.load(path).items()}


def lines(path: Path) -> list[dict[str, Any]]:
    """What a log says of the run itself: its steps, validations and samples, without the time they took."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    timed, ours = ("seconds", "tokens_per_second"), ("step", "valid", "sample")
    return [{k: v for k, v in line.items() if k not in timed} for line in found if line["kind"] in ours]


def undated(path: Path) -> bytes:
    """A file of a model folder without what is another's in an equal run: times and command on the card, its sha256."""
    if path.name == "card.md":
        rows = ("| written |", "| training |", "| Regard |", "| command |", "* for comparison, a linear SVM")
        return b"".join(line for line in path.read_bytes().splitlines(True) if not line.decode().startswith(rows))
    if path.name in ("manifest.json", "manifest.next.json"):
        entries = {name: entry for name, entry in manifest.read_manifest(path).items() if name != "card.md"}
        return manifest.render(entries) if entries else b""
    return path.read_bytes()


class Fast(Files):
    """Does not wait for the disk: a killed process loses nothing by that, only a machine without power does."""

    def sync(self, handle: int) -> None:
        pass


class Full(Fast):
    """The disk is full (or broken) whenever ``bad`` says so of a path."""

    def __init__(self, bad: Callable[[str], bool], code: int = errno.ENOSPC) -> None:
        super().__init__()
        self.bad, self.code = bad, code

    def before(self, operation: str, path: Path) -> None:
        super().before(operation, path)
        if operation == "write" and self.bad(str(path)):
            raise OSError(self.code, "No space left on device" if self.code == errno.ENOSPC else "Input/output error")


def flip(path: Path, seed: object = 0) -> None:
    """Flip one bit of a file."""
    draw, raw = random.Random(str(seed)), bytearray(path.read_bytes())
    raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    path.write_bytes(raw)


class Count(Fast):
    """Notes what each operation was and the name of its file."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[str, str]] = []

    def before(self, operation: str, path: Path) -> None:
        super().before(operation, path)
        self.operations.append((operation, path.name))


class Killer(Fast):
    """Kills the process before operation ``number``, or in the middle of the piece it writes."""

    def __init__(self, number: int, middle: bool = False) -> None:
        super().__init__()
        self.fatal, self.middle = number, middle

    def before(self, operation: str, path: Path) -> None:
        super().before(operation, path)
        if self.number == self.fatal and not self.middle:
            os._exit(137)

    def put(self, handle: BinaryIO, piece: memoryview) -> None:
        if self.number == self.fatal and self.middle:
            handle.write(piece[: len(piece) // 2])
            os._exit(137)
        super().put(handle, piece)


def in_child(work: Callable[[], object]) -> int:
    """Run in a forked child; its exit code (0 done, 137 killed, 1 an exception)."""
    with warnings.catch_warnings():  # later Pythons warn of forking with threads; none of ours runs
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.set_num_threads(1)
            work()
            code = 0
        except Exception:  # pytest shows it where the caller's assertion fails
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
