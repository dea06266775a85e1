"""The questions that ``docs/results.md`` answers, each by a narrow table made of the sessions in ``results``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

from seeds import CALIBRATION, SPANS, Session, groups_of, mean, over_seeds
from tables import Row, grid, merged, pivot

CURVES = "language-models.svg"
"""The chart of the curves, beside the page."""
PUBLISHED = json.loads((Path(__file__).resolve().parent / "results" / "published.json").read_text(encoding="utf-8"))
"""What others reached on the test part, as far as that is known; the first of each set is shown."""
Lines = list[str]


def rows_of(sessions: list[Session]) -> list[Row]:
    """All rows; a later scoring adds to the run of its name, another training takes its place."""
    found: dict[str, Row] = {}
    for session in sessions:
        for row in session["rows"]:
            first = found.get(row["run"], {})
            same = all(first.get(key) == row.get(key) for key in ("settings", "threads", "steps", "train minutes"))
            found[row["run"]] = row | first if same else row
    return list(found.values())


def columns(row: Row, names: dict[str, str]) -> Row:
    """The columns of a table, by the keys of the row."""
    return {new: row[old] for old, new in names.items() if old in row}


# ---- Translation


def translation(sessions: list[Session]) -> tuple[list[Row], str]:
    """The mean scores of each direction, and how they were computed."""
    rows = [with_parts(row) for row in rows_of(sessions)]
    final = [row for row in rows if any(name.startswith("test") for name in row)]
    directions = dict.fromkeys(row["direction"] for row in final)
    signatures = dict.fromkeys(f"`{row[name]}`" for row in rows for name in row if name.startswith("signature"))
    return [quality(direction, final, beam) for direction in directions for beam in (1, 5)], ", ".join(signatures)


def minutes(sessions: list[Session]) -> Lines:
    """The recipe with less and with more time, and runs with another setting."""
    shown = [{"recipe": row["recipe"]} | budget(row) for row in first_seed(sessions)]
    told = (
        "English to German on one core, seed 1; a training knows its time from the start. Below the recipe one setting"
    )
    more = "is changed, and once two cores are used. BLEU (lc) on validation."
    return [told, more, "", *grid(shown)]


def with_parts(row: Row) -> Row:
    """A run with the parts of its name: recipe, direction, seed and minutes."""
    recipe, source, target, seed, minutes = row["run"].rsplit("-", 4)
    return row | {"recipe": recipe, "direction": f"{source}-{target}", "seed": seed, "minutes": int(minutes)}


def first_seed(sessions: list[Session]) -> list[Row]:
    """The runs from English to German with seed 1, the recipe's first, the shortest first."""
    rows = [row for row in map(with_parts, rows_of(sessions)) if (row["direction"], row["seed"]) == ("en-de", "1")]
    return sorted(rows, key=lambda row: (row["recipe"] != "recipe", row["minutes"]))


def quality(direction: str, rows: list[Row], beam: int) -> Row:
    """The mean scores of one direction and search."""
    own = [row for row in rows if row["direction"] == direction]
    parts = sorted({name.split(" beam")[0] for row in own for name in row if " beam " in name}, reverse=True)
    scores = {f"{part}, {case}": bleu(own, f"{part} beam {beam} {case}") for part in parts for case in ("lc", "cased")}
    return {"direction": direction, "beam": beam} | scores


def bleu(rows: list[Row], key: str) -> str:
    """The mean, with two decimals."""
    return f"{fmean(row[key] for row in rows):.2f}" if all(key in row for row in rows) else ""


def budget(row: Row) -> Row:
    """A run by its minutes."""
    made = columns(row, {"minutes": "minutes", "steps": "steps", "target tokens/s": "tokens/s"})
    return made | {"greedy": bleu([row], "val beam 1 lc"), "beam 5": bleu([row], "val beam 5 lc")}


# ---- Classes, tags, images


