"""`CREATE CHECK`, and the rules that `-- @check` writes short: `unique(order_id)` is a query of violations.

A rule is text that becomes the text of a CREATE CHECK statement, and nothing else knows of rules: what is created,
shown and maintained is that statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mz_dagster.sql.cursor import TokenCursor, quoted
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition, suggestion
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.options import Common
from mz_dagster.sql.query_clauses import query_text
from mz_dagster.sql.statements import CheckOptions, CreateCheck

#: How much of what a rule says becomes a part of the name that its check has by default.
_LONGEST_NAMED = 40


@dataclass(frozen=True, slots=True)
class CheckRule:
    """What one `@check` says.

    Attributes:
        kind: `unique`, `not_null` and so on; None if it only says what the query below it is about.
        arguments: What stands in its parentheses, by commas.
        options: What a violation means.
        name: What the check is called, if it says so.
        on: Of a rule without a kind: what the query's rows are violations of, as written; None if it does not say.
    """

    kind: str | None
    arguments: tuple[str, ...] = ()
    options: CheckOptions = field(default_factory=CheckOptions)
    name: str | None = None
    on: str | None = None

    def name_for(self, last: str) -> str:
        """Returns what the check of an object of this name is called.

        Example:
            >>> parse_check_rule("unique(order_id)").name_for("orders")
            'orders_unique_order_id'
        """
        if self.name is not None:
            return self.name
        told = self.arguments if self.kind in ("unique", "not_null", "expression") else self.arguments[:1]
        told = () if self.kind == "row_count" else told
        words = re.sub(r"[^a-z0-9]+", "_", "_".join(told).lower())[:_LONGEST_NAMED].strip("_")
        return "_".join(filter(None, (last, self.kind, words)))

    def __str__(self) -> str:
        """Returns it as it is written behind `@check`."""
        first = f"on {self.on}" if self.kind is None else f"{self.kind}({', '.join(self.arguments)})"
        severity = [] if self.options.severity == "error" else ["severity warn"]
        name = [] if self.name is None else [f"name {quoted(self.name)}"]
        return ", ".join([first, *severity, *(["blocking"] if self.options.blocking else []), *name])

    def statement(self, schema: str | None, last: str, where: str | None = None) -> str:
        """Returns the statement that creates the check of an object.

        Args:
            schema: The object's schema, if it has to be said.
            last: The object's name in it.
            where: Which of its rows are checked; None for all.

        Example:
            >>> parse_check_rule("not_null(id), blocking").statement(None, "t")
            'CREATE CHECK t_not_null_id ON t BLOCKING AS SELECT * FROM t WHERE id IS NULL'
        """
        assert self.kind is not None, "what has no kind has a query"
        prefix = "" if schema is None else f"{quoted(schema)}."
        relation = f"{prefix}{quoted(last)}"
        rows = relation
        if where is not None:
            rows = f"(SELECT * FROM {relation} WHERE {where})"
            rows += "" if self.kind == "relationships" else f" AS {quoted(last)}"
        query = _KINDS[self.kind].query(rows, self.arguments)
        return f"{self.head(prefix + quoted(self.name_for(last)), relation)} AS {query}"

    def head(self, name: str, on: str | None) -> str:
        """Returns CREATE CHECK up to the query, with names as SQL writes them."""
        options = self.options
        words = ["CREATE CHECK", name, *([] if on is None else ["ON", on])]
        words += [] if options.severity == "error" else ["SEVERITY WARN"]
        return " ".join([*words, *(["BLOCKING"] if options.blocking else [])])


def parse_create_check(cursor: TokenCursor, common: Common) -> CreateCheck:
    """Moves past what follows `CREATE CHECK`."""
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    on = cursor.name() if cursor.accepts("on") else None
    options, _ = _options(cursor, names=False)
    cursor.expects("as")
    return CreateCheck(*common, name, on, options, query_text(cursor), if_not_exists)


def parse_check_rule(text: str) -> CheckRule:
    """Returns what stands behind `@check`.

    Raises:
        InvalidSyntax: It is no rule.
        InvalidTableDefinition: Its options contradict each other.

    Example:
        >>> parse_check_rule("accepted_values(status, 'new', 'paid'), severity warn").arguments
        ('status', "'new'", "'paid'")
        >>> parse_check_rule("on orders blocking").on
        'orders'
    """
    tokens = tokens_of(text)
    cursor = TokenCursor(text, tokens, len(text))
    if not text:
        raise InvalidSyntax("it says nothing", position=1)
    if not cursor.ahead(1).is_symbol("("):
        on = None
        if cursor.accepts("on"):
            said = cursor.name()
            on = ".".join(map(quoted, said.parts))
        options, name = _options(cursor)
        cursor.expects_end()
        return CheckRule(None, (), options, name, on)
    kind = cursor.current.value
    if kind not in _KINDS:
        near = suggestion(kind, _KINDS) or ""
        error = InvalidSyntax(f'there is no check "{kind}"', position=cursor.current.start + 1)
        error.hint = f"{near} The checks are {', '.join(_KINDS)}; any other is a query in assets/checks/.".strip()
        raise error
    cursor.advance()
    arguments = _arguments(cursor)
    options, name = _options(cursor)
    cursor.expects_end()
    rule = CheckRule(kind, arguments, options, name)
    try:
        _KINDS[kind].query("t", arguments)
    except ValueError as error:
        raise InvalidSyntax(f"{kind} takes {error}", position=1, hint=f"Write {_KINDS[kind].example}") from None
    return rule


def _options(cursor: TokenCursor, *, names: bool = True) -> tuple[CheckOptions, str | None]:
    """Moves past `[SEVERITY WARN | ERROR] [BLOCKING] [NAME name]`, in any order; in a rule commas may separate them."""
    severity: str | None = None
    blocking, name = False, None
    while True:
        start = cursor.current
        if names:
            cursor.accepts_symbol(",")
        if cursor.accepts("severity"):
            if not cursor.sees("warn|error"):
                raise cursor.unexpected("WARN or ERROR")
            severity = cursor.advance().value
        elif cursor.accepts("blocking"):
            blocking = True
        elif names and cursor.accepts("name"):
            name = cursor.identifier("the check's name")
        else:
            break
    if blocking and severity == "warn":
        raise InvalidTableDefinition(
            "a warning holds nothing up",
            detail="What is BLOCKING keeps sinks and assets downstream where they are.",
            hint="Leave one of SEVERITY WARN and BLOCKING out.",
            position=start.start + 1,
        )
    return CheckOptions("warn" if severity == "warn" else "error", blocking), name


def _arguments(cursor: TokenCursor) -> tuple[str, ...]:
    """Moves past `(a, b, ...)`, and returns the texts between its commas."""
    opening = cursor.at
    cursor.skip_balanced()
    behind = cursor.at
    cursor.at = opening + 1
    found = []
    while cursor.at < behind - 1:
        start = cursor.at
        while cursor.at < behind - 1 and not cursor.current.is_symbol(","):
            cursor.skip_balanced()
        stop = cursor.at
        cursor.at = start
        found.append(cursor.text_until(stop).text)
        cursor.accepts_symbol(",")
    cursor.at = behind
    return tuple(found)


# ---- the kinds of rules


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a kind of rule means.

    Attributes:
        query: Returns the query of violations of a relation, given the rule's arguments; raises ValueError, with what
            it takes, if they are others.
        example: How it is written.
    """

    query: Callable[[str, Sequence[str]], str]
    example: str


