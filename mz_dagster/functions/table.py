"""The table of functions.

Owns `FUNCTIONS`, every implementation the renderer has, and `OVERLOADS`, the SQL names and signatures that lead to
them. What is here returns what PostgreSQL 15 returns, with C collation and in UTC, value or error, as
`tests/compute/test_scalar_against_postgres.py` holds; what cannot be computed exactly is an overload with
`refused`, so that it is refused and does not silently become another one.

Numeric results have a scale that is fixed when bound, and 38 digits in all; a result that needs more is
`22003 numeric field overflow`. Unconstrained numerics (`numbers/unconstrained.py`) have neither limit: a call is over
them if an argument is one, if no rule gives the result a scale, and if the result of known arguments does not fit its
scale.

| operation | scale of the result |
|---|---|
| `+ - %`, greatest, least, common type | the greater scale |
| `*` | the sum of the scales; unconstrained above 38 |
| `/` | the greatest of 20 and both scales; the value is rounded to the digits PostgreSQL would show (at least 16 \
significant ones, `select_div_scale`), as far as the scale holds them |
| `round(x, n)`, `trunc(x, n)` | n (0 if negative) if it is a literal, else unconstrained; \
`round(x)`, `trunc`, `ceil`, `floor`: 0 |
| unary `-`, `abs` | the argument's |

Narrower than PostgreSQL: finite dates and timestamps range from 0001-01-01 to 9999-12-31, fields of infinite ones that
are infinite themselves are errors, and a time is before 24:00; where an interval of PostgreSQL wraps around, it is out
of range; time zones have IANA names, by the machine's database, or are intervals, not abbreviations; an interval has no
calendar in `to_char`; a quotient of numerics has at most 17 digits before the point and its divisor at most 37 digits
in all; `repeat`, `lpad` and `rpad` make at most 16 MB of text. What is beyond is an error with PostgreSQL's code for
the like. `char(n)`s of different lengths have no common type; `regexps/regexp_syntax.py` and
`numbers/number_templates.py` say which patterns and templates are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from mz_dagster.functions import evaluation  # noqa: F401  it has records
from mz_dagster.functions.areas import functions as functions_of_areas
from mz_dagster.functions.areas import overloads as overloads_of_areas
from mz_dagster.functions.areas import set_overloads
from mz_dagster.functions.casts import CASTS, short_name
from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.functions.jsonb import jsonb_table as jsonb
from mz_dagster.functions.moments import moment_table as moments
from mz_dagster.functions.moments.infinite import RULES, InfiniteResult
from mz_dagster.functions.references import RECORDS, REFUSED
from mz_dagster.scalars.types import Kind

_B, _I2, _I4, _I8 = Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8
_F4, _F8, _N, _T = Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT
_ARRAY = Kind.ARRAY
_D, _TS, _TZ, _MZ = Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.MZ_TIMESTAMP

_INTEGERS = (_I2, _I4, _I8)
#: The kinds whose values compare by operators of their own.
_SCALAR_KINDS: tuple[Kind, ...] = (_B, *_INTEGERS, _F4, _F8, _N, _T, _D, _TS, _TZ, _MZ)

#: Functions of any arguments, built by the binder without a lookup: (name, result, fallible, nullability).
GENERIC: dict[str, tuple[Kind | None, bool, Nullability]] = {
    "and": (_B, False, Nullability.IF_ANY_ARGUMENT),
    "or": (_B, False, Nullability.IF_ANY_ARGUMENT),
    "is_null": (_B, False, Nullability.NEVER),
    "is_not_null": (_B, False, Nullability.NEVER),
    "is_true": (_B, False, Nullability.NEVER),
    "is_not_true": (_B, False, Nullability.NEVER),
    "is_false": (_B, False, Nullability.NEVER),
    "is_not_false": (_B, False, Nullability.NEVER),
    "is_distinct_from": (_B, False, Nullability.NEVER),
    "is_not_distinct_from": (_B, False, Nullability.NEVER),
    "coalesce": (None, False, Nullability.IF_ALL_ARGUMENTS),
    "greatest": (None, False, Nullability.IF_ALL_ARGUMENTS),
    "least": (None, False, Nullability.IF_ALL_ARGUMENTS),
    "concat": (_T, False, Nullability.NEVER),
    "concat_ws": (_T, False, Nullability.IF_FIRST_ARGUMENT),
    # The reader's time; what its one argument, a literal, is about: `scalars/scalar.py`. Never evaluated.
    "mz_now": (_MZ, False, Nullability.NEVER),
    # Fails with the SQLSTATE and message that its argument is wherever it is evaluated; of NULL, NULL.
    "error": (None, True, Nullability.IF_ALL_ARGUMENTS),
    # Its argument, NULL where that fails.
    "without_error": (None, False, Nullability.ALWAYS),
    # The SQLSTATE and message with which its argument fails; NULL where it does not.
    "error_of": (_T, False, Nullability.ALWAYS),
}


#: Fields of extract: name -> (kinds it applies to, scale). PostgreSQL refuses the others for the kind.
EXTRACT_FIELDS: dict[str, tuple[tuple[Kind, ...], int]] = {
    **dict.fromkeys(
        (
            "millennium",
            "century",
            "decade",
            "year",
            "isoyear",
            "quarter",
            "month",
            "week",
            "day",
            "dow",
            "isodow",
            "doy",
        ),
        ((_D, _TS, _TZ), 0),
    ),
    **dict.fromkeys(("hour", "minute", "microseconds"), ((_TS, _TZ), 0)),
    "second": ((_TS, _TZ), 6),
    "milliseconds": ((_TS, _TZ), 3),
    "epoch": ((_D, _TS, _TZ), 6),
    "timezone": ((_TZ,), 0),
    "timezone_hour": ((_TZ,), 0),
    "timezone_minute": ((_TZ,), 0),
}

#: Units of date_trunc.
TRUNC_UNITS = (
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
)

_FIELD_SYNONYMS = {
    "years": "year", "y": "year", "yr": "year", "yrs": "year", "months": "month", "mon": "month", "mons": "month",
    "days": "day", "d": "day", "hours": "hour", "h": "hour", "hr": "hour", "hrs": "hour", "minutes": "minute",
    "m": "minute", "min": "minute", "mins": "minute", "seconds": "second", "s": "second", "sec": "second",
    "secs": "second", "weeks": "week", "w": "week", "qtr": "quarter", "decades": "decade", "dec": "decade",
    "decs": "decade", "centuries": "century", "c": "century", "cent": "century", "millennia": "millennium",
    "mil": "millennium", "mils": "millennium", "us": "microseconds", "usec": "microseconds", "usecs": "microseconds",
    "useconds": "microseconds", "usecond": "microseconds", "microsecon": "microseconds", "microsecond": "microseconds",
    "ms": "milliseconds", "msec": "milliseconds", "msecs": "milliseconds", "mseconds": "milliseconds",
    "msecond": "milliseconds", "millisecon": "milliseconds", "millisecond": "milliseconds",
}  # fmt: skip


def field_name(text: str) -> str:
    """Returns the one name of a date field that `text` spells.

    Example:
        >>> field_name("Mons")
        'month'
    """
    lowered = text.lower()
    return _FIELD_SYNONYMS.get(lowered, lowered)


#: What only plans call, without a SQL name; `accumulation.py` and `float_sum.py` in `compute/spark/expressions` say
#: what they return.
_INTERNAL = (
    # The next time after a time; the last one has none.
    Function("step_mz_timestamp", (_MZ,), _MZ, fallible=True),
    # Within an array or record.
    Function("unsigned_zeros", (), None),
    # Floating-point numbers, also within, beside whether they are -0.0, and back; see `plan/representations.py`.
    Function("represented_floats", (), None),
    Function("restored_floats", (), None),
    # What stands for an array or record that holds what is equal and looks different.
    Function("comparable_parts", (), None),
    Function("sorted_parts", (), None),
    Function("ordered_parts", (), Kind.BYTEA),
    Function("restored_parts", (), None),
    Function("order_array", (_ARRAY,), _ARRAY),
    Function("order_dimensioned", (Kind.DIMENSIONED,), _ARRAY),
    *moments.INTERNAL,
    *jsonb.INTERNAL,
)
INTERNAL_FUNCTIONS = frozenset(
    [*(one.name for one in _INTERNAL), *(name for name, record in RECORDS.items() if record.internal)]
)


def _functions() -> Iterator[Function]:
    for name, (result, fallible, nullability) in GENERIC.items():
        yield Function(name, (), result, strict=False, fallible=fallible, nullability=nullability)
    yield Function("not", (_B,), _B)
    yield Function("add_date_int4", (_D, _I4), _D, fallible=True)
    yield Function("add_int4_date", (_I4, _D), _D, fallible=True)
    yield Function("subtract_date_int4", (_D, _I4), _D, fallible=True)
    yield Function("subtract_date_date", (_D, _D), _I4, fallible=True)
    for field, (kinds, _) in EXTRACT_FIELDS.items():
        for kind in kinds:
            # Of what is infinite some fields are unknown, and the others errors.
            is_growing = RULES[f"extract_{field}_{short_name(kind)}"].outcome is not InfiniteResult.UNKNOWN
            yield Function(
                f"extract_{field}_{short_name(kind)}",
                (kind,),
                _N,
                fallible=is_growing,
                nullability=Nullability.IF_ANY_ARGUMENT if is_growing else Nullability.ALWAYS,
            )
    for unit in TRUNC_UNITS:
        for kind in (_TS, _TZ):
            # The first week of year 1 and the like begin before the first date there is.
            yield Function(f"date_trunc_{unit}_{short_name(kind)}", (kind,), kind, fallible=True)
    for (source, target), (_, fallible) in CASTS.items():
        yield Function(f"cast_{short_name(source)}_to_{short_name(target)}", (source,), target, fallible=fallible)
    # How concat() spells a boolean, unlike the cast.
    yield Function("output_bool", (_B,), _T)
    yield from _INTERNAL
    yield from functions_of_areas()
    for record in RECORDS.values():
        yield record.function


FUNCTIONS: dict[str, Function] = {one.name: one for one in _functions()}


def _overloads() -> Iterator[Overload]:
    yield from overloads_of_areas()
    yield from REFUSED
    for record in RECORDS.values():
        yield from record.overloads
    yield Overload("not", (_B,), "not")
    yield Overload("+", (_D, _I4), "add_date_int4")
    yield Overload("+", (_I4, _D), "add_int4_date")
    yield Overload("-", (_D, _I4), "subtract_date_int4")
    yield Overload("-", (_D, _D), "subtract_date_date")


def _by_name(overloads: Iterable[Overload]) -> dict[str, tuple[Overload, ...]]:
    """Returns overloads by their names, those of one name in the order of their signatures.

    No two of one name have one signature, so that their order is nobody's business.
    """
    places = {kind: place for place, kind in enumerate(Kind)}

    def key(one: Overload) -> tuple[str, int, list[int]]:
        return one.sql_name, len(one.signature), [places[kind] for kind in one.signature]

    return {name: tuple(several) for name, several in groupby(sorted(overloads, key=key), lambda one: one.sql_name)}


OVERLOADS = _by_name(_overloads())

#: The functions that return rows, as arrays of them.
TABLE_OVERLOADS = _by_name((*set_overloads(), *(one for record in RECORDS.values() for one in record.row_overloads)))
