"""What every function and operator is for."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.arrays import descriptions as arrays
from mz_dagster.functions.function import Description
from mz_dagster.functions.references import DESCRIBED

#: By the function's name in SQL, or the operator.
DESCRIPTIONS: Mapping[str, Description] = {
    **arrays.DESCRIPTIONS,
    **DESCRIBED,
}
