"""The records of aggregates that are scalars over those of the algebra: `avg(x)` is `sum(x) / count(x)`.

How the binder spells one is its `Spelling`; the scalar's reference, where it is a function of its own, is in
`statistics.py`, `ordered_sets.py` or another area's. Its partials are those of the aggregates that it is spelled in.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.functions.aggregates.algebra import (
    FLOATS,
    INTEGERS,
    AggregateClass,
    Aggregated,
    AggregateFunction,
    Example,
    Signature,
    Spelling,
    record,
)
from mz_dagster.scalars.types import Kind

_COUNT, _SUM, _EXACT = AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.EXACT_SUM
_LIST = AggregateFunction.ARRAY_AGG
_NUMBERS = (*INTEGERS, Kind.NUMERIC, Kind.UNCONSTRAINED, *FLOATS)
_SPANS = (Kind.INTERVAL, Kind.TIME)
_CLASSES = (AggregateClass.ACCUMULABLE, AggregateClass.HIERARCHICAL, AggregateClass.BASIC)


def spelled(
    name: str,
    spelling: Spelling,
    signatures: Sequence[Signature],
    says: str,
    example: Example,
    *,
    nullable: bool = True,
    sees_order: bool = False,
    ordered_set: bool = False,
    hypothetical: bool = False,
    scalar: str = "",
    terms: tuple[str, ...] = (),
) -> None:
    """Makes the record of an aggregate that is spelled in others, by which of them its class is."""
    classes = [one.aggregate_class for signature in signatures for one in signature.of]
    record(
        Aggregated(
            name,
            tuple(signatures),
            says,
            example,
            max(classes, key=_CLASSES.index),
            spelling,
            nullable,
            sees_order,
            ordered_set,
            hypothetical,
            scalar,
            terms,
        )
    )


def _average() -> list[Signature]:
    exact = [Signature((kind,), Kind.NUMERIC, of=(_SUM, _COUNT)) for kind in (*INTEGERS, Kind.NUMERIC)]
    floats = [Signature((kind,), Kind.FLOAT8, of=(_SUM, _COUNT)) for kind in FLOATS]
    spans = [Signature((kind,), Kind.INTERVAL, of=(_SUM, _COUNT)) for kind in _SPANS]
    return [*exact, Signature((Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, of=(_SUM, _COUNT)), *floats, *spans]


spelled(
    "avg",
    Spelling.AVERAGE,
    _average(),
    "The average of the values.",
    Example("avg(x)", "(1::float8), (2)", "1.5"),
)

_TRUTH = [Signature((Kind.BOOL,), Kind.BOOL, of=(_COUNT,))]
for _name in ("bool_and", "every"):
    spelled(
        _name,
        Spelling.TRUTH,
        _TRUTH,
        "Whether all values are true.",
        Example(f"{_name}(x)", "(true), (false)", "false"),
        scalar="is false",
    )
spelled(
    "bool_or",
    Spelling.TRUTH,
    _TRUTH,
    "Whether some value is true.",
    Example("bool_or(x)", "(true), (false)", "true"),
    scalar="is true",
)


def _spread() -> list[Signature]:
    exact = [Signature((kind,), Kind.NUMERIC, of=(_COUNT, _SUM)) for kind in (*INTEGERS, Kind.NUMERIC)]
    floats = [Signature((kind,), Kind.FLOAT8, of=(_COUNT, _EXACT)) for kind in FLOATS]
    return [*exact, Signature((Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, of=(_COUNT, _SUM)), *floats]


_OF_SAMPLE = "of a sample: the squares of the deviations from the average, divided by how many there are less 1"
for _name, _scalar, _says, _gives in (
    ("variance", "var_samp", f"The variance {_OF_SAMPLE}.", "8"),
    ("var_samp", "var_samp", f"The variance {_OF_SAMPLE}.", "8"),
    ("var_pop", "var_pop", "The variance: the average of the squares of the deviations from the average.", "4"),
    ("stddev", "stddev_samp", "The root of the variance of a sample.", "2.8284271247461903"),
    ("stddev_samp", "stddev_samp", "The root of the variance of a sample.", "2.8284271247461903"),
    ("stddev_pop", "stddev_pop", "The root of the variance.", "2"),
):
    spelled(
        _name,
        Spelling.VARIANCE,
        _spread(),
        _says,
        Example(f"{_name}(x)", "(1::float8), (5)", _gives),
        scalar=_scalar,
    )


def _regression(name: str, scalar: str, terms: tuple[str, ...], says: str, rows: str, gives: str) -> None:
    of = (_COUNT, _EXACT) if scalar else (_SUM, _COUNT)
    spelled(
        name,
        Spelling.REGRESSION,
        [Signature((Kind.FLOAT8, Kind.FLOAT8), Kind.FLOAT8, of=of)],
        f"Of the pairs without NULL {says}.",
        Example(f"{name}(y, x)", rows, gives, "y, x"),
        scalar=scalar,
        terms=terms,
    )


_PAIRS = "(2::float8, 1::float8), (4, 2), (9, 3)"
_X, _Y, _XY = ("x", "xx"), ("y", "yy"), ("x", "y", "xy")
_LINE, _ALL = ("x", "y", "xx", "xy"), ("x", "y", "xx", "yy", "xy")
for _name, _scalar, _terms, _says, _gives in (
    ("covar_pop", "covar_pop_float8", _XY, "the covariance", "2.3333333333333335"),
    ("covar_samp", "covar_samp_float8", _XY, "the covariance of a sample", "3.5"),
    ("regr_avgx", "", _X[:1], "the average of the second arguments", "2"),
    ("regr_avgy", "", _Y[:1], "the average of the first arguments", "5"),
    ("regr_intercept", "regr_intercept_float8", _LINE, "where the line of the least squares is at 0", "-2"),
    ("regr_r2", "regr_r2_float8", _ALL, "the square of the coefficient of correlation", "0.9423076923076923"),
    ("regr_slope", "regr_slope_float8", _LINE, "the slope of the line of the least squares", "3.5"),
    ("regr_sxx", "regr_sxx_float8", _X, "the sum of the squares of the second arguments' deviations", "2"),
    ("regr_sxy", "regr_sxy_float8", _XY, "the sum of the products of both arguments' deviations", "7"),
    ("regr_syy", "regr_sxx_float8", _Y, "the sum of the squares of the first arguments' deviations", "26"),
):
    _regression(_name, _scalar, _terms, _says, _PAIRS, _gives)
_regression(
    "corr", "corr_float8", _ALL, "the coefficient of correlation", "(3::float8, 1::float8), (1, 2), (2, 3)", "-0.5"
)
spelled(
    "regr_count",
    Spelling.REGRESSION,
    [Signature((Kind.FLOAT8, Kind.FLOAT8), Kind.INT8, of=(_COUNT,))],
    "How many pairs have no NULL.",
    Example("regr_count(y, x)", "(2::float8, 1::float8), (4, NULL)", "1", "y, x"),
    nullable=False,
)

_ANY, _PAIR = [Signature((None,), Kind.JSON, of=(_LIST,))], [Signature((None, None), Kind.JSON, of=(_LIST,))]
spelled(
    "json_agg",
    Spelling.JSON_ARRAY,
    _ANY,
    "The JSON array of the values, in the order that the call says.",
    Example("json_agg(x ORDER BY x)", "(2), (1)", "[1, 2]"),
    sees_order=True,
)
spelled(
    "json_object_agg",
    Spelling.JSON_OBJECT,
    _PAIR,
    "The JSON object of keys and values.",
    Example("json_object_agg(k, x ORDER BY k)", "('a', 1), ('b', 2)", '{ "a" : 1, "b" : 2 }', "k, x"),
    sees_order=True,
)
spelled(
    "jsonb_agg",
    Spelling.JSONB_ARRAY,
    [Signature((None,), Kind.JSONB, of=(_LIST,))],
    "The array of the values as jsonb, in the order that the call says.",
    Example("jsonb_agg(x ORDER BY x)", "('b'), ('a')", '["a", "b"]'),
    sees_order=True,
)
spelled(
    "jsonb_object_agg",
    Spelling.JSONB_OBJECT,
    [Signature((None, None), Kind.JSONB, of=(_LIST,))],
    "The object of keys and values as jsonb; of one key the last value stays.",
    Example("jsonb_object_agg(k, x ORDER BY x)", "('a', 1), ('a', 2)", '{"a": 2}', "k, x"),
    sees_order=True,
)


def _percentiles(result: Kind | None, ordered: Sequence[Kind | None]) -> list[Signature]:
    one, several = (_LIST, _COUNT), (_LIST, _COUNT) if result is None else (_LIST,)
    found = [Signature((Kind.FLOAT8,), result, (key,), one) for key in ordered]
    return [*found, *(Signature((Kind.ARRAY,), Kind.ARRAY, (key,), several) for key in ordered)]


spelled(
    "percentile_cont",
    Spelling.CONTINUOUS_PERCENTILE,
    [*_percentiles(Kind.FLOAT8, _NUMBERS), *_percentiles(Kind.INTERVAL, _SPANS)],
    "The value below which a fraction of the values is, between its neighbours if there is none; of an array of "
    "fractions, an array.",
    Example("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "(1), (2), (4), (8)", "3"),
    ordered_set=True,
)
spelled(
    "percentile_disc",
    Spelling.DISCRETE_PERCENTILE,
    _percentiles(None, (None,)),
    "The first value that a fraction of the values is not greater than; of an array of fractions, an array.",
    Example("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)", "(1), (2), (4), (8)", "2"),
    ordered_set=True,
)
spelled(
    "mode",
    Spelling.MODE,
    [Signature((), None, (None,), (_LIST,))],
    "The value that is there most often; of several, the first in the order.",
    Example("mode() WITHIN GROUP (ORDER BY x)", "(3), (1), (3)", "3"),
    ordered_set=True,
)

for _name, _spelling, _kind, _says, _gives in (
    ("rank", Spelling.RANK, Kind.INT8, "The rank that a row would have: how many come before it, and 1.", "3"),
    ("dense_rank", Spelling.DENSE_RANK, Kind.INT8, "The rank that a row would have, peers counted once.", "2"),
    (
        "percent_rank",
        Spelling.PERCENT_RANK,
        Kind.FLOAT8,
        "Which part of the rows would come before a row.",
        "0.6666666666666666",
    ),
    (
        "cume_dist",
        Spelling.CUMULATIVE_DISTRIBUTION,
        Kind.FLOAT8,
        "Which part of the rows would not come behind a row, it among them.",
        "0.75",
    ),
):
    spelled(
        _name,
        _spelling,
        [Signature((None,), _kind, (None,), (_COUNT,))],
        _says,
        Example(f"{_name}(2) WITHIN GROUP (ORDER BY x)", "(1), (1), (3)", _gives),
        nullable=False,
        ordered_set=True,
        hypothetical=True,
    )
