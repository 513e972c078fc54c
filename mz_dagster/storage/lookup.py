"""Lookups: rows by the constants that columns of theirs equal, read in this process.

A *lookup* is a conjunction of predicates `column = constant`, `column IS NULL`, a boolean column, and of `AND` and `OR`
of such. Arrow decides them as Spark does: only kinds are taken whose values are equal exactly where their stored forms
are, so no floats, intervals, jsonb or what nests. A constant that the column's type does not hold is equal to nothing.
None of this can fail, so no row's error hangs on whether it is looked at.

Which files a lookup has to read follows from their layouts (`clustering`) and from Delta's statistics; a file with
updates of the error part is always read, since an error anywhere in a collection is an error of it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import chain, product
from math import prod
from operator import and_, or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.functions.casts import short_name
from mz_dagster.functions.membership import constants_of
from mz_dagster.functions.plain import to_plain
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, columns_of
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type, compares_exactly
from mz_dagster.storage.clustering import Bucket
from mz_dagster.storage.hot_files import Ordered
from mz_dagster.storage.key_hash import key_hash, unscaled
from mz_dagster.storage.numerics import stored_value
from mz_dagster.storage.shards import StoredFile
from mz_dagster.storage.skipping import asked_columns, may_pass

#: The bits of the kinds that are stored as integers.
_INTEGERS = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64, Kind.MZ_TIMESTAMP: 64}
_WIDENING = frozenset({"cast_int2_to_int4", "cast_int2_to_int8", "cast_int4_to_int8"})
#: Of which kinds a column and a constant may be, by the function that says whether they are equal.
_COMPARED = {
    **dict.fromkeys(("eq_int2", "eq_int4", "eq_int8"), frozenset({Kind.INT2, Kind.INT4, Kind.INT8})),
    "eq_text": frozenset({Kind.TEXT, Kind.VARCHAR, Kind.ENUM}),
    "eq_bpchar": frozenset({Kind.CHAR}),
    "eq_bool": frozenset({Kind.BOOL}),
    "eq_uuid": frozenset({Kind.UUID}),
    "eq_bytea": frozenset({Kind.BYTEA}),
    "eq_date": frozenset({Kind.DATE}),
    "eq_time": frozenset({Kind.TIME}),
    "eq_timetz": frozenset({Kind.TIMETZ}),
    "eq_timestamp": frozenset({Kind.TIMESTAMP}),
    "eq_timestamptz": frozenset({Kind.TIMESTAMPTZ}),
    "eq_mz_timestamp": frozenset({Kind.MZ_TIMESTAMP}),
    "eq_numeric": frozenset({Kind.NUMERIC}),
}

#: Of which kinds values are ordered by Python as they are by Arrow.
_ORDERED = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.VARCHAR})

#: For so many rows a key, to look it up in their order costs what comparing them does.
_ROWS_OF_A_KEY = 8

#: For some columns, in plain form, all values that they have in rows that pass; None among them is NULL.
_Values = Mapping[int, frozenset[Any]]


class KeyValue(NamedTuple):
    """Says that a column has a value.

    Attributes:
        column: Its name.
        value: The value, which is not NULL.
        is_all: Whether that is all that a lookup asks.
    """

    column: str
    value: Any
    is_all: bool

    def is_sought_in(self, rows: int) -> bool:
        """Returns whether it is looked up in the order of so many rows: always."""
        return True

    def places_in(self, order: Ordered) -> pa.Array:
        """Returns the places of the rows that have it, given the order of a file's rows by the column."""
        first, last = order.range_of(self.value)
        return order.rows.slice(first, last - first)


@dataclass(frozen=True, slots=True)
class ComputedKey:
    """Says that what is computed of a row is one of some numbers: a hash of what it is to be equal to, say.

    A number is kept for each row of a file beside its columns, from the first such lookup on, under a name that tells
    what it is computed of, and how, in any process that reads the file.

    Attributes:
        column: The name; no column of a shard is called so.
        inputs: The columns that it is computed of, at least one.
        compute: Returns the numbers of the rows of a table of these columns, 64 bits each; NULL of a row that every
            lookup finds.
        values: The numbers, each once.
    """

    column: str
    inputs: tuple[str, ...]
    compute: Callable[[pa.Table], pa.Array]
    values: pa.Array

    @property
    def is_all(self) -> bool:
        """Whether that is all that a lookup asks: always."""
        return True

    def is_sought_in(self, rows: int) -> bool:
        """Returns whether they are sooner found in the order of so many rows than all of these are looked at."""
        return rows >= max(budget().ordered_rows, _ROWS_OF_A_KEY * len(self.values))

    def places_in(self, order: Ordered) -> pa.Array:
        """Returns the places of the rows that have one, given the order of a file's rows by the numbers."""
        return order.places_among(pa.concat_arrays([self.values, pa.nulls(1, self.values.type)]))


