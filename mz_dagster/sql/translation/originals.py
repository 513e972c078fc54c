"""The statements of a text in another dialect: what each makes, and which relations it reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokenizer_core import TokenType

from mz_dagster.errors import NotSupportedError
from mz_dagster.sql.translation.dialect import SourceDialect

#: What CREATE of each kind makes here: what holds the rows of a query is kept up to date.
_MADE = {"VIEW": "view", "TABLE": "materialized view"}


#: What PostgreSQL has behind the query of a view, and pg_dump writes there: here it has its rows at once.
_DATA = re.compile(r"(.*\bCREATE\s+MATERIALIZED\s+VIEW\b.*\S)\s+WITH\s+(?:NO\s+)?DATA\s*", re.IGNORECASE | re.DOTALL)


class Untranslatable(NotSupportedError):
    """What is not translated, and why; nothing of it is.

    Attributes:
        line: In which line of the text it begins.
    """

    line: int = 1


@dataclass(frozen=True, slots=True)
class Original:
    """A statement in another dialect.

    Attributes:
        dialect: Which.
        tree: Its query; of a table its CREATE TABLE.
        text: The query as it is written.
        kind: What it is to be here: `view`, `materialized view` or `table`.
        name: What it calls its object, folded, with what qualifies it; None of a query alone.
        reads: The relations it reads, folded, in the order in which they stand.
        comment: What is said above it.
        line: In which line of the text it begins.
    """

    dialect: SourceDialect
    tree: exp.Expr
    text: str
    kind: str
    name: tuple[str, ...] | None
    reads: tuple[tuple[str, ...], ...]
    comment: str = ""
    line: int = 1

    def sql(self, names: Mapping[tuple[str, ...], str]) -> str:
        """Returns the query as it is written, with other names for the relations that it reads."""
        text = self.text
        tables = [(one, _parts(one)) for one in read_tables(self.tree, self.dialect)]
        for table, parts in sorted(tables, key=lambda one: one[1][0].meta["start"], reverse=True):
            start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
            name, was = names[path_of(table, self.dialect)], self.dialect.folded(parts[-1])[0]
            if len(parts) > 1 or name != was:
                here = exp.to_identifier(name, quoted=True)
                alias = "" if table.alias or name == was else f" AS {self.dialect.shown(parts[-1])}"
                text = f"{text[:start]}{self.dialect.shown(here)}{alias}{text[end:]}"
        return text


def originals(text: str, dialect: SourceDialect) -> Iterator[Original | Untranslatable]:
    """Yields each statement of a text, or why it is none that can be translated.

    Raises:
        Untranslatable: The text cannot be split into statements.
    """
    try:
        tokens = sqlglot.tokenize(text, read=dialect.of)
    except SqlglotError as error:
        raise Untranslatable(f"not understood as {dialect.name}: {_said(error)}") from error
    start = 0
    for end in (*(one.start for one in tokens if one.token_type is TokenType.SEMICOLON), len(text)):
        first = next((one.start for one in tokens if start <= one.start < end), start)
        line = text.count("\n", 0, first) + 1
        statement = text[start:end]
        whole = _DATA.fullmatch(statement)
        statement = statement if whole is None else whole[1]
        start = end + 1
        try:
            for tree in _parsed(statement, dialect):
                yield replace(_original(tree, statement, dialect), line=line)
        except Untranslatable as error:
            error.line = line
            yield error


def _parsed(statement: str, dialect: SourceDialect) -> Iterator[exp.Expr]:
    """Yields the tree of a statement; nothing if it is empty."""
    logger = logging.getLogger("sqlglot")
    was, logger.disabled = logger.disabled, True  # it would say of each statement that it keeps as a text that it does
    try:
        trees = sqlglot.parse(statement, read=dialect.of, error_level=ErrorLevel.IMMEDIATE)
    except SqlglotError as error:
        raise Untranslatable(f"not understood as {dialect.name}: {_said(error)}") from error
    except RecursionError as error:
        raise Untranslatable("nested too deeply") from error
    finally:
        logger.disabled = was
    yield from filter(None, trees)


def _query_of(statement: str, dialect: SourceDialect) -> tuple[exp.Expr, str]:
    """Returns the query behind AS in a CREATE, and its text."""
    depth = 0
    for one in sqlglot.tokenize(statement, read=dialect.of):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(one.token_type, 0)
        if one.token_type is TokenType.ALIAS and depth == 0:
            text = statement[one.end + 1 :]
            (tree,) = _parsed(text, dialect)
            return tree, text
    raise Untranslatable("a query without AS before it is not translated")


def _said(error: SqlglotError) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f"{first['description'].rstrip('.')} (line {first['line']})"
    return str(error).splitlines()[0]


def _original(tree: exp.Expr, text: str, dialect: SourceDialect) -> Original:
    query, kind, name = tree, "materialized view", None
    comment = "\n".join(one.strip() for one in tree.pop_comments() or ())
    if isinstance(tree, exp.Create):
        made = tree.args["kind"].upper()
        if made not in _MADE:
            raise Untranslatable(f"CREATE {made} is not translated")
        if tree.args.get("properties") and tree.find(exp.TemporaryProperty):
            raise Untranslatable("a temporary object is a session's own")
        kind = "materialized view" if tree.find(exp.MaterializedProperty) else _MADE[made]
        columns = tree.this if isinstance(tree.this, exp.Schema) else None
        name = path_of(columns.this if columns else tree.this, dialect)
        if tree.expression is None:
            return Original(dialect, tree, text, "table", name, (), comment)
        if columns is not None:
            raise Untranslatable("a list of columns before the query is not translated; name them in the query")
        query, text = _query_of(text, dialect)
    if isinstance(query, exp.Subquery) and not query.args.get("alias"):
        query = query.unnest()
    if not isinstance(query, exp.Query):
        first = next(iter(sqlglot.tokenize(text, read=dialect.of)), None)
        raise Untranslatable(f"{first.text.upper() if first else 'this'} is no query")
    reads = dict.fromkeys(path_of(one, dialect) for one in read_tables(query, dialect))
    return Original(dialect, query, text, kind, name, tuple(reads), comment)


def path_of(table: exp.Expr, dialect: SourceDialect) -> tuple[str, ...]:
    """Returns a relation's name, folded, with what qualifies it."""
    if not isinstance(table, exp.Table):
        raise Untranslatable(f"{dialect.shown(table)} is no name of a relation")
    return tuple(dialect.folded(one)[0] for one in _parts(table))


