"""The transforms: each a function from a plan to an equal plan, in a file of its own name.

Invariant of each: the result has the same columns, and the same rows with the same multiplicities at every time. Errors
may move, and one that a legal order of evaluation would not meet may vanish; but a predicate that can fail
never overtakes one that stood before it, so that guards keep guarding. The order is in `plan/optimize.py`.
"""

from mz_dagster.plan.transform.as_of_joins import as_of_joins
from mz_dagster.plan.transform.comparable_columns import comparable_columns
from mz_dagster.plan.transform.demand import demand
from mz_dagster.plan.transform.disjunctive_joins import disjunctive_joins
from mz_dagster.plan.transform.flatten_joins import flatten_joins
from mz_dagster.plan.transform.flatten_unions import flatten_unions
from mz_dagster.plan.transform.fold_constants import fold_constants
from mz_dagster.plan.transform.fuse_filters import fuse_filters
from mz_dagster.plan.transform.fuse_maps import fuse_maps
from mz_dagster.plan.transform.fuse_projects import fuse_projects
from mz_dagster.plan.transform.join_equivalences import join_equivalences
from mz_dagster.plan.transform.lift_single_rows import lift_single_rows
from mz_dagster.plan.transform.limited_windows import limited_windows
from mz_dagster.plan.transform.merge_totals import merge_totals
from mz_dagster.plan.transform.null_rejection import null_rejection
from mz_dagster.plan.transform.push_predicates import push_predicates
from mz_dagster.plan.transform.reduce_elision import reduce_elision
from mz_dagster.plan.transform.share_subplans import share_subplans
from mz_dagster.plan.transform.split_disjunctions import split_disjunctions
from mz_dagster.plan.transform.sums_of_sums import sums_of_sums
from mz_dagster.plan.transform.temporal_filters import temporal_filters

__all__ = [
    "as_of_joins",
    "comparable_columns",
    "demand",
    "disjunctive_joins",
    "flatten_joins",
    "flatten_unions",
    "fold_constants",
    "fuse_filters",
    "fuse_maps",
    "fuse_projects",
    "join_equivalences",
    "lift_single_rows",
    "limited_windows",
    "merge_totals",
    "null_rejection",
    "push_predicates",
    "reduce_elision",
    "share_subplans",
    "split_disjunctions",
    "sums_of_sums",
    "temporal_filters",
]
