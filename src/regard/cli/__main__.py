"""``python -m regard.cli``: the same as ``regard``, its signals heard a little later."""

import sys

from regard.cli import main
from regard.interrupts import heard

if __name__ == "__main__":
    sys.exit(heard(main))
