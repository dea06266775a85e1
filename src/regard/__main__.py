"""``regard`` and ``python -m regard``: runs a command, with signal handlers installed before it is imported."""

import sys

from regard.system.interrupts import run_command


def main() -> int:
    """Run the command of this process; its exit code."""
    return run_command(_command)


def _command() -> int:
    from regard import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
