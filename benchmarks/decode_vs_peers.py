"""Using models beside CTranslate2, transformers and onnxruntime: tokens a second, one sentence's time, memory.

    python benchmarks/decode_vs_peers.py                                    # the base shape, made-up weights
    python benchmarks/decode_vs_peers.py --rounds 1 --sentences 64          # a try of some minutes
    python benchmarks/decode_vs_peers.py --work model --model FOLDER --source val.en.gz

Works: ``base``, ``opus`` and ``nllb``, translators of the shapes of the paper, of OPUS-MT and of NLLB-600M;
``encoder`` of BERT's base size and ``language-model`` of GPT-2's, all of made-up weights; ``model``, a translator that
was trained, with as many heads in the encoder as in the decoder, since CTranslate2 reads no other.

Every tool opens the same weights, which Regard's exporters wrote, in one process of one thread, all on one core.
Regard's are packed before (``regard pack``), as CTranslate2's are converted. For each measure (greedy, beam 4, one
sentence) all tools take their turn in every round; medians are of processor seconds. Batches are those with which a
tool was fastest on a part of the sentences, tried in a process before. Searches compare hypotheses by the sum of their
log-probabilities, without a length penalty, because every tool has another one. From text to ids and back is part of
every tool's time. Appended to ``results/decode_vs_peers.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import command
import decode_models
import machine
from decode_tools import Measure, measured, tools
from harness import parser

BEAM = 4
ONE = 25
"""Tokens of the one sentence, ``</s>`` counted."""
TIMES = 5
"""The one sentence is translated so many times in a turn."""
READ = 96
"""Texts that an encoder reads."""
NEW = 128
"""Tokens that a language model writes."""


def translating(folder: Path, lines: list[str]) -> list[Measure]:
    """What is measured of a translator."""
    one = [decode_models.of_length(folder, lines, ONE)]
    return [
        Measure("one sentence, greedy", {"beam": 1}, one, TIMES),
        Measure(f"one sentence, beam {BEAM}", {"beam": BEAM}, one, TIMES),
        Measure("greedy", {"beam": 1}, lines, batched=True),
        Measure(f"beam {BEAM}", {"beam": BEAM}, lines, batched=True),
    ]


def encoding(folder: Path, lines: list[str]) -> list[Measure]:
    """What is measured of an encoder."""
    return [Measure(f"{READ} texts", {}, lines[:READ], batched=True)]


def generating(folder: Path, lines: list[str]) -> list[Measure]:
    """What is measured of a language model: texts side by side, each begun with five words."""
    begun = [" ".join(line.split()[:5]) for line in lines]
    return [Measure(f"{n} at once", {"tokens": NEW}, begun[:n]) for n in (1, 16)]


WORKS = {
    "base": (decode_models.translator, "translate", translating),
    "opus": (decode_models.opus, "translate", translating),
    "nllb": (decode_models.nllb, "translate", translating),
    "encoder": (decode_models.encoder, "encode", encoding),
    "language-model": (decode_models.language_model, "generate", generating),
    "model": (None, "translate", translating),
}
"""How a work's model is made, what is done with it, and what is measured of it."""


def parse() -> argparse.Namespace:
    """The command line."""
    made = parser(__doc__, "decode_vs_peers", (tool.name for tool in tools()), "--tools", "--work-folder")
    made.add_argument("--work", dest="works", nargs="+", default=["base"], choices=list(WORKS))
    made.add_argument("--model", type=Path, help="a translator's folder, for the work model")
    made.add_argument("--source", type=Path, help="sentences for it, a line each, plain or gz")
    made.add_argument("--precision", nargs="+", default=["fp32", "int8"], choices=["fp32", "int8"])
    made.add_argument("--sentences", type=int, default=512)
    made.add_argument("--slow-sentences", type=int, default=64, help="for transformers and onnxruntime, the first ones")
    made.add_argument("--tried", type=int, default=96, help="sentences to try batches on, slow tools a fourth")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--core", type=int, default=0, help="all tools run on this one")
    made.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: by wall time")
    made.add_argument("--note", default="", help="what else is to be known of this run, for the table")
    asked = made.parse_args()
    if "model" in asked.works and not (asked.model and asked.source):
        made.error("--work model needs --model and --source")
    asked.cores, asked.packed = [asked.core], asked.device == "cpu"
    needed = {"ctranslate2": {"ctranslate2"}, "huggingface": {"transformers", "onnxruntime"}}
    asked.clock, asked.forms = "cpu", tuple(form for form, users in needed.items() if users & set(asked.peers))
    if asked.device != "cpu":
        asked.clock, asked.forms = "wall", ("huggingface",)
        asked.peers = [name for name in asked.peers if name in ("regard", "transformers")]
    return asked


def of_work(work: str, asked: argparse.Namespace) -> tuple[Path, list[str]]:
    """The folder of a work's model, and its sentences."""
    make, models = WORKS[work][0], asked.work / "decoding"
    if make is None:
        return decode_models.copied(asked.model, models), decode_models.lines_of(asked.source)[: asked.sentences]
    folder = models / work
    if not folder.exists():
        make(folder)
    return folder, decode_models.texts(folder, asked.sentences)


def main() -> int:
    """Measures each work, appends and prints its rows; exit code 1 if a tool asked for is absent."""
    asked, missing = parse(), False
    for work in asked.works:
        begun = machine.begun("decode_vs_peers", asked.device, name=work)
        begun |= {"note": asked.note} if asked.note else {}
        (folder, lines), (_, kind, measures) = of_work(work, asked), WORKS[work]
        with TemporaryDirectory() as scratch:
            asked.scratch = Path(scratch)
            rows = measured(kind, folder, measures(folder, lines), asked)
        setting = {"sentences": len(lines), "slow": asked.slow_sentences, "rounds": asked.rounds, "beam": BEAM}
        machine.append(asked.results, {**begun, "setting": setting}, rows)
        missing = missing or any("absent" in row for row in rows)
    return int(missing)


if __name__ == "__main__":
    command.run(main)
