"""The questions that ``docs/results.md`` answers, each by a narrow table made of the sessions in ``results``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

from seeds import CALIBRATION, SPANS, Session, groups_of, mean, over_seeds
from tables import Row, grid, pivot

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


def translation(sessions: list[Session]) -> Lines:
    """The mean scores of each direction."""
    rows = [with_parts(row) for row in rows_of(sessions)]
    final = [row for row in rows if any(name.startswith("test") for name in row)]
    directions = dict.fromkeys(row["direction"] for row in final)
    signatures = dict.fromkeys(f"`{row[name]}`" for row in rows for name in row if name.startswith("signature"))
    return [
        "BLEU of Multi30k after 30 minutes on one core, the mean of the seeds; lc is case-insensitive.",
        "",
        *grid([quality(direction, final, beam) for direction in directions for beam in (1, 5)]),
        "",
        f"sacreBLEU: {', '.join(signatures)}.",
    ]


def minutes(sessions: list[Session]) -> Lines:
    """The recipe with less and with more time."""
    rows = [row for row in first_seed(sessions) if row["recipe"] == "recipe"]
    told = "English to German on one core, seed 1; a training knows its time from the start. BLEU (lc) on validation."
    return [told, "", *grid([budget(row) for row in rows])] if len(rows) > 1 else []


def changes(sessions: list[Session]) -> Lines:
    """Runs with another setting, beside the recipe's of the same time."""
    rows = first_seed(sessions)
    tried = {row["minutes"] for row in rows if row["recipe"] != "recipe"}
    shown = [{"recipe": row["recipe"]} | budget(row) for row in rows if row["minutes"] in tried]
    told = "English to German, seed 1, one setting changed, and once two cores. BLEU (lc) on validation."
    return [told, "", *grid(shown)] if shown else []


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
    """The recipes' scores beside others'."""
    groups = recipes(sessions)
    table = [{"set": label(group)} | mean(group) | {"others, test": best_known(group[0]["set"])} for group in groups]
    return [
        "Accuracy, or F1 of entities, of models trained from nothing on one core, by the defaults of the days named",
        "below (the next table has those of today): mean of the runs ± half of a 95 % interval. CLINC150: texts in",
        "scope. A score of others with * is of other data or other means, which",
        "[the list](../benchmarks/results/published.json) names.",
        "",
        *grid(table),
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


def alternatives(sessions: list[Session]) -> Lines:
    """The same sets with other models or settings."""
    groups = sorted((group for group in groups_of(rows_of(sessions)) if group[0]["name"] != "recipe"), key=label)
    table = [{"set": label(group), "with": group[0]["name"]} | mean(group) for group in groups]
    told = "The same measures with other models, other numbers of steps, or the defaults."
    return [told, "", *grid(table)] if table else []


def no_class(sessions: list[Session]) -> Lines:
    """Texts that belong to no class."""
    names = {"recall": "recall", "f1": "F1", "accuracy": "all texts", "in_scope_accuracy": "in scope"}
    table = [
        {"set": label(group)} | {new: over_seeds(group, f"test out_of_scope {old}") for old, new in names.items()}
        for group in recipes(sessions)
        if any("out_of_scope" in key for key in group[0])
    ]
    told = [
        "By a threshold fitted on validation texts: recall and F1 of such texts, the share of all texts treated",
        "rightly, and the share of the texts in scope that is kept and right.",
    ]
    return [*told, "", *grid(table)] if table else []


def calibration(sessions: list[Session]) -> Lines:
    """Confidence against accuracy."""
    groups = [group for group in recipes(sessions) if CALIBRATION in group[0]]
    table = [{"set": label(group), "error": over_seeds(group, CALIBRATION)} for group in groups]
    told = "Expected calibration error on the test part: 0.02 says that confidence and accuracy differ by 2 %."
    return [told, "", *grid(table)] if table else []


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


POSITIONS = {
    "shakespeare": ("validation loss", "Shakespeare"),
    "multi30k": ("bleu", "Multi30k en-de"),
}
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
        {
            "seed": row["seed"],
            "steps": row["steps"],
            "norm": f"{row['norm place']}-norm",
            "value": row["validation loss"],
        }
        for row in rows_of(sessions)
    ]
    return [
        "Masked words by the defaults (pre-norm), and with `model.norm_place = post`, which BERT has: nats a masked",
        "piece of text that was held back, after as many steps; one thread.",
        "",
        *grid(pivot(told, "seed", "norm", "value")),
    ]


