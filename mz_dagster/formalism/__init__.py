"""The formalism: times, frontiers, updates and collections, as an executable specification.

Owns the mathematics on which every other layer rests, in pure Python, generic over lattices of times,
small and slow. Other layers take their words and values from here (`Antichain`, `Timeline`, `Update`,
`GlobalId`), and their tests take it as the oracle: whatever an engine maintains must read as the
`Ptvc` does.

The invariant, from which everything else follows: at every time between since and upper, a collection
reads exactly as the time-varying collection that it represents,

    for all t with since <= t and not upper <= t:   read(ptvc, t) = read(tvc, t)

and since and upper only ever advance.

It does not store, run or schedule anything, it evaluates no plans, and it knows no clock.

In the order of import:

- `errors`: the facts that a caller can break.
- `lattice`: what a set of times must offer; `NATURAL`, `EPOCH_MS`, `Product`.
- `timeline`: a lattice under a unique id; times of two timelines never compare.
- `antichain`: frontiers, their order, and `advance_by`.
- `stateful_timeline`: a timeline and the latest times that are complete.
- `update`: `(data, time, diff)`; `consolidate`, `compact_updates`, `between`.
- `collection_version`: what a collection contains at one time; `EMPTY`, `diff`.
- `reclocking`: external times become times of a timeline, by bindings.
- `tvc`: a time-varying collection as a function and as updates, and why these are the same.
- `ptvc`: a collection known between since and upper; `append`, `compact`, `read`.
- `ptvc_versions`: the same as a function of times; the square of the four forms.
- `tvc_map`: `GlobalId`s, and the life of what they denote.
"""

from mz_dagster.formalism.antichain import Antichain, advance_by
from mz_dagster.formalism.collection_version import EMPTY, CollectionVersion, diff
from mz_dagster.formalism.errors import (
    BindingWentBack,
    FrontierNotSingle,
    IdAlreadyBound,
    IdUnbound,
    NegativeMultiplicity,
    NotAFrontier,
    NotATime,
    SinceWentBack,
    TimeBeyondUpper,
    TimelinesDiffer,
    TimeNotBeyondSince,
    UpdateBeyondUpper,
    UpdateNotBeyondLower,
    UpperWentBack,
)
from mz_dagster.formalism.lattice import EPOCH_MS, NATURAL, IntegerTimes, Lattice, Product
from mz_dagster.formalism.ptvc import Ptvc, UpperMismatch
from mz_dagster.formalism.ptvc_versions import PtvcVersions
from mz_dagster.formalism.reclocking import Reclocking, RemapBinding
from mz_dagster.formalism.stateful_timeline import StatefulTimeline
from mz_dagster.formalism.timeline import Timeline
from mz_dagster.formalism.tvc import Tvc, read
from mz_dagster.formalism.tvc_map import GlobalId, Stage, TvcMap
from mz_dagster.formalism.update import Update, between, compact_updates, consolidate

__all__ = [
    "EMPTY",
    "EPOCH_MS",
    "NATURAL",
    "Antichain",
    "BindingWentBack",
    "CollectionVersion",
    "FrontierNotSingle",
    "GlobalId",
    "IdAlreadyBound",
    "IdUnbound",
    "IntegerTimes",
    "Lattice",
    "NegativeMultiplicity",
    "NotAFrontier",
    "NotATime",
    "Product",
    "Ptvc",
    "PtvcVersions",
    "Reclocking",
    "RemapBinding",
    "SinceWentBack",
    "Stage",
    "StatefulTimeline",
    "TimeBeyondUpper",
    "TimeNotBeyondSince",
    "Timeline",
    "TimelinesDiffer",
    "Tvc",
    "TvcMap",
    "Update",
    "UpdateBeyondUpper",
    "UpdateNotBeyondLower",
    "UpperMismatch",
    "UpperWentBack",
    "advance_by",
    "between",
    "compact_updates",
    "consolidate",
    "diff",
    "read",
]
