"""Plans: what a query computes, and how it is maintained.

Owns the plan algebra (`relation`), the transforms and their order (`transform/`, `optimize`), the physical plan
(`physical`, `lowering`), and EXPLAIN. Expressions and functions are layers of their own below: `scalars`, `functions`.
Invariant: every node refuses to be ill-formed, and a transform never changes which rows a plan has at any time,
only what computing them costs; it may move errors.

- `relation`: the logical plan.
- `resolver`: the protocol by which the binder turns names into things.
- `representations`: kinds whose equal values have several representations.
- `day_comparison`: dates compared with moments. `bounding`: predicates by which storage skips files.
- `rewriting`: walking and rebuilding plans.
- `properties`: what an operator does with its input's columns, from which lineage, demand and pushdown follow.
- `semijoin`, `outer_join`: those joins, spelled in the algebra.
- `decorrelate`: subqueries and lateral joins become plain relations; with `domain_plan`, `dependence`, `domain`,
  `row_count`, `equality_correlation`, and `subquery_errors` with `total_groups`, `early_correlation` and
  `unread_subqueries`, by which errors within are those of the rows that ask.
- `equality`: equalities as a join can look them up.
- `transform/`: one transform per file.
- `optimize`: their order, which is data that is checked.
- `physical`, `lowering`: the plan that the renderer runs.
- `plan_size`: how large a plan is for Spark.
- `lineage`: from which columns each column derives.
- `explain`: both as text; `operators`: a physical plan in a few words.

It does not parse, read catalogs, or run anything.

Open to other layers beside this front door: `bounding`, `decorrelate`, `dependence`, `explain`, `lineage`,
`lowering`, `lowering.stored_columns`, `membership`, `operators`, `optimize`, `outer_join`, `physical`, `plan_size`,
`reading_time`, `relation`, `representations`, `resolver`, `rewriting`, `row_count`, `semijoin`, `sequence`,
`transform.comparable_columns`, `transform.fold_constants`.
"""

from mz_dagster.plan.explain import explain_logical, explain_physical
from mz_dagster.plan.lowering import lower_to_maintained_plan, lower_to_snapshot_plan
from mz_dagster.plan.optimize import PIPELINE, Pass, optimize
from mz_dagster.plan.physical import (
    Accumulate,
    Arrangement,
    Catch,
    ConstantRows,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    MapFilterProject,
    NegateAll,
    OperatorKind,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    UnionAll,
    Unnest,
    collections_read,
    operator_kind,
    physical_inputs,
)
from mz_dagster.plan.relation import (
    CatchErrors,
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    inputs_of,
)
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.rewriting import gets_of
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, Scalar, Value
from mz_dagster.scalars.types import Column, Kind, RelationType, ScalarType

__all__ = [
    "PIPELINE",
    "Accumulate",
    "Arrangement",
    "Call",
    "Catch",
    "CatchErrors",
    "Column",
    "ColumnRef",
    "Constant",
    "ConstantRows",
    "DeltaJoin",
    "Filter",
    "FlatMap",
    "Get",
    "If",
    "Item",
    "Join",
    "Kind",
    "Let",
    "Linear",
    "Literal",
    "MaintainedPlan",
    "Map",
    "MapFilterProject",
    "Negate",
    "NegateAll",
    "OperatorKind",
    "Pass",
    "Physical",
    "Projection",
    "ReadCollection",
    "Reduce",
    "Relation",
    "RelationType",
    "Repeat",
    "RepeatRow",
    "Resolver",
    "Scalar",
    "ScalarType",
    "Staged",
    "TemporalFilter",
    "TemporalState",
    "Threshold",
    "TopK",
    "Union",
    "UnionAll",
    "Unnest",
    "Value",
    "Window",
    "collections_read",
    "explain_logical",
    "explain_physical",
    "gets_of",
    "inputs_of",
    "lower_to_maintained_plan",
    "lower_to_snapshot_plan",
    "operator_kind",
    "optimize",
    "physical_inputs",
]
