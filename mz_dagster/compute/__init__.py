"""Compute: plans computed by two engines, and the step that advances a graph of collections.

Owns how an operator turns updates of its inputs into updates of its output, at the exact times. The invariant: for
every collection and every time at which it is readable, its content is its plan's result over its inputs as
of that time, error part included; an output's upper never passes an input's (constraint W), and no input's history is
needed where it is forgotten (constraint R).

Its rooms, in the order of import; `README.md` has what passes where, and what a step costs:

- `algebra`: what both engines share: the form of update frames, formulas, which scalars are exact in both.
- `lookups`: what changed finds what it meets: keys, paths, and reads of the files that hold them.
- `local`, `spark`: the engines, each with its operators; neither knows the other.
- `placement`: who computes a plan, and how much it will be, known before anything runs.
- `walk`: the protocol of operators, the one walk over plans, and what one engine hands to the other.
- `snapshot`: a plan or a collection at one time.
- `step`: all collections of a timeline, advanced together and sealed together.

It does not choose times, poll sources, parse SQL or know names.

Open to other layers beside this front door: `algebra.operator_costs`, `algebra.placed`, `lookups.common_lookups`,
`placement.explained`, `snapshot.discrepancy`, `snapshot.peek`, `snapshot.stored_rows`, `step.ingest`,
`step.violations`, `step.worker`.
"""

from mz_dagster.compute.snapshot.discrepancy import (
    Discrepancy,
    RowSample,
    content,
    discrepancy,
    negative_multiplicities,
)
from mz_dagster.compute.snapshot.peek import (
    CollectionHasErrors,
    Found,
    NegativeMultiplicity,
    found_rows,
    frame_of_given,
    peek,
    peek_locally,
    updates_of_rows,
)
from mz_dagster.compute.snapshot.rows_frame import rows_frame
from mz_dagster.compute.snapshot.stored_rows import StoredRows
from mz_dagster.compute.snapshot.stored_scalars import stored_projection, stored_values
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.spark.warm_spark import LeftToSpark, WarmSpark
from mz_dagster.compute.step.graph import FailedNode, Graph, MaintainedNode, Node, SinkNode, SourceNode, TableNode
from mz_dagster.compute.step.report import CollectionStep, Outcome, Progress, StepReport
from mz_dagster.compute.step.stepper import StepLost, StepOverdue, Stepper, quiet
from mz_dagster.compute.step.worker_processes import WorkerProcesses, WorkerSetup

__all__ = [
    "CollectionHasErrors",
    "CollectionStep",
    "Discrepancy",
    "FailedNode",
    "Found",
    "Graph",
    "LeftToSpark",
    "MaintainedNode",
    "NegativeMultiplicity",
    "Node",
    "Outcome",
    "Progress",
    "RowSample",
    "SinkNode",
    "SourceNode",
    "SparkUse",
    "StepLost",
    "StepOverdue",
    "StepReport",
    "Stepper",
    "StoredRows",
    "TableNode",
    "WarmSpark",
    "WorkerProcesses",
    "WorkerSetup",
    "content",
    "discrepancy",
    "found_rows",
    "frame_of_given",
    "negative_multiplicities",
    "peek",
    "peek_locally",
    "quiet",
    "rows_frame",
    "stored_projection",
    "stored_values",
    "updates_of_rows",
]
