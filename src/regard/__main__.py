"""``regard`` and ``python -m regard``: runs a command, with signal handlers installed before it is imported."""

import gc
import os
import sys

from regard.system.interrupts import TRAININGS, run_command


def main() -> int:
    """Run the command of this process; its exit code."""
    return run_command(_command)


def _command() -> int:
    is_training = sys.argv[1:2] != [] and sys.argv[1] in TRAININGS
    gc.set_threshold(50_000 if is_training else 150_000)  # a start makes fewer objects, and hardly any garbage
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # NumPy multiplies little in our commands, and starts threads for it
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else pydantic searches all distributions for some
    from regard import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