class KeyValues(NamedTuple):
    """Says that a column has one of some values.

    Attributes:
        column: Its name; it is stored as integers.
        values: The values, of its type, each once. NULL among them is like NULL.
        is_all: Whether that is all that a lookup asks.
        closer: Returns by what fewer rows are found where these values are those of many, or None; None if nothing is.
    """

    column: str
    values: pa.Array
    is_all: bool = False
    closer: Callable[[], ComputedKey | None] | None = None

    def is_sought_in(self, rows: int) -> bool:
        """Returns whether they are sooner found in the order of so many rows than each row is compared with them."""
        return rows >= max(budget().ordered_rows, _ROWS_OF_A_KEY * len(self.values))

    def closer_in(self, found: int) -> ComputedKey | None:
        """Returns by what to look instead, if it is known, where these values are those of so many rows of a file."""
        is_many = found >= max(budget().ordered_rows, 2 * _ROWS_OF_A_KEY * len(self.values))
        return self.closer() if is_many and self.closer is not None else None

    def places_in(self, order: Ordered) -> pa.Array:
        """Returns the places of the rows that have one, given the order of a file's rows by the column."""
        return order.places_among(self.values)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What rows of a collection are asked for.

    Attributes:
        predicates: What is true of them.
        columns: The collection's.
        condition: True for exactly those rows, over the columns as they are stored.
        values: For some of the columns, all values that they have in such rows, in plain form; None is NULL.
    """

    predicates: tuple[Scalar, ...]
    columns: tuple[Column, ...]
    condition: pc.Expression
    values: _Values

    @classmethod
    def of(cls, predicates: Sequence[Scalar], columns: tuple[Column, ...]) -> Lookup | None:
        """Returns the lookup of the rows for which all of some predicates are true; None if it is none.

        Args:
            predicates: Over `columns`; at least one.
            columns: Of the collection.

        Example:
            >>> from mz_dagster.scalars.types import BOOL, INT4, numeric
            >>> a, n = Column("a", INT4), Column("n", numeric(1))
            >>> five = Call("eq_int4", (ColumnRef(0, INT4), Literal(5, INT4)), BOOL)
            >>> none = Call("eq_numeric", (ColumnRef(1, n.type), Literal(Decimal("0.25"), numeric(2))), BOOL)
            >>> found = Lookup.of([five, none], (a, n))
            >>> (found.values[0], found.values[1]) if found else None
            (frozenset({5}), frozenset())
        """
        found = _all_of(predicates, columns)
        return None if found is None else cls(tuple(predicates), columns, *found)

    @property
    def bounds(self) -> tuple[Column, ...]:
        """The columns of whose bounds `files` makes use."""
        return asked_columns(self.predicates, self.columns)

    @property
    def over(self) -> tuple[Column, ...]:
        """The columns that it is about."""
        positions = {position for one in self.predicates for position in columns_of(one)}
        return tuple(self.columns[position] for position in sorted(positions))

    @property
    def key(self) -> KeyValue | None:
        """One column with the only value that it has in rows asked for, if Python orders such values as Arrow does."""
        for position, values in self.values.items():
            (value,) = values if len(values) == 1 else (None,)
            column = self.columns[position]
            if value is not None and column.type.kind in _ORDERED:
                is_all = len(self.predicates) == 1 and _asked(self.predicates[0], self.columns) == (position, values)
                return KeyValue(column.name, value, is_all)
        return None

    def files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Returns those of the files that may hold rows asked for, or updates of the error part."""
        layouts = {(one.bucket.key, one.bucket.count) for one in files if one.bucket is not None}
        numbers = {layout: found for layout in layouts if (found := self._numbers(*layout)) is not None}

        def may_hold(bucket: Bucket | None) -> bool:
            known = None if bucket is None else numbers.get((bucket.key, bucket.count))
            return known is None or bucket is None or bucket.number in known

        return [one for one in files if one.errors or (may_hold(one.bucket) and self._may_pass(one))]

    def _may_pass(self, file: StoredFile) -> bool:
        return all(may_pass(one, self.columns, file.bounds) for one in self.predicates)

    def _numbers(self, key: tuple[int, ...], count: int) -> frozenset[int] | None:
        """Returns in which of a layout's buckets the rows asked for are; None if that is not known, or too many."""
        types = [self.columns[position].type for position in key]
        if not set(key) <= self.values.keys():
            return None
        values = [self.values[position] for position in key]
        if prod(map(len, values)) > budget().bucket_keys:
            return None
        return frozenset(key_hash(one, types) % count for one in product(*values))


