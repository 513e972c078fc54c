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

A portion of which an operator makes too many rows is cut in two, down to `Budget.least_portion_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.each_update import of_each_update
from mz_dagster.compute.algebra.frame import ERROR, META, TIME, positional
from mz_dagster.compute.algebra.operator_costs import OperatorCosts
from mz_dagster.compute.local.accumulate import accumulate_updates, sums_of
from mz_dagster.compute.local.content import ContentOperators
from mz_dagster.compute.local.declined import Declined, TooManyMade
from mz_dagster.compute.local.error_part import failed
from mz_dagster.compute.local.join import compacted
from mz_dagster.compute.local.linear_operators import no_updates_of, plan_schema
from mz_dagster.compute.local.operators import of_one_sign
from mz_dagster.compute.local.sums import Sums, added_totals, totals_by_key
from mz_dagster.compute.placement.portioned import cut_input, largest_cut
from mz_dagster.compute.walk.operators import Bound, Walk
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    DeltaJoin,
    EachUpdate,
    Linear,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
    Unnest,
    physical_inputs,
)
from mz_dagster.progress import advance
from mz_dagster.scalars.types import INT8, Column, RelationType
from mz_dagster.storage.arrow_schema import without_errors
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.row_hashes import hashed, words_of

#: Of what is put together a row is summed so many times at most, on average.
_SUMS = 4
#: Of groups of more than a portion a part in so many is added up at a time: as many as there are upper bits of a hash.
_SHARE_BITS = 4


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
        self._told: set[GlobalId] = set()  # of which collections it was told how much of them is done

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
        return largest_cut(node, self._rows_there, self._repeated)

    def _rows_there(self, id: GlobalId) -> int:
        shared = self._content.shared_plans.get(id)
        return self._rows(id) if shared is None else len(shared)

    def _portions(self, node: Physical, rows: int, user: Physical | None = None) -> Iterator[pa.Table]:
        """Yields updates whose sum is a plan's, made of so many rows of a collection at a time."""
        operators = self._content
        if self._largest(node) <= rows:
            found = self._frame(node, {}, user)
            if found is not None:
                yield found
            return
        if isinstance(node, EachUpdate):
            for part in self._portions(node.input, rows, node if isinstance(node, Linear) else None):
                yield from _in_parts(partial(of_each_update, operators, node), part)
            return
        match node:
            case ReadCollection():
                is_told = node.id in operators.shared_plans or node.id in self._told
                left = 0 if is_told else self._rows(node.id)
                self._told.add(node.id)
                for table in operators.read_parts(node, user or node, rows):
                    for start in range(0, len(table), rows):
                        part = table.slice(start, rows)
                        yield part
                        # Who asks for the next one has computed what is made of this one.
                        advance(min(left, len(part)), "rows")
                        left -= min(left, len(part))
                advance(left, "rows")
            case UnionAll():
                # What is taken away comes first, so that what it is taken from cancels with it as that is made.
                for one in sorted(node.inputs, key=_negates, reverse=True):
                    yield from self._portions(one, rows)
            case DeltaJoin():
                yield from self._joined_portions(node, rows, operators.compared(node, user or node))
            case _:
                raise InternalError("this operator is linear in no collection")

    def _joined_portions(self, node: DeltaJoin, rows: int, compared: tuple[Comparison, ...]) -> Iterator[pa.Table]:
        cut = cut_input(node, self._rows_there, self._repeated)
        inputs = [None if i == cut else self._whole(one) for i, one in enumerate(node.inputs)]
        portions = chain([no_updates_of(node.inputs[cut])], self._portions(node.inputs[cut], rows))
        for number, portion in enumerate(portions):
            # The errors of the other inputs pass once.
            failing = range(len(inputs)) if number == 0 else (cut,)

            def joined(part: pa.Table, failing: Collection[int] = failing) -> pa.Table:
                tables = [part if i == cut else one for i, one in enumerate(inputs)]
                # To halve a portion is cheaper than to look for equal rows, as long as that helps.
                return self._content.join(
                    node, tables, compared, failing, sums=len(part) <= budget().least_portion_rows
                )

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
        """Returns the updates of counts and sums: each portion is added to the groups of those before it.

        What came later than the first time, as all does that was loaded since a collection was made, is added up for
        each time, and meets what was there before in the end.
        """
        groups, later = _Totals(sums_of(node), self._as_of), _Totals(sums_of(_by_time(node)), self._as_of)
        most = budget().frame_rows
        errors = list[pa.Table]()
        for part in self._portions(node.input, _rows_at_once(node.input)):
            errors.append(failed(part, groups.sums.schema))
            part = without_errors(part)
            is_first = pc.equal(part.column(TIME), self._as_of)
            count = pc.sum(is_first).as_py() or 0
            if count:
                groups.add(part if count == len(part) else part.filter(is_first))
            if count < len(part):
                others = part.filter(pc.invert(is_first)) if count else part
                later.add(_with_time(others, node.key_arity, self._as_of))
            if groups.rows + later.rows > most and len(groups.all()) + len(later.all()) > most:
                raise Declined(f"there are more than {most} groups")
        ended = []
        if later.rows:
            ended.append(accumulate_updates(of_one_sign(_as_rows(later.all(), node)), groups.all(), node))
        return pa.concat_tables([groups.all(), *errors, *ended])


class _Totals:
    """Counts and sums of portions, all at one time, which are added to each other once they have doubled.

    Where they are many, those of a part of all keys at a time, by a hash of what has a fixed size of the key: to add
    them up takes several times what they do themselves.

    Attributes:
        sums: What is counted and added up.
        rows: How many there are of all portions that are not added to each other yet.
    """

    def __init__(self, sums: Sums, time: int) -> None:
        self.sums = sums
        self.rows = 0
        self._time = time
        self._held = list[pa.Table]()
        self._new = list[pa.Table]()
        self._added = 0
        self._hashed = [place for place in range(sums.keys) if _is_of_fixed_size(sums.schema.field(place).type)]

    def add(self, changes: pa.Table) -> None:
        """Takes a portion's changes in."""
        self._new.append(totals_by_key(changes, self.sums, self._time))
        self.rows += len(self._new[-1])
        if self.rows > 2 * max(self._added, budget().least_portion_rows):
            self.all()

    def all(self) -> pa.Table:
        """Returns the state of all portions, a row for each key."""
        if self._new:
            shares = 1 << _SHARE_BITS if self._hashed and self.rows > budget().portion_rows else 1
            if len(self._held) != shares:
                self._new, self._held = [*self._held, *self._new], [self.sums.schema.empty_table()] * shares
            new = self._shared_out(pa.concat_tables(self._new), shares)
            self._new = []
            for share in range(shares):
                self._held[share] = added_totals([self._held[share], new[share]], self.sums, self._time)
        found = pa.concat_tables([self.sums.schema.empty_table(), *self._held])
        self._added = self.rows = len(found)
        return found

    def _shared_out(self, groups: pa.Table, shares: int) -> list[pa.Table]:
        """Returns a state's rows in so many tables, equal keys in the same."""
        if shares == 1:
            return [groups]
        words = [word for place in self._hashed for word in words_of(groups.column(place), has_nulls=True)]
        share = (hashed(words) >> np.uint64(64 - _SHARE_BITS)).astype(np.uint8)
        order = np.argsort(share, kind="stable")
        ends = np.searchsorted(share[order], np.arange(shares), "right")
        rows = groups.take(pa.array(order))
        return [rows.slice(begin, end - begin) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _is_of_fixed_size(type_: pa.DataType) -> bool:
    """Returns whether equal keys of a type have the same words in different tables."""
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal128(type_) or pa.types.is_temporal(type_))


def _by_time(node: Accumulate) -> Accumulate:
    """Returns an operator that counts and sums for each key and time: the time is a key, behind the others."""
    columns = list(node.relation_type.columns)
    columns.insert(node.key_arity, Column(TIME, INT8, False))
    return replace(node, key_arity=node.key_arity + 1, relation_type=RelationType(tuple(columns)))


def _with_time(changes: pa.Table, place: int, time: int) -> pa.Table:
    """Returns changes at one time, with those that they had as a column."""
    times = changes.column(TIME)
    moved = changes.set_column(changes.schema.get_field_index(TIME), TIME, pa.array(np.full(len(changes), time)))
    moved = moved.add_column(place, "of", times)
    return moved.rename_columns([*positional(moved.num_columns - len(META)), *META])


def _as_rows(groups: pa.Table, node: Accumulate) -> pa.Table:
    """Returns updates of an operator's input, at most two for each key and time, of which its groups by time come.

    Of a group of n rows one has the sums, and n - 1 have zeros.
    """
    places = range(groups.num_columns - len(META))
    keys, sums = places[: node.key_arity], places[node.key_arity + 2 :]
    times, counts = (groups.column(node.key_arity + n) for n in range(2))
    ones, schema = pa.array(np.ones(len(groups), np.int64)), plan_schema(node.input)
    zeros = [pa.repeat(pa.array([0], groups.field(place).type)[0], len(groups)) for place in sums]
    parts = []
    for added, diffs in (([groups.column(place) for place in sums], ones), (zeros, pc.subtract(counts, ones))):
        columns = [*(groups.column(place) for place in keys), *added, times, diffs, groups.column(ERROR)]
        parts.append(pa.Table.from_arrays(columns, schema=schema).filter(pc.not_equal(diffs, 0)))
    return pa.concat_tables(parts)


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
    return min(budget().portion_rows, max(budget().least_portion_rows, budget().portion_cells // _width(node)))


def _width(node: Physical) -> int:
    """Returns how many columns a row has at most on its way through what is linear."""
    if isinstance(node, Linear):
        return max(node.mfp.arity + sum(kind == "map" for kind, _ in node.mfp.steps), _width(node.input))
    if isinstance(node, EachUpdate | UnionAll | DeltaJoin):
        return max(node.relation_type.arity, *map(_width, physical_inputs(node)))
    return 1


def _in_parts(compute: Callable[[pa.Table], pa.Table], portion: pa.Table) -> Iterator[pa.Table]:
    """Yields what is made of a portion, or of halves of it if that is too much at once."""
    try:
        yield compute(portion)
    except TooManyMade:
        if len(portion) <= budget().least_portion_rows:
            raise
        half = len(portion) // 2
        yield from _in_parts(compute, portion.slice(0, half))
        yield from _in_parts(compute, portion.slice(half))
