"""``python -m regard``: the commands."""

import sys

from regard.cli import main

if __name__ == "__main__":
    sys.exit(main())
