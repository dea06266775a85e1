"""``python -m regard.cli``: the same as ``regard``."""

import sys

from regard.cli import main

sys.exit(main())
