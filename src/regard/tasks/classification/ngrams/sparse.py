"""A sparse matrix that torch multiplies with a dense one as bags of rows, by one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, torch computes by one thread, so that the bits do not depend on how many cores a machine has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class SparseMatrix:
    """A sparse matrix by rows; torch multiplies bags of rows several times faster than its sparse matrices."""

    starts_R1: Tensor
    columns_N: Tensor
    values_N: Tensor

    @classmethod
    def of(
        cls, rows_N: NDArray[np.int64], columns_N: NDArray[np.int64], values_N: NDArray[np.float32], rows: int
    ) -> SparseMatrix:
        """From its entries in any order."""
        order = np.argsort(rows_N, kind="stable")
        starts_R1 = np.append(0, np.bincount(rows_N, minlength=rows).cumsum())
        return cls(*(torch.from_numpy(one) for one in (starts_R1, columns_N[order], values_N[order])))

    def times(self, dense_XC: Tensor) -> Tensor:
        """The product with a dense matrix."""
        return embedding_bag(
            self.columns_N,
            dense_XC,
            self.starts_R1,
            mode="sum",
            per_sample_weights=self.values_N,
            include_last_offset=True,
        )
