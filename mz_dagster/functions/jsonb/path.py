"""SQL/JSON paths over jsonb: what a path finds, as PostgreSQL 15's `jsonpath_exec.c` defines it.

A step yields items, one after the other, and what follows it is asked of each before it yields the next. So whoever
needs to know only whether there is one sees no error of what would have come behind it, as there. Errors of two kinds:
those of the data (`PathFailure`), which make a predicate unknown and are not raised if somebody asked for silence; and
those of the path, which are always raised, such as a variable that nobody gave.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mz_dagster.functions.function import Nullability, list_of
from mz_dagster.functions.jsonb.jsonb import Node, Number, is_scalar, read, type_of, write
from mz_dagster.functions.jsonb.path_layout import offsets_of
from mz_dagster.functions.jsonb.path_moments import Moment, moment_of, order_of
from mz_dagster.functions.jsonb.path_syntax import (
    PREDICATES,
    Arithmetic,
    Both,
    Chain,
    Comparison,
    Constant,
    Current,
    DateTime,
    Descendants,
    Either,
    EveryElement,
    EveryMember,
    Exists,
    Filter,
    IsUnknown,
    Last,
    Like,
    Member,
    Method,
    Not,
    Path,
    Predicate,
    Root,
    Sign,
    StartsWith,
    Subscripts,
    Variable,
    path_of,
)
from mz_dagster.functions.moments.moment_templates import UnknownSeparator
from mz_dagster.functions.numbers.unconstrained import of_float8
from mz_dagster.functions.numbers.unconstrained_functions import (
    absolute,
    add,
    ceiling,
    divide,
    floor,
    modulo,
    multiply,
    negate,
    subtract,
    without_fraction,
)
from mz_dagster.functions.registry import F, Named, SqlFailure, describe, function
from mz_dagster.scalars.types import JSONB, Kind

_BINARY: dict[str, Callable[[str, str], str]] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "%": modulo,
}  # fmt: skip
_NUMERIC: dict[str, Callable[[str], str]] = {"abs": absolute, "floor": floor, "ceiling": ceiling}
_DOUBLE = re.compile(r"[ \t\n\v\f\r]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\v\f\r]*")
_HEXADECIMAL = re.compile(r"[ \t\n\v\f\r]*[+-]?0[xX][0-9a-fA-F]+(\.[0-9a-fA-F]*)?([pP][+-]?[0-9]{1,6})?[ \t\n\v\f\r]*")
_OF_ONE_OBJECT = 10_000_000_000
_LARGEST = 2**31


class PathFailure(SqlFailure):
    """An error of what a path is applied to."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a step may speak of beside its item.

    Attributes:
        current: What the innermost filter looks at.
        base: What objects are numbered in, and the number of that.
        ignores: Whether what is not there is no error.
        size: Of the array whose subscripts are computed.
        is_asked: Whether items are asked for, not only whether there are any.
        raises: Whether an error of the data is raised to whoever asks.
    """

    current: Node
    base: tuple[Node, int]
    ignores: bool
    size: int = -1
    is_asked: bool = True
    raises: bool = True


class _Evaluation:
    """A path that is applied to a value.

    Args:
        path: The path.
        root: The value.
        variables: Those given; to operators none can be, and each is null.
        silent: Whether errors of the data are not raised.
        in_zone: Whether moments with a zone compare with those without.
    """

    def __init__(
        self, path: Path, root: Node, variables: dict[str, Node] | None, *, silent: bool, in_zone: bool
    ) -> None:
        self._chain = path.chain
        self._in_zone = in_zone
        self._is_lax = not path.is_strict
        self._root, self._variables = root, variables
        self._raises = not silent
        self._made = 1 if variables is None else 2

    def items(self) -> Iterator[Node]:
        """Yields what the path finds."""
        return self._executed(self._chain, 0, self._root, self._scope(), self._is_lax)

    def exists(self) -> bool:
        """Returns whether it finds anything; of a strict path all of it must be found."""
        if not self._is_lax:
            return bool(list(self.items()))
        scope = replace(self._scope(), is_asked=False)
        return _has_any(self._executed(self._chain, 0, self._root, scope, True))

    def _scope(self) -> _Scope:
        return _Scope(self._root, (self._root, 0), self._is_lax, raises=self._raises)

    # ---- items

    def _executed(self, chain: Chain, at: int, item: Node, scope: _Scope, unwraps: bool) -> Iterator[Node]:
        """Yields what the steps of a chain from `at` on find in an item, whose elements are if it may be unwrapped."""
        step = chain[at]
        if isinstance(step, PREDICATES):
            holds = self._holds(step, item, scope)
            yield from self._rest(chain, at, holds, scope)
            return
        match step:
            case Root():
                yield from self._rest(chain, at, self._root, replace(scope, base=(self._root, 0)))
            case Current():
                yield from self._rest(chain, at, scope.current, scope)
            case Last():
                yield from self._rest(chain, at, Number(scope.size - 1), scope)
            case Constant(value):
                yield from self._rest(chain, at, value, scope)
            case Variable(name):
                value = self._variable(name)
                yield from self._rest(chain, at, value, replace(scope, base=(self._variables, 1)))
            case Member(key):
                yield from self._member(chain, at, key, item, scope, unwraps)
            case EveryMember():
                if type(item) is dict:
                    yield from self._each(chain, at, list(item.values()), scope)
                elif unwraps and type(item) is list:
                    yield from self._unwrapped(chain, at, item, scope)
                elif not scope.ignores:
                    raise PathFailure("2203C", "jsonpath wildcard member accessor can only be applied to an object")
            case EveryElement():
                if type(item) is list:
                    yield from self._each(chain, at, item, scope)
                elif self._is_lax:
                    yield from self._rest(chain, at, item, scope)
                elif not scope.ignores:
                    raise PathFailure("22039", "jsonpath wildcard array accessor can only be applied to an array")
            case Descendants(first, last):
                ignoring = replace(scope, ignores=True)
                if first == 0:
                    # PostgreSQL forgets an error that this part only returns, and goes on to what is within.
                    with nullcontext() if scope.raises or is_scalar(item) else suppress(PathFailure):
                        yield from self._rest(chain, at, item, scope, ignoring)
                for one in _descendants(item, first, last):
                    yield from self._rest(chain, at, one, scope, ignoring)
            case Subscripts(ranges):
                yield from self._subscripted(chain, at, ranges, item, scope)
            case Filter(predicate):
                if unwraps and type(item) is list:
                    yield from self._unwrapped(chain, at, item, scope)
                elif self._holds(predicate, item, replace(scope, current=item)) is True:
                    yield from self._rest(chain, at, item, scope)
            case Method(name):
                yield from self._called(chain, at, name, item, scope, unwraps)
            case DateTime(template):
                if unwraps and type(item) is list:
                    yield from self._unwrapped(chain, at, item, scope)
                else:
                    yield from self._rest(chain, at, _moment(item, template), scope)
            case Arithmetic():
                yield from self._rest(chain, at, self._computed(step, item, scope), scope)
            case Sign(operator, operand):
                is_asked = scope.is_asked or at + 1 < len(chain)
                for one in list(self._operands(operand, item, scope)):
                    if type(one) is Number:
                        yield from self._rest(chain, at, Number(negate(one)) if operator == "-" else one, scope)
                    elif is_asked:
                        what = f"operand of unary jsonpath operator {operator} is not a numeric value"
                        raise PathFailure("2203B", what)

    def _rest(self, chain: Chain, at: int, item: Node, scope: _Scope, inner: _Scope | None = None) -> Iterator[Node]:
        """Yields what the steps behind `at` find in an item; `inner` is their scope, if it is another."""
        if at + 1 == len(chain):
            yield item
        else:
            yield from self._executed(chain, at + 1, item, inner or scope, self._is_lax)

    def _each(self, chain: Chain, at: int, items: Sequence[Node], scope: _Scope) -> Iterator[Node]:
        for one in items:
            yield from self._rest(chain, at, one, scope)

    def _unwrapped(self, chain: Chain, at: int, items: Sequence[Node], scope: _Scope) -> Iterator[Node]:
        """Yields what a step, and those behind it, find in the elements of an array, which are not unwrapped again."""
        for one in items:
            yield from self._executed(chain, at, one, scope, False)

    def _member(self, chain: Chain, at: int, key: str, item: Node, scope: _Scope, unwraps: bool) -> Iterator[Node]:
        if type(item) is dict:
            if key in item:
                yield from self._rest(chain, at, item[key], scope)
            elif not scope.ignores:
                raise PathFailure("2203A", f'JSON object does not contain key "{key}"')
        elif unwraps and type(item) is list:
            yield from self._unwrapped(chain, at, item, scope)
        elif not scope.ignores:
            raise PathFailure("2203A", "jsonpath member accessor can only be applied to an object")

    def _subscripted(
        self, chain: Chain, at: int, ranges: Sequence[tuple[Chain, Chain | None]], item: Node, scope: _Scope
    ) -> Iterator[Node]:
        if type(item) is not list and not self._is_lax:
            if not scope.ignores:
                raise PathFailure("22039", "jsonpath array accessor can only be applied to an array")
            return
        elements = item if type(item) is list else [item]
        scope = replace(scope, size=len(elements))
        for low, high in ranges:
            first = self._subscript(low, item, scope)
            last = first if high is None else self._subscript(high, item, scope)
            if not scope.ignores and not 0 <= first <= last < len(elements):
                raise PathFailure("22033", "jsonpath array subscript is out of bounds")
            yield from self._each(chain, at, elements[max(first, 0) : max(last + 1, 0)], scope)

    def _subscript(self, chain: Chain, item: Node, scope: _Scope) -> int:
        found = list(self._executed(chain, 0, item, replace(scope, is_asked=True), self._is_lax))
        if len(found) != 1 or type(found[0]) is not Number:
            raise PathFailure("22033", "jsonpath array subscript is not a single numeric value")
        number = int(without_fraction(found[0]))
        if not -_LARGEST <= number < _LARGEST:
            raise PathFailure("22033", "jsonpath array subscript is out of integer range")
        return number

    def _variable(self, name: str) -> Node:
        if self._variables is None:
            return None
        if name not in self._variables:
            raise SqlFailure("42704", f'could not find jsonpath variable "{name}"')
        return self._variables[name]

    # ---- methods

    def _called(self, chain: Chain, at: int, name: str, item: Node, scope: _Scope, unwraps: bool) -> Iterator[Node]:
        if name == "type":
            yield from self._rest(chain, at, item.name if type(item) is Moment else type_of(item), scope)
        elif name == "size":
            if type(item) is list or self._is_lax:
                yield from self._rest(chain, at, Number(len(item) if type(item) is list else 1), scope)
            elif not scope.ignores:
                raise _not_applicable("22039", name, "an array")
        elif unwraps and type(item) is list:
            yield from self._unwrapped(chain, at, item, scope)
        elif name == "keyvalue":
            yield from self._keys_and_values(chain, at, item, scope)
        elif name == "double":
            yield from self._rest(chain, at, _double(item), scope)
        elif type(item) is not Number:
            raise _not_applicable("22036", name, "a numeric value")
        else:
            yield from self._rest(chain, at, Number(_NUMERIC[name](item)), scope)

    def _keys_and_values(self, chain: Chain, at: int, item: Node, scope: _Scope) -> Iterator[Node]:
        if type(item) is not dict:
            raise _not_applicable("2203C", "keyvalue", "an object")
        base, number = scope.base
        identity = offsets_of(base).get(id(item), 0) + number * _OF_ONE_OBJECT
        for key, value in item.items():
            pair = {"id": Number(identity), "key": key, "value": value}
            made, self._made = self._made, self._made + 1
            yield from self._rest(chain, at, pair, scope, replace(scope, base=(pair, made)))

    # ---- numbers

    def _operands(self, chain: Chain, item: Node, scope: _Scope) -> Iterator[Node]:
        """Yields what an operand is; of a lax path the elements of arrays."""
        for one in self._executed(chain, 0, item, replace(scope, is_asked=True), self._is_lax):
            if self._is_lax and type(one) is list:
                yield from one
            else:
                yield one

    def _computed(self, step: Arithmetic, item: Node, scope: _Scope) -> Number:
        left, right = (list(self._operands(one, item, scope)) for one in (step.left, step.right))
        for side, found in (("left", left), ("right", right)):
            if len(found) != 1 or type(found[0]) is not Number:
                what = f"{side} operand of jsonpath operator {step.operator} is not a single numeric value"
                raise PathFailure("22038", what)
        try:
            return Number(_BINARY[step.operator](left[0], right[0]))
        except SqlFailure as failure:
            raise _of_data(failure) from None

    # ---- predicates

    def _holds(self, step: Predicate, item: Node, scope: _Scope) -> bool | None:
        """Returns whether a predicate holds; None if that is unknown."""
        match step:
            case Both(left, right):
                first = self._holds(left, item, scope)
                if first is False:
                    return False
                second = self._holds(right, item, scope)
                return first if second is True else second
            case Either(left, right):
                first = self._holds(left, item, scope)
                if first is True:
                    return True
                second = self._holds(right, item, scope)
                return first if second is False else second
            case Not(operand):
                found = self._holds(operand, item, scope)
                return None if found is None else not found
            case IsUnknown(operand):
                return self._holds(operand, item, scope) is None
            case Exists(chain):
                return self._exists(chain, item, scope)
            case Comparison(operator, left, right):
                return self._any_holds(
                    lambda one, other: _compared(operator, one, other, self._in_zone), left, right, item, scope
                )
            case StartsWith(chain, initial):
                return self._any_holds(_starts, chain, initial, item, scope)
            case Like(chain):
                return self._any_holds(lambda one, _: _is_like(step, one), chain, None, item, scope)

    def _exists(self, chain: Chain, item: Node, scope: _Scope) -> bool | None:
        scope = replace(scope, is_asked=not self._is_lax, raises=False)
        try:
            found = self._executed(chain, 0, item, scope, self._is_lax)
            return _has_any(found) if self._is_lax else bool(list(found))
        except PathFailure:
            return None

    def _any_holds(
        self,
        test: Callable[[Node, Node], bool | None],
        left: Chain,
        right: Chain | None,
        item: Node,
        scope: _Scope,
    ) -> bool | None:
        """Returns whether a test holds for any of the operands; None if it is unknown for one, of a lax path before."""
        scope = replace(scope, raises=False)
        try:
            ones = list(self._operands(left, item, scope))
            others = [None] if right is None else list(self._right(right, item, scope, test))
        except PathFailure:
            return None
        holds = is_unknown = False
        for one in ones:
            for other in others:
                found = test(one, other)
                if found is None:
                    if not self._is_lax:
                        return None
                    is_unknown = True
                elif found:
                    if self._is_lax:
                        return True
                    holds = True
        return True if holds else None if is_unknown else False

    def _right(self, chain: Chain, item: Node, scope: _Scope, test: Callable[..., Any]) -> Iterator[Node]:
        if test is _starts:  # whose initial is never taken for its elements
            return self._executed(chain, 0, item, replace(scope, is_asked=True), self._is_lax)
        return self._operands(chain, item, scope)


def _has_any(items: Iterator[Node]) -> bool:
    return any(True for _ in items)


def _of_data(failure: SqlFailure) -> PathFailure:
    sqlstate, _, message = str(failure).partition(" ")
    return PathFailure(sqlstate, message)


def _not_applicable(sqlstate: str, name: str, what: str) -> PathFailure:
    return PathFailure(sqlstate, f"jsonpath item method .{name}() can only be applied to {what}")


def _descendants(item: Node, first: int, last: int) -> Iterator[Node]:
    """Yields what is below an item, each before what is in it, from one level to another.

    If both are the deepest, those are meant that hold nothing, whichever level they are on.
    """
    are_leaves = first == last == 2**32 - 1
    ahead = [iter(_members(item))] if last > 0 else []
    while ahead:
        level = len(ahead)
        one = next(ahead[-1], _NOTHING)
        if one is _NOTHING:
            ahead.pop()
            continue
        is_container = type(one) is dict or type(one) is list
        if level >= first or (are_leaves and not is_container):
            yield one
        if is_container and level < last:
            ahead.append(iter(_members(one)))


#: What is behind the last one.
_NOTHING = object()


def _members(item: Node) -> list[Node]:
    return list(item.values()) if type(item) is dict else item if type(item) is list else []


def _double(item: Node) -> Number:
    """Returns `.double()`: a number that a double can be stays as it is, and so does none that it cannot."""
    if type(item) is Number:
        if _is_in_range(item):
            return item
        what = "numeric argument of jsonpath item method .double() is out of range for type double precision"
        raise PathFailure("22036", what)
    if type(item) is not str:
        raise _not_applicable("22036", "double", "a string or numeric value")
    value = _value_of(item)
    if value is None:
        what = "string argument of jsonpath item method .double() is not a valid representation of a double precision"
        raise PathFailure("22036", f"{what} number")
    return Number(of_float8(value))


def _value_of(text: str) -> float | None:
    """Returns the finite double that a text spells, decimally or as C does; None if it spells none."""
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return None
    return float(text) if _DOUBLE.fullmatch(text) and _is_in_range(text) else None


def _is_in_range(text: str) -> bool:
    value = float(text)
    mantissa = text.lower().partition("e")[0]
    return not math.isinf(value) and (value != 0 or not mantissa.strip("+-0. \t\n\v\f\r"))


def _starts(whole: Node, initial: Node) -> bool | None:
    if type(whole) is not str or type(initial) is not str:
        return None
    return whole.startswith(initial)


def _is_like(step: Like, text: Node) -> bool | None:
    return step.compiled.matches(text) if type(text) is str else None


def _moment(item: Node, template: str | None) -> Moment:
    if type(item) is not str:
        raise _not_applicable("22031", "datetime", "a string")
    try:
        return moment_of(item, template)
    except UnknownSeparator:
        raise
    except SqlFailure as failure:
        raise _of_data(failure) from None


def _compared(operator: str, left: Node, right: Node, in_zone: bool) -> bool | None:
    if type(left) is Moment and type(right) is Moment:
        found = order_of(left, right, in_zone=in_zone)
        return None if found is None else _is_so(operator, found)
    kinds = tuple("moment" if type(one) is Moment else type_of(one) for one in (left, right))
    if kinds[0] != kinds[1]:
        # Containers are one kind, which nothing compares with, null excepted.
        return operator == "!=" if "null" in kinds else None
    if kinds[0] in ("array", "object"):
        return None
    order = 0
    if kinds[0] == "number":
        difference = subtract(left, right)
        order = (difference.strip("-0.") != "") * (-1 if difference.startswith("-") else 1)
    elif kinds[0] != "null":
        order = (left > right) - (left < right)
    return _is_so(operator, order)


def _is_so(operator: str, order: int) -> bool:
    tests = {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return tests[operator]


# ---- functions


def _evaluation(text: str, path: str, variables: str | None, silent: bool, in_zone: bool) -> _Evaluation:
    known = path_of(path)
    given = None if variables is None else read(variables)
    if given is not None and type(given) is not dict:
        raise SqlFailure("22023", '"vars" argument is not an object')
    return _Evaluation(known, read(text), given, silent=silent, in_zone=in_zone)


def _found(text: str, path: str, variables: str | None, silent: bool, in_zone: bool) -> list[Node]:
    """Returns what a path finds; those before an error, if there is one and it is silent."""
    found: list[Node] = []
    try:
        for one in _evaluation(text, path, variables, silent, in_zone).items():
            found.append(str(one) if type(one) is Moment else one)
    except PathFailure:
        if not silent:
            raise
    return found


#: The arguments: a value and a path; variables; whether errors of the data are silent.
_ARGUMENTS = {
    "": (Kind.JSONB, Kind.TEXT),
    "_vars": (Kind.JSONB, Kind.TEXT, Kind.JSONB),
    "_silent": (Kind.JSONB, Kind.TEXT, Kind.JSONB, Kind.BOOL),
}


def _of_path(
    name: Named, example_of_twin: tuple[str, str], result: Kind, *, nullable: bool = False
) -> Callable[[F], F]:
    """Makes the records of a function of paths, with each count of arguments, and of its twin with time zones."""
    says = f"The same as `{name.sql}`; moments without a time zone are in UTC."
    describe(name, Named(f"{name.sql}_tz", says, *example_of_twin))

    def register(reference: F) -> F:
        for in_zone, sql in ((False, name.sql), (True, f"{name.sql}_tz")):
            for ending, arguments in _ARGUMENTS.items():
                function(
                    f"{sql}{ending}",
                    arguments,
                    result,
                    sql=() if result is Kind.ARRAY else sql,
                    rows=sql if result is Kind.ARRAY else "",
                    fallible=True,
                    nullability=Nullability.ALWAYS if nullable else Nullability.IF_ANY_ARGUMENT,
                    type=list_of(JSONB) if result is Kind.ARRAY else None,
                )(partial(reference, in_zone=True) if in_zone else reference)
        return reference

    return register


@_of_path(
    Named(
        "jsonb_path_exists",
        "Whether a SQL/JSON path finds anything. A third argument has variables,"
        " a fourth says whether errors of the data are NULL.",
        "jsonb_path_exists('{\"a\": [1, 2]}'::jsonb, '$.a[*] ? (@ > $x)', '{\"x\": 1}'::jsonb)",
        "true",
    ),
    ("jsonb_path_exists_tz('{\"a\": true}'::jsonb, '$.a')", "true"),
    Kind.BOOL,
    nullable=True,
)
def exists(
    text: str, path: str, variables: str | None = "{}", silent: bool = False, *, in_zone: bool = False
) -> bool | None:
    """Returns whether a path finds anything.

    Example:
        >>> exists('{"a": [1, 2, 3]}', "$.a[*] ? (@ > 2)"), exists('{"a": 1}', "$.b")
        (True, False)
    """
    try:
        return _evaluation(text, path, variables, silent, in_zone).exists()
    except PathFailure:
        if not silent:
            raise
        return None


@_of_path(
    Named(
        "jsonb_path_match",
        "The boolean that a SQL/JSON path finds; NULL if it finds null.",
        "jsonb_path_match('{\"a\": [1, 2]}'::jsonb, 'exists($.a[*] ? (@ > 2))')",
        "false",
    ),
    ("jsonb_path_match_tz('{\"a\": true}'::jsonb, '$.a')", "true"),
    Kind.BOOL,
    nullable=True,
)
def match(
    text: str, path: str, variables: str | None = "{}", silent: bool = False, *, in_zone: bool = False
) -> bool | None:
    """Returns the one boolean that a path finds, None if it is null.

    Example:
        >>> match('{"a": [1, 2, 3]}', "exists($.a[*] ? (@ > 2))"), match('{"a": 1}', "$.a > null")
        (True, False)
    """
    found = _found(text, path, variables, silent, in_zone)
    if len(found) == 1 and (found[0] is None or type(found[0]) is bool):
        return found[0]
    if not silent:
        raise SqlFailure("22038", "single boolean result is expected")
    return None


@_of_path(
    Named(
        "jsonb_path_query",
        "What a SQL/JSON path finds, in rows.",
        "(SELECT max(q::text) FROM jsonb_path_query('{\"a\": [1, 2]}'::jsonb, '$.a[*]') AS r(q))",
        "2",
    ),
    ("(SELECT max(q::text) FROM jsonb_path_query_tz('{\"a\": [1, 2]}'::jsonb, '$.a[*]') AS r(q))", "2"),
    Kind.ARRAY,
)
def query(
    text: str, path: str, variables: str | None = "{}", silent: bool = False, *, in_zone: bool = False
) -> list[str]:
    """Returns what a path finds.

    Example:
        >>> query('{"a": [1, 2, 3]}', "$.a[*] ? (@ >= $low)", '{"low": 2}')
        ['2', '3']
    """
    return [write(one) for one in _found(text, path, variables, silent, in_zone)]


@_of_path(
    Named(
        "jsonb_path_query_array",
        "The array of what a SQL/JSON path finds.",
        "jsonb_path_query_array('{\"a\": [1, 2]}'::jsonb, '$.a[*].type()')",
        '["number", "number"]',
    ),
    ("jsonb_path_query_array_tz('{\"a\": true}'::jsonb, '$.a')", "[true]"),
    Kind.JSONB,
)
def query_array(
    text: str, path: str, variables: str | None = "{}", silent: bool = False, *, in_zone: bool = False
) -> str:
    """Returns the array of what a path finds."""
    return write(_found(text, path, variables, silent, in_zone))


@_of_path(
    Named(
        "jsonb_path_query_first",
        "The first of what a SQL/JSON path finds; NULL if that is nothing.",
        "jsonb_path_query_first('{\"a\": [1, 2]}'::jsonb, '$.a[*] ? (@ > 1)')",
        "2",
    ),
    ("jsonb_path_query_first_tz('{\"a\": true}'::jsonb, '$.a')", "true"),
    Kind.JSONB,
    nullable=True,
)
def query_first(
    text: str, path: str, variables: str | None = "{}", silent: bool = False, *, in_zone: bool = False
) -> str | None:
    """Returns the first of what a path finds, None if that is nothing."""
    found = _found(text, path, variables, silent, in_zone)
    return write(found[0]) if found else None


@function(
    "jsonb_path_exists_operator",
    (Kind.JSONB, Kind.TEXT),
    Kind.BOOL,
    sql="@?",
    says="Whether a SQL/JSON path finds anything; NULL if the value is not as it says.",
    example="'{\"a\": [1, 2]}'::jsonb @? '$.a[*] ? (@ > 1)'",
    gives="true",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def finds(text: str, path: str) -> bool | None:
    """Returns `value @? path`: whether a path finds anything, None if the data is no such."""
    return exists(text, path, None, silent=True)


@function(
    "jsonb_path_match_operator",
    (Kind.JSONB, Kind.TEXT),
    Kind.BOOL,
    sql="@@",
    says="The boolean that a SQL/JSON path finds; NULL if it is none.",
    example="'{\"a\": [1, 2]}'::jsonb @@ '$.a[*] > 1'",
    gives="true",
    fallible=True,
    nullability=Nullability.ALWAYS,
)
def holds(text: str, path: str) -> bool | None:
    """Returns `value @@ path`: the boolean that a path finds, None if it finds none."""
    return match(text, path, None, silent=True)