def classes(sessions: list[Session]) -> Lines:
    """The scores of the recipes, and with other models or settings."""
    groups = sorted(groups_of(rows_of(sessions)), key=lambda group: (label(group), group[0]["name"] != "recipe"))
    named = ("recipe", "defaults")
    shown = [group for group in groups if group[0]["name"].startswith(named) or len(group) > 2]
    return [
        "Accuracy, or F1 of entities, of models trained from nothing on one core: mean of the runs ± half of a 95 %",
        "interval. *Recipe*: the recipes of the days of measuring; *defaults*: without a recipe; of other settings the",
        "ones with three runs. CLINC150: texts in scope. The next table has the newest defaults, beside others.",
        "",
        *grid([{"set": label(group), "with": group[0]["name"]} | mean(group) for group in shown]),
    ]


def text_to_text(sessions: list[Session]) -> Lines:
    """Several tasks in one model, each by its exact outputs."""
    newest = {row["run"]: row for row in rows_of(sessions) if "test exact" in row}
    table = [line for row in newest.values() for line in by_prefix(row)]
    told = "Unseen strings of at most 20 letters; sentences of the demonstration's grammar with unseen combinations;"
    more = "TREC's test questions. From nothing on one core, the outputs of beam search; exact ones in percent."
    return [told, more, "", *grid(table)] if table else []


def by_prefix(row: Row) -> list[Row]:
    """A run's exact outputs of each prefix, where there are several, and its scores over all."""
    named = row["set"] if row["name"] == "recipe" else f"{row['set']}, {row['name']}"
    begun = {"set": f"{named}, seed {row['seed']}"}
    own = {name.removeprefix("test exact, "): value for name, value in row.items() if name.startswith("test exact, ")}
    whole = {"exact": row["test exact"], "ROUGE-L": row["test rouge"], "texts": row["texts"]}
    return [
        *(begun | {"prefix": prefix, "exact": f"{value:.1f}"} for prefix, value in own.items()),
        begun | {"prefix": "all"} | whole | {"minutes": round(row["train minutes"], 1)},
    ]


def calibration(sessions: list[Session]) -> Lines:
    """Confidence against accuracy, and texts that belong to no class."""
    names = {"recall": "recall", "f1": "F1", "accuracy": "all texts", "in_scope_accuracy": "in scope"}
    table = [
        {"set": label(group), "calibration error": over_seeds(group, CALIBRATION)}
        | {new: over_seeds(group, f"test out_of_scope {old}") for old, new in names.items()}
        for group in recipes(sessions)
        if CALIBRATION in group[0] or any("out_of_scope" in key for key in group[0])
    ]
    told = [
        "Expected calibration error on the test part: 0.02 says that confidence and accuracy differ by 2 %. Texts of",
        "no class, by a threshold fitted on validation texts: recall and F1 of such texts, the share of all texts",
        "treated rightly, and the share of the texts in scope that is kept and right.",
    ]
    return [*told, "", *grid(table)] if table else []


def recipes(sessions: list[Session]) -> list[list[Row]]:
    """The runs of the recipes themselves."""
    return [group for group in groups_of(rows_of(sessions)) if group[0]["name"] == "recipe"]


def label(group: list[Row]) -> str:
    """The set, and its score where that is not the accuracy."""
    return group[0]["set"] + (" (F1)" if SPANS in group[0] else "")


def best_known(name: str) -> str:
    """The first of what others reached, marked where it is of other data or means."""
    if name not in PUBLISHED:
        return "none known"
    first = PUBLISHED[name][0]
    return f"{first['who']}: {first['score']}{'*' if 'differs' in first else ''}"


# ---- Language models, the pronoun, the page


