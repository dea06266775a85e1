"""What every row may use; no torch. It is imported before NumPy and torch, which read the environment as they load."""

import os

VERSION = "0.1.0"
"""The version of Regard: ``regard.__version__``, which no module of ours may import without importing all of it."""
SLEEP = (
    ("OMP_WAIT_POLICY", "PASSIVE", "GOMP_SPINCOUNT"),  # GNU's OpenMP, which torch's wheels have
    ("KMP_BLOCKTIME", "0", "OMP_WAIT_POLICY"),  # LLVM's and Intel's
    ("OPENBLAS_THREAD_TIMEOUT", "4", "OPENBLAS_NUM_THREADS"),  # NumPy's OpenBLAS: 2 to the power of 4 cycles
)
"""Variables by which threads of a pool that wait sleep at once; each with its value and another that users set.

By default such threads spin for 30 ms and more, beside other programs on the core that the others of the pool need.
"""
_GIVEN = dict(os.environ)
for _name, _value, _other in SLEEP:
    if _name not in _GIVEN and _other not in _GIVEN:
        os.environ[_name] = _value
