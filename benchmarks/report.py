"""Writes ``docs/results.md`` from the sessions in ``results/*.jsonl``: one narrow table for each question.

``docs/parallel.md`` and its pictures, and ``docs/without.md`` too.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from textwrap import wrap

import choices
import decode_page
import gpu_page
import parallel_page
import questions
import reading_page
import without_page
from questions import CURVES
from seeds import Session, curves

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results.md"
OPENING = """\
# Results

`python benchmarks/report.py` writes this page from the JSON lines in [`benchmarks/results`](../benchmarks/results); no
number is edited by hand. *Runs* leads to them: every run with its seed, its settings and more measures. Speeds were
measured in turns, on several machines; of each kind of machine the newest session counts, and `1.3–1.9` is the least
and the most of the machines, which the end of the page lists. Trials of other kinds are in
[experiments.md](experiments.md).
"""
QUESTIONS = (
    (
        "multi30k table3",
        "How good are translations, by our recipe and by the paper's?",
        choices.translations,
    ),
    ("multi30k", "What fits into 5, 15 or 30 minutes, and which changes were tried?", questions.minutes),
    ("table3", "What does each choice of the paper's system give?", choices.table),
    ("divergence", "What does post-norm need to be stable?", choices.stability),
    ("tatoeba", "How good is the paper's system on a larger set?", choices.larger_set),
    ("reading", "How good are classes, tags and images?", questions.classes),
    ("reading_vs_peers", "How good is reading beside other tools?", reading_page.beside_peers),
    ("few_labels", "What do few labels give?", reading_page.few_labels),
    ("reading_kinds", "What else can be read, and how well?", reading_page.kinds),
    ("text_to_text", "How good are text-to-text models?", questions.text_to_text),
    ("reading", "Are probabilities right, and is a text of no class seen?", questions.calibration),
    ("writing", "How good are language models?", questions.language_models),
    ("positions", "Which kind of positions?", questions.positions),
    ("exportable", "What does a form that can be exported cost?", questions.exportable),
    ("demonstration", "Which head of the demonstration's encoder finds what *it* is?", questions.demonstration),
    ("training", "How fast is training, against whom?", questions.against_peers),
    ("decode_vs_peers", "How fast is using a model, beside other tools?", decode_page.beside_peers),
    ("students_vs_peers", "How fast are Firefox's students, beside their own engines?", decode_page.students),
    ("decode_vs_peers", "Does the engine write what torch and CTranslate2 write?", decode_page.equal),
    ("decode_cores", "What does a second core give to many sentences?", decode_page.cores),
    ("gpu", "How fast is it on a GPU?", gpu_page.on_a_gpu),
    ("instructions", "How many instructions do the engine's kernels take?", questions.instructions),
    ("first_start", "Which products does a run choose by timing?", questions.first_starts),
    ("processes", "What do several processes give?", questions.processes),
    ("neighbours", "How fast is it beside other programs?", questions.neighbours),
    ("preparing", "How long does preparing sentence pairs take?", questions.preparing),
    ("exchange", "What does a step of several processes exchange?", questions.exchange),
    ("training", "What does training cost in memory, and how much of a batch is padding?", questions.memory),
    ("start_up", "How long does it take to start?", questions.start_up),
    ("page page_memory", "How fast is the attention page, and how large its server?", questions.page_speed),
    ("pronoun", "Which head finds the noun of a pronoun?", questions.pronoun),
)


def sessions(folder: Path) -> list[Session]:
    """All sessions, the oldest first."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if line.strip():
                try:
                    session = json.loads(line) | {"file": path.name}
                    session["benchmark"], session["date"], session["rows"]
                except (ValueError, KeyError, TypeError) as error:
                    raise SystemExit(f"{path.name}:{number}: not a session: {error!r}") from None
                found.append(session)
    return sorted(found, key=lambda session: str(session["date"]))


def newest(found: list[Session]) -> list[Session]:
    """The newest session of each kind, setting and machine."""
    kept: dict[str, Session] = {}
    for session in found:
        setting = {k: v for k, v in session.get("setting", {}).items() if k not in ("steps", "warm_up", "sentences")}
        named = [session["benchmark"], session.get("name"), session.get("size"), setting]
        kept[json.dumps([*named, session.get("machine", {}).get("processor")], sort_keys=True)] = session
    return list(kept.values())