def _parts(table: exp.Table) -> list[exp.Identifier]:
    return [one for one in table.parts if isinstance(one, exp.Identifier)]


def relation_path(text: str, dialect: SourceDialect) -> tuple[str, ...]:
    """Returns the name of a relation, folded, with what qualifies it, from how its dialect writes it.

    Example:
        >>> relation_path('"Db"."main"."Orders"', SourceDialect.named("duckdb"))
        ('db', 'main', 'orders')
    """
    return path_of(exp.to_table(text, dialect=dialect.of), dialect)


def read_tables(query: exp.Expr, dialect: SourceDialect) -> Iterator[exp.Table]:
    """Yields where a query reads a relation, but not where it reads a query of its own WITH."""
    yield from _read(query, frozenset(), dialect)


def _read(node: exp.Expr, visible: frozenset[str], dialect: SourceDialect) -> Iterator[exp.Table]:
    clause = node.args.get("with_")
    if clause is not None:
        for one in clause.expressions:
            name = dialect.folded(one.args["alias"].this)[0]
            yield from _read(one.this, visible | {name} if clause.recursive else visible, dialect)
            visible = visible | {name}
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name = dialect.folded(node.this)[0]
        if node.args.get("db") is not None or name not in visible:
            node.meta["hidden"] = name in visible
            yield node
    for child in node.iter_expressions():
        if child is not clause:
            yield from _read(child, visible, dialect)


def rename(tree: exp.Expr, dialect: SourceDialect, names: Mapping[tuple[str, ...], str]) -> None:
    """Gives each relation that a query reads another name, which nothing else in the query may bear.

    Raises:
        Untranslatable: WITH hides one.
    """
    for table in list(read_tables(tree, dialect)):
        path = path_of(table, dialect)
        if table.meta["hidden"]:
            raise Untranslatable(
                f'WITH "{path[-1]}" hides the relation "{".".join(path)}"', hint="Give the one in WITH another name."
            )
        if not table.alias and names[path] != path[-1]:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(path[-1])))
        table.set("db", None)
        table.set("catalog", None)
        table.set("this", exp.to_identifier(names[path], quoted=True))
    for column in tree.find_all(exp.Column):
        if column.args.get("table") is not None:
            column.set("db", None)
            column.set("catalog", None)
