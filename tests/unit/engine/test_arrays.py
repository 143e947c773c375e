"""Sums of products, also of nothing."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tessera.engine.arrays import Floats, contract

ROWS = 16


def empty_in_front_of(value: float) -> Floats:
    """No columns, as indexing makes such arrays; this is what lies in memory where the first would be."""
    return as_strided(np.full(1, value, np.float32), (ROWS, 0), (0, 0))


@pytest.mark.parametrize("beyond", [np.nan, np.inf, 3.0])
def test_a_sum_over_nothing_is_zero_whatever_lies_in_memory(beyond):
    figures = np.ones((ROWS, 1), np.float32)[:, 1:]
    assert contract("rg,rg->r", figures, empty_in_front_of(beyond)).tolist() == [0.0] * ROWS
    assert contract("rg,rg->r", empty_in_front_of(beyond), figures).tolist() == [0.0] * ROWS


def test_sums_are_those_of_numpy_in_kind_and_shape():
    links, pairs = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((4, 3), np.float32)
    found = contract("rp,sp->rs", links, pairs)
    assert found.tolist() == (links @ pairs.T).tolist()
    nothing = contract("rp,sp->rs", links[:, :0], pairs[:, :0])
    assert (nothing.shape, nothing.dtype) == (found.shape, found.dtype)
    assert not nothing.any()


def test_no_rows_are_no_sums():
    assert contract("rc,rcd->rd", np.zeros((0, 2), np.bool_), np.zeros((0, 2, 5), np.float32)).shape == (0, 5)
