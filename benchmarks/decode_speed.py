"""How fast a trained model translates: sentences and generated tokens per second, greedy and with a beam.

Everything runs in one process pinned to its cores, the settings taking turns after a warm-up; the median over the runs
counts. Tokens are those of the translations, ``</s>`` included.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import machine
from corpus import data_folder

HERE = Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Decoding speed of a trained model.")
    parser.add_argument("--model", type=Path, required=True, help="a model folder that `regard train` made")
    parser.add_argument("--source", type=Path, help="sentences, plain or gz; default: Multi30k's English test set")
    parser.add_argument("--sentences", type=int, default=1000, help="how many of them")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--first-core", type=int, default=0)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "decoding.jsonl", help="appended to")
    return parser.parse_args()


def lines(path: Path, count: int) -> list[str]:
    """The first sentences of a file."""
    held = path.read_bytes()
    text = (gzip.decompress(held) if path.suffix == ".gz" else held).decode("utf-8")
    return text.removesuffix("\n").split("\n")[:count]


def timed(translation: Any, texts: list[str], beam: int) -> tuple[int, float, float]:
    """Tokens generated, wall seconds and CPU seconds of one pass over the texts."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = translation.nbest(texts, 1, beam=beam)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    return sum(len(best[0].tokens) + 1 for best in found), *taken


def main() -> int:
    """Measures, prints, and appends to the results."""
    arguments = parse()
    os.sched_setaffinity(0, range(arguments.first_core, arguments.first_core + arguments.threads))
    import torch

    import regard

    torch.set_num_threads(arguments.threads)
    begun = {"benchmark": "decoding", "date": machine.now(), "commit": machine.commit(), "machine": machine.describe()}
    texts = lines(arguments.source or data_folder() / "test_2016_flickr.en.gz", arguments.sentences)
    before = time.perf_counter()
    translation = regard.load(arguments.model)
    loading = time.perf_counter() - before
    runs: dict[int, list[tuple[int, float, float]]] = {beam: [] for beam in arguments.beam}
    for turn in range(arguments.runs + 1):
        for beam, measured in runs.items():
            if turn:
                measured.append(timed(translation, texts, beam))
            else:
                timed(translation, texts[:32], beam)  # warm-up
    parameters = sum(parameter.numel() for parameter in translation.model.parameters())
    rows = [
        {
            "program": f"regard {regard.__version__}",
            "beam": beam,
            "sentences per second": round(len(texts) / median(wall for _, wall, _ in measured), 1),
            "tokens per second": round(median(tokens / wall for tokens, wall, _ in measured), 1),
            "tokens per CPU second": round(median(tokens / cpu for tokens, _, cpu in measured), 1),
        }
        for beam, measured in runs.items()
    ]
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    setting = {"sentences": len(texts), "threads": arguments.threads, "parameters": parameters}
    note = f"{len(texts):,} sentences, {parameters / 1e6:.1f}M parameters, {arguments.threads} thread(s), "
    note += f"loaded in {loading:.2f} s; median of {arguments.runs} runs."
    machine.append(arguments.results, {**begun, "setting": setting, "note": note, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
