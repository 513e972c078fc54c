"""The syntax of all of a statement, which otherwise is found out as its queries and expressions are bound.

PostgreSQL parses all statements of a string before it executes the first. What is legal but refused, and what is wrong
with names and types, is told when a statement's turn comes.
"""

from __future__ import annotations

from mz_dagster.sql.body_parser import parse_body, parse_scalar
from mz_dagster.sql.constant_rows import ConstantRows
from mz_dagster.sql.errors import UnsupportedForm
from mz_dagster.sql.parsed_bodies import body_of
from mz_dagster.sql.session_statements import Declare, Explain, Prepare
from mz_dagster.sql.statements import (
    CreateMaterializedView,
    CreateTableAs,
    CreateView,
    Delete,
    Insert,
    Select,
    SqlText,
    Statement,
    Subscribe,
    Update,
)


def check_syntax(statement: Statement) -> None:
    """Returns if the queries and expressions of a parsed statement are such.

    Raises:
        InvalidSyntax: One is not.

    Example:
        >>> from mz_dagster.sql.statement_parser import parse
        >>> for one in parse("DELETE FROM t WHERE a = 1; SELECT 1 +"):
        ...     check_syntax(one)
        Traceback (most recent call last):
        mz_dagster.sql.errors.InvalidSyntax: syntax error at end of input at character 38
    """
    try:
        _check(statement)
    except UnsupportedForm:
        return  # which is told when its turn comes


def _check(statement: Statement) -> None:
    match statement:
        case Select() | CreateView() | CreateMaterializedView() | CreateTableAs():
            parse_body(statement.query)
        case Subscribe() | Explain():
            if isinstance(statement.target, SqlText):
                parse_body(statement.target)
            elif isinstance(statement.target, Statement):
                _check(statement.target)
        case Declare():
            _check(statement.query)
        case Prepare():
            _check(statement.prepared)
        case Insert():
            if statement.query is not None and ConstantRows.of(statement.query.text) is None:
                body_of(statement.query)  # which is bound next
            _check_list(statement.returning)
        case Update() | Delete():
            for one in statement.assignments if isinstance(statement, Update) else ():
                if one.value is not None:
                    parse_scalar(one.value)
                elif one.row is not None:
                    parse_body(one.row[0])
            _check_list(statement.using, "SELECT 1 FROM ")
            if statement.predicate is not None:
                parse_scalar(statement.predicate)
            _check_list(statement.returning)
        case _:
            pass


def _check_list(text: SqlText | None, before: str = "SELECT ") -> None:
    """Looks at what is a query behind some words."""
    if text is not None:
        parse_body(SqlText(before + text.text, text.offset - len(before), text.parameters_before))
