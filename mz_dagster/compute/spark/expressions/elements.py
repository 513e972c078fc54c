"""Elements of arrays by their places, counted from 1; no SQL name leads here."""

from __future__ import annotations

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, strict
from mz_dagster.storage.late_pyspark import functions as sf


@strict("elements_array")
def _elements(invocation: Invocation) -> Outcome:
    array, places = invocation.values
    found = sf.transform(places, lambda place: sf.get(array, place - 1))
    return sf.when(array.isNotNull(), found), None