def _columns(arguments: Sequence[str]) -> Sequence[str]:
    """Returns arguments that are columns, as they are written."""
    if not arguments or not all(map(_is_column, arguments)):
        raise ValueError("columns")
    return arguments


def _is_column(text: str) -> bool:
    tokens = tokens_of(text)
    cursor = TokenCursor(text, tokens, len(text))
    try:
        cursor.identifier()
        cursor.expects_end()
    except InvalidSyntax:
        return False
    return True


def _unique(relation: str, arguments: Sequence[str]) -> str:
    columns = _columns(arguments)
    known = " AND ".join(f"{one} IS NOT NULL" for one in columns)
    listed = ", ".join(columns)
    copies = "copies" if "copies" not in columns else "how_often"
    return f"SELECT {listed}, count(*) AS {copies} FROM {relation} WHERE {known} GROUP BY {listed} HAVING count(*) > 1"


def _not_null(relation: str, arguments: Sequence[str]) -> str:
    absent = " OR ".join(f"{one} IS NULL" for one in _columns(arguments))
    return f"SELECT * FROM {relation} WHERE {absent}"


def _accepted_values(relation: str, arguments: Sequence[str]) -> str:
    column, values = arguments[:1], arguments[1:]
    if len(column) != 1 or not _is_column(column[0]) or not values or any(one.lower() == "null" for one in values):
        raise ValueError("a column, and the values that it may have beside NULL")
    return f"SELECT * FROM {relation} WHERE {column[0]} NOT IN ({', '.join(values)})"


