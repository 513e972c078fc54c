"""First loads: rows written into sources' shards as the sources' own batches are, without files that say the same."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.harness import say, timed
from mz_dagster.adapter import Engine
from mz_dagster.catalog import Seal, Sealed, TickMinted
from mz_dagster.compute import SourceNode
from mz_dagster.formalism import Antichain
from mz_dagster.storage import BatchWriter
from mz_dagster.storage.spark.schema import spark_type


class LoadLost(Exception):
    """Reports that another process moved a project that was being made."""


def load(engine: Engine, timeline: str, rows_of: Callable[[SparkSession, str], tuple[DataFrame, int]]) -> int:
    """Writes the first rows of every source of a timeline, closes a tick after them, and returns it.

    Args:
        engine: The project, whose sources nothing has ever filled.
        timeline: The timeline.
        rows_of: Returns a source's rows by its name, with its columns, and how many they are.
    """
    catalog = engine.catalog
    session, shards = engine.spark.open()
    tick = catalog.write_ts(timeline, engine.now(timeline))
    if not isinstance(catalog.mint_tick(timeline, tick, {}, None), TickMinted):
        raise LoadLost(f"tick {tick} of timeline {timeline} was not minted")
    meta: dict[str, Column] = {
        "mz_timestamp": F.lit(tick).cast("bigint"),
        "mz_diff": F.lit(1).cast("bigint"),
        "mz_error": F.lit(None).cast("string"),
    }
    seals = []
    with BatchWriter(catalog, holder=engine.holder) as writer:
        for node in engine.graph(timeline):
            if not isinstance(node, SourceNode):
                continue
            row = catalog.collection(node.id)
            rows, count = rows_of(session, node.name)
            data = [F.col(one.name).cast(spark_type(one.type)).alias(one.name) for one in row.columns]
            updates = rows.select(*data, *(value.alias(name) for name, value in meta.items()))
            upper = Antichain.of(row.upper.lattice, tick + 1)
            seconds, (batch, stats) = timed(
                writer.write, shards, row, row.upper, upper, updates, key=node.key, rows=count
            )
            say(f"  {node.name}: {stats.rows} rows in {seconds:.1f} s")
            seals.append(Seal(row.id, row.upper, upper, batch, stats))
        sealed = catalog.seal(seals)
    if not isinstance(sealed, Sealed):
        raise LoadLost(f"the first load was not sealed: {sealed}")
    return tick
