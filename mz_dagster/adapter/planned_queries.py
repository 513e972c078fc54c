"""Queries that were bound and planned once, for whoever executes them again.

What a query's plan is follows from its text, from its parameters, from the settings by which names and literals are
read, from who asks, and from what is defined. So a plan is kept under all that but the last, and only until anything is
defined otherwise (`CatalogState.definitions`), by whichever process. Not kept is the plan of

- a query that says what the clock, the session or the system catalogs say, or something by chance (`is_of_moment`);
- one that an index may answer otherwise from one moment to the next, as the index hydrates or what it is on grows;
- one that names what only its session knows: temporary objects, and what its transaction defines or has written.

Of most queries another value of a parameter makes another plan. A *lookup* is one of which it does not: rows of one
collection by columns that are equal to parameters and constants, by nothing else. A parameter of a known type is bound
wherever it stands without its value being looked at, unless something is computed of it. So where each parameter is
found in the bound plan as it was given, and only as what a column is compared with, another value of its type is bound
to the same plan but for that value.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from mz_dagster.adapter.bound_tables import note_table, noted_tables
from mz_dagster.budget import budget
from mz_dagster.catalog import Catalog, CatalogState, CollectionRow
from mz_dagster.formalism import GlobalId
from mz_dagster.functions import OpenParameter, Unknown
from mz_dagster.plan.relation import Constant, Filter, Get, Projection, Relation
from mz_dagster.scalars.infinity import Infinity
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT4, INT8, Column, Kind, ScalarType
from mz_dagster.sql import BoundQuery, SqlText

T = TypeVar("T")

#: For so many statements of a new process all that is defined is not read.
_FIRST_STATEMENTS = 4
#: Longer texts, and values, are not kept.
_LONGEST = 16_384
#: What a literal may become where it is compared, which cannot fail.
_WIDENED = {"cast_int2_to_int4": INT4, "cast_int2_to_int8": INT8, "cast_int4_to_int8": INT8}
#: Of which kinds a column has a value of its type as it is given.
_KEPT_AS_GIVEN = frozenset(
    {Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT8, Kind.TEXT, Kind.BYTEA, Kind.UUID}
    | {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)
#: The Python types of parameters whose representations tell values apart.
_KEYED_BY_REPRESENTATION = frozenset(
    {type(None), bool, int, float, Decimal, str, bytes, date, time, datetime, UUID, Infinity}
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a parameter stands in a predicate: `predicate.arguments[side]` is its value, as of `type`."""

    predicate: int
    side: int
    parameter: int
    type: ScalarType


@dataclass(frozen=True, slots=True)
class LookupPlan:
    """The plan of a lookup, for any values of its parameters.

    Attributes:
        get: What it reads.
        predicates: What is true of the rows, with the values of one execution.
        columns: Which columns of theirs it shows.
    """

    get: Get
    predicates: tuple[Scalar, ...]
    columns: tuple[int, ...]
    _places: tuple[_Place, ...]

    @classmethod
    def of(cls, relation: Relation, parameters: Sequence[object]) -> LookupPlan | None:
        """Returns the plan that a bound query is with any values of its parameters; None if it is no lookup."""
        columns, shown = relation, tuple(range(relation.relation_type.arity))
        while isinstance(columns, Projection):
            shown = tuple(columns.positions[one] for one in shown)
            columns = columns.input
        if not isinstance(columns, Filter) or not isinstance(get := columns.input, Get):
            return None
        predicates = tuple(_conjuncts(columns.predicates))
        numbers = {id(one): number for number, one in enumerate(parameters) if isinstance(one, Literal)}
        places = []
        for at, predicate in enumerate(predicates):
            if not isinstance(predicate, Call) or not predicate.function.startswith("eq_"):
                return None
            for side, argument in enumerate(predicate.arguments):
                is_widened = isinstance(argument, Call) and argument.function in _WIDENED
                value = argument.arguments[0] if is_widened and isinstance(argument, Call) else argument
                number = numbers.get(id(value))
                if number is not None:
                    places.append(_Place(at, side, number, argument.type))
                elif not isinstance(value, ColumnRef | Literal):
                    return None
        if {one.parameter for one in places} != set(range(len(parameters))):
            return None
        return cls(get, predicates, shown, tuple(places))

    def of_values(self, parameters: Sequence[Literal]) -> tuple[Scalar, ...]:
        """Returns the predicates with other values of the parameters, of the same types and none of them NULL."""
        found = list(self.predicates)
        for one in self._places:
            call = found[one.predicate]
            assert isinstance(call, Call)
            arguments = list(call.arguments)
            arguments[one.side] = Literal(parameters[one.parameter].value, one.type)
            found[one.predicate] = replace(call, arguments=tuple(arguments))
        return tuple(found)

    def relation(self, parameters: Sequence[Literal]) -> Relation:
        """Returns the plan with other values of the parameters."""
        return Projection(Filter(self.get, self.of_values(parameters)), self.columns)


