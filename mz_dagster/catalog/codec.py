"""How frontiers, columns and keys are written as text in the catalog: canonical JSON, so equal values are equal text.

That makes a compare-and-set on a frontier a comparison of two strings in SQL, for any lattice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mz_dagster.catalog.rows import BatchFile, Keys
from mz_dagster.catalog.shapes import Shape, Shapes
from mz_dagster.errors import DamageError
from mz_dagster.formalism import EPOCH_MS, NATURAL, Antichain, IntegerTimes
from mz_dagster.scalars.type_ids import VARYING
from mz_dagster.scalars.types import (
    TEXT,
    Column,
    Enumeration,
    Kind,
    Modifier,
    ScalarType,
    array_of,
    dimensioned,
    enum_of,
    record_of,
)

LATTICES: dict[str, IntegerTimes] = {"epoch_ms": EPOCH_MS, "natural": NATURAL}
"""The lattices that a timeline can be declared with, by name."""


def json_text(value: Any) -> str:
    """Returns the one JSON text of a value: keys sorted, no spaces.

    Example:
        >>> json_text({"b": [1], "a": None})
        '{"a":null,"b":[1]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def frontier_text(frontier: Antichain[int]) -> str:
    """Returns the text of a frontier.

    Example:
        >>> frontier_text(Antichain.of(EPOCH_MS, 5)), frontier_text(Antichain.empty(EPOCH_MS))
        ('[5]', '[]')
    """
    return json_text(frontier.to_json())


@lru_cache(maxsize=4096)  # collections that are stepped together stand at the same frontiers
def frontier_of(lattice: IntegerTimes, text: str) -> Antichain[int]:
    """Returns the frontier of a text.

    Raises:
        DamageError: It is no such text.
    """
    try:
        return Antichain.from_json(lattice, json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamageError(f"a frontier in the catalog is damaged: {text!r}", detail=f"{error}.") from error


def file_list_text(files: Sequence[BatchFile]) -> str:
    """Returns the text of a batch's files.

    Example:
        >>> file_list_text([BatchFile("mz_batch=1/mz_bucket=all/a.parquet", 2, 0, 900, "0f", (5, 6))])
        '[["mz_batch=1/mz_bucket=all/a.parquet",2,0,900,"0f",[5,6]]]'
    """
    return json_text([[one.path, one.rows, one.errors, one.bytes, one.hash, one.times] for one in files])


@lru_cache(maxsize=4096)  # every list of batches asks again, of the same ones
def file_list_of(text: str) -> tuple[BatchFile, ...]:
    """Returns the files of a text.

    Raises:
        ValueError: It is no such text.
    """
    found = []
    for path, rows, errors, size, hash, times in json.loads(text):
        found.append(BatchFile(path, rows, errors, size, hash, None if times is None else (times[0], times[1])))
    return tuple(found)


def columns_text(columns: tuple[Column, ...]) -> str:
    """Returns the text of columns."""
    return json_text([[c.name, *_type_json(c.type), c.nullable] for c in columns])


def _type_json(type_: ScalarType) -> Any:
    """Returns a type as JSON: the name of its kind and, behind it, what else decides the type."""
    if type_.element is not None:
        return [type_.kind.value, _type_json(type_.element)]
    if type_.kind is Kind.DIMENSIONED:
        assert type_.array_element is not None
        return [type_.kind.value, _type_json(type_.array_element)]
    if type_.kind is Kind.RECORD:
        return [type_.kind.value, [[name, _type_json(one)] for name, one in type_.fields]]
    if type_.enumeration is not None:
        renamed = type_.enumeration.renamed
        rest = [list(map(list, renamed))] if renamed else []
        return [type_.kind.value, [type_.enumeration.name, list(type_.enumeration.members or ()), *rest]]
    modifier = type_.modifier
    more: tuple[Any, ...] = () if modifier is None else ([modifier.precision, modifier.fields],)
    if type_.label == VARYING.label:
        more = (type_.label,)
    return [type_.kind.value, type_.length or type_.scale, *more]


def _type_of(value: Any) -> ScalarType:
    kind, rest = Kind(value[0]), value[1]
    match kind:
        case Kind.ARRAY:
            return array_of(_type_of(rest))
        case Kind.DIMENSIONED:
            return dimensioned(_type_of(rest))
        case Kind.RECORD:
            return record_of((name, _type_of(one)) for name, one in rest)
        case Kind.ENUM:
            name, members, *others = rest
            renamed = tuple((member, label) for each in others for member, label in each)
            return enum_of(Enumeration(name, tuple(members), renamed))
        case Kind.VARCHAR | Kind.CHAR:
            return ScalarType(kind, length=rest)
        case Kind.TEXT:
            return VARYING if value[2:] == [VARYING.label] else TEXT
        case _:
            modifier = Modifier(*value[2]) if len(value) > 2 else None  # none was kept before there were any
            return ScalarType(kind, rest, modifier=modifier)


@lru_cache(maxsize=4096)  # those of an object never change, and every look at a collection asks again
def columns_of(text: str) -> tuple[Column, ...]:
    """Returns the columns of a text.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> columns = (Column("a", numeric(2), nullable=False), Column("b", array_of(numeric(2))))
        >>> columns_of(columns_text(columns)) == columns
        True
    """
    return tuple(Column(name, _type_of(type_), nullable) for name, *type_, nullable in json.loads(text))


def keys_text(keys: Keys) -> str:
    """Returns the text of keys."""
    return json_text(sorted(sorted(key) for key in keys))


@lru_cache(maxsize=4096)
def keys_of(text: str) -> Keys:
    """Returns the keys of a text.

    Example:
        >>> keys_of(keys_text(frozenset({frozenset({1, 0})}))) == {frozenset({0, 1})}
        True
    """
    return frozenset(frozenset(key) for key in json.loads(text))


def shapes_text(shapes: Shapes) -> str:
    """Returns the text of shapes."""
    versions = [
        [json.loads(columns_text(one.columns)), list(one.places), json.loads(keys_text(one.keys)), one.arity]
        for one in shapes.versions
    ]
    return json_text({"stored": json.loads(columns_text(shapes.stored)), "versions": versions})


@lru_cache(maxsize=1024)
def shapes_of(text: str | None) -> Shapes | None:
    """Returns the shapes of a text, None if there is none: the table has the one that it was created with.

    Example:
        >>> from mz_dagster.catalog.shapes import first_shape
        >>> from mz_dagster.scalars.types import INT4
        >>> shapes = first_shape((Column("a", INT4),), frozenset({frozenset({0})}))
        >>> shapes_of(shapes_text(shapes)) == shapes
        True
    """
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    versions = (
        Shape(columns_of(json_text(columns)), tuple(places), keys_of(json_text(keys)), arity)
        for columns, places, keys, arity in found["versions"]
    )
    return Shapes(columns_of(json_text(found["stored"])), tuple(versions))
