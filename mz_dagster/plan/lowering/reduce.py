"""A `Reduce` becomes state operators, by the kinds of its aggregates.

- *accumulable*: `count`, `sum`: an `Accumulate` whose contributions are computed below it, and from whose sums the
  results are computed above;
- *distinct*: `count`, `sum` of distinct values: an `Accumulate` over the rows of another that has the value in its key,
  and with several filters in how many rows it passes each;
- *sums of floats*, and of products of two, all of them in one part: an `Accumulate` of each value's digits, by group,
  term and place, and over its rows, a few dozen for each group and term, a `Staged` with `Gathered` that puts them
  together; see `compute/spark/expressions/float_sum.py` and `functions/aggregates/sums.py`;
- *sums of unconstrained numerics*, each in a part of its own: likewise, with a row for each place of its digits;
- *hierarchical*, as `min` and `max`: a `Staged` with `Extremes`;
- *basic*: `array_agg`, `string_agg`: a `Staged` with `Gathered`, over distinct rows if it is DISTINCT.

Each part has one row for each group that has rows, whatever is NULL or filtered out in them: rows never leave a part's
input, their arguments become NULL. So several parts are put together by an inner join on the group key, in
which NULL equals NULL.

A sum is NULL where no value counted. Group keys and values that are compared have one zero: -0.0 becomes 0.0. Rows that
an aggregate's order does not tell apart are told apart by its arguments, ascending, NULLs last, so what it returns does
not depend on other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol, assert_never

from mz_dagster.errors import InternalError
from mz_dagster.functions import Failure, cast
from mz_dagster.functions.aggregates.algebra import AggregateClass, AggregateFunction
from mz_dagster.functions.aggregates.sums import PRODUCT_DIGITS
from mz_dagster.functions.numbers.unconstrained_sums import NO_PLACE
from mz_dagster.plan.lowering.fusion import selected
from mz_dagster.plan.lowering.staged import ONE_STAGE, Stages, results_of, staged
from mz_dagster.plan.physical import Accumulate, DeltaJoin, Extremes, Gathered, Physical, StateOperator, TopRows, Unnest
from mz_dagster.plan.relation import Aggregate, ColumnOrder, Reduce
from mz_dagster.plan.representations import with_one_zero
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.scalars.types import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    UNCONSTRAINED,
    Column,
    Kind,
    RelationType,
    ScalarType,
    array_of,
    high_part_type,
    numeric,
)


class States(Protocol):
    """Where the plan's state operators go."""

    def kept(self, node: StateOperator) -> Physical:
        """Returns what reads the operator's output: the operator itself, or the arrangement that it has become."""
        ...

    def several(self, plan: Physical) -> Physical:
        """Returns what several operators are to read instead of `plan`: the plan itself, or where it is kept."""
        ...

    def stages(self, group_size: int | None, monotonic: bool) -> Stages:
        """Returns the stages for groups of that size over an input that may be monotonic."""
        ...


_ZERO = Literal(0, INT8)
#: How many digits `digit_float8` makes of a number, and the limb of a row without one.
FLOAT_DIGITS = 4
NO_VALUE = -4
#: In place of a column's position: whether a row passes the aggregate's filter.
_FILTER = -1


def lowered_reduce(relation: Reduce, below: Physical, states: States) -> Physical:
    """Returns `relation` over `below`, its lowered input."""
    group = _Group(relation, below, states)
    if not relation.aggregates:
        return group.each_once()
    kinds: dict[object, tuple[_Part, list[int]]] = {}
    for number, one in enumerate(relation.aggregates):
        part, values = _part_of(one)
        kinds.setdefault((part.__name__, values), (part, []))[1].append(number)
    if len(kinds) > 1:
        group = replace(group, below=states.several(below))
    parts = [(part(group, numbers), numbers) for part, numbers in kinds.values()]
    return _together(relation, parts)


_Part = Callable[["_Group", Sequence[int]], Physical]


