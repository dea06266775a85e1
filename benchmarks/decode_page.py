"""What ``docs/results.md`` says of using models beside other tools: ``decode_vs_peers.py``."""

from __future__ import annotations

from seeds import Session
from tables import Row, grid

Lines = list[str]
TITLES = {
    "base": "a translator of the paper's base shape, weights made up",
    "encoder": "an encoder of BERT's base size, weights made up",
    "language-model": "a language model of GPT-2's size, weights made up",
    "model": "a translator of Multi30k, trained",
    "demo": "the demonstration's translator",
}
NAMES = {"regard": "Regard", "ctranslate2": "CTranslate2"}
"""How tools are written; the others as they are named."""
BESIDE = (
    "All tools open the same weights, in one process of one thread each, all on one core, and take turns, each with",
    "the batches that suit it best; medians of processor seconds. *Ratio*: to CTranslate2 of the same type. *Same*:",
    "share of outputs with the tokens of its fp32. Searches have no length penalty: every tool has another one.",
    "*MB*: the most memory of the process.",
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
    """A table for the newest session of each work and processor."""
    newest = {(session["name"], session["machine"]["processor"]): session for session in sessions}
    lines: Lines = [*BESIDE, ""]
    for (name, processor), session in newest.items():
        if name in TITLES:
            setting, load = session["setting"], session["machine"]["load"]
            slow = any(row["tool"] in ("transformers", "onnxruntime") for row in session["rows"])
            told = f"**{TITLES[name]}** ({processor}, {setting['sentences']} sentences; "
            told += f"transformers and onnxruntime the first {setting['slow']}; " if slow else ""
            told += f"{setting['rounds']} rounds, load {load}"
            lines += [told + (f"; {session['note']}" if "note" in session else "") + "):", "", *table(session), ""]
    return lines[:-1] if len(lines) > len(BESIDE) + 1 else []


def table(session: Session) -> Lines:
    """A row for each measure, tool and type."""
    rows = [row for row in session["rows"] if "runs" in row]
    absent = sorted(
        {f"{name_of(row['tool'])} {row['precision']}: {row['absent']}" for row in session["rows"] if row not in rows}
    )
    shown = [line_of(row) for row in rows]
    return [*grid(shown), *(["", f"Absent: {'; '.join(absent)}."] if absent else [])]


def line_of(row: Row) -> Row:
    """What is shown of a row; of one sentence its time, else tokens or texts a second."""
    one = row["measure"].startswith("one ")
    same = f"{100 * row['same']:.1f} %" if "same" in row else f"within {row['apart']:.1g}" if "apart" in row else ""
    return {
        "measure": row["measure"],
        "tool": f"{name_of(row['tool'])} {row['precision']}",
        "speed": f"{row['ms']:,.1f} ms" if one else f"{row['tokens/s']:,.0f} /s",
        "ratio": f"{row['ratio']:.2f}" if "ratio" in row else "",
        "same": same,
        "MB": row["peak MB"],
    }


def equal(sessions: list[Session]) -> Lines:
    """A table for the newest session of each processor."""
    newest = {session["machine"]["processor"]: session for session in sessions if session["name"] == "equal"}
    lines: Lines = [*EQUAL, ""]
    for processor, session in newest.items():
        rows = [
            {
                "beside": name_of(row["tool"]),
                "beam": row["beam"],
                "same": f"{row['same']:,} of {row['sentences']:,}",
                "near": row["near"],
                "more probable": f"ours {row['ours more probable']}, theirs {row['theirs more probable']}",
            }
            for row in session["rows"]
        ]
        lines += [f"{processor}:", "", *grid(rows), ""]
    return lines[:-1] if newest else []


def cores(sessions: list[Session]) -> Lines:
    """A table for the newest session of each model and processor."""
    newest = {(session["model"], session["machine"]["processor"]): session for session in sessions}
    lines: Lines = [*CORES, ""]
    for (model, processor), session in newest.items():
        told = f"**{model}** ({processor}, {session['sentences']} sentences, {session['rounds']} rounds):"
        shown = [{name: value for name, value in row.items() if name != "start"} for row in session["rows"]]
        lines += [told, "", *grid(shown), ""]
    return lines[:-1]


def name_of(tool: str) -> str:
    """A tool as people write it."""
    return NAMES.get(tool, tool)