def pronoun(session: Session) -> Lines:
    """The heads that matter, and what the best of each kind looks at."""
    rows = session["rows"]
    shown = [row for row in rows if row["exact"] < 100 or row.get("looks at the noun", 100) > 50 or "antecedent" in row]
    names = {"without": "switched off", "exact": "exact %", "pronouns right": "pronouns right"}
    names |= {"looks at the noun": "to noun %", "looks at the adjective": "to adjective %"}
    best = {"without": "head", "antecedent": "antecedent", "rival": "rival", "chance": "noun to noun"}
    best |= {"prefers antecedent": "prefers it", "above nine tenths": "above 0.9"}
    table = [columns(row, best) for row in rows if "antecedent" in row]
    return [
        f"Each of the {len(rows) - 1} heads of the demonstration's model was switched off alone, over",
        f"{rows[0]['sentences']:,} sentences. Shown: those that change a sentence or attend to the noun of a pronoun,",
        "with the attention from the pronoun to noun and adjective.",
        "",
        *grid([columns(row, names) for row in shown]),
        "",
        "The best head of each kind, and in how many sentences the antecedent has more than its rival, or above 0.9:",
        "",
        *grid([{k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()} for row in table]),
    ]


def demonstration(sessions: list[Session]) -> Lines:
    """What each seed of the demonstration makes, and the head of its encoder that finds the noun of *it*."""
    lines = [
        "Each seed draws corpus and weights of its own. Attention is from *it*, in the head of the encoder that was",
        "chosen on validation, in test sentences; *without the head*: of the first 300 pronouns whose two nouns differ",
        "in gender; *a guess without*: the smallest set of heads that a greedy search found, by these 300, whose",
        "removal leaves 70 % of them right, or fewer. *Simple sentences*: of 300 written by hand before the grammar",
        "had any, and of those that are no training sentence; runs of before learned from a grammar without them.",
    ]
    for processor, here in by_processor(sessions):
        rows = {row["seed"]: row for session in here for row in session["rows"]}
        told = [
            {
                "seed": str(seed),
                "exact %": f"{row['exact']:.1f}",
                "pronouns right / without the head": f"{row['pronouns']} of {row['of']} / "
                f"{row['right without it']} of {row['sentences']}",
                "simple sentences, all / not in training": simple(row),
                "head: to its noun / to the other %": f"{row['head']}: {row['antecedent']} / {row['rival']}",
                "a guess without": ", ".join(row["smallest"] or ["none found"]),
            }
            for seed, row in rows.items()
        ]
        least = min(rows.values(), key=lambda row: row["antecedent"])
        most = max(row["rival"] for row in rows.values())
        lines += ["", f"{processor}:", "", *grid(told), ""]
        where = {row.get("attention in", "all sentences with a pronoun") for row in rows.values()}
        lines += [
            f"The least of {len(rows)} seeds: {least['antecedent']} % on its noun; the most on the other: {most} %.",
            f"Attention is of {' or '.join(sorted(where))}.",
        ]
    return lines


def simple(row: Row) -> str:
    """How many of the simple sentences a seed of the demonstration translates; runs of before were not asked."""
    if "simple" not in row:
        return ""
    return f"{row['simple']} of {row['of simple']} / {row['simple unseen']} of {row['of simple unseen']}"


def page_speed(session: Session) -> Lines:
    """Milliseconds of each action, for a small and a large model."""
    parts = [(row["what"].partition(": "), row) for row in session["rows"]]
    timed = [{"action": action, "text": text, "ms": row["measured"]} for (action, _, text), row in parts if text]
    others = [f"{what}: {row['measured']} {row['unit']}" for (what, _, text), row in parts if not text]
    told = f"Milliseconds in Chromium, by the text's length and the model's heads. Also {', '.join(others)}."
    return [told, "", *grid(pivot(timed, "action", "text", "ms"))]


def page_memory(session: Session) -> Lines:
    """Every fifth minute."""
    told = f"{session['clients']} clients at once, each asks of texts that nobody asked of before; minutes of the load."
    return [told, "", *grid([row for row in session["rows"] if row["minute"] % 5 == 0])]


def start_up(session: Session) -> Lines:
    """Seconds until a program is there."""
    return [
        "Seconds from the call to the end of the program: the median, the slowest, and where known the processor's.",
        "",
        *grid(session["rows"]),
    ]


