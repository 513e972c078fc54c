"""SQL: text to statements, and statements to typed plans.

Owns the grammar of statements, the scoping and typing of queries, and the refusals. Invariants: the user's text is kept
as written; every error carries the position it blames; nothing that a query says is ever dropped silently: what
has no exact plan is refused with its reason. PostgreSQL's semantics decide.

- `lexer`: tokens and statements of a text. `cursor`: walking over tokens.
- `statements`: the statements, as data. `statement_parser`, `source_statement`, `table_statement`, `options`,
  `type_names`: the grammar.
- `body_parser`: query bodies to syntax trees; the only file that runs sqlglot.
- `binding`, `scope`, `expressions`, `calls`, `from_clause`, `query`, `finishing`, `output_names`, `refusals`: the
  binder; `binder` has its entrances.
- `errors`: what can be wrong, with SQLSTATEs.

It does not resolve names itself (a `Resolver` does), optimize, or run anything.
"""

from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.sql.binder import (
    RESERVED_COLUMNS,
    BoundQuery,
    BoundUpdate,
    bind_as_of,
    bind_definition,
    bind_delete,
    bind_insert,
    bind_predicate,
    bind_query,
    bind_scalar_over,
    bind_time,
    bind_update,
    resolve_kind,
)
from mz_dagster.sql.finishing import RowSetFinishing, ordered_rows
from mz_dagster.sql.lexer import same_tokens, split
from mz_dagster.sql.statement_parser import parse
from mz_dagster.sql.statements import (
    AlterRetainHistory,
    AsOf,
    Begin,
    ColumnDefinition,
    Comment,
    Commit,
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Files,
    Insert,
    Name,
    Rollback,
    Select,
    Show,
    SqlText,
    Statement,
    Subscribe,
    Update,
)

__all__ = [
    "RESERVED_COLUMNS",
    "AlterRetainHistory",
    "AsOf",
    "Begin",
    "BoundQuery",
    "BoundUpdate",
    "ColumnDefinition",
    "ColumnOrder",
    "Comment",
    "Commit",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateSource",
    "CreateTable",
    "CreateView",
    "Delete",
    "Drop",
    "Explain",
    "Files",
    "Insert",
    "Name",
    "Rollback",
    "RowSetFinishing",
    "Select",
    "Show",
    "SqlText",
    "Statement",
    "Subscribe",
    "Update",
    "bind_as_of",
    "bind_definition",
    "bind_delete",
    "bind_insert",
    "bind_predicate",
    "bind_query",
    "bind_scalar_over",
    "bind_time",
    "bind_update",
    "ordered_rows",
    "parse",
    "resolve_kind",
    "same_tokens",
    "split",
]
