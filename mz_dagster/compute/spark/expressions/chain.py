"""Long chains of operators as a fold: `((a + b) - c) + ...` over an array of the operands.

Written out, the error of each operator of a chain mentions the values of all before it, and a chain of hundreds is
a plan of hundreds of projections, which Spark's analyzer and optimizer walk again and again. A fold mentions each
operator once and is no deeper however long the chain; it keeps the value so far, and the first error, as the operators
one after the other do. Short chains are written out: compiled, they are faster on each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import STRICT, Emitted, Invocation
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_OPERATIONS = frozenset({"add", "subtract", "multiply"})


def chain_of(scalar: Call) -> tuple[Scalar, list[Call]] | None:
    """Returns where a long chain begins and its operators, each with the next operand; None if there is none.

    All operators' operands and results are of one type.
    """
    operators: list[Call] = []
    one: Scalar = scalar
    while isinstance(one, Call) and _is_link(one):
        operators.append(one)
        one = one.arguments[0]
    return (one, operators[::-1]) if len(operators) >= budget().folded_operators else None


def _is_link(call: Call) -> bool:
    name = call.function
    same = len(call.arguments) == 2 and {one.type for one in call.arguments} == {call.type}
    return same and (name.partition("_")[0] in _OPERATIONS or name == "concat_text") and name in STRICT


def folded(operators: Sequence[Call], first: Emitted, operands: Sequence[Emitted]) -> Column:
    """Returns what a chain comes to: a structure of its value `v` and its error `e`.

    Args:
        operators: The operators.
        first: What the first of them begins with.
        operands: The second argument of each.
    """
    type_, none = operators[0].type, sf.lit(None).cast("string")
    names = list(dict.fromkeys(one.function for one in operators))

    def state(value: Column, error: Column | None) -> Column:
        held = none if error is None else error.cast("string")
        return sf.struct(value.cast(spark_type(type_)).alias("v"), held.alias("e"))

    def next_state(so_far: Column, operand: Column) -> Column:
        before, value, error = so_far.getField("v"), operand.getField("v"), none
        results: list[tuple[Column, Column | None]] = []
        for name in names:
            arguments = (Emitted(before), Emitted(value))
            invocation = Invocation(name, operators[0].arguments, arguments, type_, lambda *columns: [*columns])
            results.append(STRICT[name](invocation))
        found, own = results[-1]
        error = none if own is None else own
        for number, (other, others) in enumerate(results[:-1]):
            chosen = operand.getField("n") == sf.lit(number)
            found = sf.when(chosen, other).otherwise(found)
            error = sf.when(chosen, none if others is None else others).otherwise(error)
        return state(found, sf.coalesce(so_far.getField("e"), operand.getField("e"), error))

    elements = [
        sf.struct(
            one.value.cast(spark_type(type_)).alias("v"),
            (none if one.error is None else one.error.cast("string")).alias("e"),
            sf.lit(names.index(operator.function)).alias("n"),
        )
        for operator, one in zip(operators, operands, strict=True)
    ]
    return sf.aggregate(sf.array(*elements), state(first.value, first.error), next_state)