_Part = tuple[pc.Expression, _Values]


def _part(predicate: Scalar, columns: Sequence[Column]) -> _Part | None:
    """Returns when a predicate is true, and what follows for columns; None if that cannot be said."""
    match predicate:
        case Call(function="and"):
            return _all_of(predicate.arguments, columns)
        case Call(function="or"):
            return _any_of(predicate.arguments, columns)
        case Literal(value=None | False):
            return pc.scalar(False), {}
        case _:
            found = _asked(predicate, columns)
            return None if found is None else _one_of(*found, columns)


def _all_of(predicates: Sequence[Scalar], columns: Sequence[Column]) -> _Part | None:
    parts = [_part(one, columns) for one in predicates]
    if any(one is None for one in parts):
        return None
    known = [one for one in parts if one is not None]
    values: dict[int, frozenset[Any]] = {}
    for _, one in known:
        values.update({position: values.get(position, found) & found for position, found in one.items()})
    return reduce(and_, (condition for condition, _ in known)), values


def _any_of(predicates: Sequence[Scalar], columns: Sequence[Column]) -> _Part | None:
    by_column: dict[int, frozenset[Any]] = {}
    parts: list[_Part] = []
    for one in predicates:
        if isinstance(one, Literal) and one.value is not True:
            continue  # never true
        if (found := _asked(one, columns)) is not None:
            by_column[found[0]] = by_column.get(found[0], frozenset()) | found[1]
        elif (part := _part(one, columns)) is not None:
            parts.append(part)
        else:
            return None
    parts += [_one_of(position, values, columns) for position, values in by_column.items()]
    if not parts:
        return pc.scalar(False), {}
    if len(parts) > budget().alternatives:
        return None
    common = frozenset.intersection(*(frozenset(values) for _, values in parts))
    values = {one: frozenset(chain.from_iterable(values[one] for _, values in parts)) for one in common}
    return reduce(or_, (condition for condition, _ in parts)), values


def _one_of(position: int, values: frozenset[Any], columns: Sequence[Column]) -> _Part:
    """Returns the condition that a column has one of some values."""
    field, type_ = stored_value(columns[position], columns), arrow_type(columns[position].type)
    conditions = [field.is_null()] if None in values else []
    present = [one for one in values if one is not None]
    if len(present) == 1:
        conditions.append(field == pa.scalar(present[0], type_))
    elif present:
        conditions.append(field.isin(pa.array(present, type_)))
    return reduce(or_, conditions or [pc.scalar(False)]), {position: values}


def _asked(predicate: Scalar, columns: Sequence[Column]) -> tuple[int, frozenset[Any]] | None:
    """Returns the column that a predicate is about, and for which of its values, in plain form, it is true."""
    match predicate:
        case ColumnRef() if predicate.type.kind is Kind.BOOL:
            return predicate.position, frozenset({True})
        case Call(function="is_null", arguments=(ColumnRef() as column,)) if compares_exactly(column.type):
            return column.position, frozenset({None})
        case Call(function="is_among", arguments=(value, Literal(type=array))) if array.element is not None:
            return _equal(
                f"eq_{short_name(array.element.kind)}", value, array.element, constants_of(predicate), columns
            )
        case Call(arguments=(left, right)):
            if isinstance(left, Literal):
                left, right = right, left
            if not isinstance(right, Literal):
                return None
            constants = frozenset() if right.value is None else frozenset({right.value})
            return _equal(predicate.function, left, right.type, constants, columns)
        case _:
            return None


def _equal(
    function: str, column: Scalar, constant: ScalarType, constants: frozenset[Any], columns: Sequence[Column]
) -> tuple[int, frozenset[Any]] | None:
    """Returns which column is compared with constants of a type, and which values it has where it equals one."""
    while isinstance(column, Call) and column.function in _WIDENING:
        (column,) = column.arguments
    if not isinstance(column, ColumnRef):
        return None
    type_ = columns[column.position].type
    if not {type_.kind, constant.kind} <= _COMPARED.get(function, frozenset()):
        return None
    if type_.kind in _INTEGERS:
        edge = 1 << _INTEGERS[type_.kind] - 1
        return column.position, frozenset(one for one in constants if -edge <= one < edge)
    values = (to_plain(one, constant) for one in constants)
    if type_.kind is Kind.NUMERIC:
        scaled = (_at_scale(one, type_.scale) for one in values)
        return column.position, frozenset(one for one in scaled if one is not None)
    return column.position, frozenset(values)


def _at_scale(value: Decimal, scale: int) -> Decimal | None:
    """Returns a number as a column of a scale holds it; None if it has more digits than that."""
    digits = unscaled(value, scale)
    if digits is None or abs(digits) >= 10**38:
        return None
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
