"""``python -m regard.cli``: the same as ``regard``, but installs signal handlers slightly later."""

import sys

from regard.cli import main
from regard.system.interrupts import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
