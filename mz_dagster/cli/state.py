"""What a project holds, as `mz-dagster run` prints it at its end and `frontiers` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.cli.changes import print_faults
from mz_dagster.cli.tables import print_table
from mz_dagster.errors import Error

if TYPE_CHECKING:
    from mz_dagster.adapter import Engine
    from mz_dagster.formalism import GlobalId

#: How many rows of each view are printed, unless another number is asked for.
ROWS_SHOWN = 5
#: The first rows of more views than this are printed only if they are asked for: what a run did would be lost above.
MANY_VIEWS = 20


def _views(engine: Engine) -> dict[GlobalId, tuple[str, str]]:
    """Returns the schema and the name of each materialized view."""
    rows = engine.catalog.objects("materialized view")
    return {row.id: (row.schema, row.name) for row in rows if row.name is not None}


def has_many_views(engine: Engine) -> bool:
    """Returns whether a project has more views than a person reads."""
    return len(_views(engine)) > MANY_VIEWS


def print_views(engine: Engine, limit: int | None) -> Error | None:
    """Prints the first rows of each view, or why it cannot be read; returns the first such reason.

    Args:
        engine: The project's.
        limit: How many rows of each; None for the default, which of many views is none: of these, only those with
            errors are told.
    """
    from mz_dagster.adapter import Session
    from mz_dagster.cli.output import Output
    from mz_dagster.sql.schemas import written

    session = Session(engine)
    unread: Error | None = None
    views = _views(engine)
    asked = list(views)
    if limit is None and has_many_views(engine):
        counts = engine.catalog.live_batch_counts()
        asked = [id for id in views if id in counts and counts[id][1].errors]
        some = next(iter(views.values()))
        print(f"\n{len(views)} views; mz-dagster run --rows {ROWS_SHOWN} prints the first rows of each, and of one "
              f'mz-dagster sql -c "SELECT * FROM {written(*some)} LIMIT {ROWS_SHOWN}"')  # fmt: skip
    for id in asked:
        schema, name = views[id]
        print(f"\n{name}")
        try:
            result = session.execute(
                f"SELECT * FROM {written(schema, name)} ORDER BY 1 LIMIT {ROWS_SHOWN if limit is None else limit}"
            )
        except Error as error:
            print(f"cannot be read: {error.message}")
            if unread is None:
                unread = error
                unread.message = f'view "{name}" cannot be read: {error.message}'
            continue
        Output().show(result)
    return unread


def print_checks(engine: Engine) -> None:
    """Prints how many violations each check has, if there are any checks."""
    from mz_dagster.adapter import Session
    from mz_dagster.cli.output import Output

    shown = Session(engine).execute("SHOW CHECKS")
    if shown.rows:
        print("\nchecks")
        Output().show(shown)


def print_frontiers(engine: Engine, *, arrangements: bool = True) -> None:
    """Prints where each collection stands and what it takes, and what fails.

    Args:
        engine: The project's.
        arrangements: Whether also of what views keep for themselves.
    """
    names = engine.definitions.display_names()
    left_out = set() if arrangements else {one.id for one in engine.catalog.objects("arrangement")}
    counts = engine.catalog.live_batch_counts()
    print("\nfrontiers")
    rows = []
    reasons = {**engine.definition_faults(), **engine.reasons()}
    for row in engine.catalog.collections():
        if row.id in left_out and not reasons.get(row.id):
            continue
        batches, stats = counts.get(row.id, (0, None))
        rows.append(
            (
                names.get(row.id, row.id),
                row.timeline,
                "{}" if row.since.is_empty else row.since.only,
                "{}" if row.upper.is_empty else row.upper.only,
                batches,
                stats.rows if stats else 0,
                stats.errors if stats else 0,
                stats.bytes if stats else 0,
                reasons.get(row.id, ""),
            )
        )
    print_table(("collection", "timeline", "since", "upper", "batches", "updates", "errors", "bytes", "failure"), rows)
    print_faults(engine.faults())
