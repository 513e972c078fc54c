"""Text to statements: dispatches on leading keywords, by a grammar of its own.

Owns everything outside query bodies: sqlglot takes `SUBSCRIBE t` for a column with an alias, drops PRIMARY KEY and
knows no `AS OF`, so it never sees them. Bodies of queries and expressions are cut out as text, with
their offsets, by words that stand outside quotes and parentheses. A statement that is not known is refused
with its position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mz_dagster.sql.altering import parse_alter_table
from mz_dagster.sql.check_statement import parse_create_check
from mz_dagster.sql.connection_statements import (
    AlterConnection,
    AlterSecret,
    parse_alter_connection,
    parse_alter_secret,
    parse_create_connection,
    parse_create_secret,
)
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.cursor_statements import parse_close, parse_declare, parse_fetch
from mz_dagster.sql.errors import DuplicateColumn, InvalidSyntax, UnsupportedForm, WrongObjectKind, suggestion
from mz_dagster.sql.lexer import Fragment, TokenKind, split
from mz_dagster.sql.numbered_parameters import NumberedParameters
from mz_dagster.sql.options import Common, parse_retention, parse_with_options
from mz_dagster.sql.prepared_statements import parse_execute, parse_parameter_types
from mz_dagster.sql.query_clauses import into_clause, query_and_as_of, query_text, with_data
from mz_dagster.sql.role_statements import (
    AlterRole,
    DropRole,
    parse_alter_role,
    parse_create_role,
    parse_drop_role,
    parse_grant,
)
from mz_dagster.sql.row_lock import RowLock
from mz_dagster.sql.row_lock_clauses import without_row_locks
from mz_dagster.sql.session_statements import Explain, Prepare, Show, ShowSetting
from mz_dagster.sql.setting_statement import (
    parse_deallocate,
    parse_discard,
    parse_reset,
    parse_set,
    parse_show_setting,
    parse_unlisten,
)
from mz_dagster.sql.sink_statement import parse_create_sink
from mz_dagster.sql.source_columns import AlterSource, parse_alter_source
from mz_dagster.sql.source_statement import parse_create_source
from mz_dagster.sql.statements import (
    AlterDropErrors,
    AlterRename,
    AlterReset,
    AlterRetainHistory,
    AlterTable,
    AlterType,
    Comment,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTableAs,
    CreateUniqueIndex,
    CreateView,
    Delete,
    Drop,
    Insert,
    Maintenance,
    Name,
    Refresh,
    Select,
    Statement,
    Update,
)
from mz_dagster.sql.subscribe_statement import parse_subscribe
from mz_dagster.sql.table_statement import parse_create_table
from mz_dagster.sql.transaction_statements import (
    parse_begin,
    parse_commit,
    parse_lock_table,
    parse_release,
    parse_rollback,
    parse_savepoint,
)
from mz_dagster.sql.type_statements import parse_alter_type, parse_create_type
from mz_dagster.sql.write_statements import (
    ctes_of_write,
    parse_copy,
    parse_delete,
    parse_insert,
    parse_truncate,
    parse_update,
    with_ctes,
)

_KINDS = "source|table|view|materialized|index|sink|check|connection|secret"
_NO_OBJECTS = (
    "recursive|cluster|database|extension|trigger|rule|policy|operator|collation|foreign|"
    "unlogged|publication|subscription|statistics|cast|language|server|tablespace|event|access|conversion|group|text"
)
_PLURALS = (
    "objects",
    "schemas",
    "sources",
    "tables",
    "views",
    "indexes",
    "types",
    "sinks",
    "checks",
    "connections",
    "secrets",
)


def parse(text: str) -> tuple[Statement, ...]:
    """Returns the statements of `text`, separated by semicolons; empty ones are skipped.

    Raises:
        InvalidSyntax: With the position of the first token that fits no rule.
        UnsupportedForm: For statements that are known but refused.

    Example:
        >>> [type(one).__name__ for one in parse("BEGIN; SELECT 1 AS OF 5; COMMIT")]
        ['Begin', 'Select', 'Commit']
    """
    return tuple(parse_statement(text, one) for one in split(text) if one.tokens)


def parse_statement(text: str, fragment: Fragment) -> Statement:
    """Returns the statement that is a part of `text`, which must not be empty; as `parse`."""
    cursor = TokenCursor(text, fragment.tokens, fragment.tokens[-1].end)
    locks: tuple[RowLock, ...] = ()
    if cursor.current.is_symbol("(") or cursor.sees("select|with|insert|update|delete"):
        cursor, locks = without_row_locks(cursor)
    statement = _statement(cursor)
    cursor.expects_end()
    return replace(statement, locks=locks) if locks else statement


def _statement(cursor: TokenCursor) -> Statement:
    first = cursor.current
    common = Common.of(cursor)
    if first.is_word("with"):
        ctes = ctes_of_write(cursor)
        return _select(cursor, common) if ctes is None else with_ctes(_write(cursor, common), ctes)
    if first.is_symbol("(") or first.is_word("select", "values", "table"):
        return _select(cursor, common)
    if first.kind is TokenKind.WORD:
        rule = _RULES.get(first.value)
        if rule is not None:
            return rule(cursor, common)
        if first.value in _REFUSED:
            raise cursor.refuse(f"{first.value.upper()}", _REFUSED[first.value])
    error = cursor.unexpected("a statement")
    error.hint = suggestion(first.value, [*_RULES, "select", "values", "with"])
    raise error


def _write(cursor: TokenCursor, common: Common) -> Insert | Update | Delete:
    if cursor.sees("insert"):
        return parse_insert(cursor, common)
    return parse_update(cursor, common) if cursor.sees("update") else parse_delete(cursor, common)


def _select(cursor: TokenCursor, common: Common) -> Select | CreateTableAs:
    found = into_clause(cursor)
    if found is not None:
        name, temporary, query = found
        return CreateTableAs(*common, name, (), query, temporary=temporary)
    query, as_of = query_and_as_of(cursor, len(cursor.tokens))
    return Select(*common, query, as_of)


def _temporary(cursor: TokenCursor) -> bool:
    """Moves past `TEMPORARY`, if it is there, and returns whether it was; only some objects may be."""
    start = cursor.at
    if cursor.sees("global|local", "temp|temporary"):
        cursor.advance()
    if not cursor.accepts("temp|temporary"):
        return False
    if not cursor.sees("table|view|materialized"):
        first = cursor.tokens[start]
        raise cursor.refuse(
            f"CREATE TEMPORARY {cursor.current.value.upper()}", "It would serve others, who outlive the session.",
            "Tables, views and materialized views may be temporary.", first,
        )  # fmt: skip
    return True


def _if_not_exists(cursor: TokenCursor) -> bool:
    return cursor.accepts("if", "not", "exists")


def _create(cursor: TokenCursor, common: Common) -> Statement:
    cursor.expects("create")
    replacing = cursor.current
    if cursor.accepts("or", "replace"):
        temporary = _temporary(cursor)
        if not cursor.accepts("view"):
            raise cursor.refuse("OR REPLACE", "Only a plain view, which has no contents, is replaced.",
                                "Change the project's files and apply them; or drop it first.", replacing)  # fmt: skip
        return _create_view(cursor, common, temporary=temporary, replaces=True)
    temporary = _temporary(cursor)
    if cursor.accepts("source"):
        return parse_create_source(cursor, common)
    if cursor.accepts("sink"):
        return parse_create_sink(cursor, common)
    if cursor.accepts("check"):
        return parse_create_check(cursor, common)
    if cursor.accepts("secret"):
        return parse_create_secret(cursor, common)
    if cursor.accepts("connection"):
        return parse_create_connection(cursor, common)
    if cursor.accepts("table"):
        return parse_create_table(cursor, common, temporary=temporary)
    if cursor.accepts("view"):
        return _create_view(cursor, common, temporary=temporary)
    if cursor.accepts("materialized"):
        cursor.expects("view")
        if_not_exists = _if_not_exists(cursor)
        name, columns = cursor.name(), _optional_names(cursor)
        if cursor.sees("in", "cluster"):
            raise cursor.refuse("IN CLUSTER", "There are no clusters: Spark is configured by the project.")
        retain = parse_with_options(cursor)
        cursor.expects("as")
        wanted, stop = with_data(cursor)
        query = query_text(cursor, stop)
        cursor.at = len(cursor.tokens)
        return CreateMaterializedView(*common, name, columns, query, retain, if_not_exists, wanted, temporary)
    if cursor.accepts("index"):
        return _create_index(cursor, common)
    if cursor.sees("default", "index"):
        raise cursor.refuse("CREATE DEFAULT INDEX", "An index has a name of its own.", "Write CREATE INDEX ON object.")
    if cursor.accepts("schema"):
        missing = cursor.accepts("if", "not", "exists")
        if cursor.sees("authorization"):
            raise cursor.refuse("AUTHORIZATION", "Objects have no owners.")
        return CreateSchema(*common, Name((cursor.identifier("a schema"),), cursor.ahead(-1).start), missing)
    if cursor.accepts("type"):
        return parse_create_type(cursor, common)
    if cursor.sees("role|user") and not cursor.sees("user", "mapping"):
        return parse_create_role(cursor, common)
    if cursor.accepts("unique", "index"):
        return _create_unique_index(cursor, common)
    if cursor.sees("domain"):
        raise cursor.refuse("CREATE DOMAIN", "A column has its type's values.", "Give the column a CHECK.")
    if cursor.sees("function|procedure|aggregate"):
        raise cursor.refuse(
            f"CREATE {cursor.current.value.upper()}",
            "What is maintained is built of functions that both engines compute alike.",
            "Write the expression out, or make a view of it.",
        )
    if cursor.sees(_NO_OBJECTS):
        raise cursor.refuse(f"CREATE {cursor.current.value.upper()}", "There is no such object.")
    if cursor.sees("sequence"):
        raise cursor.refuse(
            "CREATE SEQUENCE",
            "Only columns of tables generate numbers.",
            "Declare a column GENERATED BY DEFAULT AS IDENTITY, with the same options.",
        )
    raise cursor.unexpected("SOURCE, TABLE, VIEW, MATERIALIZED VIEW, INDEX, SINK, CHECK, CONNECTION or SECRET")


def _create_view(cursor: TokenCursor, common: Common, *, temporary: bool, replaces: bool = False) -> CreateView:
    if_not_exists = not replaces and _if_not_exists(cursor)
    name, columns = cursor.name(), _optional_names(cursor)
    cursor.expects("as")
    temporary = temporary or name.is_temporary
    return CreateView(*common, name, columns, query_text(cursor), if_not_exists, temporary, replaces)


def _create_index(cursor: TokenCursor, common: Common) -> CreateIndex:
    name, on, if_not_exists = _index_and_relation(cursor)
    if not cursor.current.is_symbol("("):
        return CreateIndex(*common, name, on, (), if_not_exists)
    columns = _index_columns(
        cursor, "an index", "The key of an index is a list of columns.", "Add the expression to the view as a column."
    )
    if cursor.sees("where"):
        raise cursor.refuse("an index on some rows", "An index holds all.", "Index a view of those: ... WHERE ...")
    if cursor.sees("with"):
        raise cursor.refuse("WITH on an index", "An index is kept as long as its collection.")
    return CreateIndex(*common, name, on, columns, if_not_exists)


def _index_and_relation(cursor: TokenCursor) -> tuple[Name | None, Name, bool]:
    """Moves past `[CONCURRENTLY] [IF NOT EXISTS] [name] ON relation [USING method]`."""
    cursor.accepts("concurrently")  # as every index is made
    if_not_exists = _if_not_exists(cursor)
    name = None if cursor.sees("on") else cursor.name()
    if cursor.sees("in", "cluster"):
        raise cursor.refuse("IN CLUSTER", "There are no clusters: Spark is configured by the project.")
    cursor.expects("on")
    on = cursor.name()
    if cursor.accepts("using") and not cursor.accepts("btree|hash"):
        raise cursor.refuse(f"USING {cursor.current.value}", "There is one kind of index.")
    return name, on, if_not_exists


def _create_unique_index(cursor: TokenCursor, common: Common) -> CreateUniqueIndex:
    name, on, if_not_exists = _index_and_relation(cursor)
    columns = _index_columns(
        cursor,
        "a unique index",
        "Its key is a list of columns.",
        "Add a column that is computed: ALTER TABLE t ADD COLUMN lower_email text "
        "GENERATED ALWAYS AS (lower(email)) STORED UNIQUE.",
    )
    if cursor.accepts("nulls"):
        if cursor.sees("not"):
            raise cursor.refuse("NULLS NOT DISTINCT", "Rows with a NULL in a key are all different.")
        cursor.expects("distinct")
    if cursor.sees("where"):
        raise cursor.refuse(
            "a unique index on some rows",
            "It holds for all rows but those with a NULL in its key.",
            "Add a column that is computed, and is NULL in all others: ALTER TABLE t ADD COLUMN active_email text "
            "GENERATED ALWAYS AS (CASE WHEN is_active THEN email END) STORED UNIQUE.",
        )
    if cursor.sees("include|with|tablespace"):
        raise cursor.refuse(f"{cursor.current.value.upper()} on a unique index", "It is its columns alone.")
    return CreateUniqueIndex(*common, name, on, columns, if_not_exists)


def _index_columns(cursor: TokenCursor, what: str, detail: str, hint: str) -> tuple[str, ...]:
    """Moves past the columns of an index.

    Raises:
        UnsupportedForm: One is an expression; which index it is of, why, and what to do, are given.
    """
    opening = cursor.at
    try:
        return _named_columns(cursor)
    except InvalidSyntax as error:
        cursor.at = opening
        cursor.skip_balanced()
        raise UnsupportedForm(
            f"{what} on an expression is not supported", detail=detail, hint=hint, position=error.position
        ) from None


def _named_columns(cursor: TokenCursor) -> tuple[str, ...]:
    """Moves past `(name [pattern_ops] [ASC | DESC] [NULLS FIRST | LAST], ...)`.

    An index is looked up in, whatever its order: texts, too, are equal by their bytes to every class of operators.
    """
    cursor.expects_symbol("(")
    names: list[str] = []
    while not names or cursor.accepts_symbol(","):
        names.append(cursor.identifier("a column"))
        cursor.accepts("text_pattern_ops|varchar_pattern_ops|bpchar_pattern_ops")
        cursor.accepts("asc|desc")
        if cursor.accepts("nulls"):
            cursor.expects("first|last")
    cursor.expects_symbol(")")
    return tuple(names)


def _optional_names(cursor: TokenCursor) -> tuple[str, ...]:
    if not cursor.current.is_symbol("("):
        return ()
    opening = cursor.current
    names = cursor.names_in_parentheses()
    for name in names:
        if names.count(name) > 1:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=opening.start + 1)
    return names


def _kind(cursor: TokenCursor) -> str:
    token = cursor.current
    if not cursor.sees(_KINDS):
        raise cursor.unexpected("SOURCE, TABLE, VIEW, MATERIALIZED VIEW, INDEX, SINK, CHECK, CONNECTION or SECRET")
    cursor.advance()
    if token.value == "materialized":
        cursor.expects("view")
        return "materialized view"
    return token.value


def _drop(cursor: TokenCursor, common: Common) -> Drop | DropRole:
    cursor.expects("drop")
    if cursor.sees("role|user"):
        return parse_drop_role(cursor, common)
    kind = cursor.advance().value if cursor.sees("schema|type") else _kind(cursor)
    if kind == "index":
        cursor.accepts("concurrently")
    if_exists = cursor.accepts("if", "exists")
    names = [cursor.name()]
    while cursor.accepts_symbol(","):
        names.append(cursor.name())
    cascade = cursor.accepts("cascade")
    if not cascade:
        cursor.accepts("restrict")
    return Drop(*common, kind, tuple(names), if_exists, cascade)


def _alter(
    cursor: TokenCursor, common: Common
) -> (
    AlterConnection
    | AlterDropErrors
    | AlterRename
    | AlterReset
    | AlterRetainHistory
    | AlterRole
    | AlterSecret
    | AlterSource
    | AlterTable
    | AlterType
):
    cursor.expects("alter")
    if cursor.sees("role|user"):
        return parse_alter_role(cursor, common)
    if cursor.accepts("type"):
        return parse_alter_type(cursor, common)
    if cursor.sees("schema"):
        raise cursor.refuse(
            "ALTER SCHEMA", "Definitions say the schemas of what they read.", "Create another one, and what is in it."
        )
    kind = _kind(cursor)
    if_exists = cursor.accepts("if", "exists")
    if kind == "table":
        cursor.accepts("only")  # no table inherits
    name = cursor.name()
    if cursor.sees("owner", "to"):
        raise cursor.refuse("OWNER TO", "Objects have no owners.", "Leave it out; GRANT says who may do what.")
    if cursor.sees("set", "schema"):
        raise cursor.refuse(
            "SET SCHEMA",
            "Definitions say the schemas of what they read.",
            "Create it there anew; a table's rows by CREATE TABLE schema.name AS TABLE name.",
        )
    if cursor.sees("rename") and not cursor.sees("rename", "to"):
        if kind == "table":
            return parse_alter_table(cursor, common, name, if_exists)
        raise cursor.refuse("RENAME of a part", "Its columns are those of its query.", "Create it anew.")
    if cursor.accepts("rename"):
        cursor.expects("to")
        return AlterRename(*common, kind, name, cursor.identifier("the new name"), if_exists)
    if kind == "connection":
        return parse_alter_connection(cursor, common, name, if_exists)
    if kind == "secret":
        return parse_alter_secret(cursor, common, name, if_exists)
    if cursor.accepts("reset"):
        if kind in ("source", "sink") and not cursor.current.is_symbol("("):
            return AlterReset(*common, kind, name, if_exists)
        cursor.expects_symbol("(")
        cursor.expects("retain", "history")
        cursor.expects_symbol(")")
        return AlterRetainHistory(*common, kind, name, None, if_exists)
    if kind != "table" and cursor.accepts("drop", "errors"):
        if kind != "source":
            raise WrongObjectKind(
                f'DROP ERRORS is for sources, and "{name}" is altered as a {kind}',
                detail="What is computed has the errors of what it reads, and they go with them.",
                hint="Alter the source; mz_internal.mz_errors tells which has errors.",
                position=name.offset + 1,
            )
        return AlterDropErrors(*common, name, if_exists)
    if kind == "source" and cursor.sees("add"):
        return parse_alter_source(cursor, common, name, if_exists)
    if kind == "table" and not cursor.sees("set"):
        return parse_alter_table(cursor, common, name, if_exists)
    if not cursor.accepts("set"):
        raise cursor.refuse(
            "this form of ALTER",
            "RENAME TO, SET and RESET (RETAIN HISTORY) are known, and of sources of files ADD COLUMN.",
        )
    cursor.expects_symbol("(")
    retain = parse_retention(cursor)
    cursor.expects_symbol(")")
    return AlterRetainHistory(*common, kind, name, retain, if_exists)


def _comment(cursor: TokenCursor, common: Common) -> Comment:
    cursor.expects("comment", "on")
    column = None
    if cursor.accepts("column"):
        kind, name = "column", cursor.name()
        if len(name.parts) < 2:
            raise InvalidSyntax("column name must be qualified", position=name.offset + 1)
        column, name = name.last, Name(name.parts[:-1], name.offset)
    else:
        kind, name = _kind(cursor), cursor.name()
    cursor.expects("is")
    comment = None if cursor.accepts("null") else cursor.string("the comment")
    return Comment(*common, kind, name, column, comment)


def _analyzes(cursor: TokenCursor) -> bool:
    """Moves past `ANALYZE` or `(option [value], ...)`, if there is one; returns whether that says to execute the query.

    Raises:
        UnsupportedForm: It has another option, or another value.
    """
    if cursor.accepts("analyze"):
        return True
    if cursor.sees("verbose"):
        raise cursor.refuse("VERBOSE of EXPLAIN", "It shows the plan as text.", "Write EXPLAIN SELECT ....")
    if not cursor.current.is_symbol("(") or not cursor.tokens[cursor.at + 1].is_word(*_OF_EXPLAIN):
        return False
    cursor.expects_symbol("(")
    analyzes = False
    while True:
        option = cursor.advance()
        value = "on" if cursor.current.is_symbol(",", ")") else cursor.advance().value.lower()
        if option.is_word("analyze") and value in ("on", "true", "1", "off", "false", "0"):
            analyzes = value in ("on", "true", "1")
        elif not option.is_word("format") or value != "text":
            what = f"{option.value.upper()}{'' if value == 'on' else f' {value.upper()}'} of EXPLAIN"
            raise cursor.refuse(what, "It shows the plan, and with ANALYZE its costs, as text.",
                                "Write EXPLAIN (ANALYZE) SELECT ....", option)  # fmt: skip
        if not cursor.accepts_symbol(","):
            cursor.expects_symbol(")")
            return analyzes


def _explain(cursor: TokenCursor, common: Common) -> Explain:
    cursor.expects("explain")
    first = cursor.current
    if _analyzes(cursor):
        if not cursor.current.is_symbol("(") and not cursor.sees("select|with|values|table"):
            raise cursor.refuse("EXPLAIN ANALYZE of what is no query", "It executes what it explains.",
                                "A step's costs are in its Dagster metadata.", first)  # fmt: skip
        return Explain(*common, "plan", query_text(cursor), analyzes=True)
    stage = "plan"
    if any(cursor.sees(*one) for one in (("raw|decorrelated", "plan"), ("timestamp", "for"), ("filter", "pushdown"))):
        raise cursor.refuse(f"EXPLAIN {cursor.current.value.upper()}", "It shows the plan as text.",
                            "Write EXPLAIN, EXPLAIN OPTIMIZED PLAN FOR or EXPLAIN PHYSICAL PLAN FOR.")  # fmt: skip
    for word, meaning in (("optimized", "logical"), ("logical", "logical"), ("physical", "physical")):
        if cursor.accepts(word):
            stage = meaning
    if cursor.accepts("plan"):
        cursor.accepts("as", "text")
        cursor.accepts("for")
    elif stage != "plan":
        raise cursor.unexpected("PLAN")
    else:
        cursor.accepts("for")
    if cursor.sees("create"):
        created = _create(cursor, Common.of(cursor))
        if isinstance(created, CreateTableAs):
            return Explain(*common, stage, created.query)
        if not isinstance(created, CreateView | CreateMaterializedView | CreateIndex | CreateCheck):
            first = cursor.tokens[0]
            raise cursor.refuse("EXPLAIN of this statement", "Only what is computed has a plan.", token=first)
        return Explain(*common, stage, created)
    if cursor.accepts("materialized", "view") or cursor.accepts("view") or cursor.accepts("index"):
        return Explain(*common, stage, cursor.name())
    first = cursor.current
    if first.is_symbol("(") or first.is_word("select", "with", "values", "table"):
        return Explain(*common, stage, query_text(cursor))
    if first.is_word("insert", "update", "delete", "copy"):
        raise cursor.refuse(f"EXPLAIN {first.value.upper()}", "Only what is computed has a plan.",
                            "EXPLAIN the query whose rows it writes.")  # fmt: skip
    return Explain(*common, stage, cursor.name())


def _show(cursor: TokenCursor, common: Common) -> Show | ShowSetting:
    cursor.expects("show")
    name: Name | None = None
    if cursor.accepts("create"):
        return Show(*common, "create", kind=_kind(cursor), name=cursor.name(), pattern=None)
    if cursor.accepts("columns"):
        cursor.expects("from")
        what, name = "columns", cursor.name()
    elif cursor.accepts("materialized", "views"):
        what = "materialized views"
    elif cursor.sees("|".join(_PLURALS)):
        what = cursor.advance().value
        if what == "indexes" and cursor.accepts("on|from"):
            name = cursor.name()
    elif cursor.current.kind in (TokenKind.WORD, TokenKind.QUOTED):
        return parse_show_setting(cursor, common)
    else:
        error = cursor.unexpected("what to show")
        error.hint = (
            "Show OBJECTS, SOURCES, TABLES, VIEWS, MATERIALIZED VIEWS, INDEXES, CHECKS, CONNECTIONS, SECRETS, "
            "COLUMNS FROM name, CREATE kind name, a setting or ALL."
        )
        raise error
    pattern = cursor.string("a pattern") if cursor.accepts("like") else None
    predicate = cursor.text_until(len(cursor.tokens)) if pattern is None and cursor.accepts("where") else None
    return Show(*common, what, name, None, pattern, predicate)


def _refresh(cursor: TokenCursor, common: Common) -> Refresh:
    cursor.expects("refresh", "materialized", "view")
    cursor.accepts("concurrently")
    name = cursor.name()
    if cursor.sees("with", "no", "data"):
        raise cursor.refuse("WITH NO DATA", "A view that is maintained has its data at every time.")
    cursor.accepts("with", "data")
    return Refresh(*common, name)


def _maintenance(cursor: TokenCursor, common: Common) -> Maintenance:
    """Moves past `ANALYZE` or `VACUUM`, with PostgreSQL's options, and the tables and columns that it names."""
    what = cursor.advance().value
    if cursor.current.is_symbol("("):
        cursor.parenthesized()
    while what == "vacuum" and cursor.accepts("full|freeze|analyze"):
        pass
    cursor.accepts("verbose")
    if what == "vacuum":
        cursor.accepts("analyze")
    tables: list[Name] = []
    while cursor.current.kind is not TokenKind.END:
        if tables:
            cursor.expects_symbol(",")
        tables.append(cursor.name())
        if cursor.current.is_symbol("("):
            cursor.parenthesized()
    return Maintenance(*common, what.upper(), tuple(tables))