def language_models(sessions: list[Session]) -> Lines:
    """The losses and their curves."""
    names = ("run", "parameters", "steps", "tokens/s", "validation loss", "bits")
    others = "; ".join(f"{one['score']} with {one['who']} ({one['note']})" for one in PUBLISHED["shakespeare"])
    return [
        "After half an hour on one core: nats a character of Shakespeare, nats a masked word of the sentences.",
        f"Published for Shakespeare: {others}.",
        "",
        *grid([columns(row, {name: name for name in names}) for row in rows_of(sessions)]),
        "",
        f"![Loss over minutes of training]({CURVES})",
    ]


POSITIONS = {"shakespeare": ("validation loss", "Shakespeare"), "multi30k": ("bleu", "Multi30k en-de")}
"""Of each text the measure of the table of positions, and its name."""


def positions(sessions: list[Session]) -> Lines:
    """A language model and a translator with each kind of positions, every seed by itself."""
    rows, told = rows_of(sessions), list[Row]()
    for text, (measure, name) in POSITIONS.items():
        for row in sorted((row for row in rows if row["text"] == text), key=lambda row: int(row["seed"])):
            run = f"{name}, seed {row['seed']}"
            told.append({"run": run, "positions": row["positions"], "value": row[measure]})
    return [
        "The recipes of tiny Shakespeare and of Multi30k, everything equal but `model.positions`; one thread; scored",
        "on validation data: nats a character after 3,600 steps, BLEU after 4,000.",
        "Both recipes were chosen with relative positions; nothing is claimed beyond these runs.",
        "",
        *grid(pivot(told, "run", "positions", "value")),
    ]


def exportable(sessions: list[Session]) -> Lines:
    """The loss of masked words with the norm where each form of a BERT has it, every seed by itself."""
    told = [
        {"seed": row["seed"], "norm": f"{row['norm place']}-norm", "value": row["validation loss"]}
        for row in rows_of(sessions)
    ]
    return [
        "Masked words by the defaults (pre-norm), and with `model.norm_place = post`, which BERT has: nats a masked",
        "piece of text that was held back, after as many steps; one thread.",
        "",
        *grid(pivot(told, "seed", "norm", "value")),
    ]


def pronoun(sessions: list[Session]) -> Lines:
    """The heads of the newest model that matter, and what the best of each kind looks at."""
    rows = sessions[-1]["rows"]
    shown = [row for row in rows if row["exact"] < 100 or row.get("looks at the noun", 100) > 50 or "antecedent" in row]
    names = {"without": "switched off", "exact": "exact %", "pronouns right": "pronouns right"}
    names |= {"looks at the noun": "to noun %", "looks at the adjective": "to adjective %"}
    best = [
        f"Of {row['without']} the noun gets more than the other one in {row['prefers antecedent']:,} sentences, "
        f"above 0.9 in {row['above nine tenths']:,}."
        for row in rows
        if "antecedent" in row and row["prefers antecedent"] > row["sentences"] / 2 and row["above nine tenths"]
    ]
    return [
        f"Each of the {len(rows) - 1} heads of the demonstration's model was switched off alone, over",
        f"{rows[0]['sentences']:,} sentences. Shown: those that change a sentence or attend to the noun of a pronoun,",
        "with the attention from the pronoun to noun and adjective.",
        *best,
        "",
        *grid([columns(row, names) for row in shown]),
    ]


