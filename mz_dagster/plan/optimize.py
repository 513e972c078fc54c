"""The pipeline of transforms: a tuple whose order is data, and is checked.

Each pass says which passes must have run before it; `check_order` refuses a pipeline that breaks that, and a test runs
it. After each pass the plan's columns must be what they were: a transform that changes them is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mz_dagster.errors import InternalError
from mz_dagster.plan import transform
from mz_dagster.plan.relation import Relation


@dataclass(frozen=True, slots=True)
class Pass:
    """One transform at its place in the pipeline.

    Attributes:
        run: The transform.
        after: The names of passes that must stand before it, and why they must is in its file.
    """

    run: Callable[[Relation], Relation]
    after: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The transform's name, which is its file's."""
        return self.run.__name__


PIPELINE: tuple[Pass, ...] = (
    # First: the other passes rely on ids of shared subplans that are unique, and on each being used several times.
    Pass(transform.share_subplans),
    # Outer joins give their rows a NULL for each column of all joins before them; few of these are read.
    Pass(transform.demand, frozenset({"share_subplans"})),
    Pass(transform.fold_constants, frozenset({"share_subplans"})),
    Pass(transform.flatten_unions, frozenset({"share_subplans"})),
    Pass(transform.flatten_joins, frozenset({"share_subplans"})),
    # What stands in an OR over a join can only be found once all filters and joins of one place have met.
    Pass(transform.split_disjunctions, frozenset({"flatten_joins"})),
    Pass(transform.fuse_filters, frozenset({"split_disjunctions"})),
    # What all alternatives of an OR have said beside it; what moves into a join has not moved yet.
    Pass(transform.disjunctive_joins, frozenset({"split_disjunctions", "fuse_filters"})),
    # Predicates enter single inputs first, where they guard what the equivalences compute there.
    Pass(transform.push_predicates, frozenset({"flatten_joins", "fuse_filters"})),
    Pass(transform.join_equivalences, frozenset({"push_predicates"})),
    Pass(transform.null_rejection, frozenset({"join_equivalences"})),
    Pass(transform.fold_constants, frozenset({"push_predicates", "null_rejection"})),
    Pass(transform.flatten_unions, frozenset({"null_rejection"})),
    # What uses a shared subplan learns of the keys that equivalences gave it.
    Pass(transform.share_subplans, frozenset({"join_equivalences"})),
    # Equivalences tell which groups are single rows; what a reduction stood between can then move again.
    Pass(transform.reduce_elision, frozenset({"join_equivalences"})),
    Pass(transform.share_subplans, frozenset({"reduce_elision"})),
    Pass(transform.flatten_joins, frozenset({"reduce_elision"})),
    Pass(transform.fuse_filters, frozenset({"reduce_elision"})),
    Pass(transform.push_predicates, frozenset({"reduce_elision"})),
    # Predicates stand right above windows now, and numbers that nobody else reads go with the next `demand`.
    Pass(transform.limited_windows, frozenset({"demand", "push_predicates", "fuse_filters"})),
    # Its first rows may be a window's. What it compares by a range must not move any more.
    Pass(transform.as_of_joins, frozenset({"limited_windows", "push_predicates", "fuse_filters"})),
    Pass(transform.join_equivalences, frozenset({"reduce_elision"})),
    # A join that is flattened no more, of groups whose predicates have moved to where they stay.
    Pass(transform.lift_single_rows, frozenset({"flatten_joins", "push_predicates", "join_equivalences"})),
    Pass(transform.demand, frozenset({"join_equivalences", "lift_single_rows"})),
    Pass(transform.fuse_projects, frozenset({"demand"})),
    Pass(transform.fuse_maps, frozenset({"demand"})),
    Pass(transform.fuse_filters, frozenset({"demand"})),
    # What it makes keeps rows, so predicates must be where they shall stay.
    Pass(transform.temporal_filters, frozenset({"push_predicates", "join_equivalences", "fuse_filters"})),
    # What it adds must not hide from the passes before it what groups and orders are by.
    Pass(transform.comparable_columns, frozenset({"reduce_elision"})),
    # What has become equal, now that it is narrow, is computed once, with the columns that one of its uses needs.
    Pass(transform.share_subplans, frozenset({"temporal_filters"})),
    Pass(transform.demand, frozenset({"share_subplans"})),
    # Only now can one see what is computed of one and the same.
    Pass(transform.merge_totals, frozenset({"share_subplans", "demand"})),
    # What is used several times is kept as it is, and bound.
    Pass(transform.sums_of_sums, frozenset({"share_subplans", "demand"})),
    Pass(transform.share_subplans, frozenset({"merge_totals"})),
    Pass(transform.demand, frozenset({"share_subplans"})),
    Pass(transform.fuse_projects, frozenset({"demand"})),
    Pass(transform.fuse_maps, frozenset({"demand"})),
)


def check_order(pipeline: Sequence[Pass]) -> None:
    """Raises ValueError if a pass stands before one that it must follow."""
    seen: set[str] = set()
    for one in pipeline:
        missing = one.after - seen
        if missing:
            raise ValueError(f"{one.name} must come after {', '.join(sorted(missing))}")
        seen.add(one.name)


def optimize(relation: Relation, pipeline: Sequence[Pass] = PIPELINE) -> Relation:
    """Returns an equal plan that is cheaper to maintain.

    Raises:
        InternalError: A transform changed the columns of the plan.
    """
    for one in pipeline:
        before = relation.relation_type
        relation = one.run(relation)
        after = relation.relation_type
        if [column.type for column in before.columns] != [column.type for column in after.columns]:
            raise InternalError(f"transform {one.name} changed the columns of a plan")
    return relation


check_order(PIPELINE)
