"""SQL: text to statements, and statements to typed plans.

Owns the grammar of statements, the scoping and typing of queries, and the refusals. Invariants: the user's text is kept
as written; every error carries the position it blames; nothing that a query says is ever dropped silently: what
has no exact plan is refused with its reason. PostgreSQL's semantics decide.

- `lexer`: tokens and statements of a text. `cursor`: walking over tokens. `parsed_texts`, `parsed_bodies`: what was
  parsed before, by a `parse_cache`; `syntax`: whether all of a statement is parsed.
- `statements`, `session_statements`: the statements, as data; `declared_keys`. `statement_parser`, `query_clauses`,
  `source_statement`, `sink_statement`, `check_statement`, `table_statement`, `column_definitions`, `altering`,
  `source_columns`, `source_changes`, `table_changes`, `identity`, `write_statements`, `subscribe_statement`,
  `cursor_statements`, `options`, `type_names`: the grammar.
- `body_parser`: query bodies to syntax trees; the only file that runs sqlglot, by its `interpreted_parser`. `hints`:
  what is cut out before.
- `binder`: the binder's entrances; `writes` has those of INSERT, UPDATE and DELETE, each of which is a query that is
  `composed` of its parts. `constraints`: what a table demands of its rows. `binding`: what one statement carries along;
  `parameters`: what a Python value is in SQL.
- `query`, `select`, `from_clause`, `set_operations`, `ordering`, `finishing`, `pending`, `output_columns`,
  `output_names`: queries and their clauses. `scope`, `enclosing`: what a name means, here and in the queries around.
- `grouping`, `grouping_sets`: groups. `collected_calls`: the aggregates, window functions and functions that return
  rows of one SELECT, each of which is one of the `placeholders` until its stage is bound.
- `expression_binder`: what a form of expression needs of the whole. The forms are functions over it: `subqueries`,
  `row_values`, `row_predicates` (by `row_comparison`), `array_forms`, `constant_lists`, `moments`; `calls` with
  `call_syntax`, `text_calls`, `moment_calls`, `jsonb_calls`; `set_functions`, `jsonb_records`; `windows`; `aggregates`,
  which are made of an `aggregate_expansion`, with `interval_aggregates`, `jsonb_aggregates`, `statistics`,
  `ordered_sets` and `coercions`. `expressions` is on top of them: the binder that knows them all.
- `refusals`, `comparability`: what has no exact plan; `other_dialects`: functions that PostgreSQL writes otherwise.
- `errors`: what can be wrong, with SQLSTATEs.

It does not resolve names itself (a `Resolver` does), optimize, or run anything.

Open to other layers beside this front door: `altering`, `catalog_calls`, `catalog_facts`, `check_statement`,
`circumstances`, `connection_statements`, `constraints`, `cursor`, `declared_keys`, `definition_zone`, `errors`,
`finishing`, `lexer`, `numbered_parameters`, `options`, `parsed_texts`, `query_clauses`, `role_statements`, `schemas`,
`source_changes`, `source_statement`, `statements`, `syntax`, `table_changes`, `table_text`, `translation`,
`translation.originals`, `translation.translate`, `type_names`, `type_statements`.
"""

from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.sql.binder import (
    RESERVED_COLUMNS,
    BoundQuery,
    bind_as_of,
    bind_definition,
    bind_predicate,
    bind_query,
    bind_rows,
    bind_time,
)
from mz_dagster.sql.constraints import TableConstraints
from mz_dagster.sql.finishing import RowSetFinishing, ordered_rows
from mz_dagster.sql.lexer import same_tokens, split
from mz_dagster.sql.row_lock import RowLock
from mz_dagster.sql.session_statements import (
    Begin,
    CloseCursor,
    Commit,
    Deallocate,
    Declare,
    Discard,
    Execute,
    Explain,
    Fetch,
    LockTable,
    Prepare,
    ReleaseSavepoint,
    ResetAll,
    Rollback,
    RollbackTo,
    Savepoint,
    SetConstraints,
    SetSetting,
    SetTransaction,
    Show,
    ShowSetting,
    TransactionModes,
    Unlisten,
)
from mz_dagster.sql.source_columns import AlterSource
from mz_dagster.sql.statement_parser import parse, parse_statement
from mz_dagster.sql.statements import (
    AlterDropErrors,
    AlterRename,
    AlterReset,
    AlterRetainHistory,
    AlterTable,
    AlterType,
    AsOf,
    ClientFormat,
    ColumnDefinition,
    Comment,
    Copy,
    CopyFromClient,
    CopyToClient,
    CopyToFile,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateUniqueIndex,
    CreateView,
    CsvOptions,
    Delete,
    Delta,
    Drop,
    Files,
    Iceberg,
    Insert,
    Maintenance,
    Name,
    OnConflict,
    Refresh,
    Select,
    SqlText,
    Statement,
    Subscribe,
    SubscribeEnvelope,
    Truncate,
    Update,
)
from mz_dagster.sql.transaction_statements import ISOLATION_LEVELS
from mz_dagster.sql.writes import (
    BoundChange,
    bind_delete,
    bind_insert,
    bind_insert_many,
    bind_returning,
    bind_update,
)

__all__ = [
    "ISOLATION_LEVELS",
    "RESERVED_COLUMNS",
    "AlterDropErrors",
    "AlterRename",
    "AlterReset",
    "AlterRetainHistory",
    "AlterSource",
    "AlterTable",
    "AlterType",
    "AsOf",
    "Begin",
    "BoundChange",
    "BoundQuery",
    "ClientFormat",
    "CloseCursor",
    "ColumnDefinition",
    "ColumnOrder",
    "Comment",
    "Commit",
    "Copy",
    "CopyFromClient",
    "CopyToClient",
    "CopyToFile",
    "CreateCheck",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateSchema",
    "CreateSink",
    "CreateSource",
    "CreateTable",
    "CreateTableAs",
    "CreateType",
    "CreateUniqueIndex",
    "CreateView",
    "CsvOptions",
    "Deallocate",
    "Declare",
    "Delete",
    "Delta",
    "Discard",
    "Drop",
    "Execute",
    "Explain",
    "Fetch",
    "Files",
    "Iceberg",
    "Insert",
    "LockTable",
    "Maintenance",
    "Name",
    "OnConflict",
    "Prepare",
    "Refresh",
    "ReleaseSavepoint",
    "ResetAll",
    "Rollback",
    "RollbackTo",
    "RowLock",
    "RowSetFinishing",
    "Savepoint",
    "Select",
    "SetConstraints",
    "SetSetting",
    "SetTransaction",
    "Show",
    "ShowSetting",
    "SqlText",
    "Statement",
    "Subscribe",
    "SubscribeEnvelope",
    "TableConstraints",
    "TransactionModes",
    "Truncate",
    "Unlisten",
    "Update",
    "bind_as_of",
    "bind_definition",
    "bind_delete",
    "bind_insert",
    "bind_insert_many",
    "bind_predicate",
    "bind_query",
    "bind_returning",
    "bind_rows",
    "bind_time",
    "bind_update",
    "ordered_rows",
    "parse",
    "parse_statement",
    "same_tokens",
    "split",
]
