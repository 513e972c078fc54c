"""What every function and operator is for: the areas' descriptions together, and those of what many types have."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.arrays import descriptions as arrays
from mz_dagster.functions.function import Description
from mz_dagster.functions.jsonb import descriptions as jsonb
from mz_dagster.functions.references import DESCRIBED
from mz_dagster.functions.regexps import descriptions as regexps

_GENERAL: Mapping[str, Description] = {}
#: By the function's name in SQL, or the operator.
DESCRIPTIONS: Mapping[str, Description] = {
    **_GENERAL,
    **DESCRIBED,
    **regexps.DESCRIPTIONS,
    **jsonb.DESCRIPTIONS,
    **arrays.DESCRIPTIONS,
}