def demonstration(sessions: list[Session]) -> Lines:
    """What each seed of the demonstration makes, and the head of its encoder that finds the noun of *it*."""
    told, simple = [], {}
    for here in by_processor(sessions):
        rows = {row["seed"]: row for session in here for row in session["rows"]}
        simple |= {seed: row for seed, row in rows.items() if "simple" in row}
        told.append(
            [
                {
                    "seed": str(seed),
                    "exact %": f"{row['exact']:.1f}",
                    "pronouns wrong": str(row["of"] - row["pronouns"]),
                    "right without the head": f"{row['right without it']} of {row['sentences']}",
                    "to its noun / to the other %": f"{row['antecedent']} / {row['rival']}",
                    "a guess without": ", ".join(row["smallest"] or ["none found"]),
                }
                for seed, row in sorted(rows.items())
            ]
        )
    short = "; ".join(
        f"seed {seed} {row['simple']} of {row['of simple']}, {row['simple unseen']} of {row['of simple unseen']}"
        for seed, row in sorted(simple.items())
    )
    return [
        "Each seed draws corpus and weights of its own. Attention is from *it*, in the head of the encoder that was",
        "chosen on validation, in test sentences, in one run of sentences whose nouns have one gender too; *without",
        "the head*: of the first 300 pronouns whose two nouns differ in gender; *a guess without*: the smallest set of",
        "heads that a greedy search found, by these 300, whose removal leaves 70 % of them right, or fewer.",
        *(
            [f"Simple sentences, written by hand, all and those not in training, by the newest grammar: {short}."]
            * bool(short)
        ),
        "",
        *grid(sorted(merged(told, "seed"), key=lambda row: int(row["seed"]))),
    ]


def page_speed(sessions: list[Session]) -> Lines:
    """Milliseconds of each action, for a small and a large model, and the server's memory under load."""
    timing = [session for session in sessions if session["benchmark"] == "page"][-1]
    parts = [(row["what"].partition(": "), row) for row in timing["rows"]]
    timed = [{"action": action, "text": text, "ms": row["measured"]} for (action, _, text), row in parts if text]
    others = [f"{what}: {row['measured']} {row['unit']}" for (what, _, text), row in parts if not text]
    told = [f"Milliseconds in Chromium, by the text's length and the model's heads. Also {', '.join(others)}."]
    for load in [session for session in sessions if session["benchmark"] == "page_memory"][-1:]:
        first, last = load["rows"][0], load["rows"][-1]
        told += [
            f"With {load['clients']} clients at once, each of which asks of texts that nobody asked of before, the",
            f"server takes {first['megabytes']} MB at first and {last['megabytes']} after {last['minute']} minutes and "
            f"{last['answers']:,} answers.",
        ]
    return [*told, "", *grid(pivot(timed, "action", "text", "ms"))]


def start_up(sessions: list[Session]) -> Lines:
    """Seconds until a program is there."""
    return [
        "Seconds from the call to the end of the program: the median, the slowest, and where known the processor's.",
        "",
        *grid(merged([here[-1]["rows"] for here in by_processor(sessions)], "program")),
    ]


def instructions(sessions: list[Session]) -> Lines:
    """Instructions of one call of each kernel."""
    now = sessions[-1]
    return [
        "Of one call, d_model 512, eight heads, 8,192 pieces (`native/programs/hot.cpp`), counted by Valgrind, which",
        f"cannot run AVX-512. Compiler: {now['compiler']}.",
        "",
        *grid([{"one call": row.pop("call"), **row} for row in map(dict, now["rows"])]),
    ]


def preparing(sessions: list[Session]) -> Lines:
    """Seconds until pairs are prepared, by one process and by several."""
    tables = [
        [
            {
                "200,000 pairs": row["corpus"],
                "processes": row["processes"],
                "scan + vocabulary + ids": " + ".join(f"{row[part]:.2f}" for part in ("scan", "vocabulary", "ids")),
                "all": f"{row['seconds']:.2f}",
                "times as fast": f"{row['times as fast']:g}",
            }
            for row in here[-1]["rows"]
            if row["version"] == "now"
        ]
        for here in by_processor(sessions)
    ]
    return [
        "Seconds from the first look at the files to the finished folder, the median of rounds in turns. In one of the",
        "sessions one process used both cores: the library that learns vocabularies takes all that there are.",
        "",
        *grid(merged(tables, "200,000 pairs", "processes")),
    ]


# ---- Speed and memory


def setting(session: Session) -> str:
    """Tokens a batch, cores and instructions."""
    threads, instructions = session["setting"]["threads"], session["setting"].get("instructions")
    kept = f", {instructions.upper()} only" if instructions else ""
    return f"{session['setting']['tokens']:,}, {threads} core{'s' if threads > 1 else ''}{kept}"


