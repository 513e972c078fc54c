"""The n-way join as delta joins.

Bilinear. For inputs A_0 .. A_n-1 and an interval [l, u), term i takes A_i's updates in it and looks up each other
input's history, at `t_j <= t_i` for j < i and at `t_j < t_i` for j > i; the result has time t_i and the product of the
diffs. Every n-tuple of updates is so counted once, at the latest of its times, in the term of the last input that has
it:

    sum over i of  dA_i(t) * prod over j<i of A_j(<= t) * prod over j>i of A_j(< t)  =  d(A_0 * ... * A_n-1)(t)

Histories are not consolidated: the sum is linear in each of them. Only those of inputs that nothing connects are, of
which every update would meet every other's. NULL is equal to nothing, but to NULL in the classes that are null-safe,
where rows with NULL keys are therefore looked up like any other. An input's errors, and those of computing its keys,
pass through once, at their own time and with their own diff, however many rows they would have met. A scalar over
several inputs is computed where the last of them is joined; its error has the joined row's diff.

Cost: a term reads the histories of the other inputs and shuffles neither if the updates are few, since they are
broadcast, as what was joined so far is for the next one; how much that is at most, `broadcast` says. Where an input is
large and laid out by columns that equal columns of what was joined so far, only the keys found there are looked up;
what was joined so far is then computed once, and kept until the step is over. So it is before a very large input is
read whole, which is left out if nothing was joined. Nothing else is kept. What several joins of a step look up alike is
read once for all (`common_lookups`). A term of which the times of the inputs tell that nothing meets is not planned: of
a first load all but one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import and_, mul
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.delta_terms import lookup_order, meeting_terms
from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, at_time, by_position, columns_at, positional, spark_type
from mz_dagster.compute.spark.balanced import balanced
from mz_dagster.compute.spark.broadcast import broadcast
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.expressions import Emitted, Emitter
from mz_dagster.compute.spark.expressions.emitted import leftmost
from mz_dagster.compute.spark.histories import Histories, Keys
from mz_dagster.compute.spark.union import union
from mz_dagster.plan.physical import DeltaJoin
from mz_dagster.scalars.scalar import ColumnRef, Scalar, columns_of, rewrite
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Returns, for a lookup in input j by the term of input i: what was joined so far and what to join it with; None if
#: nothing was. It is told what was joined so far, the columns of it that columns of j must equal, and whether its rows
#: are few.
_Others = Callable[[int, int, "DataFrame", "Mapping[int, Column]", bool], "tuple[DataFrame, DataFrame] | None"]


@dataclass(frozen=True, slots=True)
class _Input:
    """One input's part of the join.

    Attributes:
        index: Which one.
        offset: Where its columns begin among the joined ones.
        arity: How many they are.
        keys: For each class of equivalences that has one here: its scalars over this input alone, over its own columns.
    """

    index: int
    offset: int
    arity: int
    keys: dict[int, tuple[Scalar, ...]]


@dataclass(frozen=True, slots=True)
class _Parts:
    """An input's frame, split.

    Attributes:
        data: Its good rows with keys that can match: `p{i}_c{k}`, `p{i}_k{class}`, `p{i}_time`, `p{i}_diff`.
        errors: The updates of its error part, errors of its keys included, without data; None if there are none.
    """

    data: DataFrame
    errors: DataFrame | None


class DeltaJoinRendering:
    """Renders one `DeltaJoin`.

    Args:
        node: The join.
    """

    def __init__(self, node: DeltaJoin) -> None:
        self._node = node
        arities = [one.relation_type.arity for one in node.inputs]
        offsets = [sum(arities[:i]) for i in range(len(arities))]
        self._owner = [i for i, arity in enumerate(arities) for _ in range(arity)]
        self._inputs = [_Input(i, offsets[i], arities[i], self._local_keys(i, offsets[i])) for i in range(len(arities))]
        #: Scalars over no input, by class: each local key must equal them.
        self._constants = {
            number: [scalar for scalar in one if not columns_of(scalar)] for number, one in enumerate(node.equivalences)
        }
        #: Scalars over several inputs, by class.
        self._spanning = {
            number: [scalar for scalar in one if len(self._owners(scalar)) > 1]
            for number, one in enumerate(node.equivalences)
        }

    def updates(
        self,
        changes: Sequence[DataFrame | None],
        histories: Histories,
        small: Callable[[int], bool],
    ) -> DataFrame | None:
        """Returns the join's updates of an interval.

        Args:
            changes: Each input's updates in the interval; None for one that has none, whose term is not planned.
            histories: Reads the inputs' updates up to the interval's end.
            small: Tells whether an input's updates are few: they are broadcast, and keys are taken from them.
        """
        looked_up: dict[int, DataFrame] = {}

        def history(
            i: int, j: int, joined: DataFrame, bound: Mapping[int, Column], few: bool
        ) -> tuple[DataFrame, DataFrame] | None:
            node = self._node.inputs[j]
            if few and (common := histories.common(self._node, i, j)) is not None:
                return joined, self._data(j, common, histories)
            if few and histories.prunes(node, tuple(bound)):
                joined = histories.shared(joined)
                return joined, self._data(j, histories.of(node, Keys(joined, bound)), histories)
            if few and histories.is_large(node):
                joined = histories.shared(joined)
                if joined.isEmpty():
                    return None
            if j not in looked_up:
                # What nothing connects is multiplied with all there is: what cancels in it goes first.
                whole = histories.of(node) if self._is_connected(j) else self._settled(j, histories.of_late(node))
                looked_up[j] = self._data(j, whole, histories)
            return joined, looked_up[j]

        meeting = meeting_terms([histories.span(one) for one in self._node.inputs])
        results: list[DataFrame] = []
        for i, change in enumerate(changes):
            if change is None:
                continue
            has_errors = histories.may_have_errors(self._node.inputs[i], is_change=True)
            parts = self._split(self._inputs[i], change, has_errors=has_errors)
            if parts.errors is not None:
                results.append(parts.errors)
            term = self._term(i, parts.data, history, timed=True, small=small(i)) if i in meeting else None
            if term is not None:
                results.append(term)
        return union(results) if results else None

    def snapshot(self, frames: Sequence[DataFrame], as_of: int) -> DataFrame:
        """Returns the join of the inputs' contents, as updates at `as_of`, given as snapshots at `as_of`."""
        parts = [
            self._split(one, frame if self._is_connected(one.index) else self._settled(one.index, frame))
            for one, frame in zip(self._inputs, frames, strict=True)
        ]
        first = self._node.first
        joined = self._term(
            first, parts[first].data, lambda i, j, joined, *_: (joined, parts[j].data), timed=False, small=False
        )
        errors = [one.errors for one in parts if one.errors is not None]
        whole = union([*errors, *([] if joined is None else [joined])])
        return at_time(whole, self._node.relation_type.arity, as_of)

    def _local_keys(self, i: int, offset: int) -> dict[int, tuple[Scalar, ...]]:
        keys: dict[int, tuple[Scalar, ...]] = {}
        for number, equivalence in enumerate(self._node.equivalences):
            own = [scalar for scalar in equivalence if self._owners(scalar) == {i}]
            if own:
                keys[number] = tuple(rewrite(one, lambda c: _moved(c, c.position - offset)) for one in own)
        return keys

    def _is_connected(self, j: int) -> bool:
        """Returns whether rows of input j are compared with any others' at all."""
        return any(j in self._owners(scalar) for one in self._node.equivalences for scalar in one)

    def _settled(self, j: int, frame: DataFrame) -> DataFrame:
        """Returns the frame of an input without what cancels."""
        return consolidate(frame, by_position(self._node.inputs[j].relation_type))

    def _owners(self, scalar: Scalar) -> set[int]:
        return {self._owner[position] for position in columns_of(scalar)}

    def _data(self, j: int, history: DataFrame, histories: Histories) -> DataFrame:
        """Returns the good rows of input j's history."""
        has_errors = histories.may_have_errors(self._node.inputs[j], is_change=False)
        return self._split(self._inputs[j], history, has_errors=has_errors).data

    def _split(self, one: _Input, frame: DataFrame, *, has_errors: bool = True) -> _Parts:
        """Computes the input's keys, and drops the rows that can match nothing.

        Args:
            one: The input.
            frame: Its updates.
            has_errors: Whether some of them may be of the error part.
        """
        emitter = Emitter(columns_at(one.arity))
        keys = {number: [emitter.emit(scalar) for scalar in scalars] for number, scalars in one.keys.items()}
        constants = {number: [emitter.emit(scalar) for scalar in self._constants[number]] for number in keys}
        frame = emitter.stage(frame)
        own_error = leftmost([key.error for scalars in keys.values() for key in scalars])
        error = sf.col(ERROR) if own_error is None else sf.coalesce(sf.col(ERROR), own_error)
        errors: DataFrame | None = None
        good = frame
        if has_errors or own_error is not None:
            empty = [sf.lit(None).cast(spark_type(c.type)) for c in self._node.relation_type.columns]
            nothing = [column.alias(name) for column, name in zip(empty, positional(len(empty)), strict=True)]
            errors = frame.where(error.isNotNull()).select(*nothing, sf.col(TIME), sf.col(DIFF), error.alias(ERROR))
            good = frame.where(error.isNull())
        for number, scalars in keys.items():
            first, *others = scalars
            if number not in self._node.null_safe:
                good = good.where(first.value.isNotNull())
            for other in [*others, *constants[number]]:
                good = good.where(self._equal(number, first, other))
        prefix = f"p{one.index}_"
        data = good.select(
            *(sf.col(name).alias(prefix + name) for name in positional(one.arity)),
            *(scalars[0].value.alias(f"{prefix}k{number}") for number, scalars in keys.items()),
            sf.col(TIME).alias(prefix + "time"),
            sf.col(DIFF).alias(prefix + "diff"),
        )
        return _Parts(data, errors)

    def _term(self, i: int, changes: DataFrame, others: _Others, *, timed: bool, small: bool) -> DataFrame | None:
        """Joins one input's rows with the others', in the plan's order; None if nothing was left on the way."""
        joined = changes
        bound = {i}
        representatives = {number: f"p{i}_k{number}" for number in self._inputs[i].keys}
        late: set[int] = set()
        outcomes: list[Column] = []
        for j in lookup_order(self._node, i):
            conditions = [
                self._equal(number, Emitted(sf.col(f"p{j}_k{number}")), Emitted(sf.col(representatives[number])))
                for number in self._inputs[j].keys
                if number in representatives
            ]
            if timed:
                t_i, t_j = sf.col(f"p{i}_time"), sf.col(f"p{j}_time")
                conditions.append(t_j <= t_i if j < i else t_j < t_i)
            condition = balanced(and_, conditions or [sf.lit(True)])
            found = others(i, j, joined, self._bound_columns(j, representatives), small)
            if found is None:
                return None
            joined, other = found
            sent = broadcast(joined, self._columns_of(bound)) if small else joined
            joined = sent.join(other, condition, "inner")
            bound.add(j)
            for number in self._inputs[j].keys:
                representatives.setdefault(number, f"p{j}_k{number}")
            joined, failed = self._spanning_at(joined, bound, representatives, late)
            outcomes += [] if failed is None else [failed]
        return self._shaped(joined, i, leftmost(outcomes))

    def _columns_of(self, inputs: Collection[int]) -> dict[str, ScalarType]:
        """Returns the names that columns of inputs have in what is joined, and their types."""
        return {
            f"p{i}_c{n}": column.type
            for i in sorted(inputs)
            for n, column in enumerate(self._node.inputs[i].relation_type.columns)
        }

    def _bound_columns(self, j: int, representatives: Mapping[int, str]) -> dict[int, Column]:
        """Returns, for columns of input j that stand in a class, the joined column that they must equal."""
        bound: dict[int, Column] = {}
        for number, scalars in self._inputs[j].keys.items():
            # The hash of a key is one of representations: other types of equal values have others.
            one_type = len({scalar.type for scalar in self._node.equivalences[number]}) == 1
            if one_type and number in representatives:
                columns = [scalar.position for scalar in scalars if isinstance(scalar, ColumnRef)]
                bound |= {position: sf.col(representatives[number]) for position in columns}
        return bound

    def _equal(self, number: int, left: Emitted, right: Emitted) -> Column:
        """Returns whether two scalars of the class `number` are equal; what failed is equal to nothing."""
        if number not in self._node.null_safe:
            return left.value == right.value
        equal = left.value.eqNullSafe(right.value)
        for error in (left.error, right.error):
            equal = equal if error is None else equal & error.isNull()
        return equal

    def _spanning_at(
        self, joined: DataFrame, bound: set[int], representatives: dict[int, str], late: set[int]
    ) -> tuple[DataFrame, Column | None]:
        """Applies the classes' scalars over several inputs as soon as all of them are bound.

        Returns the frame, from which rows that do not match are gone, and the column of the errors of those that
        failed, which stay.
        """
        error_columns: list[Column] = []
        for number, scalars in self._spanning.items():
            if number in late or not scalars:
                continue
            members = [*scalars, *self._constants[number]]
            if not all(self._owners(scalar) <= bound for scalar in scalars):
                continue
            # Wait for the inputs that have a key in this class: the join on it may need no spanning scalar.
            if not all(one.index in bound for one in self._inputs if number in one.keys):
                continue
            late.add(number)
            emitter = Emitter(self._joined_columns(), prefix=f"mz_class{number}")
            emitted = [emitter.emit(scalar) for scalar in members]
            joined = emitter.stage(joined)
            values: list[Emitted] = list(emitted)
            if number in representatives:
                values.append(Emitted(sf.col(representatives[number])))
            error = leftmost([one.error for one in emitted])
            matching = balanced(and_, [self._equal(number, values[0], one) for one in values[1:]] or [sf.lit(True)])
            if error is None:
                joined = joined.where(matching)
            else:
                name = f"mz_class{number}_failed"
                joined = joined.select("*", error.alias(name)).where(sf.col(name).isNotNull() | matching)
                error_columns.append(sf.col(name))
        return joined, leftmost(error_columns)

    def _joined_columns(self) -> list[Column]:
        return [sf.col(f"p{one.index}_c{k}") for one in self._inputs for k in range(one.arity)]

    def _shaped(self, joined: DataFrame, i: int, error: Column | None) -> DataFrame:
        """Returns the joined rows with the operators' column names, time t_i and the product of the diffs."""
        diff = balanced(mul, [sf.col(f"p{one.index}_diff") for one in self._inputs])
        data = [column.alias(f"c{k}") for k, column in enumerate(self._joined_columns())]
        own = sf.lit(None).cast("string") if error is None else error
        return joined.select(*data, sf.col(f"p{i}_time").alias(TIME), diff.alias(DIFF), own.alias(ERROR))


def _moved(column: ColumnRef, position: int) -> ColumnRef:
    return ColumnRef(position, column.type, column.nullable, column.name)
