"""Binds scalar expressions: syntax to typed, total scalars with PostgreSQL's semantics.

Owns which forms of expression there are, and the meaning of those that have no module of their own. What an operator
or function means is asked of `functions`. Forms without exact semantics are refused at their position, each with
its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from mz_dagster.functions import (
    CastContext,
    Failure,
    OpenParameter,
    Unknown,
    cast,
    common_type,
    numeric_literal,
    resolve_function,
    type_name,
)
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.type_ids import VARYING
from mz_dagster.scalars.types import BOOL, FLOAT8, TEXT, UNCONSTRAINED, Kind, ScalarType, numeric
from mz_dagster.sql.array_forms import bind_array, bind_bracket
from mz_dagster.sql.binding import Bound, argument_type, is_prefixed, name_of, only_parts, qualifier_of, unwrapped
from mz_dagster.sql.calls import bind_call
from mz_dagster.sql.catalog_calls import bind_catalog_cast, code_of_character, labelled_as, text_of_label
from mz_dagster.sql.choices import chosen
from mz_dagster.sql.constant_lists import bind_among, constant_nodes
from mz_dagster.sql.enclosing import named
from mz_dagster.sql.errors import (
    DatatypeMismatch,
    InvalidSyntax,
    UndefinedFunction,
    UndefinedTable,
    UnsupportedForm,
    error_of,
)
from mz_dagster.sql.expression_binder import CASTS_HINT, ExpressionBinder
from mz_dagster.sql.lexer import TokenKind, tokens_of
from mz_dagster.sql.moment_calls import bind_at_time_zone, bind_overlaps
from mz_dagster.sql.moments import bind_interval
from mz_dagster.sql.parameters import negated_literal
from mz_dagster.sql.refusals import refusal_of
from mz_dagster.sql.row_comparison import null_test
from mz_dagster.sql.row_predicates import bind_compared_rows, bind_row_between, bind_row_in, rows_distinct
from mz_dagster.sql.row_values import bind_field, bind_record, row_nodes, row_of, whole_row
from mz_dagster.sql.session_values import BARE_WORDS, WORDS, bind_session_value
from mz_dagster.sql.set_functions import bind_information_call, check_unconditional
from mz_dagster.sql.subqueries import (
    bind_array_query,
    bind_exists,
    bind_in_subquery,
    bind_quantified,
    bind_scalar_subquery,
    is_array_query,
    is_exists,
    quantified_by,
)
from mz_dagster.sql.type_names import BYTEWISE, COLLATED, TypeName, any_char_refused, type_name_of

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_NUMBERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED)
_NAMES = (TokenKind.WORD, TokenKind.QUOTED)
_LINE_COMMENT = re.compile(r"--[^\r\n]*")
#: What sqlglot sets although the text does not say it.
_IGNORED = ("safe", "typed", "big_int", "negate")


@dataclass(slots=True)
class Expressions(ExpressionBinder):
    """Binds the expressions of one place of a query: every form that there is."""

    def bind(self, node: exp.Expr) -> Bound:
        """Returns the scalar, or the literal whose type is still open."""
        for kind, rule in _RULES:
            if isinstance(node, kind):
                return rule(self, node)
        raise refusal_of(self.body, node)

    # One method per form of expression.

    def _paren(self, node: exp.Paren) -> Bound:
        return self.bind(node.this)

    def _literal(self, node: exp.Literal) -> Bound:
        if node.is_string:
            return Unknown(node.this)
        found = numeric_literal(node.this)
        if isinstance(found, Failure):
            raise error_of(found, self.body.position(node))
        return found

    def _interval(self, node: exp.Interval) -> Bound:
        return bind_interval(self.body, node)

    def _null(self, node: exp.Null) -> Bound:
        return Unknown(None)

    def _boolean(self, node: exp.Boolean) -> Bound:
        return Literal(bool(node.this), BOOL)

    def _placeholder(self, node: exp.Placeholder) -> Bound:
        only_parts(self.body, node, "jdbc", what="a named parameter", reason="Parameters are written as ?.")
        return self.binding.parameter(self.body.parameter(node), self.body.position(node))

    def _column(self, node: exp.Column) -> Bound:
        position = self.body.position(node)
        if isinstance(node.this, exp.Star):
            only_parts(self.body, node, "this", "table", "db", what="this form of *")
            only_parts(self.body, node.this, what="this form of *")
            qualifier = qualifier_of(node)
            assert qualifier is not None, "* alone is no column"
            return row_of(self, qualifier, position)
        if _is_bare_word(node):
            return bind_session_value(self, name_of(node.this), (), node)
        table = node.args.get("table")
        only_parts(self.body, node, "this", "table", "db", "catalog")
        if node.args.get("catalog") is not None:
            self._check_database(node)
        if isinstance(node.this, exp.Filter) and name_of(table) == "pg_catalog":
            return self._call(node.this)
        if table is None and isinstance(node.this, exp.Identifier):
            self.body.check_name(node.this)
        if table is None:
            row = whole_row(self, node)
            if row is not None:
                return row
        return named(self.scope, self.binding.enclosing, qualifier_of(node), name_of(node.this), position)

    def _check_database(self, node: exp.Column) -> None:
        """Returns if the database that qualifies a column is that in which its relation is."""
        if self.binding.is_definition:
            raise UnsupportedForm(
                "a column qualified by a database is not supported in a definition",
                detail="The project's name is no part of what is defined in it.",
                hint="Qualify it by its relation, perhaps with its schema.",
                position=self.body.position(node),
            )
        parts = tuple(name_of(node.args.get(one)) for one in ("catalog", "db", "table"))
        if self.binding.resolver.resolve(parts) is None:
            names = self.binding.resolver.names()
            raise UndefinedTable.named(".".join(parts), names, self.body.position(node))

    def _negative(self, node: exp.Neg) -> Bound:
        inner, minus = unwrapped(node.this), True
        while isinstance(inner, exp.Neg):
            inner, minus = unwrapped(inner.this), not minus
        if isinstance(inner, exp.Literal) and not inner.is_string:
            # Signs and a number are one literal, which is typed by its value: the least integers exist.
            literal = self._literal(inner)
            if isinstance(literal, Literal):
                return negated_literal(literal) if minus else literal
        return self.operator("-", [self.bind(node.this)], self.body.position(node))

    def _positive(self, node: exp.Expr, position: int) -> Scalar:
        """Returns the number behind a `+`, which is itself."""
        bound = self.bind(node)
        if isinstance(bound, Unknown):
            return self.literal(bound, FLOAT8, node)
        if bound.type.kind not in _NUMBERS:
            shown = type_name(bound.type)
            raise UndefinedFunction(f"operator does not exist: + {shown}", hint=CASTS_HINT, position=position)
        return bound

    def _binary(self, node: exp.Binary) -> Bound:
        only_parts(self.body, node, "this", "expression", *_IGNORED)
        position = self.body.operator_position(node)
        if isinstance(node, _COMPARISONS):
            for operand in (node.this, node.expression):
                if isinstance(operand, _COMPARISONS):
                    raise InvalidSyntax(
                        "syntax error: comparisons do not chain",
                        hint="Write a < b AND b < c, or use parentheses.",
                        position=position,
                    )
            if quantified_by(node.expression) is not None:
                return bind_quantified(self, node, _BINARY[type(node)])
            for operand in (node.this, node.expression):
                if isinstance(operand, exp.Any | exp.All):
                    raise refusal_of(self.body, operand)
            rows = bind_compared_rows(self, node, _BINARY[type(node)])
            if rows is not None:
                return rows
        nodes = [node.this, node.expression]
        return self.operator(_BINARY[type(node)], [self.bind(one) for one in nodes], position, nodes)

    def _at_time_zone(self, node: exp.AtTimeZone) -> Bound:
        zone: exp.Expr = node.args["zone"]
        return bind_at_time_zone(self, zone, node.this, self.body.position(node))

    def _overlaps(self, node: exp.Overlaps) -> Bound:
        return bind_overlaps(self, node)

    def _operator(self, node: exp.Operator) -> Bound:
        symbol: str = node.args["operator"].removeprefix("pg_catalog.")
        position = self.body.operator_position(node)
        if node.this is None:
            position = self.body.position(node)
            if symbol == "+":
                return self._positive(node.expression, position)
            return self.operator(symbol, [self.bind(node.expression)], position, [node.expression])
        if quantified_by(node.expression) is not None:
            return bind_quantified(self, node, symbol)
        nodes = [node.this, node.expression]
        return self.operator(symbol, [self.bind(one) for one in nodes], position, nodes)

    def _connector(self, node: exp.Connector) -> Bound:
        word = "and" if isinstance(node, exp.And) else "or"
        operands: list[exp.Expr] = []
        pending: list[exp.Expr] = [node]
        while pending:
            one = pending.pop()
            if type(one) is type(node):
                pending += [one.expression, one.this]
            else:
                operands.append(one)
        arguments = [self.boolean(one, word.upper()) for one in operands]
        return self.operator(word, arguments, self.body.position(node))

    def _not(self, node: exp.Not) -> Bound:
        inner = node.this
        if isinstance(inner, exp.Is) and not self.body.source(node).lower().startswith("not"):
            return self._is(inner, negated=True)
        return self.operator("not", [self.boolean(inner, "NOT")], self.body.position(node))

    def _is(self, node: exp.Is, *, negated: bool = False) -> Bound:
        negated = negated or bool(node.args.get("negate"))
        right = node.expression
        if isinstance(right, exp.Null):
            words = self.body.source(node.parent if isinstance(node.parent, exp.Not) else node).lower().split()
            tested = "unknown" if words and words[-1] == "unknown" else "null"
        elif isinstance(right, exp.Boolean):
            tested = "true" if right.this else "false"
        else:
            raise refusal_of(self.body, node)
        argument: Bound
        if tested == "null":
            rows = row_nodes(node.this)
            argument = self.bind(node.this)
            if isinstance(argument, OpenParameter):
                argument = Literal(None, TEXT)  # which says nothing of its type
            elif not isinstance(argument, Unknown) and argument.type.kind is Kind.RECORD and (rows is None or rows):
                return null_test(argument, negated=negated)
        else:
            argument = self.boolean(node.this, f"IS {'NOT ' if negated else ''}{tested.upper()}")
        return self.operator(f"is {'not ' if negated else ''}{tested}", [argument], self.body.position(node))

    def _distinct_from(self, node: exp.Binary) -> Bound:
        symbol = "is not distinct from" if isinstance(node, exp.NullSafeEQ) else "is distinct from"
        rows = rows_distinct(self, symbol, node)
        if rows is not None:
            return rows
        arguments = [self.bind(node.this), self.bind(node.expression)]
        return self.operator(symbol, arguments, self.body.operator_position(node))

    def _between(self, node: exp.Between) -> Bound:
        only_parts(self.body, node, "this", "low", "high", "symmetric", what="this form of BETWEEN")
        position = self.body.position(node)
        if row_nodes(node.this) is not None:
            only_parts(self.body, node, "this", "low", "high", what="BETWEEN SYMMETRIC of rows")
            return bind_row_between(self, node)
        value, low, high = self.bind(node.this), node.args["low"], node.args["high"]

        def between(low: exp.Expr, high: exp.Expr) -> Scalar:
            bounds = [
                self.operator(symbol, [value, self.bind(bound)], position, [node.this, bound])
                for bound, symbol in ((low, ">="), (high, "<="))
            ]
            return self.operator("and", bounds, position)

        if not node.args.get("symmetric"):
            return between(low, high)
        return self.operator("or", [between(low, high), between(high, low)], position)

    def _in(self, node: exp.In) -> Bound:
        for part in ("unnest", "field"):
            if node.args.get(part) is not None:
                raise refusal_of(self.body, node)
        query = node.args.get("query")
        if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
            query = node.expressions[0]
        if query is not None:
            return bind_in_subquery(self, node, query)
        position = self.body.position(node)
        if any(isinstance(one, exp.Query) for one in node.expressions):
            raise refusal_of(self.body, node)
        constants = next((one for one in node.expressions if isinstance(one, exp.RawString)), None)
        nodes = list(node.expressions) if constants is None else constant_nodes(self.body, constants)
        if row_nodes(node.this) is not None:
            return bind_row_in(self, node, nodes)
        left = self.bind(node.this)
        if constants is not None:
            found = bind_among(left, constants, lambda one: self.operator("=", [left, one], position))
            if found is not None:
                return found
        items = [self.bind(one) for one in nodes]
        shared = common_type([argument_type(one) for one in (left, *items)], "IN")
        tests: list[Scalar] = []
        for item_node, item in zip(nodes, items, strict=True):
            right = item if isinstance(shared, Failure) else self.as_type(item, shared, item_node, "IN")
            tests.append(self.operator("=", [left, right], position, [node.this, item_node]))
        return self.connected("or", tests, position)

    def _case(self, node: exp.Case) -> Bound:
        only_parts(self.body, node, "this", "ifs", "default")
        branches: list[exp.If] = node.args["ifs"]
        default = node.args.get("default")
        operand = self.bind(node.this) if node.this is not None else None
        conditions: list[Scalar] = []
        for branch in branches:
            if operand is None:
                conditions.append(self.boolean(branch.this, "CASE/WHEN"))
            else:
                when = self.bind(branch.this)
                conditions.append(self.operator("=", [operand, when], self.body.position(branch.this)))
        results = [branch.args["true"] for branch in branches]
        # The default decides first which type is preferred.
        nodes = [default if default is not None else node, *results]
        bounds = [self.bind(default) if default is not None else Unknown(None), *map(self.bind, results)]
        check_unconditional(self, [*conditions, *bounds], "CASE")
        otherwise, *thens = self.common(nodes, bounds, "CASE")
        return chosen(tuple(zip(conditions, thens, strict=True)), otherwise)

    def _cast(self, node: exp.Cast) -> Bound:
        return self.cast(node)

    def cast(self, node: exp.Cast, scale: int | None = None, sizes: int = 0) -> Bound:
        """Returns a cast; one to numeric without a scale of what has none of its own rounds to `scale`.

        So many `sizes` stand behind the type, `[2]` for example, which say that it is an array and nothing else.
        """
        if type(node) is not exp.Cast:
            raise refusal_of(self.body, node)
        only_parts(self.body, node, "this", "to", *_IGNORED)
        to: exp.Expr = node.args["to"]
        span = self.body.span(to)
        offset = self.body.text.offset + (span[0] if span else 0)
        named = self._named(to, max(offset, 0))
        if sizes:
            named = replace(named, is_array=True, has_dimensions=named.is_array or sizes > 1)
        if is_prefixed(self.body, node) and not (isinstance(node.this, exp.Literal) and node.this.is_string):
            if type(node.this) is exp.Cast and (literal := _leftmost(node.this)) is not None:
                typed = self.literal(Unknown(literal), named.type_of_text(literal), node.this, rounds=True)
                return self._cast_on(typed, node.this)
            raise InvalidSyntax("syntax error: a typed literal is quoted", position=self.body.position(node.this))
        inner = unwrapped(node.this)
        if isinstance(inner, exp.Array) and named.is_array and not named.is_open:
            return bind_array(self, inner, named.scalar_type)
        if named.label:
            return bind_catalog_cast(self, named, node)
        number = _number(inner)
        if number is not None and not named.is_open and named.scalar_type.kind in (Kind.FLOAT4, Kind.FLOAT8):
            return self.literal(Unknown(number), named.scalar_type, node.this)
        bound = self.bind(node.this)
        if named.is_any_char:
            return self._any_char(named, bound, node)
        if isinstance(bound, Unknown):
            return self.literal(bound, named.type_of_text(bound.text), node.this, rounds=not named.is_open)
        if bound.type.label == "char" and named.kind is Kind.INT4 and not named.is_array:
            return code_of_character(bound)
        if bound.type.label and named.kind is Kind.TEXT and not named.is_array:
            text = text_of_label(self, bound, node)
            bound = bound if text is None else text
        target = self._cast_target(named, bound.type, node, scale)
        found = cast(bound.type, target, CastContext.EXPLICIT)
        if isinstance(found, Failure):
            raise error_of(found, self.body.position(node))
        value = found.apply(bound)
        return labelled_as(value, target) if value.type.label not in ("", VARYING.label) else value

    def _any_char(self, named: TypeName, bound: Bound, node: exp.Cast) -> Bound:
        """Returns `'N'::bpchar`, as PostgreSQL shows literals beside a char(n): one of so many characters."""
        if not named.is_array:
            if isinstance(bound, Unknown) and bound.text is not None:
                return self.literal(bound, replace(named, length=len(bound.text)).scalar_type, node.this)
            if isinstance(bound, Unknown) or bound.type.kind is Kind.CHAR:
                return bound
        raise any_char_refused(self.body.position(node.args["to"]) or 0)

    def _named(self, to: exp.Expr, offset: int = 0) -> TypeName:
        """Returns a type as named, an enumeration with its values."""
        named = type_name_of(self.body.source(to), offset)
        if named.enumeration is None:
            return named
        found = self.binding.type_named(replace(named, is_array=False).scalar_type, self.body.position(to))
        return replace(named, enumeration=found.enumeration)

    def _cast_on(self, literal: Scalar, node: exp.Cast) -> Scalar:
        """Returns a typed literal that is cast on, `date '2020-01-01'::text`: the casts read as if of its text."""
        bound = literal if not isinstance(node.this, exp.Cast) else self._cast_on(literal, node.this)
        to: exp.Expr = node.args["to"]
        target = self._cast_target(self._named(to), bound.type, node)
        return self.cast_to(bound, target, node)

    def _cast_target(self, named: TypeName, source: ScalarType, node: exp.Cast, scale: int | None = None) -> ScalarType:
        if named.is_array and source.array_element is not None:
            # The name of a type says nothing of dimensions: an array keeps those that it has.
            named = replace(named, has_dimensions=named.has_dimensions or source.kind is Kind.DIMENSIONED)
            if named.is_open:
                element = self._cast_target(replace(named, is_array=False), source.array_element, node)
                return named.array_of(element)
        if not named.is_open:
            return named.scalar_type
        if source.kind in (Kind.NUMERIC, Kind.INT2, Kind.INT4, Kind.INT8):
            return numeric(source.scale)
        if source.kind in (Kind.TEXT, Kind.FLOAT4, Kind.FLOAT8, Kind.JSONB):
            if scale is not None:
                return numeric(scale)
            return UNCONSTRAINED
        return UNCONSTRAINED if source.kind is Kind.UNCONSTRAINED else named.scalar_type

    def _concat(self, node: exp.Concat) -> Bound:
        """Returns literals on lines of their own, which are one literal."""
        first = self.body.span(node.expressions[0])
        tokens = () if first is None else self.body.tokens_from(first[0], len(node.expressions))
        between = (self.body.text.text[one.end : other.start] for one, other in pairwise(tokens))
        if (
            not tokens
            or any(one.kind is not TokenKind.STRING for one in tokens)
            or not all("\n" in one and not _LINE_COMMENT.sub("", one).strip() for one in between)
        ):
            raise refusal_of(self.body, node)
        return Unknown("".join(one.this for one in node.expressions))

    def _collate(self, node: exp.Collate) -> Bound:
        """Returns a text compared by its bytes, which is what the collations that there are do."""
        words = [one.value for one in tokens_of(self.body.source(node.expression)) if one.kind in _NAMES]
        if words[:1] == ["pg_catalog"]:
            words = words[1:]
        if len(words) != 1 or words[0] not in BYTEWISE:
            raise refusal_of(self.body, node)
        bound = self.bind(node.this)
        if not isinstance(bound, Unknown) and bound.type.kind not in COLLATED:
            raise DatatypeMismatch(
                f"collations are not supported by type {type_name(bound.type)}", position=self.body.position(node)
            )
        return bound

    def _like(self, node: exp.Like | exp.ILike) -> Bound:
        return self._matched(node, None)

    def _similar(self, node: exp.SimilarTo, escape: exp.Expr | None = None) -> Bound:
        """Returns `x SIMILAR TO p`: a match of the regular expression that the pattern means."""
        patterns = [self.bind(one) for one in (node.expression, escape) if one is not None]
        resolved = resolve_function("similar_to_escape", [argument_type(one) for one in patterns])
        position = self.body.operator_position(node)
        pattern = self.applied(resolved, patterns, position)
        return self.operator("~", [self.bind(node.this), pattern], position)

    def _escape(self, node: exp.Escape) -> Bound:
        if isinstance(node.this, exp.SimilarTo):
            return self._similar(node.this, node.expression)
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise refusal_of(self.body, node)
        return self._matched(node.this, node.expression)

    def _matched(self, node: exp.Like | exp.ILike, escape: exp.Expr | None) -> Bound:
        if isinstance(node.expression, exp.Tuple):
            raise refusal_of(self.body, node.expression)
        position = self.body.operator_position(node)
        word = ("not " if node.args.get("negate") else "") + ("ilike" if isinstance(node, exp.ILike) else "like")
        if quantified_by(node.expression) is not None and escape is None:
            return bind_quantified(self, node, word)
        pattern = self.bind(node.expression)
        if escape is not None:
            arguments = [pattern, self.bind(escape)]
            resolved = resolve_function("like_escape", [argument_type(one) for one in arguments])
            pattern = self.applied(resolved, arguments, position)
        return self.operator(word, [self.bind(node.this), pattern], position)

    def _qualified_call(self, node: exp.Dot) -> Bound:
        if name_of(node.this) == "pg_catalog" and isinstance(node.expression, exp.Anonymous):
            return self._call(node.expression)
        if name_of(node.this) == "information_schema" and isinstance(node.expression, exp.Anonymous):
            return bind_information_call(self, node.expression)
        if isinstance(node.this, exp.Paren) and isinstance(node.expression, exp.Identifier):
            return bind_field(self, node)
        raise refusal_of(self.body, node)

    def _row(self, node: exp.Expr) -> Bound:
        return bind_record(self, node)

    def _array(self, node: exp.Array) -> Bound:
        return bind_array(self, node)

    def _bracket(self, node: exp.Bracket) -> Bound:
        inner: exp.Expr = node
        sizes = 0
        while isinstance(inner, exp.Bracket) and len(inner.expressions) == 1 and _number(inner.expressions[0]):
            inner, sizes = inner.this, sizes + 1
        if type(inner) is exp.Cast and self.body.source(inner).endswith(self.body.source(inner.args["to"])):
            return self.cast(inner, sizes=sizes)  # x::integer[2]
        return bind_bracket(self, node)

    def _subquery(self, node: exp.Expr) -> Bound:
        return bind_scalar_subquery(self, node)

    def _exists(self, node: exp.Exists) -> Bound:
        return bind_exists(self, node)

    def _call(self, node: exp.Expr) -> Bound:
        if is_exists(node):
            return bind_exists(self, node)
        if row_nodes(node) is not None:
            return bind_record(self, node)
        if is_array_query(node):
            return bind_array_query(self, node)
        return bind_call(self, node)


def _is_bare_word(node: exp.Column) -> bool:
    """Returns whether a name is one that PostgreSQL reads as a function without parentheses."""
    if node.args.get("table") is not None or not isinstance(node.this, exp.Identifier) or node.this.args.get("quoted"):
        return False
    return name_of(node.this) in BARE_WORDS


def _leftmost(node: exp.Expr) -> str | None:
    """Returns the text of the literal that casts are of; None if they are of something else."""
    while type(node) is exp.Cast:
        node = node.this
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _number(node: exp.Expr) -> str | None:
    """Returns the text of a number as it is written, with its sign; None if it is something else."""
    if isinstance(node, exp.Neg):
        number = _number(unwrapped(node.this))
        return None if number is None or number.startswith("-") else f"-{number}"
    return str(node.this) if isinstance(node, exp.Literal) and not node.is_string else None


_RULES: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[..., Bound]], ...] = (
    (exp.Paren, Expressions._paren),
    (exp.Tuple, Expressions._row),
    (exp.Array, Expressions._array),
    (exp.Bracket, Expressions._bracket),
    ((exp.Query, exp.Values), Expressions._subquery),
    (exp.Exists, Expressions._exists),
    (exp.Literal, Expressions._literal),
    (exp.Interval, Expressions._interval),
    (exp.Null, Expressions._null),
    (exp.Boolean, Expressions._boolean),
    (exp.Placeholder, Expressions._placeholder),
    (exp.Column, Expressions._column),
    (exp.Neg, Expressions._negative),
    ((exp.And, exp.Or), Expressions._connector),
    (exp.Not, Expressions._not),
    (exp.Is, Expressions._is),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), Expressions._distinct_from),
    ((exp.Like, exp.ILike), Expressions._like),
    (exp.SimilarTo, Expressions._similar),
    (exp.Escape, Expressions._escape),
    (exp.Collate, Expressions._collate),
    (tuple(_BINARY), Expressions._binary),
    (exp.Overlaps, Expressions._overlaps),
    (exp.AtTimeZone, Expressions._at_time_zone),
    (exp.Operator, Expressions._operator),
    (exp.Between, Expressions._between),
    (exp.In, Expressions._in),
    (exp.Case, Expressions._case),
    (exp.Dot, Expressions._qualified_call),
    (exp.Cast, Expressions._cast),
    (exp.Concat, Expressions._concat),
    ((exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls), Expressions._call),
    (
        (exp.Anonymous, *WORDS, exp.Extract, exp.Substring, exp.Trim, exp.StrPosition, exp.Overlay),
        Expressions._call,
    ),
)
