"""Binds calls of functions by name, and the forms that PostgreSQL's grammar spells differently."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mz_dagster.functions import (
    OVERLOADS,
    POLYMORPHIC,
    CastContext,
    Failure,
    Unknown,
    ambiguous,
    cast,
    literal_of,
    no_match,
    resolve_date_part,
    resolve_date_trunc,
    resolve_extract,
    resolve_function,
    type_name,
)
from mz_dagster.functions.arrays.dimensioned import of_list
from mz_dagster.functions.evaluation import is_constant, known_value
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar, now
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSON,
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNCONSTRAINED,
    UUID,
    Kind,
    ScalarType,
    array_of,
)
from mz_dagster.sql.aggregates import AGGREGATES, bind_aggregate, bind_grouping
from mz_dagster.sql.binding import Bound, Null, argument_type, name_of, only_parts, unwrapped
from mz_dagster.sql.call_syntax import call_syntax
from mz_dagster.sql.catalog_calls import CATALOG_CALLS, bind_catalog_call
from mz_dagster.sql.enum_calls import ENUM_CALLS, bind_enum_call
from mz_dagster.sql.errors import UndefinedFunction, UnsupportedForm, WrongObjectKind, error_of, suggestion
from mz_dagster.sql.expression_binder import ExpressionBinder
from mz_dagster.sql.jsonb_calls import JSONB_CALLS, bind_jsonb_call
from mz_dagster.sql.jsonb_records import bind_populated_record
from mz_dagster.sql.moment_calls import (
    bind_at_time_zone,
    bind_date_trunc_in_zone,
    bind_field,
    bind_in_zone,
    bind_make_interval,
)
from mz_dagster.sql.other_dialects import advice_on
from mz_dagster.sql.refusals import refusal_of, refusal_of_function
from mz_dagster.sql.session_values import SESSION_VALUES, WORDS, bind_session_value
from mz_dagster.sql.set_functions import bind_set_item, check_unconditional, is_set_function
from mz_dagster.sql.text_calls import TEXT_CALLS, bind_text_call
from mz_dagster.sql.variadic import bind_variadic, is_variadic
from mz_dagster.sql.windows import WINDOW_FUNCTIONS, bind_window, requires_over

_SPECIAL = ("coalesce", "greatest", "least", "nullif", "concat", "concat_ws", "extract", "date_part", "date_trunc")
#: The time of the reader, by its name and by its older one.
_READING_TIME = ("mz_now", "mz_logical_timestamp")


def bind_call(binder: ExpressionBinder, node: exp.Expr) -> Bound:
    """Returns the application of a function."""
    body, position = binder.body, binder.body.position(node)
    match node:
        case exp.Extract():
            return _extract(binder, str(node.this.name), node.expression, position)
        case exp.Substring():
            only_parts(body, node, "this", "start", "length")
            start = [node.args["start"]] if node.args.get("start") is not None else [exp.Literal.number(1)]
            length = [node.args["length"]] if node.args.get("length") is not None else []
            return _call(binder, "substring", [node.this, *start, *length], position)
        case exp.Trim():
            only_parts(body, node, "this", "position", "expression", what="this form of TRIM")
            characters = [node.expression] if node.args.get("expression") is not None else []
            return _call(binder, trim_name(node), [node.this, *characters], position)
        case exp.StrPosition():
            only_parts(body, node, "this", "substr", what="this form of POSITION")
            return _call(binder, "position", [node.this, node.args["substr"]], position)
        case exp.Overlay():
            only_parts(body, node, "this", "expression", "from_", "for_", what="this form of OVERLAY")
            parts = [node.this, node.expression, node.args["from_"], node.args.get("for_")]
            return _call(binder, "overlay", [one for one in parts if one is not None], position)
        case _ if type(node) in WORDS:
            only_parts(body, node, what="this form of call")
            return bind_session_value(binder, WORDS[type(node)], (), node)
        case exp.Window():
            return bind_window(binder, node)
        case exp.Filter() | exp.WithinGroup() | exp.IgnoreNulls() | exp.RespectNulls():
            return _modified(binder, node, position)
        case exp.Anonymous():
            return _named(binder, node, position)
        case _:
            raise refusal_of(body, node)


def trim_name(node: exp.Trim) -> str:
    """Returns the name of the function that a form of TRIM is."""
    return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "btrim")


def _modified(binder: ExpressionBinder, node: exp.Expr, position: int) -> Bound:
    """Returns the call with FILTER, WITHIN GROUP or IGNORE NULLS, which only aggregates take without OVER."""
    call = call_syntax(binder.body, node)
    if call.name in AGGREGATES or call.within:
        return bind_aggregate(binder, call)
    if call.name in WINDOW_FUNCTIONS:
        raise requires_over(call.name, position)
    raise refusal_of_function(binder.body, node, call.name) or WrongObjectKind(
        f"FILTER specified, but {call.name} is not an aggregate function", position=position
    )


def _named(binder: ExpressionBinder, node: exp.Anonymous, position: int) -> Bound:
    name = name_of(node.this)
    only_parts(binder.body, node, "this", "expressions", "name", what="this form of call")
    if name in SESSION_VALUES:
        return bind_session_value(binder, name, node.expressions, node)
    if name in CATALOG_CALLS:
        return bind_catalog_call(binder, name, node.expressions, node)
    refused = refusal_of_function(binder.body, node, name)
    if refused is not None:
        raise refused
    if is_set_function(name):
        return bind_set_item(binder, node)
    if name in AGGREGATES:
        return bind_aggregate(binder, call_syntax(binder.body, node))
    if name == "grouping":
        return bind_grouping(binder, node.expressions, position)
    if name in WINDOW_FUNCTIONS:
        raise requires_over(name, position)
    arguments: list[exp.Expr] = node.expressions
    if is_variadic(arguments):
        return bind_variadic(binder, name, arguments, position)
    if name in _READING_TIME and not arguments:
        return now(position)
    if name == "timezone" and len(arguments) == 2:
        return bind_at_time_zone(binder, arguments[0], arguments[1], position)
    if name == "make_interval":
        return bind_make_interval(binder, arguments, position)
    for one in arguments:
        if isinstance(one, exp.Distinct | exp.Order):
            word = "DISTINCT" if isinstance(one, exp.Distinct) else "ORDER BY"
            raise WrongObjectKind(f"{word} specified, but {name} is not an aggregate function", position=position)
        if isinstance(one, exp.Star | exp.Distinct | exp.Order | exp.Kwarg | exp.PropertyEQ | exp.Alias):
            raise UnsupportedForm(
                f"this kind of argument of {name}() is not supported", position=binder.body.position(one)
            )
    match name:
        case "coalesce":
            return _coalesce(binder, arguments, position)
        case "nullif" if len(arguments) == 2:
            return _nullif(binder, arguments, position)
        case "round" if len(arguments) == 2:
            return _round(binder, arguments, position)
        case "scale" | "trim_scale" if len(arguments) == 1:
            # Of whatever number the type's own scale tells nothing of zeros at its end.
            bound = binder.as_type(binder.bind(arguments[0]), UNCONSTRAINED, arguments[0], name)
            return binder.applied(resolve_function(name, [UNCONSTRAINED]), [bound], position)
        case "age" if len(arguments) == 1 and binder.binding.circumstances is not None:
            today = bind_session_value(binder, "current_date", (), node)
            moment = binder.bind(arguments[0])
            if isinstance(moment, Unknown):
                raise error_of(ambiguous(name, [moment]), position)
            target = TIMESTAMP if argument_type(moment) == TIMESTAMP else TIMESTAMPTZ
            ends = [binder.as_type(today, target, node), moment]
            return binder.applied(resolve_function(name, [argument_type(one) for one in ends]), ends, position)
        case "date_trunc" if len(arguments) == 3:
            return bind_date_trunc_in_zone(binder, arguments, position)
        case "make_timestamptz" if len(arguments) == 7:
            parts = [binder.bind(one) for one in arguments[:6]]
            moment = binder.applied(resolve_function("make_timestamp", [argument_type(one) for one in parts]), parts,
                                    position)  # fmt: skip
            return bind_in_zone(binder, arguments[6], moment, position)
        case _ if name in _CAST_CALLS and len(arguments) == 1:
            return _cast_call(binder, name, arguments[0], position)
        case "date_part" | "date_trunc" if len(arguments) == 2:
            return _dated(binder, name, arguments, position)
        case _ if name in ENUM_CALLS:
            return bind_enum_call(binder, name, arguments, position)
        case _ if name in TEXT_CALLS:
            return bind_text_call(binder, name, arguments, position)
        case "json_populate_record" | "jsonb_populate_record" if isinstance(node, exp.Anonymous):
            return bind_populated_record(binder, node)
        case _ if name in JSONB_CALLS:
            return bind_jsonb_call(binder, name, arguments, position)
        case _:
            return _call(binder, name, arguments, position)


def _call(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    arguments = [binder.bind(one) for one in nodes]
    if name == "array_fill":
        arguments[1:] = [_as_bounds(one, several=len(nodes) > 2) for one in arguments[1:]]
    types = [argument_type(one) for one in arguments]
    if name not in OVERLOADS and name not in _SPECIAL and name not in POLYMORPHIC:
        shown = ", ".join(type_name(one) for one in types)
        every = (*OVERLOADS, *_SPECIAL, *TEXT_CALLS, *JSONB_CALLS)
        names = [known for known in every if known.replace("_", "a").isalpha()]
        raise UndefinedFunction(
            f"function {name}({shown}) does not exist",
            hint=advice_on(name) or suggestion(name, names),
            position=position,
        )
    literals = [one.text if isinstance(one, Unknown) else known_value(one) for one in arguments]
    return binder.applied(resolve_function(name, types, literals), arguments, position, nodes)


def _as_bounds(bound: Bound, *, several: bool) -> Bound:
    """Returns the bounds of `array_fill` for an array of any dimensions, if they are known to be `several`, or are.

    A list of which nobody knows how long it is stays one: it is that of one dimension, or an error.
    """
    found = literal_of(bound.text, array_of(INT4)) if isinstance(bound, Unknown) and bound.text is not None else bound
    if isinstance(found, Unknown | Failure) or found.type != array_of(INT4):
        return bound
    match found:
        case Literal(value=tuple() as lengths) | Call(function="array", arguments=lengths):
            several = several or len(lengths) > 1
    return of_list(found) if several else bound


def _round(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Scalar:
    """Returns a number rounded; of a double by way of numeric the numeric has as many digits as are left.

    A constant that such a numeric does not hold, `'NaN'::float8::numeric` for example, is rounded as what it is.
    """
    value, digits = unwrapped(nodes[0]), binder.bind(nodes[1])
    known = digits.value if isinstance(digits, Literal) else None
    if type(value) is exp.Cast and isinstance(known, int) and 0 <= known <= 38:
        number = binder.cast(value, known)
        if not isinstance(number, Unknown) and is_constant(number) and known_value(number) is None:
            return _call(binder, "round", nodes, position)
        bounds = [number, digits]
        types = [argument_type(one) for one in bounds]
        return binder.applied(resolve_function("round", types, [None, known]), bounds, position, nodes)
    return _call(binder, "round", nodes, position)


#: Types whose names are called as functions.
_CAST_CALLS = {
    "bool": BOOL, "int2": INT2, "int4": INT4, "int8": INT8, "float4": FLOAT4, "float8": FLOAT8, "text": TEXT,
    "date": DATE, "timestamptz": TIMESTAMPTZ, "json": JSON, "jsonb": JSONB, "uuid": UUID,
}  # fmt: skip


def _cast_call(binder: ExpressionBinder, name: str, node: exp.Expr, position: int) -> Scalar:
    """Returns `type(x)`, which is a cast; records become strings by `CAST` and `::` only."""
    target, bound = _CAST_CALLS[name], binder.bind(node)
    if isinstance(bound, Unknown):
        return binder.literal(bound, target, node)
    found = cast(bound.type, target, CastContext.EXPLICIT)
    if isinstance(found, Failure) or bound.type.kind is Kind.RECORD:
        raise error_of(no_match(name, [bound.type]), position)
    return found.apply(bound)


def _coalesce(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Bound:
    if not nodes:
        raise UndefinedFunction("function coalesce() does not exist", position=position)
    bounds = [binder.bind(one) for one in nodes]
    check_unconditional(binder, bounds, "COALESCE")
    values = binder.common(nodes, bounds, "COALESCE")
    if len(values) == 1:
        return values[0]
    if not any(can_fail(one) for one in values[1:]):
        resolved = resolve_function("coalesce", [one.type for one in values])
        return binder.applied(resolved, values, position)
    # A later argument that can fail must not be evaluated unless it is needed.
    result = values[-1]
    for value in reversed(values[:-1]):
        test = binder.operator("is not null", [value], position)
        result = If(test, value, result)
    return result


#: Kinds among which PostgreSQL compares without a cast.
_FAMILIES = (
    frozenset((Kind.INT2, Kind.INT4, Kind.INT8)),
    frozenset((Kind.FLOAT4, Kind.FLOAT8)),
    frozenset((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)),
)


def _comparable_family(type_: ScalarType) -> frozenset[Kind]:
    return next((one for one in _FAMILIES if type_.kind in one), frozenset((type_.kind,)))


def _nullif(binder: ExpressionBinder, nodes: Sequence[exp.Expr], position: int) -> Bound:
    arguments = [binder.bind(one) for one in nodes]
    test = binder.operator("=", arguments, position)
    assert isinstance(test, Call)
    first = arguments[0]
    value = test.arguments[0] if isinstance(first, Unknown) else first
    if not isinstance(first, Unknown) and _comparable_family(test.arguments[0].type) != _comparable_family(first.type):
        value = test.arguments[0]
    if test.function == "eq_text" and value.type.kind not in (Kind.TEXT, Kind.ENUM):
        # Compared as text, a string of limited length is one.
        value = binder.as_type(value, TEXT, nodes[0])
    return If(test, Literal(None, value.type), value)


def _dated(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], position: int) -> Bound:
    field = bind_field(binder, name, nodes[0])
    argument = binder.bind(nodes[1])
    type_ = argument_type(argument)
    if name == "date_trunc":
        truncated = binder.applied(
            resolve_date_trunc("day" if field is Null.NULL else field, type_), [argument], position
        )
        return Literal(None, truncated.type) if field is Null.NULL else truncated
    if field is Null.NULL:
        return Literal(None, FLOAT8)
    found = resolve_date_part(field, type_)
    if isinstance(found, Failure):
        raise error_of(found, position)
    resolved, to_float = found
    return to_float.apply(binder.applied(resolved, [argument], position))


def _extract(binder: ExpressionBinder, field: str, node: exp.Expr, position: int) -> Bound:
    argument = binder.bind(node)
    return binder.applied(resolve_extract(field.lower(), argument_type(argument)), [argument], position)
