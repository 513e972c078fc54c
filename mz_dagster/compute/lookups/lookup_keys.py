"""The keys of a lookup, in this process: which buckets may hold them, and within which bounds they lie.

What changes in a step is little, so the keys that it looks up are few; known here, they say more than a plan of Spark's
could. A collection is laid out by the hash of a key and sorted by it, so the keys' hashes tell the files that hold
them, and their bounds the pages of those files: keys that lie together, as those of what came or went last, are in few
of them.

Keys are values of which one stands for all equal ones, as those that rows are grouped and joined by are; so they are
looked up by what is stored. Where Arrow does not compare that exactly, the hash alone tells: a lookup finds more than
was asked for, and never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.arrow_schema import arrow_type, compares_exactly
from mz_dagster.storage.clustering import TouchedHashes, moduli
from mz_dagster.storage.key_hash import key_hashes
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types
from mz_dagster.storage.lookup import KeyValues
from mz_dagster.storage.numerics import stored_value
from mz_dagster.storage.plain_cells import plain_cells
from mz_dagster.storage.row_numbers import distinct_rows
from mz_dagster.storage.shards import StoredFile
from mz_dagster.storage.spark import frame_of_rows
from mz_dagster.storage.spark.config import MOST_IN, PAGE_ROWS
from mz_dagster.storage.spark.schema import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

#: With so many keys for each bucket hardly a bucket has none.
_KEYS_PER_BUCKET = 4
#: Into how many ranges the keys are gathered at most.
_MOST_RANGES = 16
#: Ranges that cover more of what lies between the first and the last key are no better than that one.
_WORTH_PARTING = 0.5
#: To have Spark look for the pages is worth it if these are less than such a part of all.
_WORTH_SKIPPING = 0.5
_RANGED = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.DATE, Kind.MZ_TIMESTAMP})

_AS_INTEGERS = _RANGED | {Kind.TIMESTAMP, Kind.TIMESTAMPTZ}


@dataclass(frozen=True)
class LookupKeys:
    """The keys by which rows of a collection are looked up, each once. NULL is a key, equal to itself.

    Attributes:
        columns: The collection's columns that they must equal, by position.
        table: A column for each of `columns`, in their order, and a row for each key.
    """

    columns: Mapping[int, Column]
    table: pa.Table

    @classmethod
    def of(cls, columns: Mapping[int, Column], parts: Iterable[pa.Table]) -> LookupKeys:
        """Returns the keys that tables have for rows.

        Args:
            columns: As the attribute.
            parts: Tables with a column for each of `columns`, in their order, whose rows may repeat.
        """
        schema = pa.schema([pa.field(f"k{i}", arrow_type(one.type)) for i, one in enumerate(columns.values())])
        tables = [one.rename_columns(schema.names).cast(schema) for one in parts]
        whole = pa.concat_tables([schema.empty_table(), *tables])
        return cls(columns, distinct_rows(whole, signs=False))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def are_few(self) -> bool:
        """Whether they are few enough to be sent to Spark with each use."""
        return len(self) <= budget().keys and self.table.nbytes <= budget().key_bytes

    def hashes_in(self, files: Sequence[StoredFile]) -> list[TouchedHashes]:
        """Returns which hashes the keys have, for each layout of files by which it is likely to leave some out."""
        found = []
        for layout, modulus in moduli(files, self.columns).items():
            if len(self) <= _KEYS_PER_BUCKET * modulus:
                found.append(TouchedHashes(layout, modulus, frozenset(one % modulus for one in self._hashes(layout))))
        return found

    def matching(self, session: SparkSession, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """Returns the rows of a frame whose columns, of these names and in the order of `columns`, equal a key."""
        keys = frame_of_rows(session, self.table, key_schema(self.columns.values()))
        equal = [
            sf.col(quoted(name)).eqNullSafe(sf.col(key)) if found.null_count else sf.col(quoted(name)) == sf.col(key)
            for name, key, found in zip(names, self.table.column_names, self.table.columns, strict=True)
        ]
        return frame.join(keys.hint("broadcast"), reduce(and_, equal), "left_semi")

    def condition(self, columns: Sequence[Column]) -> pc.Expression | None:
        """Returns what is true of rows whose columns each have the value of some key, and perhaps of others.

        It is over columns as they are stored.

        Args:
            columns: All of the collection.
        """
        parts = []
        for column, values in zip(self.columns.values(), self.table.columns, strict=True):
            if not compares_exactly(column.type):
                continue
            stored = stored_value(column, columns)
            one = stored.isin(values.drop_null().combine_chunks())
            parts.append(one | stored.is_null() if values.null_count else one)
        return reduce(and_, parts) if parts else None

    @property
    def values(self) -> KeyValues | None:
        """The values of one column that rows with some key have: of those stored as integers, that of most."""
        found = [
            (column.name, stored.unique())
            for column, stored in zip(self.columns.values(), self.table.columns, strict=True)
            if column.type.kind in _AS_INTEGERS
        ]
        return KeyValues(*max(found, key=lambda one: len(one[1]))) if found else None

    def within(self, files: Sequence[StoredFile]) -> SparkColumn | None:
        """Returns a predicate that every row with one of the keys passes, over columns under the collection's names.

        None unless it lets Spark leave out most pages of the files. Keys that lie together are looked for by ranges,
        whose bounds are constants, other ones each time, so that code that has them in it is compiled anew; others, if
        they are few, as a set.

        Args:
            files: Those to read, with the bounds of their columns.
        """
        for position, column in self.columns.items():
            laid_out = [one for one in files if one.bucket is not None and one.bucket.key[0] == position]
            ranges = self.ranges(position) if laid_out else None
            if ranges is None:
                continue
            values = {one for one in self._plain(position) if one is not None}
            rows = sum(one.rows for one in laid_out)
            by_ranges = _part_within(ranges, laid_out, column)
            one_by_one = len(values) * PAGE_ROWS / rows if rows and len(values) <= MOST_IN else 1.0
            if min(by_ranges, one_by_one) >= _WORTH_SKIPPING:
                continue
            own = sf.col(quoted(column.name))
            if one_by_one < by_ranges:
                parts = [own.isin(*(_literal(one, column) for one in sorted(values)))]
            else:
                parts = [own.between(_literal(a, column), _literal(b, column)) for a, b in ranges]
            if self._stored(position).null_count:
                parts.append(own.isNull())
            return reduce(lambda left, right: left | right, parts) if parts else sf.lit(False)
        return None

    def ranges(self, position: int) -> list[tuple[int, int]] | None:
        """Returns ranges, ends included, in which the keys' values of a column lie, NULL apart; None if it has none.

        Example:
            >>> from mz_dagster.scalars.types import INT8
            >>> values = pa.table({"k": pa.array([3, 4, 5, 900, 901, None], pa.int64())})
            >>> LookupKeys.of({2: Column("k", INT8)}, [values]).ranges(2)
            [(3, 5), (900, 901)]
        """
        column = self.columns[position]
        if column.type.kind not in _RANGED:
            return None
        values = sorted(one for one in set(self._plain(position)) if one is not None)
        if not values:
            return []
        gaps = [n for n in range(1, len(values)) if values[n] - values[n - 1] > 1]
        widest = sorted(gaps, key=lambda n: values[n - 1] - values[n])[: _MOST_RANGES - 1]
        ends = [0, *sorted(widest), len(values)]
        ranges = [(values[a], values[b - 1]) for a, b in pairwise(ends)]
        whole = values[-1] - values[0] + 1
        covered = sum(b - a + 1 for a, b in ranges)
        return ranges if covered < _WORTH_PARTING * whole else [(values[0], values[-1])]

    def _hashes(self, layout: tuple[int, ...]) -> list[int]:
        kinds = [self.columns[position].type for position in layout]
        found: list[int] = key_hashes([self._stored(position) for position in layout], kinds).tolist()
        return found

    def _stored(self, position: int) -> pa.ChunkedArray:
        """Returns the keys' values of a column."""
        return self.table.column(list(self.columns).index(position))

    def _plain(self, position: int) -> list[Any]:
        """Returns the plain forms of the keys' values of a column."""
        return plain_cells(self._stored(position), self.columns[position].type)


