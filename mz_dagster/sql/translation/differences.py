"""The places at which a query may mean something else in its own dialect than its translation does here.

One rule for each topic: which nodes it looks at, and what it says of one in a dialect. A rule that says nothing claims
that both mean the same. What no rule looks at and `_SAME` does not list is a function whose translation is sqlglot's
opinion: it is remarked on as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from mz_dagster.sql.translation.dialect import SourceDialect


@dataclass(frozen=True, slots=True)
class Remark:
    """What a translation says otherwise than the original, or what may mean something else.

    Attributes:
        topic: What it is about: `division`, `null order`, ...
        text: What the two dialects mean.
        is_exact: Whether the meaning is the same, since it is written otherwise.
        line: In which line of the translation, counted from 1; None for all of it.
    """

    topic: str
    text: str
    is_exact: bool = False
    line: int | None = None


#: What a rule says of a node: what may differ; with `=` before it, what is written otherwise to be the same.
Rule = Callable[[exp.Expr, SourceDialect], str | None]


def remarks_on(tree: exp.Expr, dialect: SourceDialect) -> Iterator[tuple[exp.Expr, Remark]]:
    """Yields each remark on a query that is still as its own dialect has it, with its node."""
    if dialect.is_postgres:
        return
    for node in tree.walk():
        found = [(topic, rule) for topic, nodes, rule in _RULES if isinstance(node, nodes)]
        for topic, rule in found:
            said = rule(node, dialect)
            if said is not None:
                yield node, Remark(topic, said.removeprefix("="), said.startswith("="))
        if not found and isinstance(node, exp.Func) and not isinstance(node, _SAME):
            yield node, Remark("function", _unknown(node, dialect))
    yield from _whole(tree, dialect)


def _unknown(node: exp.Expr, dialect: SourceDialect) -> str:
    if isinstance(node, exp.Anonymous):
        return f"{node.name}() is taken by its name; nothing is known of what {dialect.name} means by it"
    return f"{dialect.shown(node)} of {dialect.name} is translated by sqlglot; check NULLs, limits and types"


# ---- numbers


def _division(node: exp.Expr, dialect: SourceDialect) -> str | None:
    by_zero = None if _is_nonzero(node.expression) else "x / 0 is an error"
    if dialect.of.TYPED_DIVISION:
        return by_zero and "x / 0 is NULL, here too; of integers both truncate" if dialect.of.SAFE_DIVISION else None
    if dialect.name == "duckdb":
        exact = "/ divides as double precision, and so does the translation"
        return f"{exact}; x / 0 is infinity or NULL, here an error" if by_zero else f"={exact}"
    if dialect.is_spark:
        return (
            "/ divides integers as double precision, and so does the translation; of decimals it is a decimal there"
            + ("; x / 0 is NULL, unless in ANSI mode" if by_zero else "")
        )
    if dialect.name == "snowflake":
        return "/ of numbers is a number of six more digits there, here double precision"
    return f"/ of integers is no integer in {dialect.name}; the translation divides as double precision"


def _whole_division(node: exp.Expr, dialect: SourceDialect) -> str | None:
    zero = "" if _is_nonzero(node.expression) else "; by zero it is NULL there, unless in an ANSI mode, here an error"
    return f"an integer there, a numeric without fraction here{zero}"


def _modulo(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if _is_nonzero(node.expression) or not (dialect.of.SAFE_DIVISION or dialect.name == "duckdb"):
        return None
    return "x % 0 is NULL there, unless in an ANSI mode, here an error"


def _overflow(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if not dialect.is_spark or any(isinstance(one, exp.Literal | exp.Interval) for one in node.iter_expressions()):
        return None
    return "what is too large for its type wraps around outside of ANSI mode, or is NULL; here it is an error"


def _sum(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if dialect.name == "duckdb":
        return (
            "a sum of integers is a hugeint there; here a bigint, beyond which it is an error, and of bigints a numeric"
        )
    if dialect.is_spark:
        return "a sum of bigints wraps around outside of ANSI mode; here it is a numeric"
    return None


def _average(node: exp.Expr, dialect: SourceDialect) -> str | None:
    kind = {"snowflake": "a number of six more digits", "bigquery": "a float64, of numerics a numeric"}.get(
        dialect.name, "a double precision; of decimals a decimal of four more digits" if dialect.is_spark else None
    )
    kind = kind or "a double precision"
    return f"the average of integers is {kind} there; here it is a numeric of at least 16 digits"


def _round(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if node.args.get("decimals") is not None:
        return "a double precision rounded to digits is one there, by its binary value; here only a numeric can be"
    return "halves of double precision are rounded away from zero there, here to even; numerics alike"


def _float_literal(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if dialect.name == "bigquery" and not node.is_string and not node.is_int:
        return "a number with a point is a float64 there, here a numeric"
    return None


def _cast(node: exp.Expr, dialect: SourceDialect) -> str | None:
    to = node.args["to"].this
    said = []
    if isinstance(node, exp.TryCast) and not node.args.get("safe"):
        said.append("a cast that fails is NULL outside of ANSI mode, here an error")
    if to in _INTEGERS and not (isinstance(node.this, exp.Literal) and node.this.is_int):
        if dialect.is_spark:
            said.append("a fraction is cut off there, here rounded")
        elif dialect.name in ("snowflake", "bigquery"):
            said.append("halves of floats are rounded away from zero there, here to even")
    if to in _WIDE:
        said.append("the type holds more or other integers there; arithmetic overflows elsewhere")
    return "; ".join(said) or None


_INTEGERS = exp.DataType.SIGNED_INTEGER_TYPES
_WIDE = exp.DataType.UNSIGNED_INTEGER_TYPES | {exp.DataType.Type.INT128, exp.DataType.Type.INT256}
_ZONED = {exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ}


# ---- times


_ZONE = "it depends on the session's time zone there; here it is UTC"


def _zoned(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return _ZONE if node.args["to"].this in _ZONED else None


def _now(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return f"{_ZONE}, and a view that changes with time says mz_now()"


def _zone(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return _ZONE


def _interval(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if not any(isinstance(one, exp.Interval) for one in (node.this, node.expression)):
        return None
    return None if dialect.name == "duckdb" else "a date and an interval are a date there, here a timestamp"


def _date_arithmetic(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return (
        f"{dialect.shown(node)}: what is counted (whole units, or boundaries crossed), the day of shorter months "
        "and the type differ between engines"
    )


def _difference(node: exp.Expr, dialect: SourceDialect) -> str | None:
    unit = node.args.get("unit")
    if dialect.name == "duckdb" and unit is not None and unit.name.upper() == "DAY":
        return "=days between dates, a bigint there and an integer here"
    return _date_arithmetic(node, dialect)


def _truncated(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return f"{_ZONE}; a date becomes a timestamp with time zone here" if dialect.is_spark else (
        "of a date it is a timestamp with time zone, in UTC, here"
    )  # fmt: skip


def _field(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return f"{_ZONE}; an integer there, here a numeric" if dialect.is_spark else (
        "=an integer there, here a numeric of the same value"
    )  # fmt: skip


def _format(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "the letters of the format are translated one by one; check those of names, fractions and zones"


# ---- text


def _substring(node: exp.Expr, dialect: SourceDialect) -> str | None:
    start = node.args.get("start")
    if isinstance(start, exp.Literal) and start.is_int and (int(start.name) > 0 or dialect.name != "duckdb"):
        return None if int(start.name) > 0 else "=a start of 0 means 1 there, and is written so"
    if start is None or (isinstance(start, exp.Literal) and start.is_int):
        return None
    if isinstance(start, exp.Neg) and node.args.get("length") is None:
        return "=a negative start counts from the end there; written as right()"
    return "a start below 1 counts from the end there; here from before the first character"


def _concat(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if not dialect.of.CONCAT_COALESCE:
        return "=concat() of a NULL is NULL there; written with ||"
    if all(isinstance(one, exp.Literal | exp.Cast) for one in node.expressions):
        return None
    return (
        "concat() writes booleans as true and false there, here as t and f; numbers and times may look otherwise, too"
    )


def _concat_with(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return None if dialect.of.CONCAT_WS_COALESCE else "=concat_ws() of a NULL is NULL there; written as CASE"


def _extreme(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return None if dialect.of.LEAST_GREATEST_IGNORES_NULLS else "=NULL if an argument is NULL there; written as CASE"


def _like(node: exp.Expr, dialect: SourceDialect) -> str | None:
    pattern = node.expression
    if isinstance(pattern, exp.Literal) and "\\" not in pattern.name:
        return None
    if isinstance(node.parent, exp.Escape) or dialect.is_spark:
        return None
    return r"\ is no escape in a pattern there, unless ESCAPE says so; here it is"


def _regular_expression(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "another kind of regular expressions: check classes, flags, groups, and whether all matches are meant"


def _cut(node: exp.Expr, dialect: SourceDialect) -> str | None:
    count = node.expression
    if dialect.name == "duckdb" or (isinstance(count, exp.Literal) and count.is_int):
        return None
    return "a negative count gives an empty text or an error there, here all but so many characters"


def _json(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "JSON: check what is NULL and what is null, paths that lead nowhere, and quotes of texts"


# ---- rows


def _null_order(node: exp.Expr, dialect: SourceDialect) -> str | None:
    descending, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    place = "first" if first else "last"
    return None if descending == first else f"=NULLs come {place} there; written as NULLS {place.upper()}"


def _limit(node: exp.Expr, dialect: SourceDialect) -> str | None:
    of = node.parent
    if of is None or of.args.get("order") is not None:
        return None
    return "LIMIT without ORDER BY: which rows are left is anybody's choice; here the least by all columns"


def _unordered(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if node.find(exp.Order) is not None:
        return None
    return "of rows in no order: which, or in what order, is anybody's choice; here by the whole row"


def _collected(node: exp.Expr, dialect: SourceDialect) -> str | None:
    order = _unordered(node, dialect)
    if dialect.is_spark or dialect.name == "snowflake":
        return "; ".join(filter(None, ("NULLs are left out, and of no rows it is empty there, here NULL", order)))
    return order


def _index(node: exp.Expr, dialect: SourceDialect) -> str | None:
    offset = node.args.get("offset", dialect.of.INDEX_OFFSET)
    first = "" if offset == 1 else "elements are counted from 0 there, from 1 here; "
    return f"{first}an element that is not there is NULL here, elsewhere perhaps an error; so is a negative index"


def _unnested(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "rows of arrays: check those of NULL and of empty ones, and positions, which are counted from 1 here"


def _approximate(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "an approximation there"


def _group(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "=GROUP BY ALL is written with its keys" if node.args.get("all") else None


def _count_if(node: exp.Expr, dialect: SourceDialect) -> str | None:
    if dialect.name == "duckdb":
        return "count_if() of no rows, or of NULLs alone, is NULL in some releases of DuckDB, here 0"
    return "=count_if() is written as a count with a condition"


def _qualify(node: exp.Expr, dialect: SourceDialect) -> str | None:
    return "=QUALIFY is written as a condition on a subquery"


def _name(node: exp.Expr, dialect: SourceDialect) -> str | None:
    assert isinstance(node, exp.Identifier)
    text, _ = dialect.folded(node)
    if node.quoted and text != node.name:
        return f'="{node.name}" is written in lower case, since {dialect.name} takes both for one'
    if node.quoted and dialect.name in ("snowflake", "oracle") and text == text.lower() and node.name == text:
        return f'"{text}" in quotes is another name than {text} there, here the same'
    return None


def _whole(tree: exp.Expr, dialect: SourceDialect) -> Iterator[tuple[exp.Expr, Remark]]:
    """Yields the remarks on a query as a whole."""
    if dialect.name in _WHATEVER_CASE and tree.find(exp.EQ, exp.Like, exp.Group):
        said = "texts may be equal whatever their case there; here they compare by their bytes"
        yield tree, Remark("collation", said)
    for one in tree.selects if isinstance(tree, exp.Query) else ():
        if not isinstance(one, exp.Alias | exp.Column | exp.Dot) and not one.is_star:
            yield one, Remark("column name", "a column without a name of its own, which engines call differently")


#: Dialects in which the order of texts is mostly one that ignores case.
_WHATEVER_CASE = ("mysql", "tsql", "singlestore", "doris", "starrocks")


#: Functions of which all dialects mean the same, NULLs and all; those that a rule looks at are not among them.
_SAME = (
    exp.And, exp.Or, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Exists, exp.Count, exp.Min, exp.Max, exp.Abs,
    exp.Lower, exp.Upper, exp.Length, exp.Replace, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Pi, exp.Floor,
    exp.Ceil, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead,
    exp.FirstValue, exp.LastValue, exp.NthValue, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance,
    exp.VariancePop, exp.Trim, exp.SafeDivide, exp.Grouping, exp.LogicalAnd, exp.LogicalOr, exp.Columns,
    exp.Repeat, exp.StartsWith, exp.EndsWith, exp.Filter,
)  # fmt: skip

_RULES: tuple[tuple[str, tuple[type[exp.Expr], ...], Rule], ...] = (
    ("division", (exp.Div,), _division),
    ("division", (exp.IntDiv,), _whole_division),
    ("division", (exp.Mod,), _modulo),
    ("overflow", (exp.Add, exp.Sub, exp.Mul), _overflow),
    ("overflow", (exp.Sum,), _sum),
    ("rounding", (exp.Avg,), _average),
    ("rounding", (exp.Round,), _round),
    ("rounding", (exp.Literal,), _float_literal),
    ("cast", (exp.Cast,), _cast),
    ("time zone", (exp.Cast,), _zoned),
    ("time zone", (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime), _now),
    ("time zone", (exp.AtTimeZone, exp.FromTimeZone, exp.ConvertTimezone, exp.UnixToTime, exp.TimeToUnix), _zone),
    ("date arithmetic", (exp.Add, exp.Sub), _interval),
    ("date arithmetic", (exp.DateDiff, exp.DatetimeDiff, exp.TimestampDiff), _difference),
    (
        "date arithmetic",
        (
            exp.DateAdd, exp.DateSub, exp.DatetimeAdd, exp.DatetimeSub, exp.TimestampAdd, exp.TimestampSub,
            exp.TsOrDsAdd, exp.AddMonths, exp.MonthsBetween, exp.LastDay,
            exp.DayOfWeek, exp.WeekOfYear, exp.Week,
        ),
        _date_arithmetic,
    ),
    ("date arithmetic", (exp.TimestampTrunc, exp.DateTrunc, exp.DatetimeTrunc), _truncated),
    ("date arithmetic", (exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute), _field),
    ("date format", (exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.ToChar, exp.ToNumber), _format),
    ("substring", (exp.Substring,), _substring),
    ("substring", (exp.Left, exp.Right), _cut),
    ("text", (exp.Concat,), _concat),
    ("null", (exp.ConcatWs,), _concat_with),
    ("null", (exp.Greatest, exp.Least), _extreme),
    ("pattern", (exp.Like, exp.ILike), _like),
    (
        "regular expression",
        (exp.RegexpLike, exp.RegexpILike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpExtractAll, exp.RegexpSplit),
        _regular_expression,
    ),
    ("json", (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.ParseJSON), _json),
    ("null order", (exp.Ordered,), _null_order),
    ("row order", (exp.Limit,), _limit),
    ("row order", (exp.ArrayAgg,), _collected),
    ("row order", (exp.GroupConcat, exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin), _unordered),
    ("array", (exp.Bracket,), _index),
    ("array", (exp.Unnest, exp.Explode, exp.Posexplode, exp.ExplodeOuter, exp.Lateral), _unnested),
    ("approximation", (exp.ApproxDistinct, exp.ApproxQuantile), _approximate),
    ("clause", (exp.Qualify,), _qualify),
    ("clause", (exp.Group,), _group),
    ("null", (exp.CountIf,), _count_if),
    ("name", (exp.Identifier,), _name),
)  # fmt: skip


def _is_nonzero(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) != 0