def _conjuncts(predicates: Sequence[Scalar]) -> list[Scalar]:
    found: list[Scalar] = []
    for one in predicates:
        found += _conjuncts(one.arguments) if isinstance(one, Call) and one.function == "and" else [one]
    return found


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query, bound and planned.

    Attributes:
        bound: As it was bound.
        relation: Its optimized plan; of a lookup that with the values of one execution.
        columns: Of its result.
        lookup: How other values are looked up, if it is a lookup.
        tables: What it was bound to.
    """

    bound: BoundQuery
    relation: Relation
    columns: tuple[Column, ...]
    lookup: LookupPlan | None
    tables: Mapping[GlobalId, int]

    @classmethod
    def of(
        cls, bound: BoundQuery, relation: Relation, columns: tuple[Column, ...], parameters: Sequence[object]
    ) -> PlannedQuery:
        """Returns what the statement that is executed now has bound and planned."""
        lookup = LookupPlan.of(bound.relation, parameters) if _are_of_types(parameters) else None
        return cls(bound, relation, columns, lookup, noted_tables())

    def note_tables(self) -> None:
        """Notes what the statement that is executed now is bound to."""
        for id, version in self.tables.items():
            note_table(id, version)


@dataclass(frozen=True, slots=True)
class PlannedInsert:
    """The rows that an INSERT of constants and parameters inserts, for any values of the parameters.

    It is of a table that demands nothing of its rows and generates nothing.

    Attributes:
        table: The table, as it was.
        rows: Each cell is the number of a parameter, or a constant.
    """

    table: CollectionRow
    rows: tuple[tuple[int | Literal, ...], ...]

    @classmethod
    def of(cls, bound: BoundQuery, table: CollectionRow, parameters: Sequence[object]) -> PlannedInsert | None:
        """Returns that of what was bound; None if other values of the types of its parameters may be other rows.

        As in a lookup, they are not where each parameter is found as it was given.
        """
        numbers = {id(one): number for number, one in enumerate(parameters)}
        if bound.is_of_moment or not _are_of_types(parameters) or not isinstance(bound.relation, Constant):
            return None
        rows = tuple(tuple(numbers.get(id(cell), cell) for cell in row) for row in bound.relation.rows)
        kinds = [column.type.kind for column in table.shown if column.type.modifier is None]
        used = {cell for row in rows for cell in row if isinstance(cell, int)}
        if (
            used != set(range(len(parameters)))
            or len(kinds) != len(table.shown)
            or not _KEPT_AS_GIVEN.issuperset(kinds)
        ):
            return None
        return cls(table, rows)

    def of_values(self, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Returns the rows with other values of the parameters, of the same types and none of them NULL."""
        values = [one.value for one in parameters if isinstance(one, Literal)]
        return [tuple(values[one] if isinstance(one, int) else one.value for one in row) for row in self.rows]


@dataclass(frozen=True, slots=True)
class DescribedQuery:
    """What a query returns, and what it takes its open parameters to be.

    Attributes:
        columns: Of its result.
        types: Of each open parameter its types, in the order in which they were found out.
    """

    columns: tuple[Column, ...]
    types: tuple[tuple[ScalarType, ...], ...]

    @classmethod
    def of(cls, columns: tuple[Column, ...], parameters: Sequence[object]) -> DescribedQuery:
        """Returns what was found out, and noted in open parameters."""
        return cls(columns, tuple(tuple(one.types) for one in _open(parameters)))

    def note_types(self, parameters: Sequence[object]) -> None:
        """Notes the types in other open parameters at the same places."""
        for one, types in zip(_open(parameters), self.types, strict=True):
            one.types.extend(types)


