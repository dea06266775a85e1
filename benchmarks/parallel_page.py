"""The page ``docs/parallel.md`` and its pictures, made of what ``parallel.py`` measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from chart import LINEAR, LOG, Axis, Point, Scale, Series, chart
from questions import Lines
from seeds import Session
from tables import Row, grid

PAGE = "parallel.md"
LAYERS = ("Elman", "GRU", "LSTM", "attention")
SHOWN = (16, 128, 1024)
"""Lengths in the tables."""
FLOOR = 1e-8
"""Norms below it are not drawn."""
HUNDREDTH = 0.01
CORES = 2
"""Of the machine; two threads and two processes are measured on it."""
APART = 1.5
"""Seeds whose times differ by more than this factor have a disturbed measurement among them."""
MARK = "†"
PASSES = ("forward", "training")
OPENING = """\
# Parallel against sequential

A recurrent layer computes the state of a token from that of the token before, so the tokens of a text wait for each
other. Self-attention computes all of them at once, and between any two lies one step [Vaswani17 §4]; it pays with work
that grows with the square of the length. This page measures both on a CPU of two cores; a device that computes
thousands of products at once is another matter, and nothing here is said of it.

`python benchmarks/parallel.py` measures and `python benchmarks/report.py` writes this page; no number is edited by
hand. One layer of each kind reads forwards, d_model 256: Elman, GRU, LSTM, and a layer of the Transformer with 4 heads
whose feed-forward has 512 inside, which gives it as many weights as the LSTM. A batch has 2,048 tokens: 128 texts of
16, or 2 of 1,024. Full precision; training is the pass and the gradients of weights and input. Points and figures are
medians of three seeds, bars and brackets go from the least to the largest."""


def files(sessions: list[Session], measured: str) -> dict[str, str]:
    """The page and its pictures by file name; the last line says where and when it was measured."""
    rows = [row for session in newest(sessions) for row in session["rows"]]
    parts = [(name, [row for row in rows if row["part"] == name]) for name in SECTIONS]
    lines, pictures = [OPENING], dict[str, str]()
    for name, own in parts:
        if own:
            told, drawn = SECTIONS[name](own)
            lines += ["", *told]
            pictures |= drawn
    return {PAGE: "\n".join([*lines, "", measured, ""]), **pictures}


def newest(sessions: list[Session]) -> list[Session]:
    """The newest session of each part and seed, of the processor that was measured last."""
    last = sessions[-1]["machine"]["processor"]
    return list({one["name"]: one for one in sessions if one["machine"]["processor"] == last}.values())


# ---- Sections


def speed(rows: list[Row]) -> tuple[Lines, dict[str, str]]:
    """Seconds a token by length, and what two cores give."""
    alone = [row for row in rows if row["workers"] == "one thread"]
    drawn = {}
    for kind, title in (("forward", "Reading with one thread"), ("training", "Training with one thread")):
        own = [row for row in alone if row["pass"] == kind]
        drawn[f"parallel-{kind}.svg"] = by_length(own, "microseconds a token", title)
    trained = [row for row in alone if row["pass"] == "training"]
    longest = max(row["length"] for row in rows)
    table = [at_lengths(alone, kind, name) for kind in PASSES for name in LAYERS]
    lines = [
        "## How long does a token take?",
        "",
        "Microseconds a token by the length of the texts, one thread:",
        "",
        *shown(drawn),
        *grid(table),
        *footnote(table),
        "",
        f"In training, a token in texts of {longest:,} takes, against one in texts of 16:",
        "",
        *(f"* {name}: {ratio(trained, name, longest, name, 16)} times as long;" for name in LAYERS),
        f"* the LSTM against attention, in texts of {longest:,}: "
        f"{ratio(trained, 'LSTM', longest, 'attention', longest)} times as long, in texts of 16: "
        f"{ratio(trained, 'LSTM', 16, 'attention', 16)} times.",
    ]
    more, pictures = cores(rows)
    return [*lines, "", *more], drawn | pictures


def cores(rows: list[Row]) -> tuple[Lines, dict[str, str]]:
    """How many times as fast two threads and two processes are as one."""
    alone = {key(row): row["microseconds a token"] for row in rows if row["workers"] == "one thread"}
    gained = [
        row | {"times": alone[key(row)] / row["microseconds a token"]}
        for row in rows
        if row["workers"] != "one thread" and key(row) in alone
    ]
    drawn, table = {}, []
    for kind in PASSES:
        for workers in ("two threads", "two processes"):
            own = [row for row in gained if row["workers"] == workers and row["pass"] == kind]
            named = {"pass": kind, "by": workers}
            if own and kind == "training":
                title = f"Training by {workers}, against one thread"
                drawn[f"parallel-{workers.replace(' ', '-')}.svg"] = by_length(own, "times", title, LINEAR)
            table += [named | {"layer": layer} | figures(own, layer, "times", marked) for layer in LAYERS if own]
    if not table:
        return [], {}
    lines = [
        "## What do two cores give?",
        "",
        "How many times as fast as one thread reading and training are, by two threads that divide every product of",
        "matrices, and by two processes that read half of the texts each (layers alone: nothing is exchanged between",
        "the processes). Each seed is compared with itself; the pictures are of training.",
        "",
        *shown(drawn),
        *grid(table),
        *footnote(table),
        *beyond_cores([row for row in gained if row["length"] in SHOWN], alone),
    ]
    return lines, drawn


def beyond_cores(gained: list[Row], alone: dict[tuple[object, ...], float]) -> Lines:
    """Where figures above the number of cores come from: one thread that was disturbed, or the spread of the seeds."""
    above = [row for row in gained if row["times"] > CORES]
    disturbed: dict[str, list[float]] = {}
    rest = []
    for row in above:
        seeds = sorted({other["seed"] for other in gained})
        times = {seed: alone[one] for seed in seeds if (one := (*key(row)[:-1], seed)) in alone}
        others = sorted(time for seed, time in times.items() if seed != row["seed"])
        if times[row["seed"]] == max(times.values()) and is_disturbed(times.values()):
            told = f"{row['pass']}, {row['layer']}, n = {row['length']:,}: with seed {row['seed']} one thread took "
            told += f"{brief(times[row['seed']])} µs, with the others {' and '.join(map(brief, others))}, hence"
            disturbed.setdefault(told, []).append(row["times"])
        else:
            rest.append(row["times"])
    lines = []
    if disturbed:
        lines += ["", f"Above {CORES}, the number of cores, and no gain of theirs, but one disturbed measurement:", ""]
        lines += [f"* {told} {' and '.join(map(brief, sorted(times)))}." for told, times in disturbed.items()]
    if rest:
        other = "Other figures" if disturbed else f"Figures above {CORES}, the number of cores,"
        over = f" above {CORES}" if disturbed else ""
        lines += ["", f"{other}{over} are at most {brief(max(rest))}, of single seeds whose times vary."]
    return lines


def memory(rows: list[Row]) -> tuple[Lines, dict[str, str]]:
    """Megabytes of a training pass, and the paths."""
    drawn = {"parallel-memory.svg": by_length(rows, "megabytes", "Memory of a training pass")}
    table = []
    for layer in LAYERS:
        own = {row["length"]: row for row in rows if row["layer"] == layer}
        path = own[SHOWN[0]]["formula"], *(f"{own[length]['path']:,}" for length in (SHOWN[0], SHOWN[-1]))
        told = path[0] if path[0] == path[1] else f"{path[0]}: {path[1]} to {path[2]}"
        table.append({"layer": layer, "weights": own[SHOWN[0]]["weights"], "path": told})
        table[-1] |= {f"MB, n = {length}": value for length, value in figures(rows, layer, "megabytes").items()}
    lines = [
        "## How long is the path, and what does it cost in memory?",
        "",
        "The longest way between two tokens of a text of n, by formula (`regard.models.complexity`), and the megabytes",
        "by which a training pass over 2,048 tokens raises the memory of a process. Attention keeps n weights for",
        "every token and head; what the others keep does not grow with n.",
        "",
        *shown(drawn),
        *grid(table),
    ]
    return lines, drawn


def reach(rows: list[Row]) -> tuple[Lines, dict[str, str]]:
    """Gradients by distance."""
    drawn, table, learned = {}, [], dict[str, list[float]]()
    up = Axis("norm of the gradient", scale=LOG)
    for state in ("as drawn", "trained"):
        own = [row for row in rows if row["state"] == state]
        lines = [Series(layer, points(own, layer, "distance", "norm", FLOOR)) for layer in LAYERS]
        ticks = [(d, str(d)) for d in sorted({row["distance"] for row in own})]
        across = Axis("distance in tokens", ticks, LOG)
        title = f"How far back a signal reaches, weights {state}"
        drawn[f"parallel-reach-{state.replace(' ', '-')}.svg"] = chart(lines, title, across, up, BARS)
    for layer in LAYERS:
        own = [row for row in rows if row["layer"] == layer]
        reached = {state: farthest([row for row in own if row["state"] == state]) for state in ("as drawn", "trained")}
        losses = {row["seed"]: row["loss"] for row in own if "loss" in row}
        table.append({"layer": layer} | reached | {"loss after training": span(losses.values())})
        learned[layer] = sorted(losses.values())
    lines = [
        "## How far does a signal reach?",
        "",
        "The norm of the gradient (of the Jacobian, Frobenius) of the last token's hidden vector by what the layer",
        "reads so many tokens before it, in texts of 256 characters of tiny Shakespeare; d_model 128, as the weights",
        "are drawn and after 300 steps as a language model of one layer. Lines end where the norm falls below 10⁻⁸.",
        "This project draws what recurs orthogonal, and opens the LSTM's forget gate.",
        "",
        *shown(drawn),
        "The farthest of the distances measured at which the norm is at least a hundredth of that at distance 1, and",
        "nats a character on held-out text:",
        "",
        *grid(table),
    ]
    if learned["attention"][0] > max(losses[-1] for name, losses in learned.items() if name != "attention"):
        own, rest = (
            learned["attention"],
            [loss for name, found in learned.items() if name != "attention" for loss in found],
        )
        lines += [
            "",
            "Reaching far does not mean learning sooner: after 300 steps attention has the highest loss in all",
            f"{number_of(own)} seeds ({limits(own)}, against {limits(rest)} of the recurrent layers).",
        ]
    return lines, drawn


SECTIONS: dict[str, Callable[[list[Row]], tuple[Lines, dict[str, str]]]] = {
    "speed": speed,
    "memory": memory,
    "reach": reach,
}


# ---- Charts and figures

BARS = "Bars: from the least to the largest of three seeds."


def shown(pictures: dict[str, str]) -> Lines:
    """Pictures of a page, each with a line below it."""
    return [line for name in pictures for line in (f"![{name.removesuffix('.svg')}]({name})", "")]


def by_length(rows: list[Row], value: str, title: str, scale: Scale = LOG) -> str:
    """A line for each layer over the length of texts; every length is twice the one before."""
    lines = [Series(layer, points(rows, layer, "length", value)) for layer in LAYERS]
    ticks = [(length, f"{length:,}") for length in sorted({row["length"] for row in rows})]
    up = Axis(value, scale=scale)
    return chart(lines, title, Axis("tokens of a text", ticks, LOG), up, BARS)


def points(rows: list[Row], layer: str, across: str, value: str, floor: float = 0.0) -> tuple[Point, ...]:
    """The median of the seeds, the least and the largest, as far as all of them are above the floor."""
    found: dict[float, list[float]] = {}
    for row in rows:
        if row["layer"] == layer:
            found.setdefault(row[across], []).append(row[value])
    kept = []
    for place, values in sorted(found.items()):
        if min(values) <= floor:
            break
        kept.append(Point(place, median(values), ends=(min(values), max(values))))
    return tuple(kept)


def key(row: Row) -> tuple[object, ...]:
    """What rows that differ in their workers alone have in common."""
    return row["layer"], row["length"], row["pass"], row["seed"]


def at_lengths(rows: list[Row], kind: str, layer: str) -> Row:
    """A row of the table of speeds."""
    own = [row for row in rows if row["pass"] == kind]
    return {"pass": kind, "layer": layer} | figures(own, layer, "microseconds a token", marked)


def figures(
    rows: list[Row], layer: str, value: str, told: Callable[[Iterable[float]], str] | None = None
) -> dict[str, str]:
    """The values of a layer at some lengths, told as spans if nothing else is said."""
    return {
        f"{length:,}": (told or span)(row[value] for row in rows if row["layer"] == layer and row["length"] == length)
        for length in SHOWN
    }


def ratio(rows: list[Row], layer: str, length: int, other: str, base: int) -> str:
    """One time to another, seed by seed."""
    times = {(row["layer"], row["length"], row["seed"]): row["microseconds a token"] for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    return span(times[layer, length, seed] / times[other, base, seed] for seed in seeds)


def farthest(rows: list[Row]) -> str:
    """The largest distance at which the norm is still a hundredth of that at distance 1, over the seeds."""
    found = []
    for seed in sorted({row["seed"] for row in rows}):
        norms = {row["distance"]: row["norm"] for row in rows if row["seed"] == seed}
        found.append(max(d for d, norm in norms.items() if norm >= HUNDREDTH * norms[1]))
    return span(found)


def span(values: Iterable[float]) -> str:
    """The middle one, and in brackets the least and the largest where they differ."""
    found = sorted(values)
    middle, ends = brief(median(found)), (brief(found[0]), brief(found[-1]))
    return middle if ends[0] == ends[1] else f"{middle} ({ends[0]} to {ends[1]})"


def marked(values: Iterable[float]) -> str:
    """The same, with a mark where one of the measurements was disturbed."""
    found = list(values)
    return span(found) + (MARK if is_disturbed(found) else "")


def is_disturbed(values: Iterable[float]) -> bool:
    """Whether seeds, which do the same work, differ by more than a half."""
    found = sorted(values)
    return found[-1] > APART * found[0]


def footnote(table: list[Row]) -> Lines:
    """What the mark means, where a table has it."""
    if not any(str(value).endswith(MARK) for row in table for value in row.values()):
        return []
    told = "The seeds differ by more than a half, so that something disturbed a measurement; the median counts."
    return ["", f"{MARK} {told}"]


def limits(values: list[float]) -> str:
    """The least and the largest."""
    return f"{brief(min(values))} to {brief(max(values))}"


def number_of(values: list[float]) -> str:
    """How many there are, in words if few."""
    words = {2: "two", 3: "three", 4: "four", 5: "five"}
    return words.get(len(values), str(len(values)))


def brief(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
