"""Parallel against sequential: recurrent layers beside self-attention by the length of a text, and how far they reach.

    python benchmarks/parallel.py                       # everything, three seeds; about twelve minutes of two cores
    python benchmarks/parallel.py --minutes 3           # as many parts as begin within that time

One layer of each kind, d_model 256, reads batches of 2,048 tokens in texts of 16 to 1,024 tokens. *Speed*: seconds a
token of reading and of training (reading and the gradients of weights and input), the layers in turns, by one thread,
by two, and by two processes that read half of the texts each. *Memory*: by how much a training pass raises the
process's memory. *Reach*: the norm of the gradient of the last token's hidden vector by the input so many tokens
before it, as the weights are drawn and after training on characters of tiny Shakespeare.

Every part of a seed appends a line to ``results/parallel.jsonl``, or to ``--results FILE``; one that stands there is
not repeated. Nothing else may run on the machine.
"""

from __future__ import annotations

import gzip
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import command
import machine
import torch
from command import data_file, whole_number
from corpus import DATA
from layers import LAYERS, Guesser, layer, path
from torch import Tensor, nn

from regard.nn.layout import Sequences
from regard.system.processor import keep_pages

TEXT = DATA / "lm-tinyshakespeare" / "input.txt.gz"
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
TOKENS = 2048
SIZE = 256
ROUNDS = 5
WORKERS = {"one thread": (1, 1), "two threads": (1, 2), "two processes": (2, 1)}
"""Processes and threads of each."""
PASSES = ("forward", "training")
WINDOW, WINDOWS, STEPS, RATE = 256, 8, 300, 2e-3
"""Characters of a text to learn from, texts of a step, steps, Adam's rate."""
GUESSER = 128
"""Size of the language model's vectors."""
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128, 255)
PROBES = 64
"""Texts over which a gradient is averaged."""
Row = dict[str, Any]


def main() -> None:
    """Each part of each seed that has no line yet."""
    parser = command.parser(__doc__, "parallel")
    parser.add_argument("--seed", type=whole_number, action="append", help="default: 1, 2 and 3")
    parser.add_argument("--part", choices=list(parts(0)), action="append", help="default: all")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no part after so many")
    asked, began = parser.parse_args(), time.monotonic()
    stands = {session.get("name") for session in machine.sessions_in(asked.results)}
    if any(part.startswith("reach") for part in asked.part or parts(0)):
        data_file(TEXT)
    for seed in asked.seed or (1, 2, 3):
        for part, measure in parts(seed).items():
            name = f"{part} {seed}"
            if (asked.part and part not in asked.part) or name in stands:
                continue
            if time.monotonic() - began > 60 * asked.minutes:
                print(f"{name} and what follows wait for the next call")
                return
            begun = machine.begun("parallel", name=name, setting={"size": SIZE, "tokens": TOKENS})
            rows = [{"part": part.split(":")[0], "seed": seed, **row} for row in measure()]
            machine.append(asked.results, begun, rows)


def parts(seed: int) -> dict[str, Callable[[], list[Row]]]:
    """What is measured, by name."""
    found: dict[str, Callable[[], list[Row]]] = {}
    for name in WORKERS:
        found[f"speed: {name}"] = lambda name=name: speed(name, seed)  # type: ignore[misc]
    found["memory"] = lambda: memory(seed)
    for name in LAYERS:
        found[f"reach: {name}"] = lambda name=name: reach(name, seed)  # type: ignore[misc]
    return found


# ---- Speed and memory