def _part_of(one: Aggregate) -> tuple[_Part, object]:
    """Returns what lowers an aggregate, and what those have in common that it lowers together."""
    distinct: object = (one.arguments, one.filter) if one.distinct else None
    match one.function.aggregate_class:
        case AggregateClass.ACCUMULABLE if _is_of_floats(one):
            # Of x and of x * x the same rows are distinct.
            return _Group.float_sums, (frozenset(one.arguments), one.filter) if one.distinct else None
        case AggregateClass.ACCUMULABLE if (
            one.function is AggregateFunction.SUM and one.type.kind is Kind.UNCONSTRAINED
        ):
            return _Group.unconstrained_sum, (one.arguments, one.filter, one.distinct)
        case AggregateClass.ACCUMULABLE:
            return (_Group.distinct, one.arguments) if one.distinct else (_Group.accumulable, None)
        case AggregateClass.HIERARCHICAL if one.distinct and not one.function.is_idempotent:
            return _Group.hierarchical_distinct, distinct
        case AggregateClass.HIERARCHICAL:
            return _Group.hierarchical, None
        case AggregateClass.BASIC:
            return (_Group.basic_distinct if one.distinct else _Group.basic), distinct
        case _:
            assert_never(one.function.aggregate_class)


def _is_of_floats(one: Aggregate) -> bool:
    if one.function is AggregateFunction.EXACT_SUM:
        return True
    return one.function is AggregateFunction.SUM and one.type.kind in (Kind.FLOAT4, Kind.FLOAT8)


def _together(relation: Reduce, parts: Sequence[tuple[Physical, Sequence[int]]]) -> Physical:
    """Returns the join of parts of a reduction, each `(key and aggregates, which ones)`, on the key."""
    arity = len(relation.key)
    columns: list[Column] = []
    offsets: list[int] = []
    places: dict[int, int] = {}
    for part, numbers in parts:
        offsets.append(len(columns))
        places |= {number: len(columns) + arity + i for i, number in enumerate(numbers)}
        columns += part.relation_type.columns
    joined = RelationType(tuple(columns))
    below = parts[0][0]
    if len(parts) > 1:
        equivalences = tuple(tuple(reference(joined, offset + i) for offset in offsets) for i in range(arity))
        orders = tuple(tuple(j for j in range(len(parts)) if j != i) for i in range(len(parts)))
        null_safe = frozenset(range(arity))
        below = DeltaJoin(tuple(part for part, _ in parts), equivalences, orders, joined, null_safe)
    order = [*range(arity), *(places[number] for number in range(len(relation.aggregates)))]
    return selected(below, [], [reference(joined, position) for position in order], relation.relation_type)


