"""What every function and operator is for."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions import table  # noqa: F401  has all records made
from mz_dagster.functions.function import Description
from mz_dagster.functions.registry import DESCRIBED

#: By the function's name in SQL, or the operator.
DESCRIPTIONS: Mapping[str, Description] = DESCRIBED
