"""``regard`` and ``python -m regard``: the commands, their signals heard before they are loaded."""

import sys

from regard.interrupts import heard


def main() -> int:
    """Run the command of this process; its exit code."""
    return heard(_command)


def _command() -> int:
    from regard import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