def instructions(sessions: list[Session]) -> Lines:
    """Instructions of one call of each kernel, now and when they were counted before, by the same compiler."""
    *before, now = sessions
    earlier = {
        row["call"]: row for one in before if one["compiler"] == now["compiler"] for row in one["rows"]
    }  # the last one of each
    rows = []
    for row in now["rows"]:
        counts = {name: count for name, count in row.items() if name != "call"}
        old = earlier.get(row["call"], {})
        rows.append(
            {"one call": row["call"], **counts}
            | {f"{name} before": old.get(name, "") for name in counts if any(name in one for one in earlier.values())}
        )
    return [
        "Of one call, d_model 512, eight heads, 8,192 pieces (`native/programs/hot.cpp`), counted by Valgrind, which",
        f"cannot run AVX-512. Compiler: {now['compiler']}.",
        "",
        *grid(rows),
    ]


def preparing(sessions: list[Session]) -> Lines:
    """Seconds until pairs are prepared, by one process and by several, in the newest session of each processor."""
    lines = [
        "Seconds from the first look at the files to the finished folder, the median of rounds in turns. Where no",
        "cores are named, one process used both: the library that learns vocabularies takes all that there are.",
    ]
    for processor, here in by_processor(sessions):
        rows = [
            {
                "200,000 pairs": row["corpus"],
                "processes": f"{row['processes']}{cores_of(row)}",
                "scan + vocabulary + ids": " + ".join(f"{row[part]:.2f}" for part in ("scan", "vocabulary", "ids")),
                "all": f"{row['seconds']:.2f}",
                "times as fast": row["times as fast"],
            }
            for row in here[-1]["rows"]
            if row["version"] == "now"
        ]
        lines += ["", f"{processor}:", "", *grid(rows)]
    return lines


def cores_of(row: Row) -> str:
    """How many cores a row was given."""
    return f" ({row['cores']} core{'s' if row['cores'] > 1 else ''})" if "cores" in row else ""


def plain(session: Session) -> Lines:
    """Any kind unknown here: a table of its rows."""
    return [*([str(session["note"]), ""] if session.get("note") else []), *grid(session["rows"])]


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
    for processor, here in by_processor(sessions):
        for precision in ("auto", "fp32", "bf16"):
            own = [row for row in measurements(here) if row["precision"] == precision]
            ratios = {
                setting(s): f"**{s['ratios'][precision]['ratio']:.2f}×**" for s in here if precision in s["ratios"]
            }
            if ratios:
                table = [{"trainer": "**Regard**"} | ratios, *pivot(own, "trainer", "setting", "speed")]
                lines += ["", f"{processor}, {precision}:", "", *grid(table)]
        best = [{"batch, cores": setting(s)} | at_best(s) for s in here]
        lines += [
            "",
            f"{processor}, Regard and the best of the others, each at its own best precision:",
            "",
            *grid(best),
        ]
    absent = [
        f"* {row['title']} {row['precision']}: {row['absent']}"
        for session in sessions
        for row in session["rows"]
        if "absent" in row
    ]
    return lines + (["", "Not measured:", "", *dict.fromkeys(absent)] if absent else [])


def at_best(session: Session) -> Row:
    """Our speed and the best of the others', each at its own best precision, and their ratio."""
    clock = f"per_{session['clock']}_second"
    rows = sorted((row for row in session["rows"] if "runs" in row), key=lambda row: -float(row[clock]))
    ours = next(row for row in rows if row["key"] == "regard")
    other = next(row for row in rows if row["key"] != "regard")
    return {
        "Regard": f"{ours[clock]:,.0f} ({ours['precision']})",
        "the best of the others": f"{other['title']}: {other[clock]:,.0f} ({other['precision']})",
        "ratio": round(ours[clock] / other[clock], 2),
    }


def memory(sessions: list[Session]) -> Lines:
    """Peak memory, and how much of a batch is no padding."""
    rows = [row for row in measurements(sessions) if row["setting"].endswith("1 core") and row["precision"] != "auto"]
    useful = {row["trainer"]: row["useful"] for row in reversed(rows)}
    table = [row | {"useful": useful[row["trainer"]]} for row in pivot(rows, "trainer", "batch", "MB")]
    told = "Peak MB with one thread, by precision and target tokens a batch; useful: the share of real tokens in it."
    return [told, "", *grid(table)]


# ---- Comparisons


