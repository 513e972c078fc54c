"""Random scalar expressions, of which it is known whether they can fail.

A column stands as `⟦n⟧` in an expression's text, so that the same text can be put into a query and into a function of
the referee. Every expression carries a bound of its absolute value: a sum of small integers is known not to overflow,
so it may stand where an error would leave an optimizer a choice (`safe`), in WHERE for example.

An operator always gets at least one argument with a column, and never a bare NULL: PostgreSQL computes constants
when it plans, and then raises errors, or forgets them, for rows that are not there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tests.oracle.rich_types import ARRAYS, RICH_POOLS, RICH_TYPES, rich

#: SQL names of the types; the families that a generator chooses from.
INTEGERS = ("smallint", "integer", "bigint")
FLOATS = ("real", "double precision")
NUMERICS = ("numeric(38,0)", "numeric(38,2)", "numeric(38,4)")
TIMES = ("date", "timestamp", "timestamptz")
TYPES = ("boolean", *INTEGERS, *FLOATS, *NUMERICS, "text", *TIMES, "mz_timestamp", *RICH_TYPES)
#: Types of which PostgreSQL 15 has the least and the greatest.
EXTREMES = frozenset(TYPES) - {"boolean", "uuid", "bytea", "jsonb", "varchar(5)", "char(3)", *ARRAYS}
LIMITS = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")

#: Values that are often equal, as text.
_POOLS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    **dict.fromkeys(INTEGERS, ("0", "1", "1", "2", "3", "-1", "-7", "12")),
    **dict.fromkeys(FLOATS, ("0", "-0", "1", "1.5", "-2.5", "0.3", "NaN", "Infinity", "-Infinity", "12")),
    "numeric(38,0)": ("0", "1", "2", "-3", "12"),
    "numeric(38,2)": ("0", "1.00", "2.50", "-2.50", "0.05", "-3.33", "12.00"),
    "numeric(38,4)": ("0", "1", "0.0001", "-1.5", "2.5000", "99.9999"),
    "text": ("", "a", "A", "ab", "abc", "é", "🐘é", "a b", " a ", "12", "-3", "1.5", "true", "a%", "2021-03-04", "%b_"),
    "date": ("1970-01-01", "2000-02-29", "2021-03-04", "2024-12-30"),
    "timestamp": ("1970-01-01 00:00:00", "2000-02-29 23:59:59.999999", "2021-03-04 00:00:00", "2021-03-04 12:34:56.7"),
    "timestamptz": ("1970-01-01 00:00:00+00", "2000-02-29 23:59:59.999999+00", "2021-03-04 00:00:00+00"),
    "mz_timestamp": ("0", "1", "2", "1614859200000"),
    **RICH_POOLS,
}
#: Values that make arithmetic fail.
_WILD: dict[str, tuple[str, ...]] = {
    "smallint": ("32767", "-32768", "181"),
    "integer": ("2147483647", "-2147483648", "46341"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "3037000500"),
    "real": ("3e38", "-3e38", "1e-30", "16777217"),
    "double precision": ("1.7e308", "-1.7e308", "1e-300", "9007199254740993"),
}
_FIELDS = ("year", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "quarter", "century", "epoch")
_UNITS = ("second", "hour", "day", "week", "month", "quarter", "year")


@dataclass(frozen=True)
class Column:
    """Is a column that expressions may name.

    Attributes:
        name: As the column's own table or view calls it.
        type: Its SQL type.
        bound: The greatest absolute value.
        nullable: Whether NULL may be in it.
    """

    name: str
    type: str
    bound: float = 100
    nullable: bool = True


@dataclass(frozen=True)
class Expr:
    """Is an expression.

    Attributes:
        text: With columns as `⟦n⟧`.
        type: Its SQL type.
        bound: The greatest absolute value it can have.
        fallible: Whether it can raise an error.
    """

    text: str
    type: str
    bound: float = 100
    fallible: bool = False

    @property
    def has_column(self) -> bool:
        """True if it names a column."""
        return "⟦" in self.text

    def with_columns(self, spell: Callable[[int], str]) -> str:
        """Returns the text with each column as `spell` writes it."""
        return re.sub(r"⟦(\d+)⟧", lambda found: spell(int(found.group(1))), self.text)


def value_text(source: random.Random, type_: str, *, wild: bool = False, now: int | None = None) -> str:
    """Returns a value of the type as text; a moment often is near `now`, in milliseconds, if that is given."""
    if now is not None and type_ in ("mz_timestamp", "timestamp", "timestamptz") and source.random() < 0.6:
        near = now + source.choice((-1000, -200, 0, 1, 300, 1000, 2500, 6000))
        if type_ == "mz_timestamp":
            return str(near)
        return (datetime(1970, 1, 1) + timedelta(milliseconds=near)).isoformat(" ")
    if wild and type_ in _WILD and source.random() < 0.25:
        return source.choice(_WILD[type_])
    return source.choice(_POOLS[type_])


def literal(source: random.Random, type_: str, *, wild: bool = False, null: float = 0.0, now: int | None = None) -> str:
    """Returns a literal of exactly the type."""
    if source.random() < null:
        return f"CAST(NULL AS {type_})"
    text = value_text(source, type_, wild=wild, now=now)
    if type_ == "integer" and source.random() < 0.7 and not text.startswith("-"):
        return text
    if type_ == "boolean":
        return text
    if type_ == "text" and source.random() < 0.5:
        return f"CAST('{text}' AS text)"
    return f"'{text}'::{type_}" if source.random() < 0.5 else f"CAST('{text}' AS {type_})"


def plain(one: Expr) -> Expr:
    """Returns an expression with one spelling for all equal values: 0.0 for -0.0, 1 for 1.0, '1 mon' for '30 days'."""
    return replace(one, text=plain_text(one.text, one.type))


def plain_text(text: str, type_: str) -> str:
    """Returns the text of such an expression."""
    if type_ == "interval":
        return f"justify_interval({text})"
    if type_ == "numeric":
        return f"trim_scale({text})"
    return f"({text} + CAST(0 AS {type_}))" if type_ in FLOATS else text


class Scalars:
    """Makes expressions over some columns.

    Args:
        source: Of randomness.
        columns: What `⟦n⟧` stands for.
    """

    def __init__(self, source: random.Random, columns: Sequence[Column]) -> None:
        self._source = source
        self._columns = columns

    def column(self, type_: str) -> Expr | None:
        """Returns a column of the type, or None."""
        found = [i for i, one in enumerate(self._columns) if one.type == type_]
        if not found:
            return None
        chosen = self._source.choice(found)
        return Expr(f"⟦{chosen}⟧", type_, self._columns[chosen].bound)

    def some_type(self) -> str:
        """Returns a type, more often one that a column has."""
        if self._columns and self._source.random() < 0.85:
            return self._source.choice(self._columns).type
        return self._source.choice([one for one in TYPES if one not in ("mz_timestamp", *RICH_TYPES)])

    def expression(self, type_: str, depth: int = 2, *, safe: bool = True, null: float = 0.0) -> Expr:
        """Returns an expression of the type.

        Args:
            type_: Its SQL type.
            depth: How deep operators nest at most.
            safe: Whether it must not be able to fail.
            null: How often a literal is NULL.
        """
        if depth > 0 and self._source.random() < 0.85:
            for _ in range(6):
                made = self._operation(type_, depth, safe)
                if made is not None and made.has_column and not (safe and made.fallible) and len(made.text) < 600:
                    return made
        column = self.column(type_)
        if column is not None and self._source.random() < 0.9:
            return column
        return Expr(literal(self._source, type_, null=null), type_)

    def predicate(self, depth: int = 2, *, safe: bool = True) -> Expr:
        """Returns a condition."""
        return self.expression("boolean", depth, safe=safe)

    def failing(self) -> Expr | None:
        """Returns an expression that fails for some values of a column, or None if no column lends itself."""
        source = self._source
        never = (*TIMES, "mz_timestamp", *RICH_TYPES)
        found = [(i, one.type) for i, one in enumerate(self._columns) if one.type not in never]
        if not found:
            return None
        i, type_ = source.choice(found)
        if type_ in INTEGERS:
            text = source.choice(("{0} / ⟦{1}⟧", "⟦{1}⟧ * ⟦{1}⟧", "{0} % ⟦{1}⟧", "⟦{1}⟧ + {0}"))
            return Expr(f"({text.format(f'CAST(12 AS {type_})', i)})", type_, LIMITS[type_], True)
        if type_ in FLOATS:
            text = source.choice(("{0} / ⟦{1}⟧", "⟦{1}⟧ * ⟦{1}⟧"))
            return Expr(f"({text.format(f'CAST(12 AS {type_})', i)})", type_, 1e308, True)
        if type_ in NUMERICS or type_ == "boolean":
            return Expr(f"(1 / CAST(⟦{i}⟧ AS integer))", "integer", 1, True)
        target = source.choice((*INTEGERS, "numeric(38,2)", "double precision", "date", "timestamp", "boolean"))
        return Expr(f"CAST(⟦{i}⟧ AS {target})", target, 1e308, True)

    # ---- operations by type

    def _operation(self, type_: str, depth: int, safe: bool) -> Expr | None:
        source = self._source
        if source.random() < 0.25:
            return self._conditional(type_, depth - 1, safe)
        make = depth - 1
        if type_ in RICH_TYPES or source.random() < 0.25:
            made = rich(source, type_, lambda of: self.expression(of, make, safe=True))
            if made is not None:
                return Expr(made[0], type_, made[1])
        if type_ == "boolean":
            return self._boolean(make, safe)
        if type_ in INTEGERS:
            return self._integer(type_, make, safe)
        if type_ in FLOATS:
            return self._float(type_, make, safe)
        if type_ in NUMERICS:
            return self._numeric(type_, make, safe)
        if type_ == "text":
            return self._text(make, safe)
        if type_ in TIMES:
            return self._time(type_, make, safe)
        return None

    def _conditional(self, type_: str, depth: int, safe: bool) -> Expr:
        source = self._source

        def arm() -> Expr:
            return self.expression(type_, depth, safe=safe)

        def joined(text: str, *parts: Expr) -> Expr:
            return Expr(text, type_, max(one.bound for one in parts), any(one.fallible for one in parts))

        match source.randrange(5):
            case 0:
                condition, yes, no = self.predicate(depth, safe=safe), arm(), arm()
                made = joined(f"CASE WHEN {condition.text} THEN {yes.text} ELSE {no.text} END", yes, no)
                return Expr(made.text, type_, made.bound, made.fallible or condition.fallible)
            case 1:
                of = self.some_type()
                value, when = self.expression(of, depth, safe=True), self.expression(of, 0)
                yes = arm()
                return joined(f"CASE {value.text} WHEN {when.text} THEN {yes.text} END", yes)
            case 2:
                one, other = arm(), arm()
                return joined(f"coalesce({one.text}, {other.text})", one, other)
            case 3:
                one, other = arm(), self.expression(type_, depth, safe=True)
                return joined(f"nullif({one.text}, {other.text})", one, other)
            case _:
                one, other = arm(), arm()
                return joined(f"{source.choice(('greatest', 'least'))}({one.text}, {other.text})", one, other)

    def _boolean(self, depth: int, safe: bool) -> Expr:
        source = self._source

        def inner() -> Expr:
            return self.predicate(depth, safe=True)

        match source.randrange(10):
            case 0 | 1 | 2 | 3:
                of = self.some_type()
                left, right = self.expression(of, depth, safe=safe), self.expression(of, depth, safe=safe)
                symbol = source.choice(COMPARISONS)
                if source.random() < 0.15:
                    symbol = source.choice(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
                return Expr(f"({left.text} {symbol} {right.text})", "boolean", 1, left.fallible or right.fallible)
            case 4:
                return Expr(f"({inner().text} {source.choice(('AND', 'OR'))} {inner().text})", "boolean")
            case 5:
                return Expr(f"(NOT {inner().text})", "boolean")
            case 6:
                test = source.choice(("TRUE", "FALSE", "UNKNOWN"))
                return Expr(f"({inner().text} IS {source.choice(('', 'NOT '))}{test})", "boolean")
            case 7:
                tested = self.expression(self.some_type(), depth, safe=True)
                return Expr(f"({tested.text} IS {source.choice(('', 'NOT '))}NULL)", "boolean")
            case 8:
                of = self.some_type()
                value = self.expression(of, depth, safe=True)
                if source.random() < 0.4:
                    low, high = self.expression(of, 0), self.expression(of, 0)
                    return Expr(f"({value.text} BETWEEN {low.text} AND {high.text})", "boolean")
                items = ", ".join(literal(source, of, null=0.1) for _ in range(source.randrange(1, 4)))
                return Expr(f"({value.text} {source.choice(('', 'NOT '))}IN ({items}))", "boolean")
            case _:
                value = self.expression("text", depth, safe=True)
                pattern = source.choice(("a%", "%b%", "_", "%", "A_%", "", "%é"))
                word = source.choice(("LIKE", "NOT LIKE", "ILIKE"))
                return Expr(f"({value.text} {word} '{pattern}')", "boolean")

    def _integer(self, type_: str, depth: int, safe: bool) -> Expr:
        source, limit = self._source, LIMITS[type_]
        match source.randrange(9):
            case 0 | 1 | 2:
                return self._arithmetic(type_, depth, safe, limit)
            case 3 | 4:
                return self._divided(type_, depth, safe)
            case 5:
                one = self.expression(type_, depth, safe=safe)
                fallible = one.fallible or one.bound > limit
                return Expr(source.choice((f"(- {one.text})", f"abs({one.text})")), type_, one.bound, fallible)
            case 6:
                origin = source.choice([*(other for other in INTEGERS if other != type_), "numeric(38,2)"])
                one = self.expression(origin, depth, safe=safe)
                fallible = one.fallible or one.bound + 1 > limit
                return Expr(f"CAST({one.text} AS {type_})", type_, min(one.bound + 1, limit), fallible)
            case 7 if not safe:
                one = self.expression("text", depth, safe=safe)
                return Expr(f"CAST({one.text} AS {type_})", type_, limit + 1, True)
            case 7:
                one = self.expression("boolean", depth, safe=safe)
                return Expr(f"CAST(CAST({one.text} AS integer) AS {type_})", type_, 1, one.fallible)
            case _:
                one = self.expression("text", depth, safe=safe)
                call = source.choice(("length({})", "octet_length({})", "strpos({}, 'a')"))
                return Expr(f"CAST({call.format(one.text)} AS {type_})", type_, 10_000, one.fallible)

    def _arithmetic(self, type_: str, depth: int, safe: bool, limit: float) -> Expr:
        left, right = self.expression(type_, depth, safe=safe), self.expression(type_, depth, safe=safe)
        symbol = self._source.choice("+-*")
        bound = left.bound * right.bound if symbol == "*" else left.bound + right.bound
        fallible = left.fallible or right.fallible or bound > limit
        return Expr(f"({left.text} {symbol} {right.text})", type_, bound, fallible)

    def _divided(self, type_: str, depth: int, safe: bool) -> Expr:
        """Divides by a literal, or by a column that may be zero."""
        source, left = self._source, self.expression(type_, depth, safe=safe)
        symbol = source.choice("/%") if type_ not in FLOATS else "/"
        if safe or source.random() < 0.3:
            return Expr(f"({left.text} {symbol} CAST({source.choice((2, 3, 7))} AS {type_}))", type_, left.bound,
                        left.fallible)  # fmt: skip
        right = self.expression(type_, 0)
        if not right.has_column:
            right = Expr(f"CAST(3 AS {type_})", type_)
        return Expr(f"({left.text} {symbol} {right.text})", type_, left.bound, True)

    def _float(self, type_: str, depth: int, safe: bool) -> Expr:
        source = self._source
        match source.randrange(5):
            case 0 | 1:
                return self._arithmetic(type_, depth, safe, 1e30)
            case 2:
                return self._divided(type_, depth, safe)
            case 3:
                origin = source.choice(("smallint", "integer"))
                one = self.expression(origin, depth, safe=safe)
                return Expr(f"CAST({one.text} AS {type_})", type_, one.bound, one.fallible)
            case _:
                one = self.expression(type_, depth, safe=safe)
                call = source.choice(("floor({})", "ceil({})", "round({})", "trunc({})", "abs({})"))
                return Expr(f"CAST({call.format(f'CAST({one.text} AS double precision)')} AS {type_})", type_,
                            one.bound + 1, one.fallible or one.bound > 1e30)  # fmt: skip

    def _numeric(self, type_: str, depth: int, safe: bool) -> Expr:
        # Not deeper: what stands for PostgreSQL's numerics is large, and Spark takes minutes for a few within another.
        source, scale, depth = self._source, int(type_[-2]), 0
        match source.randrange(5):
            case 0 | 1:
                left, right = self.expression(type_, depth, safe=safe), self.expression(type_, depth, safe=safe)
                symbol = source.choice("+-*")
                bound = left.bound * right.bound if symbol == "*" else left.bound + right.bound
                fallible = left.fallible or right.fallible or bound > 1e20
                return Expr(f"CAST({left.text} {symbol} {right.text} AS {type_})", type_, bound, fallible)
            case 2 if source.random() < 0.3:
                one = self._divided(type_, depth, safe)
                return Expr(f"CAST({one.text} AS {type_})", type_, 1e12, one.fallible or one.bound > 1e12)
            case 3:
                one = self.expression(source.choice(INTEGERS), depth, safe=safe)
                return Expr(f"CAST({one.text} AS {type_})", type_, one.bound, one.fallible)
            case _:
                other = self.expression(source.choice(NUMERICS), depth, safe=safe)
                call = f"{source.choice(('round', 'trunc'))}({other.text}, {scale})"
                return Expr(f"CAST({call} AS {type_})", type_, other.bound + 1, other.fallible or other.bound > 1e20)

    def _text(self, depth: int, safe: bool) -> Expr:
        source, one = self._source, self.expression("text", depth, safe=safe)
        match source.randrange(6):
            case 0:
                other = self.expression("text", depth, safe=safe)
                return Expr(f"({one.text} || {other.text})", "text", 100, one.fallible or other.fallible)
            case 1 | 2:
                calls = (
                    "lower({})", "upper({})", "btrim({})", "ltrim({})", "reverse({})", "left({}, 2)", "right({}, 1)",
                    "substring({}, 2)", "substring({} FROM 1 FOR 2)", "replace({}, 'a', 'xy')", "md5({})",
                    "translate({}, 'ab', 'b')", "concat({}, '-', NULL, 1)", "lpad({}, 4, '*')",
                    "split_part({}, 'a', 1)",
                )  # fmt: skip
                return Expr(source.choice(calls).format(one.text), "text", 100, one.fallible)
            case _:
                origin = source.choice(("boolean", *INTEGERS, "numeric(38,2)", *TIMES))
                other = self.expression(origin, depth, safe=safe)
                return Expr(f"CAST({other.text} AS text)", "text", 100, other.fallible)

    def _time(self, type_: str, depth: int, safe: bool) -> Expr:
        source = self._source
        one = self.expression(source.choice(TIMES), depth, safe=safe)
        if type_ == "date":
            match source.randrange(4):
                case 0:
                    days = source.choice((1, 30, 365))
                    inner = self.expression("date", 0)
                    return Expr(f"({inner.text} {source.choice('+-')} {days})", "date")
                case 1 if not safe:
                    text = self.expression("text", depth, safe=safe)
                    return Expr(f"CAST({text.text} AS date)", "date", 100, True)
                case _:
                    return Expr(f"CAST({one.text} AS date)", "date", 100, one.fallible)
        if source.random() < 0.5:
            same = self.expression(type_, depth, safe=safe)
            return Expr(f"date_trunc('{source.choice(_UNITS)}', {same.text})", type_, 100, same.fallible)
        return Expr(f"CAST({one.text} AS {type_})", type_, 100, one.fallible)

    def field(self) -> Expr | None:
        """Returns a field of a date, as an integer."""
        one = self.column(self._source.choice(TIMES))
        if one is None:
            return None
        field = self._source.choice(_FIELDS)
        return Expr(f"CAST(floor(extract({field} FROM {one.text})) AS bigint)", "bigint", 1e11)
