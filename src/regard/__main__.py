"""``regard`` and ``python -m regard``: runs a command, with signal handlers installed before it is imported."""

import gc
import os
import sys

from regard.system.interrupts import run_command


def main() -> int:
    """Run the command of this process; its exit code."""
    return run_command(_command)


def _command() -> int:
    gc.set_threshold(150_000)  # a start makes fewer objects, and hardly any garbage: it would be a tenth of a start
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # no search of all that is installed for some
    from regard import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
