"""The binder of one place's expressions, as the forms of expression see it.

Owns what a form needs of the whole: to have its operands bound, whatever form they have, and to put what they are
together by PostgreSQL's rules of conversion. A bare quoted literal, NULL or string parameter stays `Unknown` until its
context decides its type. Each form is a function over an `ExpressionBinder` in a module of its own; `expressions.py`
knows all forms, and so is the one that binds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.functions import (
    CastContext,
    Failure,
    Resolved,
    Unknown,
    cast,
    common_type,
    literal_of,
    resolve_operator,
    type_name,
)
from mz_dagster.functions.evaluation import known_value
from mz_dagster.functions.jsonb.path_syntax import path_of
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.types import BOOL, TEXT, Kind, ScalarType
from mz_dagster.sql.binding import BindingContext, Bound, argument_type
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.collected_calls import AggregateCalls, SetCalls, WindowCalls
from mz_dagster.sql.errors import CannotCoerce, DatatypeMismatch, error_of
from mz_dagster.sql.moments import with_moments
from mz_dagster.sql.row_comparison import Compare, compared_records, same_records
from mz_dagster.sql.scope import Scope

#: What PostgreSQL advises where no operator or function takes the arguments.
CASTS_HINT = "You might need to add explicit type casts."
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(slots=True)
class ExpressionBinder(ABC):
    """Binds the expressions of one place of a query.

    Attributes:
        binding: The statement's state.
        body: The text.
        scope: What can be named here.
        clause: For errors: `SELECT`, `WHERE`, `JOIN/ON`, `VALUES`.
        aggregates: Takes the aggregates; None where none may stand.
        windows: Takes the window functions; None where none may stand.
        sets: Takes the functions that return rows; None where none may stand.
    """

    binding: BindingContext
    body: Body
    scope: Scope
    clause: str = "SELECT"
    aggregates: AggregateCalls | None = None
    windows: WindowCalls | None = None
    sets: SetCalls | None = None

    @abstractmethod
    def bind(self, node: exp.Expr) -> Bound:
        """Returns the scalar, or the literal whose type is still open."""

    @abstractmethod
    def cast(self, node: exp.Cast, scale: int | None = None) -> Bound:
        """Returns a cast; one to numeric without a scale of what has none of its own rounds to `scale`."""

    def typed(self, node: exp.Expr) -> Scalar:
        """Returns the scalar; an open literal is text."""
        return self.as_type(self.bind(node), None, node)

    def boolean(self, node: exp.Expr, what: str) -> Scalar:
        """Returns a scalar that must be boolean; `what` is the clause that wants it."""
        bound = self.bind(node)
        if isinstance(bound, Unknown):
            return self.literal(bound, BOOL, node)
        if bound.type != BOOL:
            raise DatatypeMismatch(
                f"argument of {what} must be type boolean, not type {type_name(bound.type)}",
                position=self.body.position(node),
            )
        return bound

    def as_type(self, bound: Bound, target: ScalarType | None, node: exp.Expr, what: str = "") -> Scalar:
        """Returns `bound` implicitly cast to `target`, by default its own type."""
        if isinstance(bound, Unknown):
            return self.literal(bound, target or TEXT, node)
        if target is None:
            return bound
        found = cast(bound.type, target, CastContext.IMPLICIT)
        if isinstance(found, Failure):
            message = f"{what} could not convert type {type_name(bound.type)} to {type_name(target)}".strip()
            raise CannotCoerce(message, position=self.body.position(node))
        return found.apply(bound)

    def literal(
        self, unknown: Unknown, target: ScalarType, node: exp.Expr, *, assigned: bool = False, rounds: bool = False
    ) -> Literal:
        """Returns the literal of type `target` that a bare literal spells; `assigned`, `rounds` as for `literal_of`."""
        found = unknown.as_type(target, assigned=assigned, rounds=rounds or assigned)
        if isinstance(found, Failure):
            raise error_of(found, self.body.position(node))
        return found

    def common(self, nodes: Sequence[exp.Expr], bounds: Sequence[Bound], what: str) -> tuple[Scalar, ...]:
        """Returns all of `bounds` cast to the one type that they have in common."""
        target = common_type([argument_type(one) for one in bounds], what)
        if isinstance(target, Failure):
            raise error_of(target, self.body.position(self._first_other(nodes, bounds)))
        return tuple(self.as_type(bound, target, node, what) for node, bound in zip(nodes, bounds, strict=True))

    def _first_other(self, nodes: Sequence[exp.Expr], bounds: Sequence[Bound]) -> exp.Expr:
        types = [None if isinstance(one, Unknown) else one.type for one in bounds]
        first = next(one for one in types if one is not None)
        for node, type_ in zip(nodes, types, strict=True):
            if type_ is not None and isinstance(common_type([first, type_]), Failure):
                return node
        return nodes[0]

    def cast_to(self, bound: Bound, target: ScalarType, node: exp.Expr, *, assigned: bool = False) -> Scalar:
        """Returns `bound` explicitly cast to `target`, or as an assignment casts."""
        if isinstance(bound, Unknown):
            return self.literal(bound, target, node, rounds=True)
        found = cast(bound.type, target, CastContext.ASSIGNMENT if assigned else CastContext.EXPLICIT)
        if isinstance(found, Failure):
            raise error_of(found, self.body.position(node))
        return found.apply(bound)

    def operator(
        self, symbol: str, arguments: Sequence[Bound], position: int, nodes: Sequence[exp.Expr] = ()
    ) -> Scalar:
        """Returns the application of an operator."""
        records = [one for one in arguments if not isinstance(one, Unknown) and one.type.kind is Kind.RECORD]
        match records:
            case [left, right] if symbol in _COMPARISONS:
                return compared_records(symbol, left, right, self.comparing(position), position)
            case [left, right] if symbol.endswith("distinct from"):
                same = same_records(left, right, self.comparing(position), position)
                return same if symbol.startswith("is not") else self.operator("not", [same], position)
        arguments = with_moments(symbol, arguments)
        literals = [None if isinstance(one, Unknown) else known_value(one) for one in arguments]
        resolved = resolve_operator(symbol, [argument_type(one) for one in arguments], literals)
        return self.applied(resolved, arguments, position, nodes)

    def comparing(self, position: int) -> Compare:
        """Returns what applies an operator to two values at a position."""
        return lambda symbol, left, right: self.operator(symbol, [left, right], position)

    def connected(self, word: str, tests: Sequence[Scalar], position: int) -> Scalar:
        """Returns the tests, of which there is one at least, connected by `and` or `or`."""
        return tests[0] if len(tests) == 1 else self.operator(word, tests, position)

    def applied(
        self,
        resolved: Resolved | Failure,
        arguments: Sequence[Bound],
        position: int,
        nodes: Sequence[exp.Expr] = (),
    ) -> Scalar:
        """Returns the call, or raises what kept it from being one: at the literal of `nodes` that is to blame."""
        if isinstance(resolved, Failure):
            hint = CASTS_HINT if resolved.sqlstate == "42883" else None
            raise error_of(resolved, position, hint=hint)
        call = resolved.apply(arguments)
        if isinstance(call, Failure):
            for argument, type_, node in zip(arguments, resolved.argument_types, nodes, strict=False):
                if isinstance(argument, Unknown) and isinstance(
                    literal_of(argument.text, type_, rounds=False), Failure
                ):
                    raise error_of(call, self.body.position(node))
            raise error_of(call, position)
        _check_path(call, self.body.position(nodes[1]) if len(nodes) > 1 else position)
        return call


def _check_path(call: Scalar, position: int) -> None:
    """Raises what is wrong with a constant SQL/JSON path, which any row would find as well."""
    match call:
        case Call(function=name, arguments=(_, Literal(value=str() as path), *_)) if name.startswith("jsonb_path_"):
            try:
                path_of(path)
            except SqlFailure as failure:
                sqlstate, _, message = str(failure).partition(" ")
                raise error_of(Failure(sqlstate, message), position) from None