def measurements(sessions: list[Session]) -> list[Row]:
    """Every trainer in every setting; the fastest in the first setting first."""
    places = {name: place for place, name in enumerate(dict.fromkeys(map(setting, sessions)))}
    rows = [
        {
            "trainer": row["title"],
            "precision": row["precision"],
            "setting": setting(session),
            "speed": round(row[f"per_{session['clock']}_second"]),
            "batch": f"{row['precision']}, {session['setting']['tokens']:,}",
            "MB": round(row["peak_mb"]),
            "useful": row["useful"],
        }
        for session in sessions
        for row in session["rows"]
        if "runs" in row
    ]
    return sorted(rows, key=lambda row: (row["precision"] != "fp32", places[row["setting"]], -row["speed"]))


def against_peers(sessions: list[Session]) -> Lines:
    """Tokens a second against the other trainers."""
    size = sessions[0]["setting"]
    shape = (
        f"{size['layers']}+{size['layers']} layers, {size['d_model']}, {size['d_ff']}, vocabulary {size['pieces']:,}"
    )
    lines = [
        f"Useful target tokens a second of CPU time, of wall time with two cores; {shape};",
        "medians of several runs. A column says target tokens a batch and cores; its first line, how many times",
        "Regard is as fast as the best of the others.",
    ]
    machines = by_processor(sessions)
    for precision in ("fp32", "bf16"):
        tables = []
        for here in machines:
            own = [row for row in measurements(here) if row["precision"] == precision]
            ratios = {
                setting(s): f"**{s['ratios'][precision]['ratio']:.2f}×**" for s in here if precision in s["ratios"]
            }
            speeds = pivot([row | {"speed": f"{row['speed']:,}"} for row in own], "trainer", "setting", "speed")
            tables.append([{"trainer": "**Regard**"} | ratios, *speeds] if ratios else [])
        tables.sort(key=len, reverse=True)  # the longest has the order of the rows
        lines += ["", f"In {precision}:", "", *grid(merged(tables, "trainer"))]
    best = [[{"batch, cores": setting(session)} | at_best(session) for session in here] for here in machines]
    return [
        *lines,
        "",
        "Regard and the best of the others, each at its own best precision on each machine:",
        "",
        *grid(merged(best, "batch, cores")),
    ]


def at_best(session: Session) -> Row:
    """Our speed and the best of the others', each at its own best precision, and their ratio."""
    clock = f"per_{session['clock']}_second"
    rows = sorted((row for row in session["rows"] if "runs" in row), key=lambda row: -float(row[clock]))
    ours = next(row for row in rows if row["key"] == "regard")
    other = next(row for row in rows if row["key"] != "regard")
    return {
        "Regard": f"{ours[clock]:,.0f}",
        "the best of the others": f"{other[clock]:,.0f}",
        "which": other["title"],
        "ratio": f"{ours[clock] / other[clock]:.2f}",
    }


def memory(sessions: list[Session]) -> Lines:
    """Peak memory, and how much of a batch is no padding."""
    rows = [row for row in measurements(sessions) if row["setting"].endswith("1 core") and row["precision"] != "auto"]
    useful = {row["trainer"]: row["useful"] for row in reversed(rows)}
    table = [row | {"useful": useful[row["trainer"]]} for row in pivot(rows, "trainer", "batch", "MB")]
    told = "Peak MB with one thread, by precision and target tokens a batch; useful: the share of real tokens in it."
    return [told, "", *grid(table)]


# ---- Comparisons


