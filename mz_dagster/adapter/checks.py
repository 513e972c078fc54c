"""Checks: tests of data that are maintained.

A check is a view of its violations. `CREATE CHECK name ON object AS query` makes an object of the kind `check`, which
is in all else a materialized view: it has a plan, a collection with frontiers, arrangements; it is hydrated once,
stepped with all others, sealed, compacted, restored, rebuilt, renamed and read by name as they are. So a tick costs a
check what changed, its violations can be queried at any readable time, and nothing here computes anything.

    -- @check unique(order_id), blocking               an annotation is written out as a statement
    CREATE TABLE orders (...);                         (`sql.check_statement`), and a query in a file
                                                       of assets/checks/ gets a head (`project_files`)
        CREATE CHECK orders_unique_order_id ON orders BLOCKING AS SELECT order_id, count(*) ...

    statement --> definition (kind "check", what it is about, options, plan) --> catalog row, no column of its own:
    what it is about is among its dependencies, and its options are in its text (`about`).

*What it is about.* The object behind ON, else the one object that the query reads. It is a dependency whether or not
the query reads it, so a check is never ahead of it: at a tick, both are complete, or the check says nothing.

*What holds.* A check holds at a time if its collection is empty at that time. An error in it means that nobody knows,
and does not hold either.

*In Dagster* each is an asset check of the asset it is about (of a plain view: of the first asset that the view reads),
in the same op as the step (`orchestration.data_checks`), so every run carries it. What it says, `checking` reads
from the check's collection: multiplicities only, as many as there are violations, and no file if there are none.

*Blocking.* What is downstream of a blocking check stays at the last tick at which it held; the check's own view and all
other views go on, so that it can heal. For a sink that is a matter of this engine: its node in the graph depends on
the blocking checks of all that its input is computed from (`blocking_checks`), and the step asks them tick by tick
(`compute.step.sinks`); so it depends on the ticks alone, not on which runs, restarts or catching up made them. For
assets of others it is Dagster's: the asset check is blocking, the run fails after it has told what it did, and
`AutomationCondition.all_deps_blocking_checks_passed` waits. What they read by themselves is as of the last tick at
which all held if they ask for that, `mz_dagster.read(..., held=True)`.

*Project files.* A check is planned, applied and dropped with the files as any object; but since it holds nothing that
was not computed, one that no file has any more goes at once, and does not hold anything up for a line that is gone.

*Costs.* `plan` and EXPLAIN show a check's states as those of a view. Rules that are conditions on rows keep none; an
index on what is looked up serves checks as it serves views.
"""

from __future__ import annotations

from functools import lru_cache

from mz_dagster.catalog import CatalogState, ObjectRow
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.sql import CreateCheck, parse
from mz_dagster.sql.statements import CheckOptions

#: What checks may be about.
CHECKABLE = ("source", "table", "view", "materialized view")


def options_of(check: ObjectRow) -> CheckOptions:
    """Returns what the violations of a check mean."""
    return _statement(check.sql).options


def about(check: ObjectRow, state: CatalogState) -> GlobalId:
    """Returns the object that a check is about."""
    on = _statement(check.sql).on
    if on is not None:
        return check.dependencies[str(on)]
    for name, id in check.dependencies.items():
        read = state.object(id)
        if read is not None and read.kind in CHECKABLE and not name.startswith("collection "):
            return id
    raise InternalError(f'check "{check.name}" is about nothing')


def blocking_checks(state: CatalogState, id: GlobalId) -> frozenset[GlobalId]:
    """Returns the blocking checks of all that an object is computed from."""
    blocking = [one for one in state.objects("check") if options_of(one).blocking]
    if not blocking:
        return frozenset()
    reached: set[GlobalId] = set()
    pending = [id]
    while pending:
        row = state.object(pending.pop())
        if row is not None and row.id not in reached:
            reached.add(row.id)
            pending += row.dependencies.values()
    return frozenset(one.id for one in blocking if about(one, state) in reached)


@lru_cache(maxsize=10_000)
def _statement(text: str) -> CreateCheck:
    (statement,) = parse(text)
    assert isinstance(statement, CreateCheck)
    return statement
