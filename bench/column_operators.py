"""Joins, sums, sorts, windows on columns: our kernels against Arrow's, Polars', DuckDB's and DataFusion's.

All go from an Arrow table to an Arrow table by one thread; what is counted is processor time, the engines taking turns.
What is not installed is left out, and an engine that has no such operator, too.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.harness import Ratio, Timing
from mz_dagster.budget import budget, budget_of
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.expressions.numbers import decimals
from mz_dagster.compute.local.matching import matches
from mz_dagster.compute.local.staged import staged_updates
from mz_dagster.compute.local.sums import Sums, summed_by_key
from mz_dagster.compute.local.windowed import windowed_updates
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection, Staged, StageFunction, TopRows, Windowed
from mz_dagster.plan.relation import ColumnOrder, WindowFunction
from mz_dagster.scalars.types import INT4, INT8, TEXT, Column, RelationType, numeric
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.row_numbers import order_by

#: How many rows the one side of a join has and the other, of which the latter is what is summed, sorted and so on.
SIZES = ((100, 10_000), (5_000, 200_000), (200_000, 2_000_000))
OURS = "ours"
#: What is too short is repeated for so many seconds.
_LEAST_SECONDS = 0.02
_ROWS = RelationType((Column("c0", INT8), Column("c1", numeric(2)), Column("c2", INT8), Column("c3", TEXT)))
_AMOUNT = pa.decimal128(38, 2)
_BY_AMOUNT = (ColumnOrder(1, descending=True, nulls_first=False), ColumnOrder(2, descending=False, nulls_first=False))

Run = Callable[[], pa.Table]


@dataclass(frozen=True)
class Tables:
    """Is what operators work on.

    Attributes:
        few: The smaller side of a join: `k`, `t` (the same as text), and `i`, which row it is.
        many: The larger side: `k`, `t` and `j`.
        rows: As many as `many`: `c0`, of a hundred rows each, amounts `c1`, `c2`, which differ, and texts `c3`.
        changes: `rows` as updates, and half of them once more, taken back.
    """

    few: pa.Table
    many: pa.Table
    rows: pa.Table
    changes: pa.Table

    @classmethod
    def of(cls, few: int, many: int) -> Tables:
        """Returns tables of these sizes, each row of the one side meeting one of the other on average."""
        chosen = np.random.default_rng(7)
        keys = chosen.integers(0, many, few), chosen.integers(0, many, many)
        left, right = (
            pa.table({"k": one, "t": pc.cast(pa.array(one), pa.string()), name: np.arange(len(one))})
            for one, name in zip(keys, ("i", "j"), strict=True)
        )
        groups = max(1, many // 100)
        names = pa.array([f"customer {number}" for number in range(groups)])
        rows = pa.table(
            {
                "c0": chosen.integers(0, groups, many),
                "c1": decimals(chosen.integers(-(10**9), 10**9, many), _AMOUNT),
                "c2": chosen.permutation(many),
                "c3": names.take(pa.array(chosen.integers(0, groups, many))),
            }
        )
        half = rows.slice(0, many // 2)
        return cls(left, right, rows, pa.concat_tables([updates(rows, 1), updates(half, -1)]))


def updates(rows: pa.Table, diff: int) -> pa.Table:
    """Returns rows as updates at one time."""
    count = len(rows)
    meta = [pa.array(np.full(count, 1)), pa.array(np.full(count, diff)), pa.nulls(count, pa.string())]
    columns = [one.combine_chunks() for one in rows.columns]
    return pa.Table.from_arrays([*columns, *meta], schema=update_schema(_ROWS.columns))


def _our_join(name: str) -> Callable[[Tables], Run]:
    def prepare(given: Tables) -> Run:
        few, many = given.few, given.many

        def run() -> pa.Table:
            found = matches([(few.column(name), many.column(name))], len(few), len(many), 2**31)
            return pa.table([few.column("i").take(pa.array(found[0])), many.column("j").take(pa.array(found[1]))], "ij")

        return run

    return prepare


def _our_sum(given: Tables) -> Run:
    columns = [Column("c0", INT8), Column("c1", INT8), Column("c2", numeric(2))]
    sums = Sums(1, update_schema(columns))
    changes = updates(given.rows, 1).select([0, 1, *range(4, 7)])
    return lambda: summed_by_key(changes, sums.schema.empty_table(), sums).select([0, 1, 2])


def _our_sort(given: Tables) -> Run:
    keys = given.rows.select(["c3", "c2"])
    return lambda: given.rows.select(["c2"]).take(pa.array(order_by(CodedRows(keys, len(keys)).sorted_by)))


def _our_stage(
    function: StageFunction, results: Sequence[Column], updated: Callable[..., pa.Table]
) -> Callable[[Tables], Run]:
    state = RelationType((Column("level", INT4, False), Column("bucket", INT8, False), *_ROWS.columns, *results))
    node = Staged(ReadCollection(GlobalId("rows"), _ROWS), (0,), function, (1,), False, state, True)
    nothing = update_schema([replace(one, name=f"c{i}") for i, one in enumerate(state.columns)]).empty_table()

    def prepare(given: Tables) -> Run:
        changes, many = updates(given.rows, 1), replace(budget(), versioned_rows=2**31)

        def run() -> pa.Table:
            with budget_of(many):
                return updated(changes, node, lambda keys: nothing).select(range(2, len(state.columns)))

        return run

    return prepare


_OURS: dict[str, Callable[[Tables], Run]] = {
    "join by integers": _our_join("k"),
    "join by texts": _our_join("t"),
    "sum by key": _our_sum,
    "sort": _our_sort,
    "row_number": _our_stage(
        Windowed(_BY_AMOUNT, (WindowFunction("row_number", (), INT8, False),)), [Column("r", INT8)], windowed_updates
    ),
    "first of each key": _our_stage(TopRows(_BY_AMOUNT, 1), [], staged_updates),
    "consolidate": lambda given: lambda: summed(given.changes).select([*range(4), 5]),
}
#: By operator, what DuckDB and DataFusion are asked.
_SQL = {
    "join by integers": "SELECT i, j FROM few JOIN many ON few.k = many.k",
    "join by texts": "SELECT i, j FROM few JOIN many ON few.t = many.t",
    "sum by key": "SELECT c0, count(*), sum(c1) FROM given GROUP BY c0",
    "sort": "SELECT c2 FROM given ORDER BY c3, c2",
    "row_number": "SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY c1 DESC, c2) FROM given",
    "first of each key": "SELECT c0, c1, c2, c3 FROM (SELECT *,"
    " row_number() OVER (PARTITION BY c0 ORDER BY c1 DESC, c2) AS place FROM given) AS placed WHERE place = 1",
    "consolidate": "SELECT c0, c1, c2, c3, sum(mz_diff) FROM changes GROUP BY c0, c1, c2, c3, mz_timestamp, mz_error"
    " HAVING sum(mz_diff) <> 0",
}
OPERATORS = tuple(_SQL)


def _ours(operator: str, given: Tables) -> Run | None:
    return _OURS[operator](given)


def _by_arrow(operator: str, given: Tables) -> Run | None:
    few, many, rows = given.few, given.many, given.rows
    match operator:
        case "join by integers" | "join by texts":
            key = "k" if operator == "join by integers" else "t"
            one, other = few.select([key, "i"]), many.select([key, "j"])
            return lambda: one.join(other, key, join_type="inner", use_threads=False).select(["i", "j"])
        case "sum by key":
            asked = [([], "count_all"), ("c1", "sum")]
            return lambda: rows.group_by("c0", use_threads=False).aggregate(asked).select([0, 1, 2])
        case "sort":
            keys = [("c3", "ascending"), ("c2", "ascending")]
            return lambda: rows.select(["c2"]).take(pc.sort_indices(rows, sort_keys=keys))
    return None  # it has no windows; our `consolidate` is its `group_by`


def _by_polars(operator: str, given: Tables) -> Run | None:
    pl = importlib.import_module("polars")
    few, many, rows, changes = map(pl.from_arrow, (given.few, given.many, given.rows, given.changes))
    order = {"descending": [True, False]}
    place = (pl.int_range(pl.len()) + 1).over("c0").alias("r")
    by = ["c0", "c1", "c2", "c3", "mz_timestamp", "mz_error"]
    total = pl.col("mz_diff").sum()
    plans: dict[str, Callable[[], Any]] = {
        "join by integers": lambda: few.join(many, on="k").select("i", "j"),
        "join by texts": lambda: few.join(many, on="t").select("i", "j"),
        "sum by key": lambda: rows.group_by("c0").agg(pl.len(), pl.col("c1").sum()),
        "sort": lambda: rows.sort("c3", "c2").select("c2"),
        "row_number": lambda: rows.sort("c1", "c2", **order).with_columns(place),
        "first of each key": lambda: rows.sort("c1", "c2", **order).unique("c0", keep="first", maintain_order=True),
        "consolidate": lambda: changes.group_by(by).agg(total).filter(pl.col("mz_diff") != 0).drop(by[4:]),
    }
    return lambda: plans[operator]().to_arrow()


def _by_duckdb(operator: str, given: Tables) -> Run | None:
    connection = importlib.import_module("duckdb").connect()
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    for name, table in _named(given):
        connection.register(name, table)
    return lambda: connection.execute(_SQL[operator]).to_arrow_table()


def _by_datafusion(operator: str, given: Tables) -> Run | None:
    datafusion = importlib.import_module("datafusion")
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    for name, table in _named(given):
        context.register_record_batches(name, [table.to_batches()])
    return lambda: context.sql(_SQL[operator]).to_arrow_table()


def _named(given: Tables) -> list[tuple[str, pa.Table]]:
    return [("few", given.few), ("many", given.many), ("given", given.rows), ("changes", given.changes)]


ENGINES: Mapping[str, Callable[[str, Tables], Run | None]] = {
    OURS: _ours,
    "Arrow": _by_arrow,
    "Polars": _by_polars,
    "DuckDB": _by_duckdb,
    "DataFusion": _by_datafusion,
}


def installed() -> list[str]:
    """Returns the engines that can be measured here."""
    modules = {"Polars": "polars", "DuckDB": "duckdb", "DataFusion": "datafusion"}
    return [name for name in ENGINES if name not in modules or find_spec(modules[name]) is not None]


def measured(few: int, many: int, repetitions: int) -> dict[str, dict[str, Timing]]:
    """Returns, by operator and engine, the processor time that it takes, in seconds."""
    found = {}
    given = Tables.of(few, many)
    for operator in OPERATORS:
        prepared = {name: ENGINES[name](operator, given) for name in installed()}
        runs = {name: run for name, run in prepared.items() if run is not None}
        times: dict[str, int] = {}
        for name, run in runs.items():
            run()
            times[name] = max(1, int(_LEAST_SECONDS / max(_seconds(run, 1), 1e-6)))
        rounds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repetitions):
            for name, run in runs.items():
                rounds[name].append(_seconds(run, times[name]))
        found[operator] = {name: Timing(tuple(one)) for name, one in rounds.items()}
    return found


def _seconds(run: Run, times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - start) / times


def over_ours(timings: Mapping[str, Timing]) -> dict[str, Ratio]:
    """Returns how many times as long as ours the others take."""
    return {name: Ratio(one, timings[OURS]) for name, one in timings.items() if name != OURS}
