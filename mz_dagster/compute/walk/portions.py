"""The walk over all updates of much, portion by portion, so that what is in memory does not grow with what is joined.

A first load reads a table of facts once, joins it with what is around it, and keeps a sum for each group. What is read
takes little memory, as only the columns that are used are; the joined rows, with all columns of all inputs and a few
forms of each on the way, take ten times as much, and the groups little again. Joins, maps and filters are linear in
each input: what they make of it is the sum of what they make of its parts. So the largest input is cut into portions,
each goes up to the group, and is added there to what the portions before have made. Where nothing groups, what is left
of the portions is put together, and summed whenever it is much: it stays much only if the result is.

    Accumulate ── Linear ── DeltaJoin ── Linear ── facts       500,000 rows at a time
                               ├──────── Linear ── dimension   whole, once
                               └──────── ...

A portion of which an operator makes too many rows is cut in two, down to `_LEAST`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import TIME
from mz_dagster.compute.algebra.operator_costs import OperatorCosts
from mz_dagster.compute.local.accumulate import accumulate_updates
from mz_dagster.compute.local.content import ContentOperators
from mz_dagster.compute.local.declined import Declined, TooManyMade
from mz_dagster.compute.local.error_part import failed, without_errors
from mz_dagster.compute.local.join import compacted
from mz_dagster.compute.local.linear_operators import no_updates_of, plan_schema
from mz_dagster.compute.local.operators import of_one_sign
from mz_dagster.compute.walk.operators import Bound, Walk
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    DeltaJoin,
    Linear,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    UnionAll,
    Unnest,
    identity,
    physical_inputs,
)
from mz_dagster.storage.consolidation import summed

#: A portion of fewer rows is not cut any more.
_LEAST = 10_000
#: Of what is put together a row is summed so many times at most, on average.
_SUMS = 4


class ContentWalk(Walk[pa.Table]):
    """Computes plans over all updates of collections, those over much in portions.

    Args:
        operators: This process's, over all updates.
        rows: Returns how many updates a collection has.
        as_of: The first time.
        costs: Notes what each operator costs; of what is computed in portions, all in one.
    """

    def __init__(
        self, operators: ContentOperators, rows: Callable[[GlobalId], int], as_of: int, costs: OperatorCosts
    ) -> None:
        super().__init__(operators, costs=costs)
        self._content = operators
        self._rows = rows
        self._as_of = as_of

    def _made(self, node: Physical, bound: Bound, user: Physical | None) -> pa.Table | None:
        if not isinstance(node, ReadCollection) and self._is_in_portions(node):
            if isinstance(node, Accumulate):
                return self._accumulated(node)
            return self._put_together(node, user)
        return super()._made(node, bound, user)

    def _is_in_portions(self, node: Physical) -> bool:
        """Returns whether a plan is linear in a collection of much, or groups one that is."""
        below = node.input if isinstance(node, Accumulate) else node
        return self._largest(below) > _rows_at_once(below)

    def _largest(self, node: Physical) -> int:
        """Returns how many rows the largest collection has that `_portions` would cut."""
        match node:
            case ReadCollection():
                shared = self._content.shared_plans.get(node.id)
                return self._rows(node.id) if shared is None else len(shared)
            case DeltaJoin() if identity(node) in self._repeated:
                return 0  # it is computed once, for all that ask for it
            case Linear() | NegateAll() | Repeat() | Catch() | Unnest() | UnionAll() | DeltaJoin():
                return max(map(self._largest, physical_inputs(node)), default=0)
            case _:
                return 0

    def _portions(self, node: Physical, rows: int, user: Physical | None = None) -> Iterator[pa.Table]:
        """Yields updates whose sum is a plan's, made of so many rows of a collection at a time."""
        operators = self._content
        if self._largest(node) <= rows:
            found = self._frame(node, {}, user)
            if found is not None:
                yield found
            return
        match node:
            case ReadCollection():
                table = operators.read(node, user or node, {})
                if table is not None:
                    yield from (table.slice(start, rows) for start in range(0, len(table), rows))
            case UnionAll():
                # What is taken away comes first, so that what it is taken from cancels with it as that is made.
                for one in sorted(node.inputs, key=_negates, reverse=True):
                    yield from self._portions(one, rows)
            case Linear() | NegateAll() | Repeat() | Catch() | Unnest():
                for part in self._portions(node.input, rows, node if isinstance(node, Linear) else None):
                    yield from _in_parts(partial(self._of_each_update, node), part)
            case DeltaJoin():
                yield from self._joined_portions(node, rows, operators.compared(node, user or node))
            case _:
                raise InternalError("this operator is linear in no collection")

    def _joined_portions(self, node: DeltaJoin, rows: int, compared: tuple[Comparison, ...]) -> Iterator[pa.Table]:
        sizes = [self._largest(one) for one in node.inputs]
        cut = sizes.index(max(sizes))
        inputs = [None if i == cut else self._whole(one) for i, one in enumerate(node.inputs)]
        portions = chain([no_updates_of(node.inputs[cut])], self._portions(node.inputs[cut], rows))
        for number, portion in enumerate(portions):
            # The errors of the other inputs pass once.
            failing = range(len(inputs)) if number == 0 else (cut,)

            def joined(part: pa.Table, failing: Collection[int] = failing) -> pa.Table:
                tables = [part if i == cut else one for i, one in enumerate(inputs)]
                return self._content.join(node, tables, compared, failing)

            yield from _in_parts(joined, portion)

    def _whole(self, node: Physical) -> pa.Table | None:
        found = self._frame(node, {})
        return None if found is None else compacted(found, self._as_of)

    def _put_together(self, node: Physical, user: Physical | None) -> pa.Table:
        """Returns what is made of the portions, summed when it becomes much: most of it may be alike, or cancel."""
        most = budget().frame_rows
        parts, kept, made, looked_at = [no_updates_of(node)], 0, 0, 0
        for one in self._portions(node, _rows_at_once(node), user):
            parts.append(one)
            kept, made = kept + len(one), made + len(one)
            if kept <= most:
                continue
            looked_at += kept
            parts = [summed(pa.concat_tables(parts))]
            kept = len(parts[0])
            if kept > most or looked_at > _SUMS * made:
                raise Declined(f"more than {most} rows are made")
        return pa.concat_tables(parts)

    def _accumulated(self, node: Accumulate) -> pa.Table:
        """Returns the updates of counts and sums: each portion is added to the groups of those before it."""
        schema = plan_schema(node)
        groups, later, errors = schema.empty_table(), list[pa.Table](), list[pa.Table]()
        for part in self._portions(node.input, _rows_at_once(node.input)):
            is_first = pc.equal(part.column(TIME), self._as_of)
            if not pc.all(is_first).as_py():
                later.append(part.filter(pc.invert(is_first)))
                part = part.filter(is_first)
            updates = self._added(node, part, groups)
            errors.append(failed(updates, schema))
            groups = summed(pa.concat_tables([groups, without_errors(updates)]))
            if len(groups) > budget().frame_rows:
                raise Declined(f"there are more than {budget().frame_rows} groups")
        ended = [self._added(node, pa.concat_tables(later), groups)] if later else []
        return pa.concat_tables([groups, *errors, *ended])

    def _added(self, node: Accumulate, changes: pa.Table, groups: pa.Table) -> pa.Table:
        return accumulate_updates(of_one_sign(changes), groups, node)


