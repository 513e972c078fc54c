"""Which scalars Python evaluates to the bit as Spark does, so that a row is the same wherever it is computed.

That is all that `functions.evaluation` knows, which is every function, but for those of floating-point numbers that the
C library computes: its last digit may differ between this machine and those that Spark's workers are on. Where this
process computes everything (`engine = "local"`), these are its business, too.
"""

from __future__ import annotations

from mz_dagster.budget import EngineSetting, engine_setting
from mz_dagster.functions.evaluation import is_evaluable
from mz_dagster.functions.numbers.transcendental import OF_THE_C_LIBRARY
from mz_dagster.object_cache import cached_by_object
from mz_dagster.scalars.scalar import Call, Scalar, walk


def is_exact_in_python(scalar: Scalar) -> bool:
    """Returns whether a scalar's value is worked out by Python."""
    everywhere, alone = _is_exact(scalar)
    return alone if engine_setting() is EngineSetting.LOCAL else everywhere


@cached_by_object(most=20_000)
def _is_exact(scalar: Scalar) -> tuple[bool, bool]:
    """Returns whether Python works a scalar out beside Spark, and whether it does alone."""
    alone = is_evaluable(scalar)
    is_portable = not any(isinstance(one, Call) and one.function in OF_THE_C_LIBRARY for one in walk(scalar))
    return alone and is_portable, alone
