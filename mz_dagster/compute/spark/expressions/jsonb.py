"""What becomes a jsonb, and what a jsonb becomes, without Python: it is stored as its canonical text.

So is a json, as the text that was written.
"""

from __future__ import annotations

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, strict
from mz_dagster.storage.late_pyspark import functions as sf


@strict("cast_jsonb_to_text", "cast_json_to_text", "cast_jsonb_to_json")
def _to_text(invocation: Invocation) -> Outcome:
    return invocation.values[0], None


@strict("to_jsonb_bool", "to_jsonb_int2", "to_jsonb_int4", "to_jsonb_int8", "to_jsonb_numeric")
def _of_number(invocation: Invocation) -> Outcome:
    return invocation.values[0].cast("string"), None


@strict("to_jsonb_date", "to_jsonb_timestamp")
def _of_moment(invocation: Invocation) -> Outcome:
    text = invocation.values[0].cast("string")
    return sf.concat(sf.lit('"'), sf.replace(text, sf.lit(" "), sf.lit("T")), sf.lit('"')), None


@strict("to_jsonb_timestamptz")
def _of_instant(invocation: Invocation) -> Outcome:
    text = invocation.values[0].cast("string")
    return sf.concat(sf.lit('"'), sf.replace(text, sf.lit(" "), sf.lit("T")), sf.lit('+00:00"')), None