#: How statements begin that are prepared.
_PREPARED = ("select", "values", "table", "with", "insert", "update", "delete")


def _prepare(cursor: TokenCursor, common: Common) -> Prepare:
    """Moves past `PREPARE name [(type, ...)] AS {query | INSERT ... | UPDATE ... | DELETE ...}`."""
    cursor.expects("prepare")
    name = cursor.identifier("a prepared statement")
    types = parse_parameter_types(cursor)
    cursor.expects("as")
    start, first = cursor.at, cursor.current
    if not first.is_symbol("(") and not first.is_word(*_PREPARED):
        raise cursor.unexpected("SELECT, VALUES, INSERT, UPDATE or DELETE")
    numbered = NumberedParameters.of(cursor.source[: cursor.end], cursor.tokens[start:])
    # What comes before is blank, so that errors point at their places.
    text = " " * first.start + numbered.text[first.start :]
    (fragment,) = split(text)
    prepared = parse_statement(text, fragment)
    if not isinstance(prepared, Select | Insert | Update | Delete):
        raise cursor.refuse("PREPARE of SELECT ... INTO", "Only queries and writes are prepared.")
    cursor.at = len(cursor.tokens)
    return Prepare(common.text, common.offset, 0, name, types, prepared, numbered.places)


_RULES: dict[str, Callable[[TokenCursor, Common], Statement]] = {
    "create": _create,
    "drop": _drop,
    "alter": _alter,
    "comment": _comment,
    "grant": parse_grant,
    "revoke": parse_grant,
    "insert": parse_insert,
    "delete": parse_delete,
    "update": parse_update,
    "copy": parse_copy,
    "truncate": parse_truncate,
    "refresh": _refresh,
    "analyze": _maintenance,
    "vacuum": _maintenance,
    "subscribe": parse_subscribe,
    "tail": parse_subscribe,
    "declare": parse_declare,
    "fetch": parse_fetch,
    "move": parse_fetch,
    "close": parse_close,
    "explain": _explain,
    "set": parse_set,
    "reset": parse_reset,
    "discard": parse_discard,
    "prepare": _prepare,
    "execute": parse_execute,
    "deallocate": parse_deallocate,
    "unlisten": parse_unlisten,
    "show": _show,
    "begin": parse_begin,
    "start": parse_begin,
    "lock": parse_lock_table,
    "commit": parse_commit,
    "end": parse_commit,
    "rollback": parse_rollback,
    "abort": parse_rollback,
    "savepoint": parse_savepoint,
    "release": parse_release,
}
#: What PostgreSQL's EXPLAIN has in parentheses.
_OF_EXPLAIN = ("analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "format")
_REFUSED = {
    "merge": "Use INSERT, UPDATE and DELETE.",
    "do": "There are no procedures: execute the statements.",
    "call": "There are no procedures: execute the statements.",
    "listen": "Nobody notifies: SUBSCRIBE tells what changes.",
    "notify": "Nobody listens: SUBSCRIBE tells what changes.",
    "reindex": "Indexes are maintained: there is nothing to build again.",
    "cluster": "CREATE INDEX decides how a collection is laid out.",
    "checkpoint": "What is sealed is on the disk.",
}