def fetched(frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
    """Returns the rows of a frame, each once, None if they are more than `Budget.keys`; runs a job over it.

    Args:
        frame: With the columns `k0`, `k1`, ...
        columns: Theirs, whose values are keys.
    """
    # Without being told the columns, the client would have all of it analyzed once more to know them.
    found = frame.distinct().limit(budget().keys + 1).to(key_schema(columns)).toArrow()
    return found if found.num_rows <= budget().keys else None


def key_schema(columns: Iterable[Column]) -> types.StructType:
    """Returns Spark's schema of a table of keys that are values of these columns."""
    return types.StructType([types.StructField(f"k{i}", spark_type(one.type)) for i, one in enumerate(columns)])


def _literal(value: int, column: Column) -> SparkColumn:
    # Python does not have all dates.
    is_date = column.type.kind is Kind.DATE
    return sf.date_from_unix_date(sf.lit(value)) if is_date else sf.lit(value).cast(spark_type(column.type))


def _part_within(ranges: Sequence[tuple[int, int]], files: Sequence[StoredFile], column: Column) -> float:
    """Returns about which part of the files' rows lies within some ranges of a column that they are sorted by."""
    rows = within = 0.0
    for one in files:
        known = one.bounds.get(column.name)
        rows += one.rows
        if known is None or not isinstance(known.least, int) or not isinstance(known.greatest, int):
            within += one.rows
            continue
        least, greatest = known.least, known.greatest
        met = sum(max(0, min(b, greatest) - max(a, least) + 1) for a, b in ranges)
        within += one.rows * met / (greatest - least + 1)
    return within / rows if rows else 1.0
