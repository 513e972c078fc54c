"""COPY: rows of a file or a client are appended as one batch; rows of a query are written to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mz_dagster.adapter.constraints import Enforcement
from mz_dagster.adapter.copy_to_file import copy_to_file as write_file
from mz_dagster.adapter.dml import Updates, added, check_not_null
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.names import TargetFirst
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.subscribe import queried
from mz_dagster.adapter.sequence.written import Parameters, Writes
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.compute import StoredRows
from mz_dagster.compute.snapshot.stored_rows import constant
from mz_dagster.disk import path_of
from mz_dagster.errors import IntegrityError
from mz_dagster.plan.relation import Map
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column
from mz_dagster.sql import Copy, CopyFromClient, CopyToClient, CopyToFile, Name, Select, Subscribe, TableConstraints
from mz_dagster.sql.circumstances import Circumstances, zone_of
from mz_dagster.sql.constraints import bind_default
from mz_dagster.sql.errors import DuplicateColumn, InvalidColumnReference, UndefinedColumn, suggestion
from mz_dagster.sql.query_clauses import table_query
from mz_dagster.storage.copy_csv import read_csv
from mz_dagster.storage.copy_parquet import read_parquet


def copy_from_file(context: Context, statement: Copy, _: Parameters) -> Result:
    """Appends the rows of a file, as one batch."""
    writes, circumstances = context.writes, context.circumstances()
    row, table = writes.table(statement)
    names = statement.columns or _written(row)
    read = _columns(row, names, statement)
    path = writes.engine.project.root / path_of(statement.path)
    with zone_of(circumstances):
        if (csv := statement.csv) is None:
            found = read_parquet(path, read)
        else:
            found = read_csv(path, read, header=csv.header, delimiter=csv.delimiter, quote=csv.quote,
                             escape=csv.escape, null=csv.null)  # fmt: skip
    return context.in_own_block(lambda: _copied(context.writes, row, table, statement, names, found, circumstances))


def copy_from_client(context: Context, statement: CopyFromClient, _: Parameters) -> Result:
    """Appends the rows that a client sends, as one batch."""
    writes, client, circumstances = context.writes, context.client(statement), context.circumstances()
    row, table = writes.table(statement)
    names = statement.columns or _written(row)
    columns = _columns(row, names, statement)
    with zone_of(circumstances):
        found = client.receive(statement.format, columns)
    try:
        return context.in_own_block(
            lambda: _copied(context.writes, row, table, statement, names, found.columns, circumstances)
        )
    except IntegrityError as error:
        found.blame(error, statement.table.last)
        raise


def copy_to_client(context: Context, statement: CopyToClient, parameters: Parameters) -> Result:
    """Returns the rows of a query as a client gets them that asked for them by COPY."""
    context.client(statement)
    result = queried(context, _copied_query(context, statement), parameters)
    return replace(result, tag=f"COPY {len(result.rows)}", sent_as=statement.format)


def copy_to_file(context: Context, statement: CopyToFile, parameters: Parameters) -> Result:
    """Writes the rows of a query to a file."""
    try:
        path = context.engine.project.output_path(statement.path)
    except FolderNotAllowed as error:
        error.position = statement.path_offset + 1
        raise
    result = queried(context, _copied_query(context, statement), parameters)
    write_file(path, result, statement.format, context.variables.zone)
    return Result(f"COPY {len(result.rows)}", rowcount=len(result.rows))


def _copied_query(context: Context, statement: CopyToClient | CopyToFile) -> Select | Subscribe:
    """Returns the query of what a COPY writes: of a table what could be copied into it."""
    source = statement.source
    if not isinstance(source, Name):
        return source
    columns: Sequence[str] = statement.columns
    row = context.names.find(source)
    if row is not None and row.kind == "table":
        _check_written(row, [name for name in columns if name in row.relation_type.names], source.offset + 1)
        written = _written(row)
        columns = columns or (written if len(written) < row.relation_type.arity else ())
    return Select(statement.text, statement.offset, 0, table_query(source, columns), None)


def _copied(
    writes: Writes,
    row: ObjectRow,
    table: CollectionRow,
    statement: Copy | CopyFromClient,
    names: Sequence[str],
    found: Sequence[pa.Array],
    circumstances: Circumstances,
) -> Result:
    """Appends columns that were read."""
    looked = writes.looked(row, circumstances, adds=True)
    columns = row.relation_type.columns
    given = dict(zip(names, found, strict=True))
    count = len(found[0]) if found else 0
    enforcement = Enforcement.of(row, TargetFirst(writes.names, row, writes.engine), circumstances)
    omitted = [one for one in columns if one.name not in given]
    values = _defaults(writes, omitted, enforcement.constraints, circumstances) if omitted else {}
    given |= {one.name: constant(Literal(values[one.name], one.type), count) for one in omitted}
    generate = GeneratedValues.of(writes.numbers, enforcement)
    generated = [place for place, one in enumerate(columns) if one in omitted and one.name in generate.columns]
    rows = generate.filled_columns(StoredRows.of([given[one.name] for one in columns], columns), generated)

    def decide(now: CollectionRow, time: int) -> tuple[Updates, StoredRows]:
        completed = enforcement.completed_columns(rows, writes.reader(time))
        check_not_null(now.shown, statement.table.last, completed)
        return added(completed), completed

    return writes.changed("COPY", table, [], decide, lambda _: None, enforcement, looked=looked)


def _defaults(
    writes: Writes, columns: Sequence[Column], constraints: TableConstraints, circumstances: Circumstances
) -> dict[str, Any]:
    """Returns what each of some columns is that a row does not say."""
    scalars = tuple(
        bind_default(one, constraints.defaults[one.name], circumstances)
        if one.name in constraints.defaults
        else Literal(None, one.type)
        for one in columns
    )
    names = tuple(one.name for one in columns)
    ((*values,),) = writes.peeks.peek_at(writes.peeks.planned(Map(ONE_ROW, scalars, names)), 0)
    return dict(zip(names, values, strict=True))


def _written(row: ObjectRow) -> tuple[str, ...]:
    """Returns the columns of a relation that are not computed of others."""
    computed = constraints_of(row.sql).computed if row.kind == "table" else ()
    return tuple(name for name in row.relation_type.names if name not in computed)


def _check_written(row: ObjectRow, names: Sequence[str], position: int) -> None:
    computed = [name for name in names if name not in _written(row)]
    if computed:
        raise InvalidColumnReference(
            f'column "{computed[0]}" is a generated column',
            detail="Generated columns cannot be used in COPY.",
            position=position,
        )


def _columns(row: ObjectRow, names: Sequence[str], statement: Copy | CopyFromClient) -> list[Column]:
    target, position = row.relation_type, statement.table.offset + 1
    for name in names:
        if name not in target.names:
            raise UndefinedColumn(
                f'column "{name}" of relation "{statement.table}" does not exist',
                hint=suggestion(name, target.names),
                position=position,
            )
        if names.count(name) > 1:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=position)
    _check_written(row, names, position)
    return [target.columns[target.names.index(name)] for name in names]