@dataclass(frozen=True, slots=True)
class _Group:
    """Lowers the parts of one `Reduce`; each returns the key and those aggregates whose numbers it is given."""

    relation: Reduce
    below: Physical
    states: States

    @property
    def columns(self) -> RelationType:
        return self.relation.input.relation_type

    @property
    def keys(self) -> list[Scalar]:
        return [with_one_zero(reference(self.columns, position)) for position in self.relation.key]

    def each_once(self) -> Physical:
        """Returns the key alone. Of what only ever grows it suffices to remember that it came: no count changes."""
        columns = self.relation.relation_type
        stages = self.states.stages(self.relation.group_size, self.columns.monotonic)
        if not stages.monotonic or not columns.arity:
            return self.summed(self.below, self.keys, [], columns)
        node = staged(selected(self.below, [], self.keys, columns), range(columns.arity), TopRows((), 1), stages)
        return results_of(node, self.states.kept(node), range(columns.arity), columns)

    def accumulable(self, numbers: Sequence[int]) -> Physical:
        """Returns counts and sums."""
        results = [(self._of(number), self._value(self._of(number))) for number in numbers]
        return self.summed(self.below, self.keys, results, self._type(numbers))

    def distinct(self, numbers: Sequence[int]) -> Physical:
        """Returns counts and sums of the distinct values of one argument."""
        value = self._value(self._of(numbers[0]))
        if value is None:
            raise InternalError("DISTINCT without an argument")
        arity = len(self.relation.key)
        filters = list(dict.fromkeys(self._of(number).filter for number in numbers))
        if len(filters) == 1:
            rows = self._distinct_rows([value])
            results = [(self._of(number), reference(rows.relation_type, arity)) for number in numbers]
        else:
            rows = self._distinct_where(self._of(numbers[0]).arguments[0], filters)
            places = {one: arity + 1 + i for i, one in enumerate(filters)}
            results = [
                (self._of(number), reference(rows.relation_type, places[self._of(number).filter])) for number in numbers
            ]
        keys = [reference(rows.relation_type, position) for position in range(arity)]
        return self.summed(rows, keys, results, self._type(numbers))

    def float_sums(self, numbers: Sequence[int]) -> Physical:
        """Returns sums of floating-point numbers and of products of two; of distinct ones, those of one set of them."""
        factors = [
            [self._filtered(self._of(number), reference(self.columns, position)) for position in one.arguments]
            for number, one in ((number, self._of(number)) for number in numbers)
        ]
        below, keys = self.below, self.keys
        if self._of(numbers[0]).distinct:
            values = list(dict.fromkeys(value for one in factors for value in one))
            below = self._distinct_rows(values)
            keys = [reference(below.relation_type, position) for position in range(len(keys))]
            distinct = {value: reference(below.relation_type, len(keys) + i) for i, value in enumerate(values)}
            factors = [[distinct[value] for value in one] for one in factors]
        products = [tuple(_cast(value, FLOAT8) for value in one) for one in factors]
        terms = list(dict.fromkeys(products))
        digits = [_digits_of(*one) for one in terms]
        rows = self._digits(below, keys, digits)
        found, lists = self._digit_lists(rows, len(keys), [len(one.digits) for one in digits])
        wholes: list[Scalar] = []
        for number, product in zip(numbers, products, strict=True):
            one, parts = self._of(number), lists[terms.index(product)]
            if one.function is AggregateFunction.EXACT_SUM:
                name = "exact_sum_float8" if len(product) == 1 else "exact_product_sum_float8"
                wholes.append(Call(name, parts, TEXT))
            else:
                wholes.append(_cast(Call("whole_float8", parts, FLOAT8), one.type))
        group = [reference(found.relation_type, position) for position in range(len(keys))]
        return selected(found, [], [*group, *wholes], self._type(numbers))

    def unconstrained_sum(self, numbers: Sequence[int]) -> Physical:
        """Returns the sum of an unconstrained numeric, or of its distinct values, as often as it is asked for."""
        one = self._of(numbers[0])
        value = self._filtered(one, reference(self.columns, one.arguments[0]))
        below, keys = self.below, self.keys
        if one.distinct:
            below = self._distinct_rows([value])
            keys = [reference(below.relation_type, position) for position in range(len(keys))]
            value = reference(below.relation_type, len(keys))
        listed = [_listed("sum_places_unconstrained", value, NO_PLACE), _listed("sum_digits_unconstrained", value, 0)]
        group = self.relation.relation_type.columns[: len(keys)]
        lists = (Column(f"list_{i}", each.type, False) for i, each in enumerate(listed))
        row = selected(below, [], [*keys, *listed], RelationType((*group, *lists)))
        unnested = RelationType((*group, Column("place", INT8), Column("digits", INT8)))
        below = Unnest(row, len(listed), False, unnested)
        own = [reference(unnested, position) for position in range(unnested.arity)]
        place, digits = own[len(keys) :]
        sums = _Sums(len(keys) + 1)
        totals = [sums.added(_or_zero(digits))]
        state = RelationType((*group, Column("place", INT8, False), Column("digits", INT8, False)))
        rows = self._accumulated(below, [*own[: len(keys)], _or_zero(place)], sums, totals, state)
        found, (parts,) = self._digit_lists(rows, len(keys), [1])
        group_key = [reference(found.relation_type, position) for position in range(len(keys))]
        whole = Call("sum_unconstrained", parts, UNCONSTRAINED)
        return selected(found, [], [*group_key, *(whole for _ in numbers)], self._type(numbers))

    def _digit_lists(
        self, rows: Physical, arity: int, widths: Sequence[int]
    ) -> tuple[Physical, list[tuple[Scalar, ...]]]:
        """Returns what has a row for each group, and for each term the lists of its places and of its digits' sums.

        Args:
            rows: A group's key, of several terms the term, the place, and the sums of its digits.
            arity: How many columns the key has.
            widths: How many sums each term has.
        """
        several = len(widths) > 1
        limb, order = arity + several, (ColumnOrder(arity + several, False, False),)
        if several:
            # Of which term a row is, for the aggregates' filters.
            term = reference(rows.relation_type, arity)
            tests = [Call("eq_int8", (term, Literal(i + 1, INT8)), BOOL, False) for i in range(len(widths))]
            columns = rows.relation_type.columns
            own = [reference(rows.relation_type, position) for position in range(len(columns))]
            flags = (Column(f"is_{i}", BOOL, False) for i in range(len(widths)))
            rows = selected(rows, [], [*own, *tests], RelationType((*columns, *flags)))
        types, width = rows.relation_type.columns, rows.relation_type.arity
        aggregates = [
            Aggregate(
                AggregateFunction.ARRAY_AGG,
                (limb + place,),
                array_of(types[limb + place].type),
                filter=width - len(widths) + i if several else None,
                order=order,
            )
            for i, own_width in enumerate(widths)
            for place in range(1 + own_width)
        ]
        results = tuple(Column(f"list_{i}", one.type) for i, one in enumerate(aggregates))
        node = staged(rows, range(arity), Gathered(tuple(aggregates)), ONE_STAGE, results)
        found = RelationType((*types[:arity], *results))
        places = [*range(arity), *range(width, width + len(results))]
        listed = results_of(node, self.states.kept(node), places, found)
        made = iter(reference(found, arity + i) for i in range(len(results)))
        return listed, [tuple(next(made) for _ in range(1 + own_width)) for own_width in widths]

    def _digits(self, below: Physical, keys: Sequence[Scalar], terms: Sequence[_Digits]) -> Physical:
        """Returns for each group, term and place at which values of it have their lowest digits the digits' sums.

        Of several terms each row becomes one for each of them, so that they share one state.
        """
        group = self.relation.relation_type.columns[: len(keys)]
        width = max(len(one.digits) for one in terms)
        limbs = [one.limb for one in terms]
        digits = [[one.digits[i] if i < len(one.digits) else _ZERO for one in terms] for i in range(width)]
        key: tuple[Column, ...] = (*group, Column("limb", INT4, False))
        if len(terms) > 1:
            listed = [Call("array", tuple(limbs), array_of(INT4), False)]
            listed += [Call("array", tuple(one), array_of(INT8), False) for one in digits]
            lists = (Column(f"list_{i}", one.type, False) for i, one in enumerate(listed))
            row = selected(below, [], [*keys, *listed], RelationType((*group, *lists)))
            elements = (Column(f"digit_{i}", INT8) for i in range(width))
            term = Column("term", INT8, False)
            unnested = RelationType((*group, Column("limb", INT4), *elements, term))
            below = Unnest(row, len(listed), True, unnested)
            own = [reference(unnested, position) for position in range(unnested.arity)]
            keys = [*own[: len(keys)], own[-1]]
            limbs, digits = [own[len(group)]], [[one] for one in own[len(group) + 1 : -1]]
            key = (*group, term, Column("limb", INT4, False))
        limb = Call("coalesce", (limbs[0], Literal(NO_VALUE, INT4)), INT4, False)
        sums = _Sums(len(keys) + 1)
        totals = [sums.added(_or_zero(one)) for (one,) in digits]
        added = (Column(f"digit_{i}", INT8, False) for i in range(width))
        return self._accumulated(below, [*keys, limb], sums, totals, RelationType((*key, *added)))

    def hierarchical(self, numbers: Sequence[int]) -> Physical:
        """Returns least and greatest values."""
        wanted = [(self._of(number).function, self._value(self._of(number))) for number in numbers]
        columns = list(dict.fromkeys(wanted))
        below = self._rows([value for _, value in columns if value is not None])
        return self._extremes(below, numbers, wanted, columns)

    def hierarchical_distinct(self, numbers: Sequence[int]) -> Physical:
        """Returns what the bits of the distinct values of one argument come to."""
        wanted = [(self._of(number).function, self._value(self._of(number))) for number in numbers]
        columns = wanted[:1]
        below = self._distinct_rows([value for _, value in columns if value is not None])
        return self._extremes(below, numbers, wanted, columns)

    def _extremes(
        self,
        below: Physical,
        numbers: Sequence[int],
        wanted: Sequence[tuple[AggregateFunction, Scalar | None]],
        columns: Sequence[tuple[AggregateFunction, Scalar | None]],
    ) -> Physical:
        """Returns the `wanted` of the rows `below`, which have the group and `columns`."""
        function = Extremes(tuple(one for one, _ in columns))
        arity = len(self.relation.key)
        stages = self.states.stages(self.relation.group_size, self.columns.monotonic)
        node = staged(below, range(arity), function, stages)
        places = [arity + columns.index(one) for one in wanted]
        return results_of(node, self.states.kept(node), [*range(arity), *places], self._type(numbers))

    def basic(self, numbers: Sequence[int]) -> Physical:
        """Returns ordered aggregates."""
        read = sorted({p for number in numbers for p in self._of(number).positions})
        below = self._rows([reference(self.columns, position) for position in read])
        arity = len(self.relation.key)
        return self._gathered(below, numbers, {position: arity + i for i, position in enumerate(read)})

    def basic_distinct(self, numbers: Sequence[int]) -> Physical:
        """Returns ordered aggregates of the distinct values of one list of arguments."""
        first = self._of(numbers[0])
        values = [with_one_zero(reference(self.columns, position)) for position in first.arguments]
        places = {position: len(self.relation.key) + i for i, position in enumerate(first.arguments)}
        if first.filter is not None:
            counts = Call("is_true", (reference(self.columns, first.filter),), BOOL, False)
            values = [If(counts, one, Literal(None, one.type)) for one in values]
            # Under this key, so that a column may be both argument and filter.
            places[_FILTER] = len(self.relation.key) + len(values)
            values.append(counts)
        return self._gathered(self._distinct_rows(values), numbers, places)

    def _gathered(self, below: Physical, numbers: Sequence[int], places: Mapping[int, int]) -> Physical:
        aggregates: list[Aggregate] = []
        for number in numbers:
            one = self._of(number)
            ordered = {order.position for order in one.order}
            ties = [ColumnOrder(p, False, False) for p in dict.fromkeys(one.arguments) if p not in ordered]
            filter_ = None if one.filter is None else places.get(_FILTER, places.get(one.filter))
            order = tuple(order.moved(places) for order in (*one.order, *ties))
            arguments = tuple(places[position] for position in one.arguments)
            aggregates.append(replace(one, arguments=arguments, distinct=False, filter=filter_, order=order))
        arity = len(self.relation.key)
        results = self._type(numbers).columns[arity:]
        node = staged(below, range(arity), Gathered(tuple(aggregates)), ONE_STAGE, results)
        width = below.relation_type.arity
        chosen = [*range(arity), *(width + i for i in range(len(results)))]
        return results_of(node, self.states.kept(node), chosen, self._type(numbers))

    def summed(
        self,
        below: Physical,
        keys: Sequence[Scalar],
        results: Sequence[tuple[Aggregate, Scalar | None]],
        relation_type: RelationType,
    ) -> Physical:
        """Returns the keys and, of each group, counts and sums of scalars, all over `below`."""
        sums = _Sums(len(keys))
        finished = [sums.result(aggregate, value) for aggregate, value in results]
        return self._accumulated(below, keys, sums, finished, relation_type)

    def _accumulated(
        self,
        below: Physical,
        keys: Sequence[Scalar],
        sums: _Sums,
        finished: Sequence[Scalar],
        relation_type: RelationType,
    ) -> Physical:
        """Returns the keys and, of each group, scalars over its sums."""
        key = relation_type.columns[: len(keys)]
        contributed = tuple(Column(f"sum_{i}", one.type, False) for i, one in enumerate(sums.contributions))
        row = selected(below, [], [*keys, *sums.contributions], RelationType((*key, *contributed)))
        unique = frozenset({frozenset(range(len(key)))})
        state_type = RelationType((*key, Column("n", INT8, False), *contributed), unique)
        state = self.states.kept(Accumulate(row, len(keys), state_type))
        exists = Call("gt_int8", (_multiplicity(sums.count), _ZERO), BOOL, False)
        kept = [reference(state_type, position) for position in range(len(keys))]
        return selected(state, [exists], [*kept, *finished], relation_type)

    def _distinct_rows(self, values: Sequence[Scalar]) -> Physical:
        """Returns the key and values, each combination once."""
        columns = self._columns_of(values)
        return self.summed(self.below, [*self.keys, *map(with_one_zero, values)], [], columns)

    def _distinct_where(self, argument: int, filters: Sequence[int | None]) -> Physical:
        """Returns the key and an argument, each combination once; then, for each filter, the argument or NULL."""
        value = with_one_zero(reference(self.columns, argument))
        arity = len(self.relation.key)
        kept = ColumnRef(arity, value.type, value.nullable, "value")
        sums = _Sums(arity + 1)
        found: list[Scalar] = []
        for one in filters:
            if one is None:
                found.append(kept)
                continue
            passed = sums.added(If(reference(self.columns, one), Literal(1, INT8), _ZERO))
            some = Call("gt_int8", (_multiplicity(passed), _ZERO), BOOL, False)
            found.append(If(some, kept, Literal(None, value.type)))
        return self._accumulated(self.below, [*self.keys, value], sums, found, self._columns_of([kept, *found]))

    def _rows(self, values: Sequence[Scalar]) -> Physical:
        """Returns the key and values, without leaving out rows."""
        return selected(self.below, [], [*self.keys, *values], self._columns_of(values))

    def _columns_of(self, values: Sequence[Scalar]) -> RelationType:
        names = [one.name if isinstance(one, ColumnRef) and one.name else f"value_{i}" for i, one in enumerate(values)]
        added = (Column(name, one.type, one.nullable) for name, one in zip(names, values, strict=True))
        return RelationType((*self.relation.relation_type.columns[: len(self.relation.key)], *added))

    def _of(self, number: int) -> Aggregate:
        return self.relation.aggregates[number]

    def _type(self, numbers: Sequence[int]) -> RelationType:
        arity, columns = len(self.relation.key), self.relation.relation_type.columns
        return RelationType((*columns[:arity], *(columns[arity + number] for number in numbers)))

    def _value(self, aggregate: Aggregate) -> Scalar | None:
        """Returns what a function that ignores NULLs is applied to; None for every row."""
        value: Scalar | None = None
        if aggregate.arguments:
            value = reference(self.columns, aggregate.arguments[0])
            if aggregate.function.aggregate_class is AggregateClass.HIERARCHICAL:
                value = with_one_zero(value)
        elif aggregate.filter is not None:
            value = Literal(1, INT8)
        return None if value is None else self._filtered(aggregate, value)

    def _filtered(self, aggregate: Aggregate, value: Scalar) -> Scalar:
        if aggregate.filter is None:
            return value
        return If(reference(self.columns, aggregate.filter), value, Literal(None, value.type))


