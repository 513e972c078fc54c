"""The table of functions, made of their records.

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
from mz_dagster.functions.casts import CASTS, short_name
from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.functions.references import RECORDS, REFUSED
from mz_dagster.scalars.types import Kind

#: The reader's time; what its one argument, a literal, is about: `scalars/scalar.py`. Never evaluated.
_NOW = Function("mz_now", (), Kind.MZ_TIMESTAMP, strict=False, nullability=Nullability.NEVER)

INTERNAL_FUNCTIONS = frozenset(name for name, record in RECORDS.items() if record.internal)


def _functions() -> Iterator[Function]:
    yield _NOW
    for (source, target), (_, fallible) in CASTS.items():
        yield Function(f"cast_{short_name(source)}_to_{short_name(target)}", (source,), target, fallible=fallible)
    for record in RECORDS.values():
        yield record.function


FUNCTIONS: dict[str, Function] = {one.name: one for one in _functions()}


def _overloads() -> Iterator[Overload]:
    yield from REFUSED
    for record in RECORDS.values():
        yield from record.overloads


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
TABLE_OVERLOADS = _by_name(one for record in RECORDS.values() for one in record.row_overloads)
#: The one column's name of functions that give it a name; it is called as the function, or its alias, otherwise.
SET_COLUMNS = dict.fromkeys(
    ("json_array_elements", "json_array_elements_text", "jsonb_array_elements", "jsonb_array_elements_text"), "value"
)
