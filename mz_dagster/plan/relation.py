"""Relational expressions: the logical plan.

A small algebra of frozen nodes whose constructors refuse ill-formed plans. Each node is a
deterministic function from time-varying collections with errors to one; it knows its
`RelationType`: columns with types and nullability, unique keys, and whether it is monotonic.
Columns are referred to by position. `Let` binds a shared subplan to a name of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AGGREGATES, AggregateFunction
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar, Subquery, columns_of, reads_now
from mz_dagster.scalars.types import BOOL, INT8, MZ_TIMESTAMP, TEXT, Column, RelationType, ScalarType


@dataclass(frozen=True, slots=True)
class Get:
    """Reads the collection `id`, or the subplan that an enclosing `Let` bound to the local id `id`."""

    id: GlobalId
    relation_type: RelationType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A fixed multiset of rows, there from the first time on."""

    rows: tuple[tuple[Literal, ...], ...]
    relation_type: RelationType

    def __post_init__(self) -> None:
        types = [column.type for column in self.relation_type.columns]
        for row in self.rows:
            if [cell.type for cell in row] != types:
                raise ValueError("a constant row does not fit its columns")


@dataclass(frozen=True, slots=True)
class Map:
    """Appends columns; a scalar may refer to the columns that earlier scalars appended."""

    input: Relation
    scalars: tuple[Scalar, ...]
    names: tuple[str, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if len(self.scalars) != len(self.names):
            raise ValueError("each mapped scalar needs one name")
        below = self.input.relation_type
        for arity, scalar in enumerate(self.scalars, below.arity):
            _check_positions(scalar, arity)
        added = tuple(Column(n, s.type, s.nullable) for n, s in zip(self.names, self.scalars, strict=True))
        object.__setattr__(self, "relation_type", RelationType(below.columns + added, below.keys, below.monotonic))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which every predicate is true."""

    input: Relation
    predicates: tuple[Scalar, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            if predicate.type != BOOL:
                raise ValueError(f"a predicate has type {predicate.type}")
            _check_positions(predicate, self.input.relation_type.arity)
        below = self.input.relation_type
        if below.monotonic and any(reads_now(predicate) for predicate in self.predicates):
            below = RelationType(below.columns, below.keys)  # rows may leave as time goes on
        object.__setattr__(self, "relation_type", below)


@dataclass(frozen=True, slots=True)
class Projection:
    """Keeps the columns at `positions`, in that order; a position may repeat."""

    input: Relation
    positions: tuple[int, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        below = self.input.relation_type
        if self.positions and not 0 <= min(self.positions) <= max(self.positions) < below.arity:
            raise ValueError(f"projection {self.positions} of {below.arity} columns")
        place = dict(zip(reversed(self.positions), reversed(range(len(self.positions))), strict=True))
        keys = frozenset(frozenset(place[position] for position in key) for key in below.keys if key <= place.keys())
        columns = tuple(map(below.columns.__getitem__, self.positions))
        object.__setattr__(self, "relation_type", RelationType(columns, keys, below.monotonic))


@dataclass(frozen=True, slots=True)
class Join:
    """The inner join of any number of inputs.

    Columns are all inputs' columns, concatenated. Each equivalence is a class of scalars over those columns
    that must be equal, and none of them NULL, for a row to be part of the result; in the classes whose numbers are in
    `null_safe`, NULL equals NULL. Conditions that are not equalities stand in a `Filter` above.
    """

    inputs: tuple[Relation, ...]
    equivalences: tuple[tuple[Scalar, ...], ...]
    null_safe: frozenset[int] = frozenset()
    relation_type: RelationType = field(init=False)
    #: The position of each input's first column.
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise ValueError("a join has at least two inputs")
        columns = tuple(chain.from_iterable([one.relation_type.columns for one in self.inputs]))
        for equivalence in self.equivalences:
            if len(equivalence) < 2 or len({scalar.type for scalar in equivalence}) != 1:
                raise ValueError("an equivalence has two or more scalars of one type")
            for scalar in equivalence:
                _check_positions(scalar, len(columns))
        if any(not 0 <= number < len(self.equivalences) for number in self.null_safe):
            raise ValueError("null_safe names an equivalence that is not there")
        monotonic = all(one.relation_type.monotonic for one in self.inputs)
        keys = join_keys(self.inputs, self.equivalences)
        object.__setattr__(self, "relation_type", RelationType(columns, keys, monotonic))
        object.__setattr__(self, "offsets", offsets_of(self.inputs))

    def owner(self, position: int) -> int:
        """Returns the number of the input that has the column at `position`."""
        return bisect_right(self.offsets, position) - 1

    def owners(self, positions: Iterable[int]) -> frozenset[int]:
        """Returns the numbers of the inputs that have the columns at `positions`."""
        return frozenset(map(self.owner, positions))

    def only_owner(self, positions: Iterable[int]) -> int | None:
        """Returns the number of the one input that has all columns at `positions`; None if several have, or none is."""
        owners = self.owners(positions)
        return min(owners) if len(owners) == 1 else None

    @property
    def compared(self) -> frozenset[int]:
        """The numbers of the inputs of which anything is in an equivalence."""
        scalars = chain.from_iterable(self.equivalences)
        return frozenset[int]().union(*(self.owners(columns_of(scalar)) for scalar in scalars))

    def columns_of(self, input: int) -> range:
        """Returns the positions of the columns of the input of that number."""
        return range(self.offsets[input], self.offsets[input] + self.inputs[input].relation_type.arity)

    def places(self, order: Iterable[int]) -> dict[int, int]:
        """Returns where the columns are if the inputs stand in that order; some may be left out."""
        columns = (position for input in order for position in self.columns_of(input))
        return {position: place for place, position in enumerate(columns)}


@dataclass(frozen=True, slots=True)
class Negate:
    """Turns the sign of every multiplicity; errors pass as they are."""

    input: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation_type", RelationType(self.input.relation_type.columns))


@dataclass(frozen=True, slots=True)
class Union:
    """The sum of its inputs' multiplicities: UNION ALL.

    Attributes:
        keys: Unique keys that follow from what the inputs are, and that only its maker knows: that a row is in one of
            them only, for example.
    """

    inputs: tuple[Relation, ...]
    keys: frozenset[frozenset[int]] = frozenset()
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ValueError("a union has at least one input")
        first, *others = (one.relation_type.columns for one in self.inputs)
        if any(len(other) != len(first) for other in others):
            raise ValueError("the inputs of a union differ in how many columns they have")
        columns = first
        for other in others:
            columns = tuple([a if a is b else _either(a, b) for a, b in zip(columns, other, strict=True)])
        monotonic = all(one.relation_type.monotonic for one in self.inputs)
        object.__setattr__(self, "relation_type", RelationType(columns, self.keys, monotonic))


@dataclass(frozen=True, slots=True)
class Let:
    """Binds `value` to the local id `id` within `body`, so that it is computed once."""

    id: GlobalId
    value: Relation
    body: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation_type", self.body.relation_type)


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """One key of an order: a column, which way, and where NULLs go."""

    position: int
    descending: bool
    nulls_first: bool

    def moved(self, places: Mapping[int, int]) -> ColumnOrder:
        """Returns the key with its column at the place that `places` gives it."""
        return replace(self, position=places[self.position])


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a `Reduce`.

    Attributes:
        function: Which.
        arguments: Positions of columns of the input: none for `count(*)`, value and separator for `STRING_AGG`, one or
            two factors for `EXACT_SUM`.
        type: The result's type.
        distinct: Whether each distinct list of arguments counts once; `MIN` and `MAX` do not care.
        filter: A boolean column; rows where it is not true do not count. The binder uses it for `ARRAY_AGG` only: the
            argument of a function that ignores NULLs is put under an `If` instead.
        order: The order of the rows, for `ARRAY_AGG` and `STRING_AGG`; ties go by the arguments, ascending, NULLs last.
    """

    function: AggregateFunction
    arguments: tuple[int, ...]
    type: ScalarType
    distinct: bool = False
    filter: int | None = None
    order: tuple[ColumnOrder, ...] = ()

    @property
    def nullable(self) -> bool:
        """False for a count only."""
        return self.function.record.nullable

    @property
    def positions(self) -> frozenset[int]:
        """The columns that it reads."""
        own = () if self.filter is None else (self.filter,)
        return frozenset((*self.arguments, *own, *(one.position for one in self.order)))

    def moved(self, places: Mapping[int, int]) -> Aggregate:
        """Returns the aggregate with each column at the place that `places` gives it."""
        return replace(
            self,
            arguments=tuple(places[position] for position in self.arguments),
            filter=None if self.filter is None else places[self.filter],
            order=tuple(one.moved(places) for one in self.order),
        )


@dataclass(frozen=True, slots=True)
class Reduce:
    """One row per group of rows that are equal in `key` (NULL equals NULL): the key, then the aggregates.

    Without rows there is no group: an empty key gives no row over an empty input. The default row of a global
    aggregate is added above, by a union. Without aggregates it is DISTINCT.

    Attributes:
        key: Positions of the input's columns.
        names: Of the aggregates' columns.
        group_size: How many rows a group is expected to have at most; None if nobody said.
    """

    input: Relation
    key: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    names: tuple[str, ...]
    group_size: int | None = None
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        below = self.input.relation_type
        if len(self.aggregates) != len(self.names):
            raise ValueError("each aggregate needs one name")
        if len(set(self.key)) != len(self.key):
            raise ValueError("a column is twice in a group key")
        for position in sorted({*self.key, *(p for one in self.aggregates for p in one.positions)}):
            if not 0 <= position < below.arity:
                raise ValueError(f"column {position} of a relation with {below.arity} columns")
        key = tuple(below.columns[position] for position in self.key)
        added = tuple(Column(n, one.type, one.nullable) for n, one in zip(self.names, self.aggregates, strict=True))
        places = {position: new for new, position in enumerate(self.key)}
        keys = {frozenset(places[p] for p in one) for one in below.keys if one <= places.keys()}
        keys.add(frozenset(range(len(self.key))))
        monotonic = below.monotonic and not self.aggregates
        object.__setattr__(self, "relation_type", RelationType(key + added, frozenset(keys), monotonic))


@dataclass(frozen=True, slots=True)
class TopK:
    """Keeps, of each group of rows equal in `group`, those from `offset` on, at most `limit`, in an order.

    Ties go by the whole row, ascending, NULLs last. A row of multiplicity n counts as n rows. An empty `group` makes
    one group of everything. With `ties` rows that equal the last one in the order are kept, too; there is no offset
    then.
    """

    input: Relation
    group: tuple[int, ...]
    order: tuple[ColumnOrder, ...]
    limit: int | None
    offset: int = 0
    group_size: int | None = None
    ties: bool = False
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        below = self.input.relation_type
        if self.ties and (self.limit is None or self.offset):
            raise ValueError("ties are those of a limit, without an offset")
        if (self.limit is not None and self.limit < 0) or self.offset < 0:
            raise ValueError("limit and offset are not negative")
        for position in (*self.group, *(one.position for one in self.order)):
            if not 0 <= position < below.arity:
                raise ValueError(f"column {position} of a relation with {below.arity} columns")
        is_one = self.limit is not None and self.limit <= 1 and not self.ties
        keys = below.keys | ({frozenset(self.group)} if is_one else frozenset())
        object.__setattr__(self, "relation_type", RelationType(below.columns, keys))


@dataclass(frozen=True, slots=True)
class Threshold:
    """Keeps the rows whose multiplicity is positive, as often as it says; a negative one is no error here."""

    input: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation_type", RelationType(self.input.relation_type.columns))


class FrameUnit(Enum):
    """Says in what the bounds of a window's frame count."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class FrameExclusion(Enum):
    """Says which rows a window's frame leaves out."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@dataclass(frozen=True, slots=True)
class FrameBound:
    """An end of a frame: `offset` rows, groups or values before (negative) or after the current row.

    Attributes:
        unbounded: The partition's own end; `offset` then means nothing.
        offset: 0 is the current row. For `RANGE` a literal that is added to the order's one column.
    """

    unbounded: bool
    offset: Literal | None = None
    preceding: bool = False


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The part of its partition that a window function sees from a row."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: FrameExclusion = FrameExclusion.NO_OTHERS


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """One function of a `Window`.

    Attributes:
        name: `row_number`, `rank`, `dense_rank`, `percent_rank`, `cume_dist`, `ntile`, `lag`, `lead`, `first_value`,
            `last_value`, `nth_value`, or an `AggregateFunction`; floats are added up by `exact_sum`, not by `sum`.
        arguments: Positions of columns of the input.
        type: The result's type.
        nullable: Whether it can be NULL.
        frame: For the functions that have one.
        ignore_nulls: For offset and value functions.
        filter: For aggregates: a boolean column.
    """

    name: str
    arguments: tuple[int, ...]
    type: ScalarType
    nullable: bool = True
    frame: WindowFrame | None = None
    ignore_nulls: bool = False
    filter: int | None = None

    @property
    def aggregate(self) -> AggregateFunction | None:
        """Which aggregate of the algebra it is; None if it is none."""
        found = AGGREGATES.get(self.name)
        return None if found is None or found.algebra is None else AggregateFunction(self.name)

    @property
    def positions(self) -> frozenset[int]:
        """The columns that it reads."""
        return frozenset((*self.arguments, *(() if self.filter is None else (self.filter,))))

    def moved(self, places: Mapping[int, int]) -> WindowFunction:
        """Returns the function with each column at the place that `places` gives it."""
        return replace(
            self,
            arguments=tuple(places[position] for position in self.arguments),
            filter=None if self.filter is None else places[self.filter],
        )


@dataclass(frozen=True, slots=True)
class Window:
    """Appends to each row what window functions over its partition say; all of them over one order.

    Ties of the order go by the whole row where rows are counted (`row_number`, `ROWS`, offsets); peers stay peers
    (`rank`, `RANGE`, `GROUPS`).
    """

    input: Relation
    partition: tuple[int, ...]
    order: tuple[ColumnOrder, ...]
    functions: tuple[WindowFunction, ...]
    names: tuple[str, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        if len(self.functions) != len(self.names):
            raise ValueError("each window function needs one name")
        below = self.input.relation_type
        for position in (
            *self.partition,
            *(one.position for one in self.order),
            *(p for one in self.functions for p in one.arguments),
        ):
            if not 0 <= position < below.arity:
                raise ValueError(f"column {position} of a relation with {below.arity} columns")
        added = tuple(Column(n, one.type, one.nullable) for n, one in zip(self.names, self.functions, strict=True))
        object.__setattr__(self, "relation_type", RelationType(below.columns + added, below.keys))


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """Keeps a row at the times t with `max(lower) <= t < min(upper)`; never, if a bound is NULL.

    Attributes:
        lower: Bounds of type mz_timestamp over the input's columns; none is the beginning of time.
        upper: Likewise; none is its end.
    """

    input: Relation
    lower: tuple[Scalar, ...]
    upper: tuple[Scalar, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        for bound in (*self.lower, *self.upper):
            if bound.type != MZ_TIMESTAMP:
                raise ValueError(f"a temporal bound has type {bound.type}")
            _check_positions(bound, self.input.relation_type.arity)
        below = self.input.relation_type
        monotonic = below.monotonic and not self.upper
        object.__setattr__(self, "relation_type", RelationType(below.columns, below.keys, monotonic))


@dataclass(frozen=True, slots=True)
class RepeatRow:
    """Multiplies each row's multiplicity by its bigint column at `count`, which is dropped; linear.

    The column must be NOT NULL; it may be negative.
    """

    input: Relation
    count: int
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        columns = self.input.relation_type.columns
        if columns[self.count].type != INT8:
            raise ValueError("rows are repeated by a bigint")
        object.__setattr__(self, "relation_type", RelationType((*columns[: self.count], *columns[self.count + 1 :])))


@dataclass(frozen=True, slots=True)
class CatchErrors:
    """Makes rows of errors: behind the columns stands the error, NULL in the rows that are none; linear.

    A row that is an error has NULL in all other columns, and the error's text, as `error` takes it. What is made of it
    may raise the error or not, so that it is an error of whoever asks.
    """

    input: Relation
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        columns = tuple(replace(one, nullable=True) for one in self.input.relation_type.columns)
        object.__setattr__(self, "relation_type", RelationType((*columns, Column("error", TEXT))))


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Puts each row beside the elements of its last columns, which are arrays: table functions; linear.

    A row becomes as many rows as the longest of its arrays has elements, the n-th with the n-th element of each: NULL
    where an array has none any more. NULL counts as an array without elements. So a function that returns rows is a
    `Map` of one that returns an array, of records if it returns several columns, under a `FlatMap`.

    Attributes:
        input: Its last `arrays` columns are arrays, in the places of which their elements are.
        arrays: How many, at least 1.
        ordinality: Whether a bigint column behind all others numbers the rows that one row becomes, from 1.
    """

    input: Relation
    arrays: int = 1
    ordinality: bool = False
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        below = self.input.relation_type
        if not 1 <= self.arrays <= below.arity:
            raise ValueError(f"the last {self.arrays} of {below.arity} columns")
        kept = below.arity - self.arrays
        elements: list[Column] = []
        for column in below.columns[kept:]:
            if column.type.element is None:
                raise ValueError(f"rows are made of arrays, not of {column.type}")
            elements.append(Column(column.name, column.type.element))
        numbers = (Column("ordinality", INT8, False),) if self.ordinality else ()
        keys = frozenset(key | {below.arity} for key in below.keys if max(key, default=0) < kept or not key)
        object.__setattr__(
            self,
            "relation_type",
            RelationType(
                (*below.columns[:kept], *elements, *numbers), keys if numbers else frozenset(), below.monotonic
            ),
        )


@dataclass(frozen=True, slots=True)
class DependentJoin:
    """Each row of `left` beside the rows that `right` has for it: LATERAL.

    Only the binder makes it, and `decorrelate` leaves none.

    Attributes:
        right: Has `OuterColumn`s, which are the `arguments`.
        arguments: Over the columns of `left`.
    """

    left: Relation
    right: Relation
    arguments: tuple[Scalar, ...]
    relation_type: RelationType = field(init=False)

    def __post_init__(self) -> None:
        for argument in self.arguments:
            _check_positions(argument, self.left.relation_type.arity)
        columns = self.left.relation_type.columns + self.right.relation_type.columns
        keys = join_keys((self.left, self.right), ())
        object.__setattr__(self, "relation_type", RelationType(columns, keys))


#: What has one input, of which it makes nothing if that is empty.
OneInput = (
    Map | Filter | Projection | Negate
    | Reduce | TopK | Threshold | Window | TemporalFilter | RepeatRow | CatchErrors | FlatMap
)  # fmt: skip
Relation = Get | Constant | Join | Union | Let | DependentJoin | OneInput


def query_of(subquery: Subquery) -> Relation:
    """Returns the relational expression of a subquery."""
    assert isinstance(subquery.relation, Relation)
    return subquery.relation


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Returns the direct inputs, in order."""
    if isinstance(relation, OneInput):
        return (relation.input,)
    match relation:
        case Get() | Constant():
            return ()
        case Join() | Union():
            return relation.inputs
        case Let():
            return (relation.value, relation.body)
        case DependentJoin():
            return (relation.left, relation.right)
        case _:
            assert_never(relation)


def offsets_of(inputs: tuple[Relation, ...]) -> tuple[int, ...]:
    """Returns, for the concatenation of the inputs' columns, the position of each input's first one."""
    offsets: list[int] = []
    position = 0
    for one in inputs:
        offsets.append(position)
        position += one.relation_type.arity
    return tuple(offsets)


def join_keys(inputs: tuple[Relation, ...], equivalences: tuple[tuple[Scalar, ...], ...]) -> frozenset[frozenset[int]]:
    """Returns unique keys of a join.

    Two sources of keys: one key of every input together; and, for an input all of whose other inputs are each
    determined, through equated columns, by what is already determined, that input's own keys.
    """
    unkeyed = [i for i, one in enumerate(inputs) if not one.relation_type.keys]
    if len(unkeyed) > 1:  # neither is determined by the others
        return frozenset()
    keys_of = [
        [frozenset(offset + position for position in key) for key in sorted(one.relation_type.keys, key=sorted)]
        for offset, one in zip(offsets_of(inputs), inputs, strict=True)
    ]
    determine = _Determined(inputs, keys_of, equivalences)
    starts = [start for start in unkeyed or range(len(inputs)) if determine.all_by(start)]
    if not starts and not unkeyed:
        smallest = (min(keys, key=lambda key: (len(key), sorted(key))) for keys in keys_of)
        return frozenset({frozenset[int]().union(*smallest)})
    return frozenset(key for start in starts for key in keys_of[start])


class _Determined:
    """Tells which inputs of a join a row of one of them determines. Columns are given by their positions in the join.

    Args:
        inputs: The inputs.
        keys_of: The unique keys of each input.
        equivalences: The join's.
    """

    def __init__(
        self,
        inputs: tuple[Relation, ...],
        keys_of: Sequence[Sequence[frozenset[int]]],
        equivalences: tuple[tuple[Scalar, ...], ...],
    ) -> None:
        self._inputs = len(inputs)
        # The columns that each is equated to, itself among them; of those that are in a class.
        equated: dict[int, frozenset[int]] = {}
        for equivalence in equivalences:
            members = frozenset(scalar.position for scalar in equivalence if isinstance(scalar, ColumnRef))
            equated.update((member, members | equated.get(member, members)) for member in members)
        self._missing = [(i, len(key)) for i, keys in enumerate(keys_of) for key in keys]
        self._keys_with: dict[int, list[int]] = {}
        for number, key in enumerate(key for keys in keys_of for key in keys):
            for column in sorted(key):
                self._keys_with.setdefault(column, []).append(number)
        # What the values of an input's columns are equated to, of what is part of any key.
        self._bound = [
            {
                other
                for column in range(offset, offset + one.relation_type.arity)
                for other in equated.get(column, (column,))
            }
            & self._keys_with.keys()
            for offset, one in zip(offsets_of(inputs), inputs, strict=True)
        ]

    def all_by(self, start: int) -> bool:
        """Returns whether a row of the input `start` determines those of all the others."""
        missing = [count for _, count in self._missing]
        reached = {start} | {i for i, count in self._missing if not count}
        waiting, bound = sorted(reached), set[int]()
        while waiting:
            new = self._bound[waiting.pop()] - bound
            bound |= new
            for column in sorted(new):
                for number in self._keys_with[column]:
                    missing[number] -= 1
                    input = self._missing[number][0]
                    if not missing[number] and input not in reached:
                        reached.add(input)
                        waiting.append(input)
        return len(reached) == self._inputs


def _either(one: Column, other: Column) -> Column:
    """Returns what a column of a union is, of two inputs."""
    if one.type != other.type:
        raise ValueError("the inputs of a union differ in their columns' types")
    return one if one.nullable or not other.nullable else Column(one.name, one.type)


def _check_positions(scalar: Scalar, arity: int) -> None:
    if isinstance(scalar, Literal):
        return
    out_of_range = sorted(position for position in columns_of(scalar) if not 0 <= position < arity)
    if out_of_range:
        raise ValueError(f"columns {out_of_range} of a relation with {arity} columns")
