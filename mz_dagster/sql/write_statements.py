"""`INSERT`, `UPDATE`, `DELETE` and `COPY`: what they name, with the bodies cut out as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidParameterValue, InvalidSyntax, UnsupportedForm
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.options import Common
from mz_dagster.sql.query_clauses import query_and_as_of
from mz_dagster.sql.statements import (
    Assignment,
    ClientFormat,
    Copy,
    CopyFromClient,
    CopyToClient,
    CopyToFile,
    CsvOptions,
    Delete,
    Insert,
    Name,
    OnConflict,
    Select,
    SqlText,
    Subscribe,
    Truncate,
    Update,
)
from mz_dagster.sql.subscribe_statement import parse_subscribe

_QUERY_WORDS = ("select", "with", "values", "table")
_WRITING_WORDS = ("insert", "update", "delete", "merge")


def ctes_of_write(cursor: TokenCursor) -> SqlText | None:
    """Moves past the WITH clause of an INSERT, UPDATE or DELETE; stays where it is, and returns None, of a query's.

    Raises:
        UnsupportedForm: One of its queries writes.
    """
    depth, verb = 0, None
    for index in range(cursor.at + 1, len(cursor.tokens)):
        before, token = cursor.tokens[index - 1], cursor.tokens[index]
        depth += token.is_symbol("(") - token.is_symbol(")")
        opens = depth == 1 and before.is_symbol("(") and cursor.tokens[index - 2].is_word("as", "materialized")
        if opens and token.is_word(*_WRITING_WORDS):
            raise cursor.refuse(
                "a query of WITH that writes",
                "A statement writes one table, and all that it reads is as it was before.",
                "Make it a statement of its own, and both a transaction: BEGIN; ... RETURNING ...; COMMIT.",
                token,
            )
        if depth == 0 and before.is_symbol(")") and not (token.is_symbol(",", ")") or token.is_word("as")):
            verb = index
            break
    if verb is None or not cursor.tokens[verb].is_word(*_WRITING_WORDS):
        return None
    if cursor.tokens[verb].is_word("merge"):
        raise cursor.refuse("MERGE", "Use INSERT, UPDATE and DELETE.", token=cursor.tokens[verb])
    return cursor.text_until(verb)


def with_ctes(statement: Insert | Update | Delete, ctes: SqlText) -> Insert | Update | Delete:
    """Returns a statement with the WITH clause before it, which the query of an INSERT begins with."""
    if isinstance(statement, Insert) and statement.query is not None:
        query, gap = statement.query, statement.query.offset - ctes.offset - len(ctes.text)
        own = tokens_of(query.text)[0]
        # Of two clauses the second one goes on with the first.
        text = f",   {query.text[own.end :]}" if own.is_word("with") else query.text
        query = SqlText(ctes.text + " " * gap + text, ctes.offset, ctes.parameters_before)
        statement = replace(statement, query=query)
    return replace(statement, ctes=ctes)


def parse_insert(cursor: TokenCursor, common: Common) -> Insert:
    """Moves past `INSERT INTO table [(columns)] {query | DEFAULT VALUES} [RETURNING ...]`."""
    cursor.expects("insert", "into")
    table = cursor.name()
    alias = cursor.identifier("an alias") if cursor.accepts("as") else None
    columns: tuple[str, ...] = ()
    if cursor.current.is_symbol("(") and not cursor.ahead(1).is_word(*_QUERY_WORDS):
        columns = cursor.names_in_parentheses()
    overriding: Literal["system", "user"] | None = None
    if cursor.accepts("overriding"):
        overriding = "system" if cursor.accepts("system") else "user"
        if overriding == "user":
            cursor.expects("user")
        cursor.expects("value")
    query: SqlText | None = None
    if not cursor.accepts("default", "values"):
        if not (cursor.current.is_symbol("(") or cursor.sees("|".join(_QUERY_WORDS))):
            raise cursor.unexpected("a query")
        query = cursor.text_until(min(cursor.index_of("on", "conflict"), cursor.index_of("returning")))
    elif columns:
        raise InvalidSyntax("syntax error: DEFAULT VALUES takes no list of columns", position=table.offset + 1)
    conflict = _on_conflict(cursor)
    return Insert(*common, table, columns, query, _returning(cursor), alias, conflict, overriding)


def _on_conflict(cursor: TokenCursor) -> OnConflict | None:
    """Moves past `ON CONFLICT [(columns) | ON CONSTRAINT name] DO {NOTHING | UPDATE SET ... [WHERE ...]}`."""
    offset = cursor.current.start
    if not cursor.accepts("on", "conflict"):
        return None
    columns: tuple[str, ...] = ()
    constraint = None
    if cursor.current.is_symbol("("):
        columns = cursor.names_in_parentheses()
        if cursor.sees("where"):
            raise cursor.refuse("WHERE of a key", "Keys hold for all rows.")
    elif cursor.accepts("on", "constraint"):
        constraint = cursor.identifier("the constraint's name")
    cursor.expects("do")
    if cursor.accepts("nothing"):
        return OnConflict(columns, constraint, (), None, offset)
    if not columns and constraint is None:
        raise InvalidSyntax(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=offset + 1,
        )
    cursor.expects("update", "set")
    assignments = _assignments(cursor)
    return OnConflict(columns, constraint, assignments, _until(cursor, "where", "returning"), offset)


def _assignments(cursor: TokenCursor) -> tuple[Assignment, ...]:
    found = _assigned(cursor)
    while cursor.accepts_symbol(","):
        found += _assigned(cursor)
    return tuple(found)


def parse_delete(cursor: TokenCursor, common: Common) -> Delete:
    """Moves past `DELETE FROM table [alias] [USING ...] [WHERE ...] [RETURNING ...]`."""
    cursor.expects("delete", "from")
    table, target, alias = _target(cursor, "where", "using", "returning")
    using = _until(cursor, "using", "where", "returning")
    return Delete(*common, table, target, alias, using, _until(cursor, "where", "returning"), _returning(cursor))


def parse_truncate(cursor: TokenCursor, common: Common) -> Truncate:
    """Moves past `TRUNCATE [TABLE] table, ...`."""
    cursor.expects("truncate")
    cursor.accepts("table")
    tables = [_truncated(cursor)]
    while cursor.accepts_symbol(","):
        tables.append(_truncated(cursor))
    restarts = cursor.accepts("restart", "identity")
    if not restarts:
        cursor.accepts("continue", "identity")
    cascade = cursor.accepts("cascade")
    cursor.accepts("restrict")
    first, *further = (Truncate(*common, table, target, restarts) for table, target in tables)
    return replace(first, further=tuple(further), cascade=cascade)


def _truncated(cursor: TokenCursor) -> tuple[Name, SqlText]:
    start = cursor.at
    table = cursor.name()
    stop, cursor.at = cursor.at, start
    return table, cursor.text_until(stop)


def parse_update(cursor: TokenCursor, common: Common) -> Update:
    """Moves past `UPDATE table [alias] SET ... [FROM ...] [WHERE ...] [RETURNING ...]`."""
    cursor.expects("update")
    table, target, alias = _target(cursor, "set")
    cursor.expects("set")
    assignments = _assignments(cursor)
    using = _until(cursor, "from", "where", "returning")
    predicate = _until(cursor, "where", "returning")
    return Update(*common, table, target, alias, assignments, using, predicate, _returning(cursor))


def _target(cursor: TokenCursor, *clauses: str) -> tuple[Name, SqlText, str | None]:
    if cursor.sees("only"):
        raise cursor.refuse("ONLY", "Tables do not inherit.")
    start = cursor.at
    table = cursor.name()
    alias = None
    if cursor.accepts("as") or not (cursor.current.kind is TokenKind.END or cursor.sees("|".join(clauses))):
        alias = cursor.identifier("an alias")
    stop, cursor.at = cursor.at, start
    return table, cursor.text_until(stop), alias


def _until(cursor: TokenCursor, word: str, *ends: str) -> SqlText | None:
    """Moves past a clause that begins with `word`, if it is there, to the first of `ends`; returns what it says."""
    if not cursor.accepts(word):
        return None
    if cursor.sees("current", "of"):
        raise cursor.refuse(
            "WHERE CURRENT OF", "A cursor only reads, and its rows have no places.", "Name the rows by their key."
        )
    return cursor.text_until(min(cursor.index_of(one) for one in ends))


def _returning(cursor: TokenCursor) -> SqlText | None:
    return cursor.text_until(len(cursor.tokens)) if cursor.accepts("returning") else None


def _assigned(cursor: TokenCursor) -> list[Assignment]:
    """Moves past `column = expression` or `(column, ...) = (expression, ...)`."""
    opening = cursor.current
    if not opening.is_symbol("("):
        column = cursor.identifier("a column")
        if cursor.current.is_symbol("[", "."):
            raise cursor.refuse(
                "an assignment to a part of a value",
                "A column is written whole.",
                "Write c = jsonb_set(c, '{key}', value) of a jsonb, c = c[:n - 1] || value || c[n + 1:] of an array.",
            )
        cursor.expects_symbol("=")
        return [Assignment(column, opening.start, _value(cursor, _end_of_assignment(cursor)))]
    columns = cursor.names_in_parentheses()
    cursor.expects_symbol("=")
    cursor.accepts("row")
    if cursor.current.is_symbol("(") and cursor.ahead(1).is_word(*_QUERY_WORDS):
        query = cursor.parenthesized()
        return [_item(column, opening.start, query, i, len(columns)) for i, column in enumerate(columns)]
    cursor.expects_symbol("(")
    values: list[SqlText | None] = []
    while True:
        values.append(_value(cursor, _end_of_item(cursor)))
        if cursor.accepts_symbol(")"):
            break
        cursor.expects_symbol(",")
    if len(values) != len(columns):
        raise InvalidSyntax("number of columns does not match number of values", position=opening.start + 1)
    return [Assignment(column, opening.start, value) for column, value in zip(columns, values, strict=True)]


def _item(column: str, offset: int, query: SqlText, place: int, count: int) -> Assignment:
    """Returns the assignment of one of the columns of a query."""
    names = ", ".join(f"c{i}" for i in range(count))
    before, behind = f"(SELECT c{place} FROM (", f") AS assigned({names}))"
    value = SqlText(before + query.text + behind, query.offset - len(before), query.parameters_before)
    return Assignment(column, offset, value, (query, count))


def _value(cursor: TokenCursor, stop: int) -> SqlText | None:
    if stop == cursor.at + 1 and cursor.accepts("default"):
        return None
    return cursor.text_until(stop)


def _end_of_item(cursor: TokenCursor) -> int:
    depth = 0
    for index in range(cursor.at, len(cursor.tokens)):
        token = cursor.tokens[index]
        if depth == 0 and token.is_symbol(",", ")"):
            return index
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
    return len(cursor.tokens)


def _end_of_assignment(cursor: TokenCursor) -> int:
    depth, previous_distinct = 0, False
    for index in range(cursor.at, len(cursor.tokens)):
        token = cursor.tokens[index]
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        ends = token.is_symbol(",") or token.is_word("where", "returning")
        ends = ends or (token.is_word("from") and not previous_distinct)
        if depth == 0 and ends:
            return index
        previous_distinct = token.is_word("distinct")
    return len(cursor.tokens)


def parse_copy(cursor: TokenCursor, common: Common) -> Copy | CopyFromClient | CopyToClient | CopyToFile:
    """Moves past `COPY`: `table [(columns)] FROM {'file' | STDIN}` or `{table [(columns)] | (query)} TO ...`."""
    cursor.expects("copy")
    source: Name | Select | Subscribe
    columns: tuple[str, ...] = ()
    if cursor.current.is_symbol("("):
        source = _copied_query(cursor, common)
        cursor.expects("to")
    else:
        source = cursor.name()
        columns = cursor.names_in_parentheses() if cursor.current.is_symbol("(") else ()
        if cursor.accepts("from"):
            return _copy_from(cursor, common, source, columns)
        cursor.expects("to")
    if cursor.accepts("stdout"):
        return CopyToClient(*common, source, columns, _client_format(cursor, of_output=True))
    if cursor.sees("program"):
        raise cursor.refuse("COPY TO PROGRAM", "COPY writes a file, or to the client.",
                            "Name the file, or write TO STDOUT.")  # fmt: skip
    place = cursor.current
    path = cursor.string("a file or STDOUT")
    if isinstance(source, Subscribe):
        raise cursor.refuse("COPY of a subscription to a file", "A file is there once it is whole.",
                            "Write TO STDOUT.", place)  # fmt: skip
    return CopyToFile(*common, source, columns, path, place.start, _file_format(cursor))


def _copied_query(cursor: TokenCursor, common: Common) -> Select | Subscribe:
    opening = cursor.at
    cursor.skip_balanced()
    behind, cursor.at = cursor.at, opening + 1
    source: Select | Subscribe
    if cursor.sees("subscribe|tail"):
        source = parse_subscribe(cursor, common, behind - 1)
    else:
        query, as_of = query_and_as_of(cursor, behind - 1)
        source = Select(*common, query, as_of)
    cursor.at = behind
    return source


def _copy_from(cursor: TokenCursor, common: Common, table: Name, columns: tuple[str, ...]) -> Copy | CopyFromClient:
    if cursor.accepts("stdin"):
        return CopyFromClient(*common, table, columns, _client_format(cursor, of_output=False))
    if cursor.sees("program"):
        raise cursor.refuse("COPY FROM PROGRAM", "COPY reads a file of the project, or what the client sends.",
                            "Name the file, or write FROM STDIN.")  # fmt: skip
    path = cursor.string("a file or STDIN")
    cursor.accepts("with")
    options = cursor.current
    found = _copy_options(cursor)
    format_ = found.pop("format", "")
    if format_ == "parquet":
        if found:
            raise InvalidSyntax(f"COPY {min(found).upper()} requires FORMAT CSV", position=options.start + 1)
        return Copy(*common, table, columns, path, None)
    if format_ != "csv":
        raise cursor.refuse("this format of COPY", "Formats are CSV and PARQUET.",
                            "Write (FORMAT CSV) or (FORMAT PARQUET) behind the file.", options)  # fmt: skip
    return Copy(*common, table, columns, path, _csv_options(found, options.start + 1))


def _file_format(cursor: TokenCursor) -> ClientFormat | Literal["json", "parquet"]:
    """Moves past the options of a COPY to a file: those of one to a client, or a format that only files have."""
    start, position = cursor.at, cursor.current.start + 1
    cursor.accepts("with")
    if cursor.current.is_symbol("("):
        found = _copy_options(cursor, [])
        kind = found.pop("format", "text")
        if kind == "json" or kind == "parquet":
            if found:
                raise InvalidSyntax(f"COPY {min(found).upper()} requires FORMAT CSV", position=position)
            return "json" if kind == "json" else "parquet"
        if kind not in ("text", "csv"):
            raise InvalidParameterValue(f'COPY format "{kind}" not recognized', position=position,
                                        hint="Formats of files are text, csv, json and parquet.")  # fmt: skip
    cursor.at = start
    return _client_format(cursor, of_output=True)


def _client_format(cursor: TokenCursor, *, of_output: bool) -> ClientFormat:
    """Moves past the options of a COPY from or to a client, in PostgreSQL's form or its older one."""
    cursor.accepts("with")
    position = cursor.current.start + 1
    forced: list[str] | None = []
    if cursor.current.is_symbol("("):
        found = _copy_options(cursor, forced if of_output else None)
    else:
        found = _older_copy_options(cursor)
    if found.pop("force_quote", "") == "*":
        forced = None
    kind = found.pop("format", "text")
    if kind == "binary":
        if found or forced != []:
            raise InvalidSyntax("COPY in BINARY mode has no other options", position=position)
        return ClientFormat("binary")
    if kind == "csv":
        csv = _csv_options(found, position)
        force = None if forced is None else tuple(forced)
        return ClientFormat("csv", csv.header, csv.delimiter, csv.null, csv.quote, csv.escape, force)
    if kind != "text":
        raise InvalidParameterValue(f'COPY format "{kind}" not recognized', position=position,
                                    hint="Formats are text, csv and binary.")  # fmt: skip
    for name in ("quote", "escape"):
        if name in found:
            raise UnsupportedForm(f"COPY {name} available only in CSV mode", position=position)
    if forced != []:
        raise UnsupportedForm("COPY force quote available only in CSV mode", position=position)
    header = _header(found, position)
    delimiter, null = found.get("delimiter", "\t"), found.get("null", "\\N")
    if len(delimiter.encode()) != 1:
        raise UnsupportedForm("COPY delimiter must be a single one-byte character", position=position)
    if delimiter in "\\\r\n.abcdefghijklmnopqrstuvwxyz0123456789":
        raise InvalidParameterValue(f'COPY delimiter cannot be "{delimiter}"', position=position)
    if delimiter in null or any(one in null for one in "\r\n"):
        raise InvalidParameterValue("COPY null must hold neither the delimiter nor a line break", position=position)
    return ClientFormat("text", header, delimiter, null)