def speed(workers: str, seed: int) -> list[Row]:
    """Microseconds a token of every layer, pass and length: the median of rounds, in each of which all take turns."""
    processes, threads = WORKERS[workers]

    def work(wait: Callable[[], Any]) -> list[list[float]]:
        keep_pages()
        torch.set_num_threads(threads)
        made = {name: layer(name, SIZE, seed) for name in LAYERS}
        return [
            timed(wait, made[name], kind, length, TOKENS // processes)
            for length in LENGTHS
            for kind in PASSES
            for name in LAYERS
        ]

    cells = [(length, kind, name) for length in LENGTHS for kind in PASSES for name in LAYERS]
    found = zip(cells, *in_forks(processes, work), strict=True)
    return [
        {
            "layer": name,
            "length": length,
            "pass": kind,
            "workers": workers,
            "microseconds a token": round(statistics.median(map(max, zip(*each, strict=True))) / TOKENS * 1e6, 4),
        }
        for (length, kind, name), *each in found
    ]


def timed(wait: Callable[[], Any], one: nn.Module, kind: str, length: int, tokens: int) -> list[float]:
    """Seconds of each round; all processes begin a round together."""
    make, seconds = once(one, kind, length, tokens), []
    make()
    for _ in range(ROUNDS):
        wait()
        began = time.perf_counter()
        make()
        seconds.append(time.perf_counter() - began)
    return seconds


def once(one: nn.Module, kind: str, length: int, tokens: int) -> Callable[[], None]:
    """One pass over a batch of texts of equal length."""
    x_TD = torch.randn(tokens, SIZE, requires_grad=kind == "training")
    gradient_TD = torch.randn(tokens, SIZE)

    def forward() -> Tensor:
        out_TD: Tensor = one(x_TD, Sequences.end_to_end([length] * (tokens // length)))
        return out_TD

    def read() -> None:
        with torch.no_grad():
            forward()

    def train() -> None:
        forward().backward(gradient_TD)
        x_TD.grad = None
        one.zero_grad(set_to_none=True)

    one.train(kind == "training")
    return train if kind == "training" else read


def memory(seed: int) -> list[Row]:
    """Megabytes by which a training pass of each layer and length raises the memory of a fresh process; the path."""
    found = []
    for name in LAYERS:
        known = {"layer": name, "weights": sum(weight.numel() for weight in layer(name, SIZE, seed).parameters())}
        for length in LENGTHS:

            def work(wait: Callable[[], Any], name: str = name, length: int = length) -> float:
                torch.set_num_threads(1)
                one = layer(name, SIZE, seed)
                once(one, "training", 16, 32)()
                make = once(one, "training", length, TOKENS)
                before = machine.resident("VmRSS")
                make()
                return machine.resident("VmHWM") - before

            (megabytes,) = in_forks(1, work)
            found.append(known | {"length": length, "megabytes": round(megabytes, 1)} | path(name, length))
    return found


def in_forks(count: int, work: Callable[[Callable[[], Any]], Any]) -> list[Any]:
    """What work gives in each of so many forked processes; it is given what makes them wait for each other."""
    forks = multiprocessing.get_context("fork")
    barrier, pipes = forks.Barrier(count, timeout=60), [forks.Pipe(duplex=False) for _ in range(count)]
    processes = [forks.Process(target=lambda end=end: end.send(work(barrier.wait))) for _, end in pipes]
    for process in processes:
        process.start()
    for _, end in pipes:
        end.close()
    found = [end.recv() for end, _ in pipes]
    for process in processes:
        process.join()
    return found


# ---- Reach


def reach(name: str, seed: int) -> list[Row]:
    """Gradients by distance as the weights are drawn, and after training."""
    text, pieces = characters()
    torch.set_num_threads(1)
    train, valid = text[: int(0.9 * len(text))], text[int(0.9 * len(text)) :]
    model = Guesser(name, pieces, GUESSER, seed)
    probes = next(windows(valid, PROBES, seed))
    rows = gradients(model, probes, "as drawn")
    learn(model, train, seed)
    loss = round(loss_of(model, probes).item(), 4)
    rows += [row | {"loss": loss} for row in gradients(model, probes, "trained")]
    return [{"layer": name, **row} for row in rows]


def characters() -> tuple[Tensor, int]:
    """Tiny Shakespeare as numbers of characters, and how many different ones there are."""
    text = gzip.decompress(TEXT.read_bytes()).decode()
    number = {character: i for i, character in enumerate(sorted(set(text)))}
    return torch.tensor([number[character] for character in text]), len(number)


def windows(text: Tensor, count: int, seed: int) -> Iterator[Tensor]:
    """``count`` windows of the text at a time, each with the character after it, drawn by seed."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(text) - WINDOW, (count,), generator=generator)
        yield text[starts[:, None] + torch.arange(WINDOW + 1)]


def learn(model: Guesser, text: Tensor, seed: int) -> None:
    """Train on windows of the text."""
    optimiser = torch.optim.Adam(model.parameters(), RATE)
    for _, batch in zip(range(STEPS), windows(text, WINDOWS, seed), strict=False):
        optimiser.zero_grad(set_to_none=True)
        loss_of(model, batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()


def loss_of(model: Guesser, batch: Tensor) -> Tensor:
    """Nats a character."""
    scores_TV = model(batch[:, :-1].flatten(), rows_of(batch))
    return nn.functional.cross_entropy(scores_TV, batch[:, 1:].flatten())


def rows_of(batch: Tensor) -> Sequences:
    """The layout of windows, end to end."""
    return Sequences.end_to_end([batch.shape[1] - 1] * len(batch))


def gradients(model: Guesser, batch: Tensor, state: str, distances: Sequence[int] = DISTANCES) -> list[Row]:
    """Norm of the gradient of the last token's hidden vector by what the layer reads at each distance before it.

    The root of the mean over windows of ``|Jᵀ u|²``, u a vector of independent normal entries, which estimates the
    Jacobian's Frobenius norm.
    """
    count, length = len(batch), batch.shape[1] - 1
    sequences = rows_of(batch)
    with torch.no_grad():
        x_TD = model.embed(batch[:, :-1].flatten(), sequences)
    x_TD.requires_grad_()
    last_BD = model.layer(x_TD, sequences).unflatten(0, (count, length))[:, -1]
    direction_BD = torch.randn(last_BD.shape, generator=torch.Generator().manual_seed(0)).to(last_BD)
    (gradient_TD,) = torch.autograd.grad(last_BD, x_TD, direction_BD)
    squares_BL = gradient_TD.double().square().sum(1).unflatten(0, (count, length))
    norms = squares_BL.mean(0).sqrt()
    return [{"state": state, "distance": d, "norm": float(norms[-1 - d])} for d in distances]


if __name__ == "__main__":
    command.run(main)
