"""TRUNCATE: a table loses all rows, or several do at one time, in a transaction of their own."""

from __future__ import annotations

from collections.abc import Callable

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.transaction import SerializationFailure
from mz_dagster.adapter.variables import Variables
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.adapter.writes import Writes
from mz_dagster.sql import Truncate
from mz_dagster.sql.circumstances import Circumstances


def truncate(
    writes: Writes,
    variables: Variables,
    begin: Callable[[], None],
    statement: Truncate,
    circumstances: Circumstances,
) -> Result:
    """Empties the tables that a statement names.

    Args:
        writes: Writes a table.
        variables: The session's, whose block, if one is open, this is a part of.
        begin: Opens a block.
        statement: The statement.
        circumstances: Of its execution.

    Raises:
        WriteContended: Others wrote several tables until the deadline for writes.
    """

    def write() -> None:
        for one in (statement, *statement.further):
            writes.truncate(one, circumstances)

    if not statement.further or variables.transaction is not None:
        write()
        return Result("TRUNCATE TABLE")
    for _ in write_attempts(writes.peeks.engine.project, writes.peeks.engine.clock):
        try:
            begin()
            write()
            variables.commit()
            break
        except SerializationFailure:
            continue
        finally:
            variables.roll_back()
    return Result("TRUNCATE TABLE")
