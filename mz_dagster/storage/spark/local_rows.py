"""Frames that hold rows of this process.

pyspark asks the server for a dozen settings before it makes such a frame, and sends a schema beside the rows, to which
the server casts them. Arrow's schema says the same: each of our types has one of Arrow's, and that one of Spark's. A
small step has a hundred such frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mz_dagster.storage.late_pyspark import types
from mz_dagster.storage.spark.connecting import is_connect

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: Of more bytes pyspark makes several messages.
_ONE_MESSAGE = 1_000_000


def frame_of_rows(session: SparkSession, table: pa.Table, schema: types.StructType) -> DataFrame:
    """Returns a frame that itself holds rows.

    Args:
        session: Where it lives.
        table: The rows, in the Arrow types of `storage.arrow_schema`, or in what can be cast to them.
        schema: The names and types of their columns.
    """
    if not is_connect(session) or not table.num_rows or table.nbytes > _ONE_MESSAGE:
        return session.createDataFrame(table, schema)
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LocalRelation
    from pyspark.sql.pandas.types import to_arrow_schema

    rows = table.rename_columns(schema.names).cast(to_arrow_schema(schema, timezone="UTC"))
    connect: Any = session
    return cast("DataFrame", ConnectFrame(LocalRelation(rows), connect))
