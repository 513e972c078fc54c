"""Calls and forms over moments that PostgreSQL's grammar or catalog spells differently from a plain call.

`make_interval` takes its arguments also by name, each 0 if it is not given. `OVERLAPS` is a comparison of ends; which
of two ends comes first does not matter, and the second may be an interval from the first. Zones have their IANA names,
in any case; which zones there are says the machine's database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from sqlglot import exp

from mz_dagster.functions import Unknown, resolve_date_trunc, resolve_function, type_name
from mz_dagster.functions.moments.field_names import field_name
from mz_dagster.functions.moments.moment_text import is_fixed
from mz_dagster.functions.moments.zones import NAMES_OF_UTC
from mz_dagster.scalars.scalar import If, Literal, Scalar
from mz_dagster.scalars.types import FLOAT8, INT4, INTERVAL, TEXT, TIMESTAMPTZ, Kind
from mz_dagster.scalars.values import Interval
from mz_dagster.sql.binding import Bound, Null, argument_type, constant_text, name_of
from mz_dagster.sql.errors import InvalidParameterValue, InvalidSyntax, UndefinedFunction, UnsupportedForm
from mz_dagster.sql.expression_binder import ExpressionBinder

_MOMENTS = (Kind.DATE, Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def bind_make_interval(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns what `make_interval` of these arguments, by place or by name, means.

    Raises:
        UndefinedFunction: There is no such argument, or it is given twice.
    """
    given: dict[str, Bound] = {}
    for place, node in enumerate(nodes):
        name, value = _named_argument(node)
        if name is None and len(given) == place < len(_PARTS):
            name = _PARTS[place]
        elif name is None:
            raise InvalidSyntax("positional argument cannot follow named argument", position=binder.body.position(node))
        if name not in _PARTS or name in given:
            bound = binder.bind(value)
            shown = type_name(argument_type(bound))
            raise UndefinedFunction(f"function make_interval({name} => {shown}) does not exist", position=position)
        given[name] = binder.bind(value)
    zeros = {name: Literal(0.0, FLOAT8) if name == "secs" else Literal(0, INT4) for name in _PARTS}
    arguments = [given.get(name, zeros[name]) for name in _PARTS]
    types = [argument_type(one) for one in arguments]
    return binder.applied(resolve_function("make_interval", types), arguments, position)


def _named_argument(node: exp.Expr) -> tuple[str | None, exp.Expr]:
    """Returns the name, or None, and the value of an argument."""
    if isinstance(node, exp.Kwarg) or (isinstance(node, exp.Operator) and node.args.get("operator") == "=>"):
        return name_of(node.this.this if isinstance(node.this, exp.Column) else node.this), node.expression
    if isinstance(node, exp.PropertyEQ):
        return name_of(node.this), node.expression
    return None, node


