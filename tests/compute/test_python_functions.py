"""Functions that run in Python: what Spark's workers get, and what they are given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.compute.spark.expressions import Emitter
from mz_dagster.compute.spark.expressions.pure import on_worker
from mz_dagster.compute.spark.linear_by_workers import worker_of_rows
from mz_dagster.functions import FUNCTIONS
from mz_dagster.functions.evaluation import compiled
from mz_dagster.functions.references import PURE
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import FLOAT8, INT4, TEXT
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types
from mz_dagster.storage.spark import call_with_deadline
from tests.compute.examples import AREAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a worker has: Python and pyspark, and not us.
_WORKER = """
import pickle, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mz_dagster", "sqlglot", "dagster", "deltalake"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
functions = pickle.load(sys.stdin.buffer)
print(len(functions), functions["cast_float8_to_text"](0.1))
"""


def sent(functions: dict[str, Any]) -> bytes:
    """Returns what a worker gets of functions that `udf` was given."""
    assert sf.udf is not None, "who asks for it has what workers run of ours sent by value"
    code: bytes = cloudpickle.dumps(functions)  # type: ignore[no-untyped-call]
    return code


@pytest.fixture(autouse=True)
def rendering() -> None:
    """What renders plans has been used, so that what workers run is sent by value."""
    assert types.LongType() is not None


def test_a_worker_needs_nothing_of_ours() -> None:
    functions = {name: on_worker(PURE[name], fallible=FUNCTIONS[name].fallible) for name in PURE}
    code = sent(functions)
    assert b"mz_dagster" in code, "by value, with the names of where it came from"
    answer = subprocess.run([sys.executable, "-c", _WORKER], input=code, capture_output=True, timeout=60, check=False)
    assert answer.stdout.decode().split()[0] == str(len(PURE)), answer.stderr.decode()


def test_a_function_over_a_scan_of_files_gets_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Spark 4.2 waits for ever for a function that it gives the scan's columns."""
    ensure_exact(spark)
    folder = str(tmp_path / "floats")
    spark.range(5).select((sf.col("id") / 10).alias("x")).write.parquet(folder)
    emitter = Emitter([sf.col("x")])
    text = emitter.emit(Call("cast_float8_to_text", (ColumnRef(0, FLOAT8),), TEXT))
    frame = emitter.stage(spark.read.parquet(folder)).groupBy(text.value.alias("t")).count()
    rows = call_with_deadline(spark, frame.collect, 60)
    assert sorted(row.t for row in rows) == ["0", "0.1", "0.2", "0.3", "0.4"]


def test_a_worker_evaluates_whatever_this_process_does() -> None:
    everything = [compiled(one.scalar) for make in AREAS.values() for one in [*make()][::3]]
    workers = [worker_of_rows([(True, one)], [0], 1, [0]) for one in everything]
    code = cloudpickle.dumps({"rows": workers})  # type: ignore[no-untyped-call]
    assert b"RECORDS" not in code, "a function comes with what it calls, not with the records of all"
    program = _WORKER.rsplit("print(", 1)[0] + 'print(len(functions["rows"]))'
    answer = subprocess.run([sys.executable, "-c", program], input=code, capture_output=True, timeout=120, check=False)
    assert answer.stdout.decode().strip() == str(len(everything)), answer.stderr.decode()


def test_a_worker_of_whole_rows_needs_nothing_of_ours() -> None:
    column = ColumnRef(0, TEXT, True)
    length = Call("length_text", (column,), INT4)
    quotient = Call("divide_int4", (Literal(10, INT4), length), INT4)
    worker = worker_of_rows([(True, compiled(length)), (True, compiled(quotient))], [0], 1, [0, 1])
    code = sent({"rows": worker})
    program = _WORKER.rsplit("print(", 1)[0] + 'print([functions["rows"](False, text) for text in ("abc", "")])'
    answer = subprocess.run([sys.executable, "-c", program], input=code, capture_output=True, timeout=60, check=False)
    assert answer.stdout.decode().strip() == "[(3, 3, None, True), (None, None, '22012 division by zero', True)]", (
        answer.stderr.decode()
    )