def comparison(sessions: list[Session]) -> Lines:
    """Families, score functions and norms: speed, steps and BLEU, and BLEU of short and long sentences."""
    several = {row["recipe"] for one in sessions for row in one["rows"] if "±" in str(row)}
    found: dict[str, Row] = {}
    for row in (row for one in sessions for row in one["rows"]):
        if row["recipe"] not in several or "±" in str(row):  # of three seeds rather than of one
            found[row["recipe"]] = found.get(row["recipe"], {}) | row
    lengths = [name for name in next(iter(found.values())) if "words" in name]
    names = {"recipe": "recipe", "target tokens/s": "tokens/s", "steps made": "steps", "BLEU lc test": "test BLEU"}
    names |= {name: name for name in (*lengths[:1], *lengths[-1:])}
    return [
        "German to English, five minutes each on one core. Seed 1, or three seeds with half of a 95 % interval. A word",
        "behind that of the recurrence is its attention; *layer* to *group* are norms of the Transformer. BLEU also of",
        "short and of long sources; how many is in brackets.",
        "",
        *grid([columns(row, names) for row in found.values()]),
        *charts(sessions),
    ]


def shares(sessions: list[Session]) -> Lines:
    """BLEU by the share of the data."""
    return [
        "Test BLEU after five minutes with a part of the training pairs, seed 1.",
        "",
        *grid(pivot(sessions[0]["rows"], "recipe", "share of the data", "BLEU lc test")),
        *charts(sessions),
    ]


def charts(sessions: list[Session]) -> Lines:
    """The charts of comparisons, in one line."""
    found = [part for session in sessions for part in session["note"].split("\n\n") if part.startswith("!")]
    return ["", " ".join(found)] if found else []


def paths(sessions: list[Session]) -> Lines:
    """The first recipe of each kind: sequential steps, and how far two words are apart."""
    names = {"sequential steps": "steps", "path: target to source": "target to source"}
    names |= {"path within the source": "within the source"}
    kinds: dict[str, Row] = {}
    families = [row for session in sessions if "Families" in session["name"] for row in session["rows"]]
    for row in (row for row in families if "sequential steps" in row):
        kinds.setdefault(str(columns(row, names)), {"like": row["recipe"]} | columns(row, names))
    return [
        "Sequential steps of learning from one pair, and the path between two words, by formula [Vaswani17 §4]: a",
        "layer at one position counts one; n source and m target tokens, the means of the validation set.",
        "",
        *grid(list(kinds.values())),
    ]


PROCESSES = {
    "one": "one process",
    "threads": "two threads",
    "copies": "two copies, together",
    "one-of-2": "one process, 2 shards",
    "one-of-4": "one process, 4 shards",
    "pair-of-2": "two processes, 2 shards",
    "pair-of-4": "two processes, 4 shards",
    "pair-busy-1": "two processes, a core shared",
    "pair-busy-2": "two processes, both cores shared",
    "threads-busy-1": "two threads, a core shared",
}
"""What the rows of ``processes.jsonl`` are."""


def processes(sessions: list[Session]) -> Lines:
    """Speed of training by processes and threads, for each number of tokens a step."""
    speeds, shares = [], []
    for here in by_processor(sessions):
        latest = {(row["tokens a step"], row["row"]): row for session in here for row in session["rows"]}
        rows = sorted(latest.values(), key=lambda row: (list(PROCESSES).index(row["row"]), int(row["tokens a step"])))
        told = [
            {"what": PROCESSES[row["row"]], "tokens": f"{row['tokens a step']:,} a step"}
            | {"speed": f"{row['tokens a second']:,}", "share": f"{row['of one process']:g}"}
            for row in rows
        ]
        first = [row | {"what": "one process, tokens a second"} for row in told if row["what"] == PROCESSES["one"]]
        speeds.append(pivot(first, "what", "tokens", "speed"))
        shares.append(pivot([row for row in told if row["what"] != PROCESSES["one"]], "what", "tokens", "share"))
    order = list(PROCESSES.values())
    table = merged(speeds, "what") + sorted(merged(shares, "what"), key=lambda row: order.index(row["what"]))
    tokens = sorted({name for row in table for name in row} - {"what"}, key=lambda name: (len(name), name))
    return [
        "The recipe of Multi30k from English to German on two cores, products as the run chose them, medians of rounds",
        "in turns: real target tokens a second of one process, and how many times that others make. *Shared*: with",
        "another process that keeps the core busy.",
        "",
        *grid([{name: row.get(name, "") for name in ("what", *tokens)} for row in table]),
    ]