def _older_copy_options(cursor: TokenCursor) -> dict[str, str]:
    """Moves past options as PostgreSQL had them before version 9: `CSV HEADER DELIMITER ',' NULL ''`."""
    found: dict[str, str] = {}
    while cursor.current.kind is TokenKind.WORD:
        if cursor.sees("csv|binary") and "format" not in found:
            found["format"] = cursor.advance().value
        elif cursor.accepts("header") and "header" not in found:
            found["header"] = "true"
        elif cursor.sees("delimiter|null|quote|escape"):
            name = cursor.advance().value
            cursor.accepts("as")
            found[name] = cursor.string("a text")
        else:
            raise cursor.unexpected("an option of COPY")
    return found


_COPY_OPTIONS = ("format", "header", "delimiter", "null", "quote", "escape")


def _copy_options(cursor: TokenCursor, forced: list[str] | None = None) -> dict[str, str]:
    """Moves past the options in parentheses; notes the columns of FORCE_QUOTE in `forced`, if that may be said."""
    found: dict[str, str] = {}
    if not cursor.accepts_symbol("("):
        return found
    while True:
        token = cursor.current
        name = cursor.advance().value if cursor.sees("null") else cursor.identifier("an option")
        if name == "force_quote" and forced is not None:
            if cursor.accepts_symbol("*"):
                found[name] = "*"
            else:
                forced.extend(cursor.names_in_parentheses())
            if cursor.accepts_symbol(")"):
                return found
            cursor.expects_symbol(",")
            continue
        if name in ("encoding", "force_null", "force_not_null", "force_quote", "freeze", "oids"):
            raise cursor.refuse(f"COPY {name.upper()}", "Files are UTF-8, and read as they are.", None, token)
        if name not in _COPY_OPTIONS:
            raise InvalidSyntax(f'option "{name}" not recognized', position=token.start + 1)
        if name in found:
            raise InvalidSyntax("conflicting or redundant options", position=token.start + 1)
        cursor.accepts_symbol("=")
        if cursor.current.kind is TokenKind.STRING or not cursor.current.is_symbol(",", ")"):
            found[name] = cursor.advance().value
        else:
            found[name] = "true"
        if cursor.accepts_symbol(")"):
            return found
        cursor.expects_symbol(",")