@dataclass(slots=True)
class _Sums:
    """What an accumulation adds up; its results are scalars over its state.

    Attributes:
        first: The position in the state of the row count, which is behind the key.
        contributions: Scalars over the input, never NULL.
    """

    first: int
    contributions: list[Scalar] = field(default_factory=list)

    @property
    def count(self) -> Scalar:
        """The number of rows; what reads it stands behind the check that it is positive."""
        return ColumnRef(self.first, INT8, False, "n")

    def result(self, aggregate: Aggregate, value: Scalar | None) -> Scalar:
        """Returns a count or sum of `value`."""
        if aggregate.function is AggregateFunction.COUNT:
            return self._counted(value)
        if value is None:
            raise InternalError("a sum without an argument")
        total = _cast(self._total(value), aggregate.type)
        if not value.nullable:
            return total
        some = Call("gt_int8", (self._counted(value), _ZERO), BOOL, False)
        return If(some, total, Literal(None, aggregate.type))

    def added(self, contribution: Scalar) -> ColumnRef:
        """Returns the sum of `contribution`."""
        if contribution not in self.contributions:
            self.contributions.append(contribution)
        index = self.contributions.index(contribution)
        return ColumnRef(self.first + 1 + index, contribution.type, False, f"sum_{index}")

    def _counted(self, value: Scalar | None) -> Scalar:
        if value is None or not value.nullable:
            return self.count
        present = Call("is_not_null", (value,), BOOL, False)
        return _multiplicity(self.added(If(present, Literal(1, INT8), _ZERO)))

    def _total(self, value: Scalar) -> Scalar:
        match value.type.kind:
            case Kind.INT2 | Kind.INT4:
                return self.added(_or_zero(_cast(value, INT8)))
            case Kind.INT8:
                return self.added(_or_zero(_cast(value, numeric(0))))
            case Kind.NUMERIC:
                high_type, type_ = high_part_type(value.type.scale), value.type.unmodified
                high = self.added(_or_zero(Call("high_part_numeric", (value,), high_type, value.nullable)))
                low = self.added(_or_zero(Call("low_part_numeric", (value,), type_, value.nullable)))
                return Call("whole_numeric", (high, low), type_, False)
            case _:
                raise InternalError(f"sums of {value.type} cannot be accumulated")


