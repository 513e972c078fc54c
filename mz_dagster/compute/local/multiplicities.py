"""Products and sums of multiplicities, which are bigints: exact, or `MultiplicityOverflow`, as Spark has it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.storage.row_numbers import sums
from mz_dagster.storage.shards import MultiplicityOverflow

_MOST = 2**63 - 1


def products(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Returns the products of two columns of bigints.

    Raises:
        MultiplicityOverflow: One is beyond a bigint.
    """
    try:
        return pc.multiply_checked(left, right)
    except pa.ArrowInvalid as error:
        raise MultiplicityOverflow from error


def opposites(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns bigints with the opposite signs.

    Raises:
        MultiplicityOverflow: One is the least, whose opposite is beyond a bigint.
    """
    try:
        return pc.negate_checked(values)
    except pa.ArrowInvalid as error:
        raise MultiplicityOverflow from error


def totals(numbers: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sum of the values of each number, of numbers from 0 on.

    Raises:
        MultiplicityOverflow: One is beyond a bigint.

    Example:
        >>> totals(np.array([0, 1, 0]), np.array([2, 3, -1])).tolist()
        [1, 3]
    """
    most = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    if most * len(values) <= _MOST:
        return sums(numbers, values)
    found = np.full(int(numbers.max()) + 1, 0, object)
    np.add.at(found, numbers, values.astype(object))
    return np.array([ensured(one) for one in found], np.int64)


def ensured(total: int) -> int:
    """Returns a multiplicity that a bigint holds.

    Raises:
        MultiplicityOverflow: No bigint does.
    """
    if not -_MOST - 1 <= total <= _MOST:
        raise MultiplicityOverflow
    return total