_HEADERS: dict[str, Literal["no", "skip", "match"]] = {
    "true": "skip", "on": "skip", "1": "skip", "false": "no", "off": "no", "0": "no", "match": "match",
}  # fmt: skip


def _header(found: dict[str, str], position: int) -> Literal["no", "skip", "match"]:
    header = found.get("header", "false").lower()
    if header not in _HEADERS:
        raise InvalidSyntax('header requires a Boolean value or "match"', position=position)
    return _HEADERS[header]


def _csv_options(found: dict[str, str], position: int) -> CsvOptions:
    quote = found.get("quote", '"')
    options = CsvOptions(
        _header(found, position), found.get("delimiter", ","), quote, found.get("escape", quote), found.get("null", "")
    )
    for name, value in (("delimiter", options.delimiter), ("quote", options.quote), ("escape", options.escape)):
        if len(value.encode()) != 1:
            raise InvalidSyntax(f"COPY {name} must be a single one-byte character", position=position)
    if options.delimiter in "\r\n" or options.delimiter == options.quote:
        raise InvalidParameterValue("COPY delimiter and quote must be different", position=position)
    if any(one in options.null for one in (options.delimiter, options.quote, "\r", "\n")):
        raise InvalidParameterValue(
            "COPY null must hold neither the delimiter, nor the quote, nor a line break", position=position
        )
    return options