def _open(parameters: Sequence[object]) -> list[OpenParameter]:
    """Returns the open parameters, each once."""
    return list({id(one): one for one in parameters if isinstance(one, OpenParameter)}.values())


@dataclass(frozen=True, slots=True)
class QueryKey:
    """What the plan of a query follows from, beside what is defined.

    Attributes:
        query: Its text, and the settings.
        values: The values of its parameters; of those that are open which is which.
        types: Their types, if all are of known ones and none is NULL.
    """

    query: Hashable
    values: Hashable
    types: Hashable | None

    @classmethod
    def of(cls, query: SqlText, parameters: Sequence[object], settings: Hashable) -> QueryKey | None:
        """Returns that of a query; None if it is too long, or a parameter of a kind that is not told apart."""
        if len(query.text) > _LONGEST:
            return None
        values: list[tuple[Hashable, ...]] = []
        numbers = {id(one): number for number, one in enumerate(_open(parameters))}
        for one in parameters:
            told = ("open", numbers[id(one)]) if isinstance(one, OpenParameter) else _key_part(one)
            if told is None:
                return None
            values.append(told)
        types = tuple(one[:2] for one in values) if _are_of_types(parameters) else None
        return cls((query.text, query.parameters_before, settings, budget()), tuple(values), types)


def with_types(parameters: Sequence[object]) -> Sequence[object]:
    """Returns parameters with integers of Python's as the literals that they are: of types that are known."""
    return [
        Literal(one, INT4 if -(2**31) <= one < 2**31 else INT8) if type(one) is int and -(2**63) <= one < 2**63 else one
        for one in parameters
    ]


def _are_of_types(parameters: Sequence[object]) -> bool:
    return all(type(one) is Literal and one.value is not None for one in parameters)


def _key_part(value: object) -> tuple[Hashable, ...] | None:
    if type(value) is Literal:
        type_ = value.type
        if type_.parts or type_.enumeration is not None or type_.modifier is not None or type_.label:
            return None
        return "literal", type_, type(value.value).__name__, repr(value.value)
    if type(value) is Unknown:
        return "unknown", value.text
    return (type(value).__name__, repr(value)) if type(value) in _KEYED_BY_REPRESENTATION else None


class PlannedQueries:
    """Keeps planned queries, and what else follows from a query alone. Safe for use from several threads.

    Args:
        most: How many at most; those that nobody asks for go first.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._of: tuple[str, int] = ("", -1)
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._asked = 0

    def state(self, catalog: Catalog) -> CatalogState | None:
        """Returns what is defined now; None of a process that has begun just now, and reads only what it needs."""
        if not catalog.is_followed and self._asked < _FIRST_STATEMENTS:
            self._asked += 1
            return None
        return catalog.state()

    def get(self, key: Hashable, state: CatalogState | None, kind: type[T]) -> T | None:
        """Returns what is kept under a key, if nothing is defined otherwise since.

        Args:
            key: The key.
            state: What is defined now; None if that is not known.
            kind: What is expected.
        """
        with self._lock:
            if state is None or self._of != (state.mark, state.definitions):
                return None
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
        assert isinstance(found, kind)
        return found

    def keep(self, key: Hashable, state: CatalogState | None, one: object) -> None:
        """Keeps something that was made after a state was asked for, if that is known."""
        if state is None:
            return
        with self._lock:
            if self._of != (state.mark, state.definitions):
                if self._of[0] == state.mark and self._of[1] > state.definitions:
                    return  # somebody else knows of more already
                self._of = state.mark, state.definitions
                self._kept.clear()
            self._kept[key] = one
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def planned(self, key: QueryKey, state: CatalogState | None) -> PlannedQuery | None:
        """Returns the plan of a query, of a lookup that with any values."""
        if key.types is not None:
            found = self.get(("lookup", key.query, key.types), state, PlannedQuery)
            if found is not None:
                return found
        return self.get(("query", key.query, key.values), state, PlannedQuery)

    def keep_planned(self, key: QueryKey, state: CatalogState, planned: PlannedQuery) -> None:
        """Keeps the plan of a query."""
        name = ("query", key.query, key.values) if planned.lookup is None else ("lookup", key.query, key.types)
        self.keep(name, state, planned)
