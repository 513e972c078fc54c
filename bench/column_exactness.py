"""What columns' engines make of what is hard to get right: large sums, NaN, signed zeros, NULL keys, order of texts.

Each case is a question with one answer, PostgreSQL's; what an engine says to it is told in words.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.column_operators import OURS, installed
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.join import one_form
from mz_dagster.compute.local.matching import matches
from mz_dagster.compute.local.sums import Sums, summed_by_key
from mz_dagster.scalars.types import INT8, Column, numeric
from mz_dagster.storage.arrow_schema import update_schema, update_table
from mz_dagster.storage.row_numbers import distinct_rows, order_by
from mz_dagster.storage.shards import MultiplicityOverflow

_LARGE = Decimal(9 * 10**37)
#: A NaN that some processors make, with other bits than Python's.
_OTHER_NAN = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
_TEXTS = ["b", "B", "a", "", "é", "z", "\uffff", "\U0001f600", "ab", "a b"]
#: By case: `sum`, `groups` or `pairs` of how many, or `order`; of these values; and what is right.
CASES: Mapping[str, tuple[str, list[Any], object]] = {
    "sum of 38 digits": ("sum", [Decimal("9" * 37), Decimal(1)], Decimal(10**37)),
    "sum of more than 38 digits": ("sum", [_LARGE, _LARGE], "an error"),
    "sum that passes 38 digits and returns": ("sum", [_LARGE, _LARGE, -_LARGE], _LARGE),
    "groups of two NaNs and a number": ("groups", [float("nan"), float(_OTHER_NAN), 1.0], 2),
    "groups of 0.0 and -0.0": ("groups", [0.0, -0.0], 1),
    "groups of two NULLs and a number": ("groups", [None, None, 1.0], 2),
    "NaN meets one of other bits": ("pairs", [float("nan"), 1.0], 2),
    "0.0 meets -0.0": ("pairs", [0.0], 1),
    "NULL meets NULL where it is asked to": ("null-safe pairs", [None, 1.0], 2),
    "NULL meets no NULL": ("pairs", [None, 1.0], 1),
    "texts are in order of bytes": ("order", _TEXTS, sorted(_TEXTS, key=str.encode)),
}


def ours(kind: str, values: list[Any]) -> object:
    """Returns what our kernels answer."""
    match kind:
        case "sum":
            kinds = [Column("c0", INT8), Column("c1", INT8), Column("c2", numeric(0))]
            given = update_table([kinds[0], Column("c1", numeric(0))], [((1, one), 1, 1) for one in values])
            sums = Sums(1, update_schema(kinds))
            try:
                return summed_by_key(given, sums.schema.empty_table(), sums).column("c2")[0].as_py()
            except MultiplicityOverflow:
                return "an error"
        case "groups":
            return len(distinct_rows(pa.table({"k": pa.array(values, pa.float64())}), signs=False))
        case "order":
            rows = CodedRows(pa.table({"k": values}), len(values))
            return [values[place] for place in order_by(rows.sorted_by)]
    one, other = (one_form(pa.chunked_array([pa.array(side, pa.float64())])) for side in (values, _others(values)))
    if kind == "pairs":
        one, other = one.drop_null(), other.drop_null()
    return len(matches([(one, other)], len(one), len(other), 100)[0])


def by_arrow(kind: str, values: list[Any]) -> object:
    """Returns what Arrow answers."""
    match kind:
        case "sum":
            return _sums(values).group_by("k").aggregate([("v", "sum")]).column("v_sum")[0].as_py()
        case "groups":
            return len(_keys(values).group_by("k").aggregate([]))
        case "order":
            return pc.take(pa.array(values), pc.array_sort_indices(pa.array(values))).to_pylist()
        case "pairs":
            return len(_keys(values).join(_keys(_others(values)), "k", join_type="inner"))
    return "not to be asked"


def by_polars(kind: str, values: list[Any]) -> object:
    """Returns what Polars answers."""
    pl = importlib.import_module("polars")
    match kind:
        case "sum":
            return pl.from_arrow(_sums(values)).group_by("k").agg(pl.col("v").sum())["v"][0]
        case "groups":
            return len(pl.from_arrow(_keys(values)).group_by("k").agg(pl.len()))
        case "order":
            return pl.Series(values).sort().to_list()
    one, other = pl.from_arrow(_keys(values)), pl.from_arrow(_keys(_others(values)))
    return len(one.join(other, on="k", nulls_equal=kind != "pairs"))


def by_duckdb(kind: str, values: list[Any]) -> object:
    """Returns what DuckDB answers."""
    connection = importlib.import_module("duckdb").connect()
    for name, table in _named(kind, values):
        connection.register(name, table)
    rows = connection.execute(_sql(kind)).fetchall()
    return [one for (one,) in rows] if kind == "order" else rows[0][0]


def by_datafusion(kind: str, values: list[Any]) -> object:
    """Returns what DataFusion answers."""
    context = importlib.import_module("datafusion").SessionContext()
    for name, table in _named(kind, values):
        context.register_record_batches(name, [table.to_batches()])
    found = context.sql(_sql(kind)).to_arrow_table().column(0).to_pylist()
    return found if kind == "order" else found[0]


def _sql(kind: str) -> str:
    equal = "one.k = other.k" if kind == "pairs" else "one.k IS NOT DISTINCT FROM other.k"
    questions = {
        "sum": "SELECT sum(v) FROM one GROUP BY k",
        "groups": "SELECT count(*) FROM (SELECT k FROM one GROUP BY k) AS found",
        "order": "SELECT k FROM one ORDER BY k",
    }
    return questions.get(kind, f"SELECT count(*) FROM one JOIN other ON {equal}")


def _named(kind: str, values: list[Any]) -> list[tuple[str, pa.Table]]:
    match kind:
        case "sum":
            return [("one", _sums(values))]
        case "order":
            return [("one", pa.table({"k": values}))]
    return [("one", _keys(values)), ("other", _keys(_others(values)))]


def _sums(values: list[Decimal]) -> pa.Table:
    return pa.table({"k": [1] * len(values), "v": pa.array(values, pa.decimal128(38, 0))})


def _keys(values: list[Any]) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.float64())})


def _others(values: list[Any]) -> list[Any]:
    """Returns values that are to meet some: the same, but for signs and kinds of NaN."""
    return [_OTHER_NAN if one != one else -one if one == 0 else one for one in values]


_ENGINES: Mapping[str, Callable[[str, list[Any]], object]] = {
    OURS: ours,
    "Arrow": by_arrow,
    "Polars": by_polars,
    "DuckDB": by_duckdb,
    "DataFusion": by_datafusion,
}


def told() -> dict[str, dict[str, str]]:
    """Returns, by case and engine, `right`, or what is said instead."""
    return {case: {name: _said(_ENGINES[name], case) for name in installed()} for case in CASES}


def _said(engine: Callable[[str, list[Any]], object], case: str) -> str:
    kind, values, right = CASES[case]
    try:
        found = engine(kind, values)
    except Exception as error:  # each has errors of its own
        return "right" if right == "an error" else f"fails: {type(error).__name__}"
    if type(found) is type(right) and found == right:
        return "right"
    return found if isinstance(found, str) else f"wrong: {found!r}"
