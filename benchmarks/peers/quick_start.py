"""Translators as their toolkits' quick starts make them: each prepares, trains for so many minutes, and translates.

What a page writes into a file stands in ``quick_NAME.yaml``, with the page's name; the commands are here. Ours are the
paths, the seed, the CPU, and the end: a toolkit's own trainer ends after the batch in which the minutes are over, which
count from its first, and saves its last state; the steps and epochs of a page are no limit.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

from worker import Job, serve

EOLE = Path(sys.executable).with_name("eole")


def run(*words: str | Path, read: str = "/dev/null", write: str = "said") -> None:
    """Runs a command to its end; what it says on stderr is in the worker's log."""
    with open(read) as given, open(write, "w") as out:
        subprocess.run(words, stdin=given, stdout=out, check=True)


def configure(job: Job) -> None:
    """Writes ``config.yaml``, the page's file."""
    page = Path(__file__).with_name(f"quick_{job.toolkit}.yaml").read_text(encoding="utf-8")
    Path("config.yaml").write_text(Template(page).substitute(vars(job)))


class Regard:
    """Its README: ``regard train --source --target`` with nothing configured."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sides = [job.text(f"train.{language}") for language in (job.source, job.target)]
        self.steps, self.end = 0, 0.0

    def on(self) -> bool:
        """Counts a step; whether there is time for another."""
        self.end = self.end or time.monotonic() + 60 * self.job.minutes
        self.steps += 1
        return time.monotonic() < self.end

    def prepare(self) -> None:
        """What comes before the command that trains."""

    def train(self) -> int:
        """Trains; the number of steps."""
        words = ("--source", self.sides[0], "--target", self.sides[1], "--output", "model")
        words += ("--minutes", str(self.job.minutes), "--seed", str(self.job.seed))
        run(sys.executable, "-m", "regard", "train", *words)
        log = Path("model/training/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return sum(json.loads(line)["kind"] == "step" for line in log)

    def output(self, source: str) -> None:
        """Translates a file into ``out``."""
        run(sys.executable, "-m", "regard", "translate", "model", read=source, write="out")

    def translate(self, part: str) -> list[str]:
        """The translations of a part, by the search of the quick start."""
        self.output(self.job.text(f"{part}.{self.job.source}"))
        return Path("out").read_text(encoding="utf-8").removesuffix("\n").split("\n")


class Eole(Regard):
    """Its page *Quickstart*; SentencePiece as its *recipes/wmt17*: 32,000 pieces, or as many as there are."""

    def prepare(self) -> None:
        import sentencepiece

        kept = {"vocab_size": 32_000, "character_coverage": 1.0, "model_type": "unigram", "hard_vocab_limit": False}
        sentencepiece.SentencePieceTrainer.train(input=self.sides, model_prefix="spm", **kept)
        Path("run").mkdir()
        configure(self.job)
        run(EOLE, "build_vocab", "-config", "config.yaml", "-n_sample", "-1")

    def train(self) -> int:
        from eole.bin.main import main
        from eole.trainer import Trainer

        batches = Trainer._accum_batches

        def some(*given: Any) -> Iterator[Any]:
            for batch in batches(*given):
                yield batch
                if not self.on():
                    return

        Trainer._accum_batches = some
        sys.argv = ["eole", "train", "-config", "config.yaml"]
        main()
        return self.steps

    def output(self, source: str) -> None:
        run(EOLE, "predict", "-model_path", "run/model", "-src", source, "-output", "out")


class JoeyNMT(Regard):
    """Its notebook *Joey NMT Demo*: 4,000 joint merges of subword-nmt; translates by its last state with beam 5."""

    def prepare(self) -> None:
        from subword_nmt import apply_bpe, learn_bpe

        texts = [line for side in self.sides for line in Path(side).read_text(encoding="utf-8").split("\n")]
        with open("codes", "w+", encoding="utf-8") as codes:
            learn_bpe.learn_bpe(texts, codes, 4000)
            codes.seek(0)
            bpe = apply_bpe.BPE(codes)
        counts = Counter(piece for line in texts for piece in bpe.process_line(line).split())
        Path("vocabulary").write_text("".join(f"{piece}\n" for piece, _ in counts.most_common()), encoding="utf-8")
        configure(self.job)

    def train(self) -> int:
        from joeynmt import builders
        from joeynmt.training import TrainManager

        plateau = builders.ReduceLROnPlateau
        builders.ReduceLROnPlateau = lambda verbose, **given: plateau(**given)  # this torch has no such argument
        step = TrainManager._train_step

        def timed(manager: Any, batch: Any) -> Any:
            manager.stats.is_max_update = not self.on()
            return step(manager, batch)

        TrainManager._train_step = timed
        sys.argv = ["joeynmt", "train", "config.yaml", "--skip-test"]
        runpy.run_module("joeynmt", run_name="__main__", alter_sys=True)
        return self.steps

    def output(self, source: str) -> None:
        run(sys.executable, "-m", "joeynmt", "translate", "config.yaml", read=source, write="out")


class Marian(Regard):
    """Its page *Quick start*: every default, the recurrent model ``amun`` and beam 12 among them.

    The page takes "preprocessed files"; here a vocabulary is named ``.spm``, for which Marian learns SentencePiece
    itself (tutorial *Marian with Built-in SentencePiece*, of which the batches of translating are too). Minutes count
    from "Training started"; the signal then saves.
    """

    marian = (sys.executable, "-c", "import _pymarian, sys; sys.exit(_pymarian.main(sys.argv[1:]))")
    vocabularies = ("vocab.source.spm", "vocab.target.spm")

    def train(self) -> int:
        words = ("--train-sets", *self.sides, "--vocabs", *self.vocabularies, "--model", "model.npz")
        words += ("--cpu-threads", str(self.job.threads), "--seed", str(self.job.seed), "--tempdir", ".")
        words += ("--sentencepiece-options=--hard_vocab_limit=false", "--log", "marian.log")
        log, begun = Path("marian.log"), "Training started"
        process = subprocess.Popen([*self.marian, "train", *words], stdin=subprocess.DEVNULL, stdout=sys.stderr)
        while process.poll() is None and not (log.exists() and begun in log.read_text(encoding="utf-8")):
            time.sleep(0.2)
        try:
            process.wait(60 * self.job.minutes)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        if process.returncode and not Path("model.npz").exists():
            raise SystemExit(f"Marian: {log.read_text(encoding='utf-8').splitlines()[-1]}")
        progress = Path("model.npz.progress.yml").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in progress if line.startswith("batches: "))

    def output(self, source: str) -> None:
        words = ("-m", "model.npz", "-v", *self.vocabularies, "--cpu-threads", str(self.job.threads), "--quiet")
        batches = ("--mini-batch", "64", "--maxi-batch", "100", "--maxi-batch-sort", "src")
        run(*self.marian, "decode", *words, *batches, read=source, write="out")


TOOLKITS = {"regard": Regard, "eole": Eole, "joeynmt": JoeyNMT, "marian": Marian}


def opened(job: Job) -> dict[str, Callable[..., Any]]:
    """What a toolkit is asked, in order."""
    one = TOOLKITS[job.toolkit](job)
    return {"prepare": one.prepare, "train": one.train, "translate": one.translate}


if __name__ == "__main__":
    serve(opened)
