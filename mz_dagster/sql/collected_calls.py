"""What the expressions of one SELECT ask of its later stages, each once.

Aggregates, window functions and functions that return rows are collected while expressions are bound over FROM; what
an expression gets for one is its placeholder (see `placeholders.py`), until the stage has given the plan the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.relation import FrameBound, FrameExclusion, FrameUnit, WindowFrame
from mz_dagster.scalars.scalar import ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import INT4, INT8, ScalarType
from mz_dagster.sql.placeholders import AGGREGATE_BASE, SET_BASE, WINDOW_BASE, sets_in


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order, as a scalar over the rows."""

    scalar: Scalar
    descending: bool
    nulls_first: bool

    def over(self, scalar: Scalar) -> SortKey:
        """Returns the key for another scalar."""
        return replace(self, scalar=scalar)


@dataclass(frozen=True, slots=True)
class Core:
    """An aggregate of the algebra over scalars; see `plan.relation.Aggregate`."""

    function: AggregateFunction
    arguments: tuple[Scalar, ...]
    type: ScalarType
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()

    @property
    def nullable(self) -> bool:
        """False for a count only."""
        return self.function.record.nullable

    @property
    def is_unordered(self) -> bool:
        """True if its result depends on the order of the rows, and no order is asked for."""
        return self.function.record.sees_order and not self.distinct and not self.order


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUPING of some keys: a bit for each, the last one lowest, 1 where a row's grouping is not by it.

    Attributes:
        positions: Where the arguments stand in the text.
    """

    arguments: tuple[Scalar, ...]
    positions: tuple[int, ...] = field(compare=False)
    type: ScalarType = INT4
    nullable: bool = False


@dataclass(slots=True)
class AggregateCalls:
    """Collects what one SELECT asks of its groups: the cores of its aggregates, and GROUPING.

    Attributes:
        given: The order in which the rows come, which is that of an aggregate without one of its own.
        calls: Each once; the placeholder of the i-th is at `AGGREGATE_BASE + i`.
        takes_given: What goes by the order in which the rows come: one of them.
    """

    given: tuple[SortKey, ...] = ()
    calls: list[Core | Grouping] = field(default_factory=list)
    takes_given: str | None = None

    def column(self, call: Core | Grouping) -> ColumnRef:
        """Returns the placeholder of `call`."""
        if call not in self.calls:
            self.calls.append(call)
        name = call.function.value if isinstance(call, Core) else "grouping"
        return ColumnRef(AGGREGATE_BASE + self.calls.index(call), call.type, call.nullable, name)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """What OVER says.

    Attributes:
        partition: Scalars over the rows.
        order: The order within a partition.
        frame: The frame, if it is written.
    """

    partition: tuple[Scalar, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: WindowFrame | None = None

    def framed(self) -> WindowFrame:
        """Returns the frame, by default what is up to the current row's last peer: everything without an order."""
        if self.frame is not None:
            return self.frame
        end = FrameBound(False, Literal(0, INT8)) if self.order else FrameBound(True)
        return WindowFrame(FrameUnit.RANGE, FrameBound(True, preceding=True), end)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over a window; see `plan.relation.WindowFunction`."""

    spec: WindowSpec
    name: str
    arguments: tuple[Scalar, ...]
    type: ScalarType
    nullable: bool
    frame: WindowFrame | None = None
    ignore_nulls: bool = False
    filter: Scalar | None = None

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """All that it is over."""
        order = (key.scalar for key in self.spec.order)
        return (*self.arguments, *self.spec.partition, *order, *(() if self.filter is None else (self.filter,)))


@dataclass(slots=True)
class WindowCalls:
    """Collects the window functions of one SELECT.

    Attributes:
        given: The order in which the rows come, which is that of a window without one of its own.
        calls: Each once; the placeholder of the i-th is at `WINDOW_BASE + i`.
        syntax: For each of `calls` where it stands, for errors.
        named: The definitions of the WINDOW clause.
        takes_given: What goes by the order in which the rows come: one of them.
    """

    given: tuple[SortKey, ...] = ()
    calls: list[WindowCall] = field(default_factory=list)
    syntax: list[exp.Expr] = field(default_factory=list)
    named: dict[str, WindowSpec] = field(default_factory=dict)
    takes_given: str | None = None

    def column(self, call: WindowCall, node: exp.Expr) -> ColumnRef:
        """Returns the placeholder of `call`."""
        if call not in self.calls:
            self.calls.append(call)
            self.syntax.append(node)
        return ColumnRef(WINDOW_BASE + self.calls.index(call), call.type, call.nullable, call.name)

    def is_sorted(self, spec: WindowSpec) -> bool:
        """Returns whether the rows come in the order of a window, so that they stay in it.

        One whose frame leaves peers out would have other peers in another order.
        """
        leading = [key.scalar for key in self.given[: len(spec.partition)]]
        if set(spec.partition) != set(leading) or spec.order not in ((), self.given):
            return False
        return spec.framed().exclusion not in (FrameExclusion.GROUP, FrameExclusion.TIES)

    def in_given_order(self, spec: WindowSpec) -> WindowSpec:
        """Returns a window that has no order with the one in which the rows come, if they stay in it."""
        if not self.is_sorted(spec):
            return spec
        frame = spec.framed()
        if frame.unit is FrameUnit.RANGE:
            # All rows were peers of each other.
            frame = replace(frame, start=FrameBound(True, preceding=True), end=FrameBound(True))
        return replace(spec, order=self.given, frame=frame)


@dataclass(slots=True)
class SetCalls:
    """Collects the functions that return rows in the items of one SELECT.

    Attributes:
        arrays: Each once; the placeholder of the i-th one's element is at `SET_BASE + i`. One may hold placeholders of
            those before it.
        names: Of the functions.
        syntax: Where they stand, for errors.
    """

    arrays: list[Scalar] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    syntax: list[exp.Expr] = field(default_factory=list)

    def column(self, array: Scalar, name: str, node: exp.Expr) -> ColumnRef:
        """Returns the placeholder of the elements of `array`."""
        if array not in self.arrays:
            self.arrays.append(array)
            self.names.append(name)
            self.syntax.append(node)
        assert array.type.element is not None
        return ColumnRef(SET_BASE + self.arrays.index(array), array.type.element, True, name)

    def levels(self, scalars: Sequence[Scalar]) -> list[list[int]]:
        """Returns the functions whose rows `scalars` are made of, in the steps in which they advance together.

        Those whose arguments hold none come first, then those whose arguments hold only these, as in PostgreSQL.
        """
        depths: dict[int, int] = {}

        def depth(one: int) -> int:
            if one not in depths:
                depths[one] = 1 + max(map(depth, sets_in([self.arrays[one]])), default=-1)
            return depths[one]

        for one in sorted(sets_in(scalars)):
            depth(one)
        found: list[list[int]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
        for one in sorted(depths):
            found[depths[one]].append(one)
        return found
