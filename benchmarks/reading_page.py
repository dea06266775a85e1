"""What ``docs/results.md`` says of reading beside other tools: ``reading_vs_peers.py``."""

from __future__ import annotations

from statistics import fmean, median

from questions import best_known
from reading_splits import SETS
from reading_vs_peers import OURS, PEERS, latest, whole_scores, wholes
from seeds import Session
from tables import Row, grid

Lines = list[str]
TOLD = (
    "Regard by its defaults (`regard train --threads 1`); scikit-learn's linear SVM on TF-IDF of words, pairs of words",
    "and parts of words (C = 1); fastText (pairs of words, 25 epochs, rate 0.5); spaCy's blank pipelines (defaults,",
    "at most 20 epochs). Nothing is pretrained or tuned; all learn from the same part; Regard and spaCy keep what is",
    "best on the validation part. Accuracy, or F1 of entities, of the test part; means of the seeds, as many as stand",
    "behind ×; the SVM has nothing to draw. In brackets Regard's lead: the 95 % interval of 10,000 paired resamples of",
    "the test texts. CLINC150 is without the texts of no class; legal-de is tested on its last fifth, WikiGold on each",
    "of its fifths, scored together. *Subjects* and *segments* are drawn from other corpora (`drawn.py`); nothing was",
    "tuned on them. What a cell lacks was not run. *Published*: with * of other data or other means, which",
    "[the list](../benchmarks/results/published.json) names; most are of pretrained models.",
)
COST = (
    "Seconds of one core's processor time, from the start of the process to the saved model, and peak MB, of WikiGold",
    "of all folds; then texts, or words of tagged sentences, that are read in a second of processor time on the test",
    "part, and peak MB. Runs are of several sessions, some beside other work, so the quickest seed counts. *To the",
    "SVM's*: seconds of the clock of Regard's training until validation first had the SVM's score, the mean of seeds.",
)


def beside_peers(sessions: list[Session]) -> Lines:
    """Scores, what learning costs, and what use costs."""
    rows = latest(row for session in sessions for row in session["rows"])
    return [*TOLD, "", *grid(filled(scores(rows))), "", *COST, "", *grid(filled(costs(rows)))]


def scores(rows: list[Row]) -> list[Row]:
    """A row for each set: of each peer its score, and the interval of our lead."""
    leads = {(row["set"], row["peer"]): row for row in rows if row["part"] == "difference"}
    found = []
    for name in wholes():
        cells = {"set": name + (" (F1)" if SETS[wholes()[name][0]].score == "f1" else "")}
        for peer, about in PEERS.items():
            own, lead = whole_scores(rows, name, peer), leads.get((name, peer))
            seeds = f" ×{len(own)}" if about.drawn else ""
            cells[about.title] = f"{fmean(own.values()):.2f}{seeds}" if own else ""
            if own and lead:
                cells[about.title] += f" ({lead['low']:+.1f} to {lead['high']:+.1f})"
        found.append({**cells, "published": best_known(name)})
    return found


def costs(rows: list[Row]) -> list[Row]:
    """A row for each set: seconds and MB of learning, how much is read in a second, and MB."""
    return [
        {"set": name}
        | {
            about.title: " · ".join(
                filter(None, [cost(of_part(rows, name, peer, "train")), speed(of_part(rows, name, peer, "test"))])
            )
            for peer, about in PEERS.items()
        }
        | {"to the SVM's": to_the_svm(rows, name)}
        for name in wholes()
    ]


def filled(table: list[Row]) -> list[Row]:
    """The rows with anything but their names."""
    return [row for row in table if any(value for name, value in row.items() if name != "set")]


def of_part(rows: list[Row], name: str, peer: str, part: str) -> list[Row]:
    """The rows of a peer on a set, its folds too."""
    return [row for row in rows if row["part"] == part and row["peer"] == peer and row["set"] in wholes()[name]]


def by_seed(rows: list[Row]) -> list[list[Row]]:
    """The rows of each seed, all folds of it together."""
    return [[row for row in rows if row["seed"] == seed] for seed in sorted({row["seed"] for row in rows})]


def cost(rows: list[Row]) -> str:
    """Seconds and MB."""
    if not rows:
        return ""
    took = min(sum(row["seconds"] for row in own) for own in by_seed(rows))
    return f"{took:,.{0 if took >= 10 else 1}f} s, {max(row['peak MB'] for row in rows):,} MB"


def speed(rows: list[Row]) -> str:
    """Texts or words a second, with three digits that count, and MB."""
    if not rows:
        return ""
    read = max(
        sum(row.get("words", row["texts"]) for row in own) / max(sum(row["seconds"] for row in own), 1e-4)
        for own in by_seed(rows)
    )
    return f"{float(f'{read:.2g}'):,.0f} /s, {max(row['peak MB'] for row in rows):,} MB"


