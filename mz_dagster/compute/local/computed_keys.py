"""Lookups by what is computed of columns, as `ON lower(a.email) = b.email`: by a hash kept beside a file's columns.

No order of a collection's rows says where those are of which an expression has a value, so a lookup would evaluate it
for all of them, in each step. So a hash of what it comes to is kept like a column (`storage.lookup.ComputedKey`): it is
worked out once for a file, ordered, and kept in memory or on disk, where other processes find it, and a lookup costs by
what it finds. Rows of other values with the same hash are found, too, and so is each for which the expression fails.

The column's name is a digest of all that its numbers depend on: the expression, the types and the names of the columns
that it reads, and the release, whose functions they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import in_shard
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.local.expressions import RowBatch, evaluated
from mz_dagster.plan.physical import Linear, Physical, ReadCollection
from mz_dagster.plan.rewriting import moved
from mz_dagster.scalars.scalar import Scalar, columns_of, rewrite, walk
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.key_hash import key_hashes
from mz_dagster.storage.lookup import ComputedKey
from mz_dagster.storage.row_numbers import whole
from mz_dagster.version import __version__

#: Of which kinds equal values have one hash, and those that are not stored as one value are floats.
_HASHED = frozenset(
    {
        *(Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.UUID),
        *(Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.MZ_TIMESTAMP, Kind.FLOAT4, Kind.FLOAT8),
    }
)
#: So many rows of a file are evaluated at a time.
_PORTION = 100_000


def computed_key(node: Physical, sought: Sequence[tuple[Scalar, pa.ChunkedArray]]) -> ComputedKey | None:
    """Returns the key by which rows of a collection are found of which scalars have the values of one of some rows.

    None if there is no such key: the scalars' values are not hashed, or not worked out here.

    Args:
        node: The collection, or what is linear over it.
        sought: Scalars over the node's columns, with the values that they must equal.
    """
    read = node.input if isinstance(node, Linear) else node
    if not isinstance(read, ReadCollection) or not sought:
        return None
    maps, scalars = _over_collection(node, [scalar for scalar, _ in sought])
    every = [*(one for _, one in maps), *scalars]
    types = [one.type for one in scalars]
    if not all(map(_is_hashed, types)) or not all(map(is_exact_in_python, every)):
        return None
    if any(arrow_type(type_) != values.type for type_, (_, values) in zip(types, sought, strict=True)):
        return None
    if any(_has_enumeration(one.type) for scalar in every for one in walk(scalar)):
        return None
    arity = read.relation_type.arity
    positions = sorted({one for scalar in every for one in columns_of(scalar) if one < arity})
    if not positions:
        return None
    columns = in_shard(read.relation_type.columns)
    inputs = tuple(columns[position] for position in positions)
    wanted = np.unique(key_hashes([values for _, values in sought], types).view(np.int64))

    def compute(table: pa.Table) -> pa.Array:
        size = max(1, min(_PORTION, budget().scalar_rows))
        portions = (table.slice(start, size) for start in range(0, len(table), size))
        found = [_numbers(one, positions, maps, scalars) for one in portions]
        return pa.concat_arrays([pa.nulls(0, pa.int64()), *found])

    name = _name(inputs, positions, maps, scalars)
    return ComputedKey(name, tuple(one.name for one in inputs), compute, pa.array(wanted))


def _over_collection(
    node: Physical, scalars: Sequence[Scalar]
) -> tuple[tuple[tuple[int, Scalar], ...], tuple[Scalar, ...]]:
    """Returns scalars over a collection's columns and what is mapped of these: the mapped ones that they read, first.

    With their positions, in the order in which they are evaluated. Filters leave no row out: it is not asked for.
    """
    if not isinstance(node, Linear):
        return (), tuple(scalars)
    mfp = node.mfp
    own = tuple(moved(one, dict(enumerate(mfp.projection))) for one in scalars)
    read = frozenset[int]().union(*map(columns_of, own))
    mapped = [one for kind, one in mfp.steps if kind == "map"]
    maps = list[tuple[int, Scalar]]()
    for position, one in reversed(list(enumerate(mapped, start=mfp.arity))):
        if position in read:
            maps.append((position, one))
            read |= columns_of(one)
    return tuple(reversed(maps)), own


def _numbers(
    table: pa.Table, positions: Sequence[int], maps: Sequence[tuple[int, Scalar]], scalars: Sequence[Scalar]
) -> pa.Array:
    """Returns the hash of what scalars are of each row; NULL where one fails."""
    places = {position: place for place, position in enumerate(positions)}
    batch = RowBatch(len(table), lambda position: whole(table.column(places[position])))
    failed = np.zeros(len(table), np.bool_)
    values = []
    for position, one in [*maps, *((None, one) for one in scalars)]:
        outcome = evaluated(one, batch)
        if outcome.is_failed is not None:
            failed |= outcome.is_failed
        if position is None:
            values.append(pa.chunked_array([outcome.array(len(table))]))
        else:
            batch = batch.with_column(position, outcome.array(len(table)))
    hashes = key_hashes(values, [one.type for one in scalars]).view(np.int64)
    return pa.array(hashes, mask=failed)


def _name(
    inputs: Sequence[Column], positions: Sequence[int], maps: Sequence[tuple[int, Scalar]], scalars: Sequence[Scalar]
) -> str:
    """Returns the digest of all that the numbers depend on."""
    columns = [(column.name, column.type) for column in inputs]
    places = {position: place for place, position in enumerate((*positions, *(position for position, _ in maps)))}

    def placed(scalar: Scalar) -> Scalar:
        return rewrite(scalar, lambda ref: replace(ref, position=places[ref.position], name="", nullable=True))

    told = __version__, columns, [placed(one) for _, one in maps], [placed(one) for one in scalars]
    return f"key {hashlib.sha256(repr(told).encode()).hexdigest()}"


def _is_hashed(type_: ScalarType) -> bool:
    return type_.kind in _HASHED


def _has_enumeration(type_: ScalarType) -> bool:
    """Returns whether values of a type are labels, which may become others."""
    parts = [*(one for _, one in type_.fields), *([type_.element] if type_.element is not None else [])]
    return type_.enumeration is not None or any(map(_has_enumeration, parts))