def _negates(node: Physical) -> bool:
    """Returns whether all that is made of an input is negated."""
    match node:
        case NegateAll():
            return True
        case Linear() | Catch() | Unnest():
            return _negates(node.input)
        case _:
            return False


def _rows_at_once(node: Physical) -> int:
    """Returns how many rows of a collection go through a plan at once: fewer where they become wide."""
    return min(budget().portion_rows, max(_LEAST, budget().portion_cells // _width(node)))


def _width(node: Physical) -> int:
    """Returns how many columns a row has at most on its way through what is linear."""
    match node:
        case Linear():
            return max(node.mfp.arity + sum(kind == "map" for kind, _ in node.mfp.steps), _width(node.input))
        case DeltaJoin() | NegateAll() | Repeat() | Catch() | Unnest() | UnionAll():
            return max(node.relation_type.arity, *map(_width, physical_inputs(node)))
        case _:
            return 1


def _in_parts(compute: Callable[[pa.Table], pa.Table], portion: pa.Table) -> Iterator[pa.Table]:
    """Yields what is made of a portion, or of halves of it if that is too much at once."""
    try:
        yield compute(portion)
    except TooManyMade:
        if len(portion) <= _LEAST:
            raise
        half = len(portion) // 2
        yield from _in_parts(compute, portion.slice(0, half))
        yield from _in_parts(compute, portion.slice(half))
