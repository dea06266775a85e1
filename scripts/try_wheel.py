"""Tries an installed wheel in its own environment: called by ``scripts/wheels``.

python scripts/try_wheel.py model FOLDER            # writes a small untaught translator, with this environment's torch
python scripts/try_wheel.py lean ENVIRONMENT MODEL  # regard-run: no torch, small, quick, and it translates
python scripts/try_wheel.py server ENVIRONMENT MODEL # regard-run[serve]: it serves
python scripts/try_wheel.py whole ENVIRONMENT MODEL # regard: it trains
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

LARGEST, SLOWEST = 160, 0.25
"""MB that an installation without torch may take, and seconds of ``import regard``."""
WITHOUT = ("pip", "setuptools")
"""What a bare environment has anyway."""


def write_model(folder: Path) -> None:
    """A model folder of small size."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.tasks.small_tasks import put, translator

    put(folder, translator())


def lean(environment: Path, model: Path) -> None:
    """Everything that is promised of an installation without torch."""
    wanted(run(environment, "-c", "import torch").returncode == 1, "there is no torch")
    translates(environment, model)
    refused = run(environment, "-m", "regard", "train", "--source", "a", "--target", "b", "--output", "new")
    wanted(refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr.strip())
    size, largest = sizes(environment)
    wanted(size <= LARGEST, f"{size:.1f} MB on disk: {largest}")
    seconds = median(importing(environment) for _ in range(11))
    wanted(seconds <= SLOWEST, f"import regard: {seconds:.3f} s")


def server(environment: Path, model: Path) -> None:
    """That its server opens the model and translates."""
    checked = run(environment, "-m", "regard", "serve", f"en:de={model}", "--check")
    wanted(checked.returncode == 0, f"regard serve: {(checked.stdout + checked.stderr).strip().splitlines()[-1:]}")


def whole(environment: Path, model: Path) -> None:
    """That it trains."""
    translates(environment, model)
    lines = model.parent / "lines.txt"
    lines.write_text("".join(f"a man sleeps {n}\ntwo dogs run {n}\n" for n in range(200)))
    words = ["--source", lines, "--target", lines, "--steps", "2", "--output", model.parent / "trained"]
    words.append("--despite-check")  # the pairs are copies
    trained = run(environment, "-m", "regard", "train", *words)
    wanted(trained.returncode == 0, f"regard train: {trained.stderr.strip().splitlines()[-1:]}")


def translates(environment: Path, model: Path) -> None:
    """That two texts become two lines, by the kernels."""
    done = run(environment, "-m", "regard", "translate", model, "A man sleeps.", "Two dogs run.")
    wanted(done.returncode == 0 and done.stdout.count("\n") == 2, f"regard translate {done.stderr.strip()}")
    said = run(environment, "-m", "regard", "--version").stdout.split("\n")
    wanted("kernels none" not in said, next(line for line in said if line.startswith("kernels")))


def run(environment: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A program of the environment's Python, in its folder."""
    command = [str(environment.resolve() / "bin" / "python"), *map(str, words)]
    return subprocess.run(command, cwd=environment, capture_output=True, text=True, errors="replace", check=False)


def importing(environment: Path) -> float:
    """Seconds of ``import regard`` beyond those of Python alone."""
    taken = []
    for program in ("pass", "import regard"):
        began = time.perf_counter()
        run(environment, "-c", program)
        taken.append(time.perf_counter() - began)
    return taken[1] - taken[0]


def sizes(environment: Path) -> tuple[float, str]:
    """MB of what was installed, and its largest parts."""
    (packages,) = environment.glob("lib/python*/site-packages")
    parts = {
        each.name: sum(file.lstat().st_size for file in [each, *each.rglob("*")] if file.is_file()) / 1e6
        for each in packages.iterdir()
        if not each.name.startswith(WITHOUT)
    }
    largest = sorted(parts, key=lambda name: -parts[name])[:8]
    return sum(parts.values()), ", ".join(f"{name} {parts[name]:.0f}" for name in largest)


def wanted(true: bool, told: str) -> None:
    """Tells what was found; ends the program where it is not what was wanted."""
    print(f"{'yes' if true else 'NO'}: {told}")
    if not true:
        raise SystemExit(1)


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    {"model": write_model, "lean": lean, "server": server, "whole": whole}[what](*map(Path, paths))  # type: ignore[operator]
