"""What evaluates columns in this process: our kernels on Arrow and NumPy, against Polars, DuckDB and DataFusion.

`python -m bench columns`; it needs no Spark. Joins, sums, sorts and windows are `column_operators`', what is exact
`column_exactness`', memory and starts `column_limits`'; what came of it is in `results.json` and in the decision on
kernels (`docs/adr`). DataFusion is no dependency: what is not installed is left out.

Here are scalars. All have one thread, and go from an Arrow table to an Arrow table; the time is the median of some
runs, import that of a new process. A `CASE` over a conjunction, a comparison of text and a product of decimals, with
five others at work on the machine's two cores:

    ms                      100 rows  5,000 rows  200,000 rows  import  a product of 60 digits
    Arrow and NumPy (ours)      0.15        0.23         13.86      38  the row's error
    row by row                  0.21       10.40       1373.74       0  the row's error
    Polars 2.1                  0.05        0.14          8.41     190  fails as a whole
    DuckDB 1.5                  0.84        0.92         31.18      70  fails as a whole
    DataFusion 55               0.98        1.34         14.21     792  fails as a whole
"""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from importlib import metadata
from typing import Any

import numpy as np
import pyarrow as pa

from bench import column_operators
from bench.column_exactness import told
from bench.column_limits import joined
from bench.column_limits import started as join_started
from bench.harness import Bench, say, table, timed
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.functions.evaluation import compiled
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, TEXT, numeric
from mz_dagster.storage.plain_cells import plain_cells, stored_cells

SIZES = (100, 5_000, 200_000)
RUNS = 7
#: Within which a large join is made.
LIMIT_MEGABYTES = 32
_SQL = (
    "SELECT CASE WHEN quantity < 24 AND flag = 'R' THEN price * (CAST(1 AS DECIMAL(38,2)) - discount)"
    " ELSE CAST(0 AS DECIMAL(38,4)) END AS value FROM lines"
)
_MONEY = numeric(2)
#: The columns: quantity, flag, price, discount.
_TYPES = (INT4, TEXT, _MONEY, _MONEY)
Prepared = Callable[[], Any]


def lines(rows: int) -> pa.Table:
    """Returns rows as those of TPC-H's `lineitem`, the decimals narrow enough for engines that need room."""
    chosen = np.random.default_rng(7)
    prices, discounts = chosen.integers(0, 10**7, rows), chosen.integers(0, 11, rows)
    return pa.table(
        {
            "quantity": pa.array(chosen.integers(1, 50, rows), pa.int32()),
            "flag": pa.array(chosen.choice(["R", "A", "N"], rows)),
            "price": pa.array([Decimal(int(one)).scaleb(-2) for one in prices], pa.decimal128(38, 2)),
            "discount": pa.array([Decimal(int(one)).scaleb(-2) for one in discounts], pa.decimal128(38, 2)),
        }
    )


def expression() -> Scalar:
    """Returns what `_SQL` computes."""
    quantity, flag, price, discount = (ColumnRef(place, type_) for place, type_ in enumerate(_TYPES))
    is_wanted = Call(
        "and",
        (
            Call("lt_int4", (quantity, Literal(24, INT4)), BOOL),
            Call("eq_text", (flag, Literal("R", TEXT)), BOOL),
        ),
        BOOL,
    )
    rest = Call("subtract_numeric", (Literal(Decimal("1.00"), _MONEY), discount), _MONEY)
    value = Call("multiply_numeric", (price, rest), numeric(4))
    return If(is_wanted, value, Literal(Decimal("0.0000"), numeric(4)))


def by_kernels(frame: pa.Table) -> Prepared:
    """Returns what evaluates the expression by our kernels."""
    scalar, columns = expression(), [one.combine_chunks() for one in frame.columns]
    return lambda: evaluated(scalar, RowBatch(len(frame), columns.__getitem__))


def by_row(frame: pa.Table) -> Prepared:
    """Returns what evaluates the expression row by row."""
    scalar = expression()

    def run() -> pa.Array:
        evaluate = compiled(scalar)
        cells = [plain_cells(one, type_) for one, type_ in zip(frame.columns, _TYPES, strict=True)]
        return stored_cells([evaluate(row) for row in zip(*cells, strict=True)], scalar.type)

    return run


def by_duckdb(frame: pa.Table) -> Prepared:
    """Returns what evaluates the expression by DuckDB, whose decimals must be narrowed for a product to have room."""
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", frame)
    narrow = "WITH lines AS (SELECT quantity, flag, price::DECIMAL(18,2) AS price, discount::DECIMAL(18,2) AS discount"
    sql = f"{narrow} FROM given) {_SQL.replace('DECIMAL(38,2)', 'DECIMAL(17,2)')}"
    return lambda: connection.execute(sql).to_arrow_table()


def by_polars(frame: pa.Table) -> Prepared:
    """Returns what evaluates the expression by Polars."""
    pl = importlib.import_module("polars")
    given = pl.from_arrow(frame)
    one, zero = pl.lit(Decimal("1.00")), pl.lit(Decimal("0.0000"))
    wanted = (pl.col("quantity") < 24) & (pl.col("flag") == "R")
    value = pl.when(wanted).then(pl.col("price") * (one - pl.col("discount"))).otherwise(zero)
    return lambda: given.select(value.alias("value")).to_arrow()


