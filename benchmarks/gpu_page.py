"""What ``docs/results.md`` says of a GPU: ``train_vs_peers.py`` and ``decode_vs_peers.py`` with ``--device cuda``."""

from __future__ import annotations

from seeds import Session
from tables import Row, grid

Lines = list[str]
OTHER = "transformers"
"""With what using a model is compared."""


def on_a_gpu(sessions: list[Session]) -> Lines:
    """Training beside other loops, and using a model, each by wall time."""
    lines: Lines = []
    for session in sessions:
        setting = session["setting"]
        if session["name"] == "training":
            shape = f"{setting['layers']}+{setting['layers']} layers of {setting['d_model']}"
            lines += [
                f"Training {shape}, {setting['tokens']:,} target tokens a batch, one GPU; medians of the runs.",
                "",
            ]
            lines += [*grid(training(session["rows"])), ""]
        else:
            told = f"Using a translator of the base shape, fp32, {setting['sentences']} sentences, one GPU; *ratio* to"
            lines += [f"{told} {OTHER}.", "", *grid(using(session["rows"])), ""]
    return lines[:-1]


def training(rows: list[Row]) -> list[Row]:
    """A row for each trainer and precision, the fastest first."""
    measured = sorted((row for row in rows if "runs" in row), key=lambda row: -float(row["per_wall_second"]))
    return [
        {
            "trainer": f"{row['title']} {row['precision']}",
            "useful tokens a second": f"{row['per_wall_second']:,.0f}",
            "of the batch": f"{100 * row['useful']:.0f} %",
            "MB of the GPU": f"{row['peak_mb']:,}",
        }
        for row in measured
    ]


def using(rows: list[Row]) -> list[Row]:
    """A row for each measure: ours and theirs."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["measure"], {})[row["tool"]] = row
    return [
        {
            "measure": measure,
            "Regard": speed(own["regard"]),
            OTHER: speed(own[OTHER]),
            "ratio": f"{own['regard']['tokens/s'] / own[OTHER]['tokens/s']:.2f}",
        }
        for measure, own in found.items()
    ]


def speed(row: Row) -> str:
    """Milliseconds of one sentence, else tokens a second."""
    return f"{row['ms']:,.0f} ms" if row["measure"].startswith("one ") else f"{row['tokens/s']:,.0f} /s"