@dataclass(frozen=True, slots=True)
class _Digits:
    """A double, or a product of two, taken apart: the place of its lowest digit, and the digits from there on."""

    limb: Scalar
    digits: tuple[Scalar, ...]


def _digits_of(value: Scalar, factor: Scalar | None = None) -> _Digits:
    if factor is None:
        places = (Literal(i, INT4) for i in range(FLOAT_DIGITS))
        digits = (Call("digit_float8", (value, place), INT8, value.nullable) for place in places)
        return _Digits(Call("limb_float8", (value,), INT4, value.nullable), tuple(digits))
    found = Call("product_digits_float8", (value, factor), array_of(INT8))
    lowest, *others = (Call("array_subscript", (found, Literal(i + 1, INT4)), INT8) for i in range(PRODUCT_DIGITS + 1))
    return _Digits(_cast(lowest, INT4), tuple(others))


def _listed(function: str, value: Scalar, nothing: int) -> Scalar:
    """Returns the array of bigints that a function makes of a value; of NULL, that of `nothing`."""
    type_ = array_of(INT8)
    found = Call(function, (value,), type_, value.nullable)
    return Call("coalesce", (found, Literal((nothing,), type_)), type_, False) if value.nullable else found


def _multiplicity(count: Scalar) -> Scalar:
    return Call("multiplicity_int8", (count,), INT8, False)


def _cast(value: Scalar, target: ScalarType) -> Scalar:
    found = cast(value.type, target)
    if isinstance(found, Failure):
        raise InternalError(f"cannot add up {value.type}: {found}")
    return found.apply(value)


def _or_zero(value: Scalar) -> Scalar:
    if not value.nullable:
        return value
    zero = Decimal(0) if value.type.kind is Kind.NUMERIC else 0
    return Call("coalesce", (value, Literal(zero, value.type)), value.type, False)
