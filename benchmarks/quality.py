"""The part of ``docs/results.md`` about the runs of ``multi30k.py``."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any

from tables import grid

Session = dict[str, Any]


def quality(runs: list[Session]) -> list[str]:
    """The runs of ``multi30k.py``: those scored on the test set with the mean over seeds, then those on validation."""
    rows: dict[str, dict[str, Any]] = {}
    for session in runs:
        for row in session["rows"]:
            rows[row["run"]] = scored_later(rows.get(row["run"], {}), row | {"commit": session.get("commit", "")})
    final = [row for row in rows.values() if any(name.startswith("test") for name in row)]
    tried = [row for row in rows.values() if row not in final]
    lines = ["", "## Multi30k", "", "BLEU of sacreBLEU; a run's name ends in direction, seed and minutes.", ""]
    lines += [f"* {signature}" for signature in signatures(rows.values())]
    for title, shown in (("Final runs", final + means(final)), ("Runs on validation", tried)):
        if shown:
            table = [{name: row[name] for name in row if not name.startswith("signature")} for row in shown]
            lines += ["", f"### {title}", "", *grid(table)]
    hosts = dict.fromkeys(
        f"{host.get('processor')}, {host.get('cores')} cores" for host in (s.get("machine", {}) for s in runs)
    )
    return [*lines, "", *(f"*{host}*" for host in hosts)]


def scored_later(first: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """A run's row with what a later scoring of the same training added; another training takes its place."""
    same = all(first.get(key) == again.get(key) for key in ("settings", "threads", "steps", "train minutes"))
    return again | first if same else again


def signatures(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The scorer's signatures, each with the columns it is for."""
    found = [f"{name.split()[1]}: `{row[name]}`" for row in rows for name in row if name.startswith("signature")]
    return list(dict.fromkeys(found))


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For runs that differ in the seed only, the mean of each score."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        recipe, _, minutes = row["run"].rsplit("-", 2)
        kind = [recipe, f"{minutes} minutes", row.get("settings"), row.get("commit", "").strip("+")]
        groups.setdefault(", ".join(filter(None, kind)), []).append(row)
    return [
        {"run": f"mean of {len(group)}: {kind}"}
        | {score: round(fmean(row[score] for row in group), 2) for score in scores}
        for kind, group in groups.items()
        if len(group) > 1
        for scores in [[name for name in group[0] if " beam " in name and all(name in row for row in group)]]
    ]
