"""The statements, as data.

Owns what every form of statement says, and nothing of what it means: names are still names and query
bodies are still text. Each statement keeps the user's own text, which is what the catalog stores; nothing
is ever printed back from a syntax tree. All positions are offsets into the whole text that was parsed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.scalars.types import ScalarType
from mz_dagster.sql.declared_keys import ForeignKey, UniqueKey
from mz_dagster.sql.row_lock import RowLock


@dataclass(frozen=True, slots=True)
class Name:
    """A possibly qualified name, folded as SQL folds it.

    Attributes:
        parts: `("t",)` or `("schema", "t")`.
        offset: 0-based offset of its first character.
    """

    parts: tuple[str, ...]
    offset: int = 0

    @property
    def last(self) -> str:
        """The unqualified name."""
        return self.parts[-1]

    @property
    def is_temporary(self) -> bool:
        """True if it is in the schema of the session's own objects."""
        return self.parts[:-1] == ("pg_temp",)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class SqlText:
    """A part of a statement that is bound later: a query body or a scalar expression.

    Attributes:
        text: As the user wrote it.
        offset: Where it starts in the whole text, so that errors point there.
        parameters_before: How many `?` the statement has before it.
    """

    text: str
    offset: int = 0
    parameters_before: int = 0


@dataclass(frozen=True, slots=True)
class AsOf:
    """`AS OF t` or `AS OF AT LEAST t`; `time` is a constant expression."""

    time: SqlText
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """How a column generates its values.

    Attributes:
        generated: `always`, where nobody gives another without OVERRIDING; `by default`, where a row that does not say
            it gets one; or `serial`, which is the same, as the default of a column.
        sequence: Which values.
    """

    generated: Literal["always", "by default", "serial"]
    sequence: SequenceDefinition


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of a table or source.

    Attributes:
        name: Its name.
        type: Its type.
        nullable: Whether it may be NULL.
        offset: Where its definition starts.
        default: What it is where a row that is inserted does not say it; None for NULL.
        identity: How it generates its values; None if it does not.
        type_offset: Where its type stands.
        computed: What it is computed of the row's other columns by; None if it is written.
    """

    name: str
    type: ScalarType
    nullable: bool = True
    offset: int = 0
    default: SqlText | None = None
    identity: Identity | None = None
    type_offset: int = 0
    computed: SqlText | None = None


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """A constraint: no row of a table makes a condition false.

    Attributes:
        name: Of the constraint.
        predicate: The condition, over the table's columns.
    """

    name: str
    predicate: SqlText


@dataclass(frozen=True, slots=True)
class Files:
    """`FROM FILES (FOLDER '...' | URI '...', CONNECTION name [, PATTERN '...'] [, NAMES ASCEND]) FORMAT ...`.

    Attributes:
        folder: As written, relative to the project; a URI if there is a connection.
        pattern: A file name pattern such as `*.jsonl`.
        format: `json`, `csv`, `parquet`, `avro` or `orc`.
        connection: What leads there, if it is not in a file system of this machine.
        debezium: Whether a record is a change as Debezium writes it, which says what a key's row is from then on.
        partition: Columns whose values the folders say that a file is in.
        names_ascend: Whether new names sort behind those that are there.
    """

    folder: str
    pattern: str
    format: Literal["json", "csv", "parquet", "avro", "orc"]
    connection: Name | None = None
    debezium: bool = False
    partition: tuple[str, ...] = ()
    names_ascend: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """`FROM DELTA (URI '...' [, CONNECTION name]) ... [WITH (START VERSION n)]`.

    Attributes:
        uri: The table's folder as written, relative to the project.
        offset: Where that stands.
        start_version: The version with which the source begins; None for the newest one.
        connection: What leads there, if it is not in a file system of this machine.
    """

    uri: str
    offset: int = field(compare=False)
    start_version: int | None = None
    connection: Name | None = None


@dataclass(frozen=True, slots=True)
class Iceberg:
    """`FROM ICEBERG (TABLE '...', CONNECTION name) ... [WITH (START SNAPSHOT n)]`.

    Attributes:
        table: The table's name in the catalog, behind those of its namespaces.
        connection: What leads to the catalog.
        start_snapshot: The snapshot with which the source begins; None for the newest one.
    """

    table: str
    connection: Name
    start_snapshot: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """What all statements share.

    Attributes:
        text: The user's own text, without the semicolon and surrounding space.
        offset: Where it starts in the text that was parsed.
        parameters: How many `?` it has.
        locks: What its queries lock of the rows that they read.
    """

    text: str
    offset: int
    parameters: int
    locks: tuple[RowLock, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """`CREATE SOURCE`; without `columns` they are to be those of the table that it is of."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...] | None
    timeline: str | None
    origin: Files | Delta | Iceberg
    envelope: Literal["none", "upsert"]
    retain_history_ms: int | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table that a sink writes lies there: `[, PARTITION COLUMNS (...)] [, FILE SIZE '64 MB']`.

    Attributes:
        partition: The columns by whose values it is partitioned.
        file_bytes: How large its files are to be, about; None if it is not said.
    """

    partition: tuple[str, ...] = ()
    file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSink(Statement):
    """`CREATE SINK ... FROM ... INTO DELTA (URI '...') [KEY (...)] ENVELOPE UPSERT | DEBEZIUM | APPEND CHANGES`.

    Attributes:
        name: Its name.
        on: What it writes.
        delta: Where to.
        layout: How it lies there.
        key: The columns that tell its rows apart, which what is written is known to have as a key; none if not listed.
        envelope: Whether rows are written as they are, or the changes that they come by, one by one or as events.
        if_not_exists: Whether one that is there is good enough.
    """

    name: Name
    on: Name
    delta: Delta
    layout: Layout
    key: tuple[str, ...]
    envelope: Literal["upsert", "append changes", "debezium"]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the violations of a check mean.

    Attributes:
        severity: Whether they are an error, or a warning.
        blocking: Whether what is downstream stays where it was until there are none.
    """

    severity: Literal["warn", "error"] = "error"
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class CreateCheck(Statement):
    """`CREATE CHECK ... [ON ...] [SEVERITY WARN | ERROR] [BLOCKING] AS ...`.

    Attributes:
        name: Its name.
        on: What it is about; None for the one object that its query reads.
        options: What its violations mean.
        query: Its violations.
        if_not_exists: Whether one that is there is good enough.
    """

    name: Name
    on: Name | None
    options: CheckOptions
    query: SqlText
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """`CREATE TABLE`; a `temporary` one is its session's own."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    timeline: str | None
    retain_history_ms: int | None
    if_not_exists: bool
    keys: tuple[UniqueKey, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    temporary: bool = False
    references: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTableAs(Statement):
    """`CREATE TABLE ... AS` and `SELECT ... INTO`: a table of the rows that a query returns once.

    Attributes:
        name: The table's name.
        columns: Names of its first columns, in the place of the query's.
        query: The query.
        timeline: Of its times; None for that of what the query reads.
        retain_history_ms: History kept, or None for the project's default.
        if_not_exists: Whether nothing is to be done if the name denotes something.
        with_data: Whether the rows are wanted, and not only the columns.
        temporary: Whether it is its session's own.
    """

    name: Name
    columns: tuple[str, ...]
    query: SqlText
    timeline: str | None = None
    retain_history_ms: int | None = None
    if_not_exists: bool = False
    with_data: bool = True
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """`CREATE [OR REPLACE] VIEW`; `columns` rename the first output columns of the query."""

    name: Name
    columns: tuple[str, ...]
    query: SqlText
    if_not_exists: bool
    temporary: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    """`CREATE MATERIALIZED VIEW`; `with_data` says whether the statement ends when the view can be read."""

    name: Name
    columns: tuple[str, ...]
    query: SqlText
    retain_history_ms: int | None
    if_not_exists: bool
    with_data: bool = True
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex(Statement):
    """`CREATE INDEX`; without columns the key is a unique key if one is known, else all columns."""

    name: Name | None
    on: Name
    columns: tuple[str, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateUniqueIndex(Statement):
    """`CREATE UNIQUE INDEX` on a table, which holds its rows to it as a UNIQUE constraint does."""

    name: Name | None
    on: Name
    columns: tuple[str, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateSchema(Statement):
    """`CREATE SCHEMA`."""

    name: Name
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    """`CREATE TYPE ... AS ENUM`; the labels are in order, each once."""

    name: Name
    labels: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterType(Statement):
    """`ALTER TYPE ... ADD VALUE | RENAME VALUE`.

    Attributes:
        name: The type.
        label: Of the value that is added, or renamed.
        if_not_exists: Whether a value that is there already is left as it is.
        neighbour: The value beside which a new one comes; None for the last one.
        comes_before: Whether it comes before that.
        new_label: What a value is renamed to; None if one is added.
    """

    name: Name
    label: str
    if_not_exists: bool = False
    neighbour: str | None = None
    comes_before: bool = False
    new_label: str | None = None


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """`DROP`; `kind` is `source`, `table`, `view`, `materialized view`, `index`, `schema` or `type`."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True)
class AlterReset(Statement):
    """`ALTER SOURCE | SINK ... RESET`."""

    kind: str
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterDropErrors(Statement):
    """`ALTER SOURCE name DROP ERRORS`."""

    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterRetainHistory(Statement):
    """`ALTER ... SET (RETAIN HISTORY FOR '...')`; `retain_history_ms` is None after `RESET`."""

    kind: str
    name: Name
    retain_history_ms: int | None
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterRename(Statement):
    """`ALTER ... RENAME TO`; the new name has no schema."""

    kind: str
    name: Name
    new_name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterAction:
    """One thing that `ALTER TABLE` does.

    Attributes:
        kind: What.
        column: The column, or the constraint or unique index that is dropped or renamed; empty for one that is added.
        offset: Where it stands.
        if_exists: Whether nothing is to be done about what is missing, or of what is added, there.
        text: What is added, or the default that is set.
        new_name: What a column or constraint is called from here on.
        cascade: Whether what depends on what is dropped goes with it.
        type: The type that a column gets.
        number: What a column generates next; None for what it generated first.
        casts: Whether values are cast to the type by USING, as an expression casts them.
        is_of_files: Whether a foreign key that is added is one that a project's files declare.
    """

    kind: Literal[
        "add column", "drop column", "rename column", "set default", "drop default", "set not null", "drop not null",
        "set type", "add constraint", "drop constraint", "rename constraint", "drop expression",
        "restart", "add identity", "drop identity", "drop index", "rename index",
    ]  # fmt: skip
    column: str
    offset: int
    if_exists: bool = False
    text: SqlText | None = None
    new_name: str | None = None
    cascade: bool = False
    type: ScalarType | None = None
    number: int | None = None
    casts: bool = False
    is_of_files: bool = False

    @property
    def stands_alone(self) -> bool:
        """Whether a statement has no other action beside it."""
        return self.kind in ("rename column", "rename constraint", "restart")


