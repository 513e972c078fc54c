"""What an operator of one input has to do with the columns of that input: stated once for each, and used by the passes.

The columns of an operator are some of its input's, which it passes on, and behind them those that it makes. So

    lineage     of a column that is passed on is that of the input's; of one that is made, that of what it is `made` of
    demand      for some columns is what these are, what they are made of, and what the operator `reads` in any case
    predicates  over columns that are passed on may be asked of the input's rows, if rows that differ in these columns
                are not taken together: they are `apart_by` them
    row counts  are at most those of the input where there is `no_more`, and at least one where the input has one and
                there is `some`

and a pass says only where it knows better. That is of a `Map`, whose scalars can be put into a predicate, or of a
`Negate`, whose rows bring no values. What an operator is over another input, in which its columns stand elsewhere, is
`over`.

Nodes with no input or several are few, and each pass is about them; so they have no properties here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from mz_dagster.functions import AGGREGATES
from mz_dagster.plan.relation import (
    CatchErrors,
    Filter,
    FlatMap,
    FrameUnit,
    Map,
    Negate,
    OneInput,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Window,
    WindowFunction,
)
from mz_dagster.plan.rewriting import moved, scalars_of
from mz_dagster.scalars.scalar import Scalar, columns_of


@dataclass(frozen=True, slots=True)
class Properties:
    """What an operator does with its input's columns. Its own are first those that are passed on, then those it makes.

    Attributes:
        passed: Which of the input's columns its first ones are, in order: a row has their values from a row that it is
            made of.
        made: For each column behind these, from which of the input's columns its values derive.
        reads: The input's columns that it reads whatever is asked of it: by them it is known which rows there are.
        apart_by: Rows that differ in one of these columns have nothing to do with each other: what becomes of a row
            is the same without those that differ from it.
        ties: Whether the whole row decides, column by column, where rows are equal in what it `reads`.
        no_more: Whether it never has more rows than its input.
        some: Whether it has a row whenever its input has one.
    """

    passed: Sequence[int]
    made: tuple[frozenset[int], ...] = ()
    reads: frozenset[int] = frozenset()
    apart_by: Collection[int] = ()
    ties: bool = False
    no_more: bool = True
    some: bool = False


#: The window functions whose value is a row's place in the order.
_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})


def properties_of(relation: OneInput) -> Properties:
    """Returns what `relation` does with its input's columns.

    Example:
        >>> from mz_dagster.formalism import GlobalId
        >>> from mz_dagster.plan.relation import Get
        >>> from mz_dagster.scalars.types import INT4, Column, RelationType
        >>> t = Get(GlobalId("t"), RelationType((Column("a", INT4), Column("b", INT4))))
        >>> properties_of(Reduce(t, (1,), (), ()))
        Properties(passed=(1,), made=(), reads=frozenset({1}), apart_by=(1,), ties=False, no_more=True, some=True)
    """
    every = range(relation.input.relation_type.arity)
    match relation:
        case Map():
            return Properties(every, _made_by(relation), apart_by=every, some=True)
        case Filter() | TemporalFilter():
            return Properties(every, reads=_read(scalars_of(relation)), apart_by=every)
        case Projection():
            return Properties(relation.positions, apart_by=every, some=True)
        case Negate():
            return Properties(every, apart_by=every, no_more=False)
        case Threshold():
            return Properties(every, reads=frozenset(every), apart_by=every)
        case Reduce():
            made = tuple(one.positions for one in relation.aggregates)
            return Properties(relation.key, made, frozenset(relation.key), relation.key, some=True)
        case TopK():
            reads = frozenset((*relation.group, *(one.position for one in relation.order)))
            some = relation.offset == 0 and relation.limit != 0
            return Properties(every, reads=reads, apart_by=relation.group, ties=not relation.ties, some=some)
        case Window():
            order = frozenset(one.position for one in relation.order)
            made = tuple(one.positions | order if one.name in _RANKS else one.positions for one in relation.functions)
            ties = any(map(_differs_between_peers, relation.functions))
            return Properties(every, made, order.union(relation.partition), relation.partition, ties, some=True)
        case RepeatRow():
            others = [one for one in every if one != relation.count]
            return Properties(others, reads=frozenset({relation.count}), apart_by=every, no_more=False)
        case CatchErrors():  # of all columns: an error may be that of one which nobody reads
            return Properties(every, (frozenset(),), frozenset(every), no_more=False)
        case FlatMap():  # all arrays decide how many rows there are
            kept, arrays = every[: -relation.arrays], every[-relation.arrays :]
            made = (*(frozenset({one}) for one in arrays), *[frozenset[int]()] * relation.ordinality)
            return Properties(kept, made, frozenset(arrays), every, no_more=False)
        case _:
            assert_never(relation)


def demanded(relation: OneInput, columns: Collection[int]) -> frozenset[int]:
    """Returns the columns of the input by which the rows of `relation` are known in `columns`, with how many there are.

    Columns decide ties in their order. So all before one that is demanded do, until what has decided has a unique key;
    those behind the last one only tell rows apart that are equal above.
    """
    own = properties_of(relation)
    of_each = (*(frozenset({one}) for one in own.passed), *own.made)
    found = own.reads.union(*(of_each[one] for one in columns))
    if not own.ties:
        return found
    decided = set(own.reads)
    for position in range(max(found - own.reads, default=-1)):
        if any(key <= decided for key in relation.input.relation_type.keys):
            break
        decided.add(position)
    return found | decided


def let_through(relation: OneInput) -> dict[int, int]:
    """Returns by which columns predicates may be asked of the input's rows instead, and which columns of it these are.

    A predicate that can fail may not, nor one that reads the time or no column at all, but where the pass knows better.
    """
    own = properties_of(relation)
    return {place: position for place, position in enumerate(own.passed) if position in own.apart_by}


def over(relation: OneInput, input: Relation, places: Mapping[int, int]) -> OneInput:
    """Returns `relation` over another input, which has the columns that it reads at their `places`, in their order.

    What is passed on whole is passed on as far as it is there.
    """

    def placed(positions: Iterable[int]) -> tuple[int, ...]:
        return tuple(places[one] for one in positions)

    def scalars(found: Iterable[Scalar], places: Mapping[int, int] = places) -> tuple[Scalar, ...]:
        return tuple(moved(one, places) for one in found)

    match relation:
        case Map():
            arity, now = relation.input.relation_type.arity, input.relation_type.arity
            own = {**places, **{arity + i: now + i for i in range(len(relation.scalars))}}
            return replace(relation, input=input, scalars=scalars(relation.scalars, own))
        case Filter():
            return replace(relation, input=input, predicates=scalars(relation.predicates))
        case TemporalFilter():
            return replace(relation, input=input, lower=scalars(relation.lower), upper=scalars(relation.upper))
        case Projection():
            return replace(relation, input=input, positions=placed(relation.positions))
        case Reduce():
            aggregates = tuple(one.moved(places) for one in relation.aggregates)
            return replace(relation, input=input, key=placed(relation.key), aggregates=aggregates)
        case TopK():
            order = tuple(one.moved(places) for one in relation.order)
            return replace(relation, input=input, group=placed(relation.group), order=order)
        case Window():
            order = tuple(one.moved(places) for one in relation.order)
            functions = tuple(one.moved(places) for one in relation.functions)
            partition = placed(relation.partition)
            return replace(relation, input=input, partition=partition, order=order, functions=functions)
        case RepeatRow():
            return replace(relation, input=input, count=places[relation.count])
        case Negate() | Threshold() | CatchErrors() | FlatMap():
            return replace(relation, input=input)
        case _:
            assert_never(relation)


def _read(scalars: Iterable[Scalar]) -> frozenset[int]:
    return frozenset().union(*map(columns_of, scalars))


def _made_by(relation: Map) -> tuple[frozenset[int], ...]:
    """Returns which of the input's columns each scalar reads, also by those before it."""
    arity = relation.input.relation_type.arity
    made: list[frozenset[int]] = []
    for scalar in relation.scalars:
        own = columns_of(scalar)
        before = (made[one - arity] for one in sorted(own) if one >= arity)
        made.append(frozenset(one for one in own if one < arity).union(*before))
    return tuple(made)


def _differs_between_peers(function: WindowFunction) -> bool:
    """Returns whether a window function's values differ between rows that its order says are equal."""
    by_rows = function.frame is None or function.frame.unit is FrameUnit.ROWS
    found = AGGREGATES.get(function.name)
    if found is not None and found.hypothetical:
        return False
    return by_rows or found is None or found.sees_order