def neighbours(sessions: list[Session]) -> Lines:
    """Speed by default, alone and beside programs that keep a core busy each."""
    lines = [
        "Training by the defaults, in tokens a second, and answering 300 lines, in lines a second of the whole",
        "command; medians of rounds in turns. *Of the best*: alone, of the fastest of the settings tried (one thread,",
        "two threads, two processes). *Beside one*, *beside two*: by default beside one or two programs that each keep",
        "a core busy, of what one thread makes alone.",
    ]
    tables = []
    for here in by_processor(sessions):
        rows = {(row["work"], row["busy"], row["setting"]): row for one in here for row in one["rows"]}
        speeds = {key: row["speed"] for key, row in rows.items()}
        told = []
        for work in dict.fromkeys(work for work, _, _ in speeds):
            default, one = speeds[work, 0, "default"], speeds[work, 0, "one thread"]
            best = max(speed for (name, busy, _), speed in speeds.items() if name == work and not busy)
            row = {
                "work": work,
                "default": round(default, 1 if default < 1000 else None),
                "of the best": default / best,
            }
            beside = {f"beside {word}": speeds[work, busy, "default"] / one for busy, word in ((1, "one"), (2, "two"))}
            told.append(
                {name: round(v, 2) if name in ("of the best", *beside) else v for name, v in (row | beside).items()}
            )
            told[-1]["rounds"] = len(rows[work, 0, "default"]["each"])
        tables.append(told)
    return [*lines, "", *grid(merged(tables, "work"))]


def first_starts(sessions: list[Session]) -> Lines:
    """What ``auto`` chose on each machine, and how fast it then trained."""
    tables = []
    for here in by_processor(sessions):
        latest = {row["model"]: row for session in here for row in session["rows"]}
        tables.append(
            [
                {
                    "model": name,
                    "training": _counted(row["chosen"]),
                    "validation": _counted(row["validation"]),
                    "slowest, s": f"{row['slowest']:g}",
                    "tokens a second": f"{row['speeds']['auto']:,.0f}",
                    "of the best": f"{row['of the best']:g}",
                }
                for name, row in latest.items()
            ]
        )
    return [
        "First starts of a run on one pinned core: how often `auto` chose which path of products, the longest time",
        "that timing took, and real target tokens a second of processor time, also as a share of what the best of",
        "the paths makes that were named instead. The path *numpy* has left since.",
        "",
        *grid(merged(tables, "model")),
    ]


def _counted(chosen: dict[str, int]) -> str:
    return ", ".join(f"{path} {count}" for path, count in chosen.items())


def by_processor(sessions: list[Session]) -> list[list[Session]]:
    """The sessions of each kind of processor."""
    kinds = sorted({session.get("machine", {}).get("processor", "") for session in sessions})
    return [[one for one in sessions if one.get("machine", {}).get("processor", "") == kind] for kind in kinds]


def exchange(sessions: list[Session]) -> Lines:
    """What two processes exchange in a step, and how long it takes beside the step itself."""
    told = [
        {
            "preset": row["preset"],
            "weights, M": round(row["weights"] / 1e6, 1),
            "step, s": round(row["step"], 3),
            "exchange in memory, s": round(row["shared"], 4),
            "as messages, s": round(row["messages"], 4),
        }
        for row in sessions[-1]["rows"]
    ]
    return [
        "Two processes of one thread; a step has 1,024 target tokens of Multi30k, in full precision. What follows for",
        "more cores and hosts is in [`scaling.md`](scaling.md).",
        "",
        *grid(told),
    ]