@dataclass(frozen=True, slots=True)
class AlterTable(Statement):
    """`ALTER TABLE`, but for its name and its history."""

    name: Name
    actions: tuple[AlterAction, ...]
    if_exists: bool

    @property
    def cascade(self) -> bool:
        """Whether what depends on what is dropped goes with it."""
        return any(one.cascade for one in self.actions)


@dataclass(frozen=True, slots=True)
class Comment(Statement):
    """`COMMENT ON object IS '...'`; `column` is set for `COMMENT ON COLUMN`, `comment` is None for `IS NULL`."""

    kind: str
    name: Name
    column: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = expression`.

    Attributes:
        column: The column.
        offset: Where it stands.
        value: The expression; None for DEFAULT.
        row: Of `(column, ...) = (SELECT ...)` the query, whose columns are the values of so many columns.
    """

    column: str
    offset: int
    value: SqlText | None
    row: tuple[SqlText, int] | None = None


@dataclass(frozen=True, slots=True)
class OnConflict:
    """What an INSERT does with a row that is equal to one of the table in a key.

    Attributes:
        columns: The key's columns, as named; none for any key.
        constraint: The key's constraint, if it is named by that.
        assignments: How the table's row changes; none if nothing is done.
        predicate: Which of the table's rows change; None for all.
        offset: Where it stands.
    """

    columns: tuple[str, ...]
    constraint: str | None
    assignments: tuple[Assignment, ...]
    predicate: SqlText | None
    offset: int


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """`INSERT INTO`; `columns` is empty when not listed.

    Attributes:
        table: The table.
        columns: The columns that are listed.
        query: The rows, which may be a VALUES list; None after DEFAULT VALUES.
        returning: What is returned of each row, or None.
        alias: What the statement calls the table, or None for its own name.
        conflict: What is done with rows that are there already; None if they are an error.
        overriding: `system` if what is given takes the place of what columns generate always, `user` if what they
            generate takes the place of what is given; None if neither is said.
        ctes: The WITH clause before it, or None; `query` begins with it, too.
    """

    table: Name
    columns: tuple[str, ...]
    query: SqlText | None
    returning: SqlText | None = None
    alias: str | None = None
    conflict: OnConflict | None = None
    overriding: Literal["system", "user"] | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """`DELETE FROM`.

    Attributes:
        table: The table.
        target: The table's name and alias, as written.
        alias: What the statement calls the table, or None for its own name.
        using: The further items of FROM, or None.
        predicate: Which rows go; None for all.
        returning: What is returned of each row, or None.
        ctes: The WITH clause before it, or None.
    """

    table: Name
    target: SqlText
    alias: str | None
    using: SqlText | None
    predicate: SqlText | None
    returning: SqlText | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Update(Statement):
    """`UPDATE ... SET ...`.

    Attributes:
        table: The table.
        target: The table's name and alias, as written.
        alias: What the statement calls the table, or None for its own name.
        assignments: The columns that change.
        using: The further items of FROM, or None.
        predicate: Which rows change; None for all.
        returning: What is returned of each new row, or None.
        ctes: The WITH clause before it, or None.
    """

    table: Name
    target: SqlText
    alias: str | None
    assignments: tuple[Assignment, ...]
    using: SqlText | None
    predicate: SqlText | None
    returning: SqlText | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How a CSV file is written: the options of `COPY`, with PostgreSQL's defaults."""

    header: Literal["no", "skip", "match"] = "no"
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""


@dataclass(frozen=True, slots=True)
class ClientFormat:
    """How rows are written that a client sends or gets by COPY: the options, with PostgreSQL's defaults.

    Attributes:
        kind: Lines of text with backslashes, CSV, or binary.
        header: Whether a line with the columns' names comes first; `match` has it checked.
        delimiter: What stands between two cells.
        null: What a NULL is written as.
        quote: What stands around a cell of CSV that needs it.
        escape: What stands before such a quote inside of one.
        force_quote: Which columns of CSV are always quoted; None for all.
    """

    kind: Literal["text", "csv", "binary"] = "text"
    header: Literal["no", "skip", "match"] = "no"
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class CopyFromClient(Statement):
    """`COPY table FROM STDIN`; `columns` are those that the rows have, in order; empty when not listed."""

    table: Name
    columns: tuple[str, ...]
    format: ClientFormat


@dataclass(frozen=True, slots=True)
class CopyToClient(Statement):
    """`COPY {table | (query)} TO STDOUT`; `columns` are those of a table that are wanted, empty for all."""

    source: Name | Select | Subscribe
    columns: tuple[str, ...]
    format: ClientFormat


@dataclass(frozen=True, slots=True)
class CopyToFile(Statement):
    """`COPY {table | (query)} TO 'file'`.

    Attributes:
        source: What is written.
        columns: The columns of a table that are wanted; empty for all.
        path: The file, as written, relative to the project.
        path_offset: Where that stands.
        format: How; JSON is an object a line.
    """

    source: Name | Select
    columns: tuple[str, ...]
    path: str
    path_offset: int
    format: ClientFormat | Literal["json", "parquet"]


@dataclass(frozen=True, slots=True)
class Copy(Statement):
    """`COPY table FROM 'file'`.

    Attributes:
        table: The table.
        columns: The columns that the file has, in order; empty when not listed.
        path: The file, as written, relative to the project.
        csv: How the file is written if it is CSV; None for Parquet.
    """

    table: Name
    columns: tuple[str, ...]
    path: str
    csv: CsvOptions | None


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    """`TRUNCATE`.

    Attributes:
        table: The table, or the first of several.
        target: Its name as written.
        restarts: Whether sequences begin anew.
        further: The same of each other table that the statement names.
        cascade: Whether tables that refer to one of them are emptied, too.
    """

    table: Name
    target: SqlText
    restarts: bool
    further: tuple[Truncate, ...] = ()
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Refresh(Statement):
    """`REFRESH MATERIALIZED VIEW`."""

    name: Name


@dataclass(frozen=True, slots=True)
class Maintenance(Statement):
    """`ANALYZE` or `VACUUM`, which the engine needs nobody to ask for.

    Attributes:
        what: Which of the two, in upper case.
        tables: What it names.
    """

    what: str
    tables: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """A query, `SELECT`, `VALUES`, `TABLE` or `WITH`; `query` is without its `AS OF`."""

    query: SqlText
    as_of: AsOf | None


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A column that the rows of one time are ordered by, and where it stands, from 1 on."""

    column: str
    descending: bool
    nulls_first: bool
    position: int


@dataclass(frozen=True, slots=True)
class SubscribeEnvelope:
    """The form in which changes are told.

    Attributes:
        kind: `none` is each row with its diff; `upsert` the row that a key has now; `debezium` what it had before, too.
        key: The key's columns; empty for `none`.
        order: By what the rows of one time are ordered, of `none`; empty for no order.
        position: Where the key stands, from 1 on.
    """

    kind: Literal["none", "upsert", "debezium"]
    key: tuple[str, ...] = ()
    order: tuple[RowOrder, ...] = ()
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Subscribe(Statement):
    """`SUBSCRIBE`; `target` is a name or a query.

    Attributes:
        target: What is subscribed to.
        as_of: The time of the snapshot, or None.
        up_to: The first time not emitted any more, or None.
        progress: Whether rows that say how far the stream has come are wanted.
        snapshot: Whether the rows at `as_of` come first.
        envelope: The form in which changes are told.
    """

    target: Name | SqlText
    as_of: AsOf | None
    up_to: SqlText | None
    progress: bool
    snapshot: bool
    envelope: SubscribeEnvelope = SubscribeEnvelope("none")