def _relationships(relation: str, arguments: Sequence[str]) -> str:
    tokens = tokens_of(arguments[1])[:-1] if len(arguments) == 2 and _is_column(arguments[0]) else ()
    if len(tokens) < 3 or not tokens[-2].is_symbol("."):
        raise ValueError("a column, and the column of another object that has its values")
    parent, there = arguments[1][: tokens[-2].start], arguments[1][tokens[-1].start :]
    here = arguments[0]
    return (
        f"SELECT child.* FROM {relation} AS child WHERE child.{here} IS NOT NULL "
        f"AND NOT EXISTS (SELECT 1 FROM {parent} AS parent WHERE parent.{there} = child.{here})"
    )


def _expression(relation: str, arguments: Sequence[str]) -> str:
    if not arguments:
        raise ValueError("a condition")
    return f"SELECT * FROM {relation} WHERE NOT ({', '.join(arguments)})"


_COUNT = re.compile(r"(=|<>|!=|<|<=|>|>=)\s*\d+")


def _row_count(relation: str, arguments: Sequence[str]) -> str:
    if len(arguments) != 1 or not _COUNT.fullmatch(arguments[0]):
        raise ValueError("what the number of rows is compared with")
    return f"SELECT count(*) AS row_count FROM {relation} HAVING NOT count(*) {arguments[0]}"


def _freshness(relation: str, arguments: Sequence[str]) -> str:
    if len(arguments) != 2 or not _is_column(arguments[0]) or not re.fullmatch(r"'[^']+'", arguments[1]):
        raise ValueError("a column with times, and how old the newest of them may be")
    newest = f"(SELECT max({arguments[0]}) AS newest FROM {relation}) AS rows_of_it"
    return (
        f"SELECT newest FROM {newest} WHERE mz_now() > newest + INTERVAL {arguments[1]} "
        f"UNION ALL SELECT newest FROM {newest} WHERE newest IS NULL"
    )


_KINDS: Mapping[str, _Kind] = {
    "unique": _Kind(_unique, "unique(order_id)"),
    "not_null": _Kind(_not_null, "not_null(order_id, amount)"),
    "accepted_values": _Kind(_accepted_values, "accepted_values(status, 'new', 'paid')"),
    "relationships": _Kind(_relationships, "relationships(customer_id, customers.id)"),
    "expression": _Kind(_expression, "expression(amount >= 0)"),
    "row_count": _Kind(_row_count, "row_count(>= 1)"),
    "freshness": _Kind(_freshness, "freshness(updated_at, '1 h')"),
}