def section(title: str, lines: list[str], shown: list[Session]) -> list[str]:
    """One question with its answer, and a link to the runs behind what is told before its table."""
    place = lines.index("")
    files = dict.fromkeys(session["file"] for session in shown)
    links = ", ".join(f"[{name.removesuffix('.jsonl')}](../benchmarks/results/{name})" for name in files)
    told = wrap(" ".join([*lines[:place], f"Runs: {links}."]), 120, break_long_words=False, break_on_hyphens=False)
    return ["", f"## {title}", "", *told, *lines[place:]]


def machines(found: list[Session]) -> list[str]:
    """Which file was measured when and where."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for session in sorted(found, key=lambda session: (session["file"], session["date"])):
        if host := session.get("machine"):
            parts = [host.get("processor"), f"{host.get('cores')} cores", host.get("gpu")]
            told = ", ".join(filter(None, parts)).replace("(R)", "")
            days = kinds.setdefault(told, {}).setdefault(session["file"].removesuffix(".jsonl"), [])
            days.append(str(session["date"])[:10])
    lines = ["", "## Where and when was all this measured?", ""]
    for host, files in sorted(kinds.items()):
        told = [f"{name} {' to '.join(dict.fromkeys((days[0], days[-1])))}" for name, days in files.items()]
        lines += wrap(f"* {host}: {', '.join(told)}", 120, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def measured(shown: list[Session]) -> str:
    """Where and when sessions were measured, and where their lines are."""
    days = sorted({str(session["date"])[:10] for session in shown})
    commits = list(dict.fromkeys(session["commit"] for session in shown if session.get("commit")))
    hosts = {
        ", ".join(filter(None, [f"{host.get('processor')}, {host.get('cores')} cores", host.get("gpu")]))
        for host in (session.get("machine") for session in shown)
        if host
    }
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    commit = f"commit {commits[0]}" if len(commits) == 1 else f"{len(commits)} commits" if commits else ""
    files = ", ".join(f"[{name}](../benchmarks/results/{name})" for name in sorted({s["file"] for s in shown}))
    told = ", ".join(filter(None, [when, commit, " and ".join(sorted(hosts))]))
    return f"*{told}* · {files}"


def page(folder: Path) -> str:
    """The whole page."""
    by_kind: dict[str, list[Session]] = {}
    for session in sessions(folder):
        by_kind.setdefault(str(session["benchmark"]), []).append(session)
    lines: list[str] = []
    for kinds, title, answer in QUESTIONS:
        own = [session for kind in kinds.split() for session in by_kind.get(kind, [])]
        own = newest(own) if kinds == "training" else own
        if own and (found := answer(own)):
            lines += section(title, found, own)
    lines += comparisons(newest(by_kind.get("compare", [])))
    return OPENING + "\n".join(lines + machines([one for own in by_kind.values() for one in own])) + "\n"


def comparisons(found: list[Session]) -> list[str]:
    """The comparisons: families, score functions and norms, and parts of the data."""
    parts = [session for session in found if "parts" in session["name"]]
    whole = [session for session in found if session not in parts]
    lines: list[str] = []
    if whole:
        title = "Which family, score function and norm, also for long sentences?"
        lines += section(title, questions.comparison(whole), whole)
        lines += section("How far apart are two words?", questions.paths(whole), whole)
    return lines + (section("Which learns most from little data?", questions.shares(parts), parts) if parts else [])


def written(folder: Path) -> dict[str, str]:
    """All pages and pictures by file name."""
    found = sessions(folder)
    files = {PAGE.name: page(folder)}
    if picture := curves([row for one in found if one["benchmark"] == "writing" for row in one["rows"]]):
        files[CURVES] = picture
    if own := [one for one in found if one["benchmark"] == "parallel"]:
        files |= parallel_page.files(own, measured(own))
    if own := [one for one in found if one["benchmark"] == "without"]:
        files |= without_page.files(own, measured(own))
    return files


def main() -> int:
    """Writes the pages, or with ``--check`` says whether they are up to date."""
    parser = argparse.ArgumentParser(description="Write the pages of results and their pictures.")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of JSON-lines files")
    parser.add_argument("--output", type=Path, default=PAGE.parent, help="folder of the pages")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not up to date")
    arguments = parser.parse_args()
    files = {arguments.output / name: text for name, text in written(arguments.results).items()}
    if arguments.check:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != text for path, text in files.items()))
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
