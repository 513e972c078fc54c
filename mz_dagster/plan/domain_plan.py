"""A dependent plan with the domain for which it is asked, and what it says looked up by the rows that ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.plan.dependence import free_columns, outer_columns, with_free_columns, with_outer_columns
from mz_dagster.plan.domain import domain_source
from mz_dagster.plan.relation import Join, Relation
from mz_dagster.plan.representations import from_representation
from mz_dagster.plan.rewriting import reference, references, shifted
from mz_dagster.plan.semijoin import ONE_ROW, Sharing, distinct_of, with_scalars
from mz_dagster.scalars.scalar import ColumnRef, Literal, OuterColumn, Scalar


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """A dependent plan with the domain for which it is asked.

    Attributes:
        relation: The plan; its `OuterColumn`s are the domain's columns.
        test: Over the plan's columns and the domain's.
        outer: The rows that ask, with columns for the arguments.
        places: Where in `outer` the domain's columns are.
        domain: The distinct rows of arguments.
    """

    relation: Relation
    test: Scalar | None
    outer: Relation
    places: tuple[int, ...]
    domain: Relation

    @classmethod
    def of(
        cls,
        relation: Relation,
        test: Scalar | None,
        outer: Relation,
        arguments: Sequence[Scalar],
        sharing: Sharing,
        *,
        early: bool = False,
        asking: Relation | None = None,
    ) -> DomainPlan:
        """Returns the plan over the domain of the arguments that it reads; `outer` gets columns for them.

        If it may be asked `early`, the domain may have more rows; those of `asking` if there is such a relation, in
        which the arguments are computed as in `outer`. They are `by_representation`.
        """
        used = sorted(free_columns(relation) | (frozenset() if test is None else outer_columns(test)))
        computed = [arguments[one] for one in used if not isinstance(arguments[one], Literal)]
        wide, positions = with_scalars(outer, computed, "argument")
        if not computed:
            domain: Relation = ONE_ROW
        else:
            wide = sharing.shared(wide)
            source, columns = wide, tuple(dict.fromkeys(positions))
            if asking is not None:
                source, _ = with_scalars(asking, computed, "argument")
            elif early:
                source, columns = domain_source(wide, columns, dict(sharing.lets))
            domain = sharing.shared(distinct_of(source, references(source, columns)))
        places = tuple(dict.fromkeys(positions))
        position_of = dict(zip(computed, positions, strict=True))

        def renumbered(column: OuterColumn) -> Scalar:
            argument = arguments[column.number]
            if isinstance(argument, Literal):
                return argument
            number = places.index(position_of[argument])
            return from_representation(replace(column, number=number, type=argument.type), column.type)

        own_test = None if test is None else with_outer_columns(test, renumbered)
        return cls(with_free_columns(relation, renumbered), own_test, wide, places, domain)

    def columns_of(self, rows: Relation) -> tuple[ColumnRef, ...]:
        """Returns what reads the domain's columns in `rows`, which begin with them."""
        return references(rows, range(len(self.places)))


def looked_up(outer: Relation, answers: Sequence[tuple[Sequence[int], Relation]]) -> Relation:
    """Joins to the rows of `outer` relations that begin with columns equal, NULL to NULL, to those at given places."""
    classes: list[tuple[Scalar, ...]] = []
    width = outer.relation_type.arity
    for places, rows in answers:
        classes += [
            (reference(outer.relation_type, place), shifted(reference(rows.relation_type, i), width))
            for i, place in enumerate(places)
        ]
        width += rows.relation_type.arity
    inputs = (outer, *(rows for _, rows in answers))
    return Join(inputs, tuple(classes), frozenset(range(len(classes))))