def bind_overlaps(binder: ExpressionBinder, node: exp.Overlaps) -> Scalar:
    """Returns whether two spans of time, each of two ends or of an end and a length, have a moment in common.

    Of equal starts both ends must be known; else the later start must be before the earlier one's end.

    Raises:
        InvalidSyntax: A side is not a pair.
        UndefinedFunction: A side is not of moments.
    """
    position = binder.body.position(node)
    nodes = [one for side in (node.this, node.expression) for one in _pair(binder, side)]
    bounds = [binder.bind(one) for one in nodes]
    for first in (0, 2):
        length = bounds[first + 1]
        if not isinstance(length, Unknown) and length.type == INTERVAL:
            bounds[first + 1] = binder.operator("+", [bounds[first], length], position)
    ends = binder.common(nodes, bounds, "OVERLAPS")
    if ends[0].type.kind not in _MOMENTS:
        shown = ", ".join([type_name(ends[0].type)] * 4)
        raise UndefinedFunction(f"function pg_catalog.overlaps({shown}) does not exist", position=position)
    (start, end), (other_start, other_end) = (_in_order(binder, ends[i : i + 2], position) for i in (0, 2))

    def either(symbol: str, pairs: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
        tests = [binder.operator(symbol, pair, position) for pair in pairs]
        return binder.operator("or", tests, position)

    begins_later = binder.operator(">", [start, other_start], position)
    begins_earlier = binder.operator("<", [start, other_start], position)
    known = [binder.operator(symbol, [end, other_end], position) for symbol in ("=", "<>")]
    return If(
        begins_later,
        either("<", [(start, other_end), (end, other_end)]),
        If(
            begins_earlier,
            either("<", [(other_start, end), (other_end, end)]),
            binder.operator("or", known, position),
        ),
    )


def bind_at_time_zone(binder: ExpressionBinder, zone: exp.Expr, operand: exp.Expr, position: int) -> Scalar:
    """Returns what `operand AT TIME ZONE zone` means: a timestamp becomes a timestamptz, and the other way round.

    Raises:
        UnsupportedForm: The zone is not a literal, or has no IANA name.
        InvalidParameterValue: There is no such zone.
    """
    return bind_in_zone(binder, zone, binder.bind(operand), position)


def bind_in_zone(binder: ExpressionBinder, zone: exp.Expr, bound: Bound, position: int) -> Scalar:
    """Returns what `operand AT TIME ZONE zone` means of a bound operand; errors as above."""
    where = binder.bind(zone)
    if not isinstance(where, Unknown) and where.type == INTERVAL:
        named: Scalar = where
    else:
        text = constant_text(where)
        if text is Null.NULL:
            utc: list[Bound] = [Literal("UTC", TEXT), bound]
            found = binder.applied(resolve_function("timezone", [argument_type(one) for one in utc]), utc, position)
            return Literal(None, found.type)
        if text is None:
            raise UnsupportedForm(
                "a time zone that is not a literal is not supported",
                hint="Write its name in quotes, or an offset from UTC as an interval.",
                position=binder.body.position(zone),
            )
        name = _zone_name(text, binder.body.position(zone))
        is_clock = not isinstance(bound, Unknown) and bound.type.kind is Kind.TIMETZ
        named = _offset_now(binder, name, binder.body.position(zone)) if is_clock else Literal(name, TEXT)
    types = [named.type, argument_type(bound)]
    return binder.applied(resolve_function("timezone", types), [named, bound], position)


def _offset_now(binder: ExpressionBinder, zone: str, position: int) -> Literal:
    """Returns the offset that a zone has when the statement begins, by which PostgreSQL shifts times of day.

    Raises:
        UnsupportedForm: It has others on other days, and this is a definition.
    """
    circumstances = binder.binding.circumstances
    if circumstances is None and not is_fixed(zone):
        raise UnsupportedForm(
            f'AT TIME ZONE "{zone}" of a time with time zone is not supported in a definition',
            detail="The zone's offset is that of the present day, which is no function of the collections.",
            hint="Write an offset, AT TIME ZONE interval '+01:00'; or use timestamptz.",
            position=position,
        )
    now = datetime(1970, 1, 1, tzinfo=UTC) if circumstances is None else circumstances.clock
    offset = now.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()
    return Literal(Interval(0, 0, offset // timedelta(microseconds=1)), INTERVAL)


def bind_field(binder: ExpressionBinder, name: str, node: exp.Expr) -> str | Null:
    """Returns the field that is the first argument of a function; of NULL that is NULL.

    Raises:
        UnsupportedForm: It is not a literal.
    """
    field = constant_text(binder.bind(node))
    if field is None:
        raise UnsupportedForm(
            f"{name}() of a field that is not a literal is not supported",
            detail="What it returns depends on the field.",
            hint=f"Write {name}('year', x), for example.",
            position=binder.body.position(node),
        )
    return field


#: Fields of which the offset of a zone is that of the moment itself, as in PostgreSQL.
_WITHIN_A_DAY = ("microsecond", "millisecond", "second", "minute", "hour")


def bind_date_trunc_in_zone(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns `date_trunc(field, moment, zone)`: the beginning of the zone's own day, month and so on.

    Raises:
        UnsupportedForm: The field or the zone is not a literal.
    """
    field = bind_field(binder, "date_trunc", nodes[0])
    moment = binder.as_type(binder.bind(nodes[1]), TIMESTAMPTZ, nodes[1], "date_trunc")
    if field is Null.NULL:
        return Literal(None, TIMESTAMPTZ)
    local = bind_in_zone(binder, nodes[2], moment, position)
    truncated = binder.applied(resolve_date_trunc(field, local.type), [local], position)
    if field_name(field) in _WITHIN_A_DAY:
        return binder.operator("-", [moment, binder.operator("-", [local, truncated], position)], position)
    return bind_in_zone(binder, nodes[2], truncated, position)


@cache
def _zones() -> Mapping[str, str]:
    """Returns the names of zones by themselves in lower case."""
    return {name.lower(): name for name in available_timezones()}


def _zone_name(text: str, position: int) -> str:
    found = _zones().get(text.lower())
    if found is not None and ("/" in found or found in NAMES_OF_UTC):
        return found
    if "/" in text:
        raise InvalidParameterValue(f'time zone "{text}" not recognized', position=position)
    raise UnsupportedForm(
        f'the time zone "{text}" is not supported',
        detail="Abbreviations mean different offsets in different places.",
        hint="Use a name like 'Europe/Berlin', or an offset as an interval: interval '+01:00'.",
        position=position,
    )


def _pair(binder: ExpressionBinder, side: exp.Expr) -> Sequence[exp.Expr]:
    if not isinstance(side, exp.Tuple) or len(side.expressions) != 2:
        raise InvalidSyntax(
            "wrong number of parameters on one side of OVERLAPS expression", position=binder.body.position(side)
        )
    return side.expressions


def _in_order(binder: ExpressionBinder, ends: Sequence[Scalar], position: int) -> tuple[Scalar, Scalar]:
    """Returns the earlier end, or the one that is known, and the later one, NULL if either is."""
    earlier, later = (
        binder.applied(resolve_function(name, [one.type for one in ends]), ends, position)
        for name in ("least", "greatest")
    )
    unknown = binder.operator("or", [binder.operator("is null", [one], position) for one in ends], position)
    return earlier, If(unknown, Literal(None, later.type), later)