def comparison(session: Session) -> Lines:
    """A comparison: speed, steps, loss at equal time, BLEU; or BLEU by length, or by share of the data."""
    rows = session["rows"]
    seeds = session["note"].split(";")[0]
    if "by the length" in session["name"]:
        told, table = f"Test BLEU by words of the source; in brackets how many sentences. {seeds}.", rows
    elif "share of the data" in rows[0]:
        told = f"Test BLEU after five minutes with a part of the training pairs. {seeds}."
        table = pivot(rows, "recipe", "share of the data", "BLEU lc test")
    else:
        told = f"German to English, five minutes each on one core. {seeds}."
        loss = next(key for key in rows[0] if key.startswith("loss at") and key.endswith("min"))
        names = {"recipe": "recipe", "parameters": "parameters", "target tokens/s": "tokens/s", "steps made": "steps"}
        table = [columns(row, names | {loss: loss, "BLEU lc test": "test BLEU"}) for row in rows]
    return [told, "", *grid(table), *charts(session)]


def charts(session: Session) -> Lines:
    """The charts of a comparison."""
    return [line for part in session["note"].split("\n\n") if part.startswith("!") for line in ("", part)]


def paths(session: Session) -> Lines:
    """The first recipe of each kind: sequential steps, and how far two words are apart."""
    names = {"sequential steps": "steps", "path: target to source": "target to source"}
    names |= {"path within the source": "within the source"}
    kinds: dict[str, Row] = {}
    for row in session["rows"]:
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
"""What the rows of :mod:`processes` are."""


def processes(sessions: list[Session]) -> Lines:
    """Speed of training by processes and threads, for each number of tokens a step."""
    lines = [
        "The recipe of Multi30k from English to German on two cores, products as the run chose them: real target",
        "tokens a second, medians of rounds in turns. *Shared*: with another process that keeps the core busy.",
    ]
    names = ("tokens a step", "tokens a second", "of one process")
    for processor, here in by_processor(sessions):
        latest = {(row["tokens a step"], row["row"]): row for session in here for row in session["rows"]}
        rows = sorted(latest.values(), key=lambda row: (int(row["tokens a step"]), list(PROCESSES).index(row["row"])))
        told = [{"what": PROCESSES[row["row"]], **{name: row[name] for name in names}} for row in rows]
        lines += ["", f"{processor}:", "", *grid(told)]
    return lines


def neighbours(sessions: list[Session]) -> Lines:
    """Speed by default, alone and beside programs that keep a core busy each."""
    lines = [
        "Training by the defaults, in tokens a second, and answering 300 lines, in lines a second of the whole",
        "command; medians of rounds in turns. *Of the best*: alone, of the fastest of the settings tried (one thread,",
        "two threads, two processes). *Beside one*, *beside two*: by default beside one or two programs that each keep",
        "a core busy, of what one thread makes alone.",
    ]
    for processor, here in by_processor(sessions):
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
        lines += ["", f"{processor}:", "", *grid(told)]
    return lines


NOT_MEASURED = ("AMD Zen 5", "Intel without AMX")
"""Kinds of processors that are known to be used; their rows are open for whoever measures there."""


def first_starts(sessions: list[Session]) -> Lines:
    """What ``auto`` chose on each kind of processor, and how fast it then trained."""
    lines = [
        "First starts of a run on one pinned core: how often `auto` chose which path of products, the longest time",
        "that timing took, and real target tokens a second of processor time, also as a share of what the best of",
        f"the paths makes that were named instead. Not measured yet: {', '.join(NOT_MEASURED)}.",
    ]
    for processor, here in by_processor(sessions):
        latest = {row["model"]: row for session in here for row in session["rows"]}
        told = [
            {
                "model": name,
                "training": _counted(row["chosen"]),
                "validation": _counted(row["validation"]),
                "slowest, s": row["slowest"],
                "tokens a second": row["speeds"]["auto"],
                "of the best": row["of the best"],
            }
            for name, row in latest.items()
        ]
        lines += ["", f"{processor}:", "", *grid(told)]
    return lines


def _counted(chosen: dict[str, int]) -> str:
    return ", ".join(f"{path} {count}" for path, count in chosen.items())


def by_processor(sessions: list[Session]) -> list[tuple[str, list[Session]]]:
    """The sessions of each kind of processor, by its name."""
    kinds = sorted({session["machine"]["processor"] for session in sessions})
    return [(kind, [one for one in sessions if one["machine"]["processor"] == kind]) for kind in kinds]


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