def by_datafusion(frame: pa.Table) -> Prepared:
    """Returns what evaluates the expression by DataFusion."""
    datafusion = importlib.import_module("datafusion")
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("given", [frame.to_batches()])
    narrow = "WITH lines AS (SELECT quantity, flag, CAST(price AS DECIMAL(15,2)) AS price,"
    sql = f"{narrow} CAST(discount AS DECIMAL(15,2)) AS discount FROM given) {_SQL.replace('38,2', '15,2')}"
    return lambda: context.sql(sql).to_arrow_table()


CANDIDATES: Mapping[str, tuple[str, Callable[[pa.Table], Prepared]]] = {
    "Arrow and NumPy (ours)": ("pyarrow.compute", by_kernels),
    "row by row": ("decimal", by_row),
    "Polars": ("polars", by_polars),
    "DuckDB": ("duckdb", by_duckdb),
    "DataFusion": ("datafusion", by_datafusion),
}


def overflows(candidate: str) -> str:
    """Returns what becomes of a product of two decimals that has more than 38 digits."""
    large = pa.table({"price": pa.array([Decimal(10**30)] * 2, pa.decimal128(38, 2)), "flag": ["R", "R"]})
    large = large.append_column("quantity", pa.array([1, 1], pa.int32()))
    large = large.append_column("discount", pa.array([-Decimal(10**30)] * 2, pa.decimal128(38, 2)))
    frame = large.select(["quantity", "flag", "price", "discount"])
    try:
        found = CANDIDATES[candidate][1](frame)()
    except Exception as error:  # each has errors of its own
        return f"fails: {type(error).__name__}"
    errors = getattr(found, "errors", None)
    if errors is not None:
        return f"an error of the row: {errors[0].as_py()}"
    return f"answers {found.column(0).to_pylist()[0]}"


def milliseconds(run: Prepared) -> float:
    """Returns how long a run takes, after one that is not counted."""
    run()
    return statistics.median(timed(run)[0] for _ in range(RUNS)) * 1000


def started(module: str) -> float:
    """Returns how long a new process takes to import a module beside pyarrow, in milliseconds."""
    code = f"import pyarrow, time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return min(float(one.stdout) for one in runs) * 1000


def _scalars(bench: Bench, sizes: Sequence[int]) -> None:
    """Measures an expression by all that is installed, prints and records."""
    rows = []
    for name, (module, prepare) in CANDIDATES.items():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            say(f"{name} is not installed")
            continue
        try:
            found: list[object] = [milliseconds(prepare(lines(size))) for size in sizes]
        except Exception as error:
            found = [type(error).__name__] * len(sizes)
        try:
            told = overflows(name)
        except Exception as error:
            told = f"fails: {type(error).__name__}"
        row = (*found, started(module), told)
        columns = (*(f"{size:,} rows" for size in sizes), "import", "a product of 60 digits")
        bench.results.record(f"columns.scalars.{name}", dict(zip(columns, row, strict=True)))
        rows.append((name, *row))
    print(table(("ms", *columns), rows))


def _operators(bench: Bench, sizes: Sequence[tuple[int, int]]) -> None:
    """Measures joins, sums, sorts and windows, prints and records."""
    names = column_operators.installed()
    for few, many in sizes:
        rows = []
        for operator, timings in column_operators.measured(few, many, bench.repetitions).items():
            ratios = column_operators.over_ours(timings)
            ours = timings[column_operators.OURS].median * 1000
            bench.results.record(
                f"columns.operators.{operator}.{few} with {many}",
                {"ours_ms": ours, "over_ours": ratios, "repetitions": bench.repetitions},
            )
            rows.append((operator, ours, *(ratios.get(name, "") for name in names[1:])))
        print(table((f"{few:,} with {many:,}", "ours, ms", *(f"{name} / ours" for name in names[1:])), rows))


def _limits(bench: Bench, few: int, many: int) -> None:
    """Measures what the large join takes of memory, and what a start takes, prints and records."""
    rows = []
    for name in column_operators.installed():
        found: list[object] = []
        for limit in (0, LIMIT_MEGABYTES):
            folder = bench.new_path("spilled")
            folder.mkdir()
            ended = joined(name, few, many, limit, folder)
            key = f"with_{limit}_megabytes" if limit else "without_a_limit"
            bench.results.record(f"columns.memory.{name}.{key}", ended)
            found.append(", ".join(f"{key} {value}" for key, value in ended.items()))
        start = join_started(name, bench.work, bench.repetitions)
        bench.results.record(f"columns.start_ms.{name}", start)
        rows.append((name, *found, start))
    print(table(("memory", "without a limit", f"with {LIMIT_MEGABYTES} megabytes", "start, ms"), rows))


def run(bench: Bench) -> None:
    """Measures all that is installed, prints and records."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sizes = [
        (max(2, round(few * bench.scale)), max(4, round(many * bench.scale))) for few, many in column_operators.SIZES
    ]
    versions = {name: metadata.version(name) for name in ("pyarrow", "numpy", "polars", "duckdb")}
    bench.results.record("columns.versions", versions)
    cases = told()
    bench.results.record("columns.exactness", cases)
    names = column_operators.installed()
    print(table(("exactness", *names), [(case, *(found[name] for name in names)) for case, found in cases.items()]))
    _limits(bench, *sizes[-1])
    _scalars(bench, [max(2, round(size * bench.scale)) for size in SIZES])
    _operators(bench, sizes)
