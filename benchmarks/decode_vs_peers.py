"""Using models beside CTranslate2, transformers and onnxruntime: tokens a second, one sentence's time, memory.

    python benchmarks/decode_vs_peers.py                                    # the base shape, made-up weights
    python benchmarks/decode_vs_peers.py --rounds 1 --sentences 64          # a try of some minutes
    python benchmarks/decode_vs_peers.py --work model --model FOLDER --source val.en.gz
    python benchmarks/decode_vs_peers.py --work equal --model FOLDER --source val.en.gz --sentences 1000

Works: ``base``, a translator of the paper's base shape; ``encoder`` of BERT's base size and ``language-model`` of
GPT-2's, all of made-up weights; ``model``, a translator that was trained, and ``demo``, one of the demonstration's
recipe and corpus, trained first, with as many heads in the encoder as in the decoder, since CTranslate2 reads no other;
``equal``, whether a model's outputs are those of torch and of CTranslate2.

Every tool opens the same weights, which Regard's exporters wrote, in one process of one thread, all on one core.
Regard's are packed before (``regard pack``), as CTranslate2's are converted. For each measure (greedy, beam 4, one
sentence) all tools take their turn in every round; medians are of processor seconds. Batches are those with which a
tool was fastest on a part of the sentences, tried in a process before. Searches compare hypotheses by the sum of their
log-probabilities, without a length penalty, because every tool has another one. From text to ids and back is part of
every tool's time. Appended to ``results/decode_vs_peers.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import decode_equal
import decode_models
import machine
from decode_tools import Measure, measured, say, tools
from environments import WORK, prepared

HERE = Path(__file__).resolve().parent
BEAM = 4
ONE = 25
"""Tokens of the one sentence, ``</s>`` counted."""
TIMES = 5
"""The one sentence is translated so many times in a turn."""
READ = 96
"""Texts that an encoder reads."""
NEW = 128
"""Tokens that a language model writes."""
MADE = {
    "base": decode_models.translator,
    "encoder": decode_models.encoder,
    "language-model": decode_models.language_model,
}
KINDS = {"encoder": "encode", "language-model": "generate"}
WORKS = (*MADE, "model", "demo", "equal")


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


def parse() -> argparse.Namespace:
    """The command line."""
    names = list(dict.fromkeys(tool.name for tool in tools()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", nargs="+", default=["base"], choices=WORKS)
    parser.add_argument("--model", type=Path, help="a translator's folder, for the works model and equal")
    parser.add_argument("--source", type=Path, help="sentences for it, a line each, plain or gz")
    parser.add_argument("--demo", type=Path, help="what `regard demo --output` wrote, for the work demo")
    parser.add_argument(
        "--tools", nargs="+", default=names, choices=names, metavar="NAME", help=f"of {', '.join(names)}"
    )
    parser.add_argument("--precision", nargs="+", default=["fp32", "int8"], choices=["fp32", "int8"])
    parser.add_argument("--measure", nargs="+", help="only these, such as greedy; not for the results of the project")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument(
        "--slow-sentences", type=int, default=64, help="for transformers and onnxruntime, the first ones"
    )
    parser.add_argument(
        "--tried", type=int, default=96, help="sentences on which batches are tried, slow tools a fourth"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0, help="all tools run on this one")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: by wall time")
    parser.add_argument("--one-python", action="store_true", help="peers run in this Python, which has their packages")
    parser.add_argument("--work-folder", type=Path, default=WORK, help="of environments, models and scratch files")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "decode_vs_peers.jsonl", help="appended to")
    parser.add_argument("--note", default="", help="what else is to be known of this run, for the table")
    asked = parser.parse_args()
    for work, needed in {"model": ("model", "source"), "equal": ("model", "source"), "demo": ("demo",)}.items():
        if work in asked.work and not all(getattr(asked, name) for name in needed):
            parser.error(f"--work {work} needs {' and '.join('--' + name for name in needed)}")
    asked.environments = prepared(asked.work_folder)
    if asked.measure and asked.results == parser.get_default("results"):
        parser.error("--measure makes a part of a table; name another --results")
    asked.cores = [asked.core]
    asked.clock = "cpu" if asked.device == "cpu" else "wall"
    if asked.device != "cpu":
        asked.tools = [name for name in asked.tools if name in ("regard", "transformers")]
    asked.packed = asked.device == "cpu"
    asked.forms = [form for form in ("huggingface", "ctranslate2") if asked.device == "cpu" or form == "huggingface"]
    return asked


def of_work(work: str, asked: argparse.Namespace) -> tuple[Path, list[str]]:
    """The folder of a work's model, and its sentences."""
    if work in MADE:
        folder = asked.environments / "decoding" / work
        if not folder.exists():
            MADE[work](folder)
        return folder, decode_models.texts(folder, asked.sentences)
    if work == "demo":
        folder = decode_models.demonstration(asked.demo, asked.environments / "decoding" / "demonstration")
        source = asked.demo / "corpus" / "valid.en"
    else:
        folder, source = asked.model, asked.source
    kept = decode_models.copied(folder, asked.environments / "decoding")
    return kept, decode_models.lines_of(source)[: asked.sentences]


def main() -> int:
    """Measures each work, prints its table, appends its session; exit code 1 if a tool asked for is absent."""
    asked, missing = parse(), False
    for work in asked.work:
        begun = {"benchmark": "decode_vs_peers", "name": work, "date": machine.now(), "commit": machine.commit()}
        begun |= {"machine": machine.describe(asked.device)} | ({"note": asked.note} if asked.note else {})
        folder, lines = of_work(work, asked)
        with TemporaryDirectory() as scratch:
            asked.scratch = Path(scratch)
            if work == "equal":
                rows = decode_equal.rows(folder, lines, BEAM, asked)
            else:
                kind = KINDS.get(work, "translate")
                measures = {"encode": encoding, "generate": generating}.get(kind, translating)(folder, lines)
                wanted = [one for one in measures if not asked.measure or one.name in asked.measure]
                rows = measured(kind, folder, wanted, asked)
        setting = {"sentences": len(lines), "slow": asked.slow_sentences, "rounds": asked.rounds, "beam": BEAM}
        machine.append(asked.results, {**begun, "setting": setting, "rows": rows})
        for row in rows:
            say(", ".join(f"{name} {value}" for name, value in row.items() if name not in ("runs", "versions", "work")))
        missing = missing or any("absent" in row for row in rows)
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