def to_the_svm(rows: list[Row], name: str) -> str:
    """Seconds of our training until validation was as good as the SVM's; of seeds that never were, how many."""
    wanted = [row["score"] for row in of_part(rows, name, "svm", "valid")]
    ours = [row["course"] for row in of_part(rows, name, OURS, "train")]
    if not wanted or not ours:
        return ""
    reached = [next((seconds for seconds, score in one if score >= wanted[0]), None) for one in ours]
    there = [seconds for seconds in reached if seconds is not None]
    never = f"never in {len(reached) - len(there)} of {len(reached)}" if len(there) < len(reached) else ""
    return ", ".join(filter(None, [f"{fmean(there):,.0f} s" if there else "", never]))


FEW = (
    "So many texts of the training part keep their labels, of CLINC150 as many of each intent; Regard holds a tenth of",
    "them out. Accuracy of the test part, means of so many seeds as stand in brackets, and processor seconds of one.",
)
MASKED = (
    "*Masked words*: a model of masked words learns from the other texts and from general English for ten minutes, and",
    "the classifier begins from it. *From MiniLM*: it begins from all-MiniLM-L6-v2, a pretrained encoder of sentences.",
)
WAYS = {"svm": "SVM", "labels": "labels alone", "masked": "masked words first", "encoder": "from MiniLM"}


def few_labels(sessions: list[Session]) -> Lines:
    """A row for each set and number of labels."""
    rows = [row for session in sessions for row in session["rows"]]
    found: dict[tuple[int, str], Row] = {}
    for row in rows:
        found.setdefault((row["asked"], row["set"]), {"labels": row["labels"], "set": row["set"]})
    for (asked, name), cells in found.items():
        for way, title in WAYS.items():
            own = [row for row in rows if (row["asked"], row["set"], row["way"]) == (asked, name, way)]
            score = [row["test"] for row in own if "test" in row]
            cells[title] = f"{fmean(score):.1f} ({len(score)}), {own[0]['seconds']:.0f} s" if score else ""
    table = [cells for _, cells in sorted(found.items())]
    shown = [title for title in WAYS.values() if any(cells[title] for cells in table)]
    told = [*FEW, *(MASKED if WAYS["masked"] in shown else ())]
    return [*told, "", *grid([{"labels": c["labels"], "set": c["set"], **{t: c[t] for t in shown}} for c in table])]


KINDS = {
    "several": "one to three of SNIPS's requests in a text, with all their labels",
    "number": "an English caption of Multi30k, and how many words its German translation has",
    "skewed": "SST-2 with a tenth of its negative sentences",
    "scope": "CLINC150 with its requests of no class, rejected by a threshold that validation chose",
    "pairs": "two requests of CLINC150, whether they have the same intent",
}
KINDS_BESIDE = (
    "Sets made of texts at hand, beside a linear model of scikit-learn on TF-IDF (of a number, a ridge regression of",
    "counts). Test parts, means of the seeds; seconds of the clock, Regard's first, beside other work. *Number* and",
    "*pairs* are with n-grams, which have left these two since. *Balanced*: with class weights. *Calibration*: the",
    "error of probabilities; *in scope*: accepted and right; *outside*: rejected; *rare*: recall of the rare class.",
)


def kinds(sessions: list[Session]) -> Lines:
    """A row for each set, with its figures, the means over seeds of the newest run of each."""
    newest: dict[tuple[str, str, str], dict[int, Row]] = {}
    for session in sessions:
        for row in session["rows"]:
            if row["part"] == "test":
                newest.setdefault((row["kind"], row["weights"], row["who"]), {})[row["seed"]] = row
    found: dict[tuple[str, str], Row] = {}
    for (kind, weights, who), runs in newest.items():
        rows = list(runs.values())
        names = [key for key in rows[0] if key not in NOT_FIGURES]
        name = kind if weights == "none" else f"{kind}, {weights}"
        told = ", ".join(BRIEF.get(key, key) for key in names)
        head = {"set": name, "figures": told, "seeds": str(len(rows))}
        line = found.setdefault((kind, weights), head)
        line[who] = ", ".join(f"{fmean(row[key] for row in rows):.4g}" for key in names)
        line["seconds"] = ", ".join(
            filter(None, [line.pop("seconds", ""), f"{median(r['seconds'] for r in rows):.0f}"])
        )
    shown = {kind for kind, _ in found}
    sets = [f"* *{kind}*: {made}" for kind, made in KINDS.items() if kind in shown]
    return [*KINDS_BESIDE, "", *sets, "", *grid(list(found.values()))]


BRIEF = {"accuracy of classes": "accuracy", "calibration error": "calibration", "recall outside": "outside"}
BRIEF |= {"recall of the rare": "rare"}
"""Short names of figures."""
NOT_FIGURES = ("run", "kind", "weights", "seed", "part", "who", "seconds")
