"""What every function and operator is for: the areas' descriptions together, and those of what many types have."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.arrays import descriptions as arrays
from mz_dagster.functions.function import Description
from mz_dagster.functions.jsonb import descriptions as jsonb
from mz_dagster.functions.moments import descriptions as moments
from mz_dagster.functions.numbers import descriptions as numbers
from mz_dagster.functions.references import DESCRIBED
from mz_dagster.functions.regexps import descriptions as regexps

_GENERAL: Mapping[str, Description] = {
    "=": Description("Whether two values are equal.", "1 = 1.0", "true"),
    "<>": Description("Whether two values differ; also written `!=`.", "'a' <> 'b'", "true"),
    "<": Description("Whether the first value is less.", "date '2024-01-31' < date '2024-02-01'", "true"),
    "<=": Description("Whether the first value is less, or equal.", "2 <= 2", "true"),
    ">": Description("Whether the first value is greater.", "'NaN'::float8 > 'Infinity'::float8", "true"),
    ">=": Description(
        "Whether the first value is greater, or equal.", "interval '1 mon' >= interval '30 days'", "true"
    ),
    "not": Description("The opposite of a boolean.", "NOT (1 = 2)", "true"),
    "+": Description(
        "A sum; a date or timestamp moved by days or an interval.",
        "timestamp '2024-01-31 12:00' + interval '1 mon'",
        "2024-02-29 12:00:00",
    ),
    "-": Description(
        "A difference; a number's negative; what lies between two moments; a jsonb without a key or an element.",
        "date '2024-03-01' - date '2024-02-01'",
        "29",
    ),
    "*": Description("A product.", "1.50 * 3", "4.50"),
    "/": Description("A quotient, of integers cut off towards zero.", "7 / 2", "3"),
}
#: By the function's name in SQL, or the operator.
DESCRIPTIONS: Mapping[str, Description] = {
    **_GENERAL,
    **DESCRIBED,
    **numbers.DESCRIPTIONS,
    **regexps.DESCRIPTIONS,
    **moments.DESCRIPTIONS,
    **jsonb.DESCRIPTIONS,
    **arrays.DESCRIPTIONS,
}
