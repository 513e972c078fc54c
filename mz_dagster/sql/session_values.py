"""Values of the clock, of the session and of chance: the same in all rows of a statement, or another in each.

A statement that is executed once has them as literals, for what executes it then is known (`circumstances.py`). What is
maintained is a function of its inputs alone, so a definition that names one is refused with what to write instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from sqlglot import exp

from mz_dagster.functions import Unknown, type_name
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID,
    Modifier,
)
from mz_dagster.scalars.values import ZonedTime
from mz_dagster.sql.binding import Bound, Null, constant_text
from mz_dagster.sql.catalog_facts import CatalogLookup
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.collected_calls import WindowCall, WindowSpec
from mz_dagster.sql.errors import UndefinedFunction, UndefinedObject, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.schemas import names_in

#: Words that are calls without parentheses, as sqlglot reads them.
WORDS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_catalog",
}
#: Words without a class of their own there.
BARE_WORDS = ("user", "current_role")

#: What a definition may say instead, by what it asks for.
_OF_CLOCK = "Keep the time in a column, or compare one with mz_now()."
_OF_SESSION = "Keep the value in a column, which a DEFAULT may fill."
_OF_CHANCE = "Let a column of a table have it as its DEFAULT."
#: Functions without arguments of the clock, of the session and of chance.
_CLOCK = (
    "now", "transaction_timestamp", "statement_timestamp", "current_timestamp", "current_date", "current_time",
    "localtime", "localtimestamp",
)  # fmt: skip
#: Those of them that take the digits of their seconds.
_PRECISE = ("current_timestamp", "current_time", "localtime", "localtimestamp")
_SESSION = (
    "current_user", "session_user", "user", "current_role", "current_schema", "current_catalog", "current_database",
    "version", "pg_backend_pid",
)  # fmt: skip
#: What is another value each time it is evaluated, not one for the statement.
CHANCE = ("random", "gen_random_uuid")
SESSION_VALUES = frozenset((*_CLOCK, *_SESSION, *CHANCE, "current_setting", "pg_typeof"))


def bind_session_value(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Bound:
    """Returns what one of `SESSION_VALUES` says.

    Raises:
        UnsupportedForm: In a definition; or a value of chance for each row where no window function may stand.
        UndefinedFunction: It does not take these arguments.
    """
    position = binder.body.position(node)
    if name == "pg_typeof" and len(nodes) == 1:
        return _type_of(binder, binder.bind(nodes[0]), position)
    circumstances = binder.binding.circumstances
    if circumstances is None:
        raise _no_function_of_inputs(name, position, called=isinstance(node, exp.Anonymous))
    if name == "current_setting" and len(nodes) in (1, 2):
        return _setting(binder, circumstances, nodes, position)
    if name in _PRECISE and len(nodes) == 1 and isinstance(digits := binder.bind(nodes[0]), Literal):
        value = _of_clock(name, circumstances)
        modifier = Modifier(digits.value) if isinstance(digits.value, int) and 0 <= digits.value < 6 else None
        return binder.cast_to(value, replace(value.type, modifier=modifier), node)
    if nodes or name in ("current_setting", "pg_typeof"):
        shown = ", ".join(type_name(one if isinstance(one, Unknown) else one.type) for one in map(binder.bind, nodes))
        raise UndefinedFunction(f"function {name}({shown}) does not exist", position=position)
    if name == "pg_backend_pid":
        return Literal(circumstances.process_id, INT4)
    if name in _SESSION:
        return Literal(_of_session(name, circumstances), TEXT)
    return _random_value(binder, name, node) if name in CHANCE else _of_clock(name, circumstances)


def _no_function_of_inputs(name: str, position: int, *, called: bool) -> UnsupportedForm:
    hint = _OF_CLOCK if name in _CLOCK else _OF_CHANCE if name in CHANCE else _OF_SESSION
    return UnsupportedForm(
        f"{name}{'()' if called else ''} is not supported in a definition",
        detail="Its value is not a function of the collections, so a view of it could not be maintained.",
        hint=hint,
        position=position,
    )


def _of_clock(name: str, circumstances: Circumstances) -> Literal:
    now = circumstances.clock
    local = now.astimezone(circumstances.zone).replace(tzinfo=None)
    match name:
        case "current_date":
            return Literal(local.date(), DATE)
        case "localtime":
            return Literal(local.time(), TIME)
        case "current_time":
            return Literal(ZonedTime.of_time(now.astimezone(circumstances.zone).timetz()), TIMETZ)
        case "localtimestamp":
            return Literal(local, TIMESTAMP)
        case _:
            return Literal(now, TIMESTAMPTZ)


def _of_session(name: str, circumstances: Circumstances) -> str | None:
    match name:
        case "current_schema":
            return next(iter(names_in(circumstances.settings["search_path"])), None)
        case "current_catalog" | "current_database":
            return circumstances.database
        case "version":
            return f"PostgreSQL {circumstances.settings['server_version']}"
        case _:
            return circumstances.user


def _setting(binder: ExpressionBinder, circumstances: Circumstances, nodes: Sequence[exp.Expr], position: int) -> Bound:
    """Returns `current_setting(name [, missing ok])`; whether one may be missing is a literal."""
    name, *others = map(binder.bind, nodes)
    text = constant_text(name)
    missing_ok = bool(others) and isinstance(others[0], Literal) and others[0].value is True
    if text is Null.NULL:
        return Literal(None, TEXT)
    if not all(isinstance(one, Literal) for one in others):
        raise UnsupportedForm("current_setting() takes whether one may be missing as a literal", position=position)
    if text is None:
        key = binder.as_type(name, TEXT, nodes[0])
        lower = Call("lower_text", (key,), TEXT, key.nullable)
        value = CatalogLookup(circumstances.settings, TEXT, TEXT).of(lower)
        if missing_ok:
            return value
        begun = Literal('42704 unrecognized configuration parameter "', TEXT)
        named = Call("concat_text", (begun, key), TEXT, key.nullable)
        said = Call("concat_text", (named, Literal('"', TEXT)), TEXT, key.nullable)
        is_missing = Call("is_null", (value,), BOOL, False)
        return If(is_missing, Call("error", (said,), TEXT, True), value)
    found = circumstances.settings.get(text.lower())
    if found is None and not missing_ok:
        raise UndefinedObject(f'unrecognized configuration parameter "{text}"', hint="See SHOW ALL.", position=position)
    return Literal(found, TEXT)


def _type_of(binder: ExpressionBinder, bound: Bound, position: int) -> Scalar:
    """Returns the name of a type, which is an error where the value is one."""
    named = Literal(type_name(bound if isinstance(bound, Unknown) else bound.type), TEXT)
    if isinstance(bound, Unknown) or not can_fail(bound):
        return named
    return If(binder.operator("is null", [bound], position), named, named)


def _random_value(binder: ExpressionBinder, name: str, node: exp.Expr) -> Bound:
    """Returns a value that nobody can foretell: where there are rows, another for each, by its number among them."""
    if not binder.scope.tables:
        return Literal(uuid4(), UUID) if name == "gen_random_uuid" else Literal(secrets.randbits(53) / 2**53, FLOAT8)
    position = binder.body.position(node)
    if binder.windows is None:
        raise UnsupportedForm(
            f"{name}() is not supported in {binder.clause} over rows",
            detail="Each row has a value of its own, as an item of SELECT.",
            hint="Let it be the column's DEFAULT, and set the column to that."
            if binder.clause == "UPDATE"
            else "Select it in a derived table, and use its column here.",
            position=position,
        )
    number = binder.windows.column(WindowCall(WindowSpec(), "row_number", (), INT8, False), node)
    function, type_ = ("uuid_of_row", UUID) if name == "gen_random_uuid" else ("random_of_row", FLOAT8)
    return Call(function, (Literal(str(uuid4()), TEXT), number), type_, False)
