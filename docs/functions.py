"""Writes `functions.md`, the reference of operators and functions, from the table: `python -m docs.functions`.

A test holds that the page is what the table says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mz_dagster.functions import AGGREGATES, FUNCTIONS, OVERLOADS, TABLE_OVERLOADS, Overload
from mz_dagster.functions.aggregates.algebra import Signature
from mz_dagster.functions.descriptions import DESCRIPTIONS
from mz_dagster.functions.function import Pseudo
from mz_dagster.functions.polymorphic import POLYMORPHIC
from mz_dagster.scalars.types import Kind, ScalarType

PAGE = Path(__file__).with_name("functions.md")

_HEAD = """\
# Operators and functions

Made from the table of functions by `python -m docs.functions`; what is not here is refused when a query is bound, with
its position. Each returns what PostgreSQL 15 returns, value or error, in UTC and with C collation. Arguments are cast
as in PostgreSQL: `smallint` fits where `integer` is named. `numeric` has a scale that is fixed when the query is bound,
and 38 digits in all; `unconstrained numeric` is SQL's `numeric` without a scale, of any number of digits.

Beside these there are forms with a syntax of their own: `AND`, `OR`, `NOT`, `IS [NOT] NULL | TRUE | FALSE | UNKNOWN |
DISTINCT FROM`, `BETWEEN`, `IN`, `ANY`, `ALL`, `EXISTS`, `CASE`, `CAST`, `coalesce`, `nullif`, `greatest`, `least`,
`concat`, `concat_ws`, `format`, `extract`, `date_part`, `date_trunc` and `make_timestamptz`, both also with a zone,
`AT TIME ZONE`, `OVERLAPS`, `ROW`, `ARRAY`, subscripts and slices, `jsonb_build_array`, `jsonb_build_object`,
`to_jsonb`, the same of `json`, `row_to_json`, `array_to_json`, and `mz_now()`. Types are functions, too: `float8(x)`.
`round(x::numeric, 2)` rounds a double, as in PostgreSQL. Its type is `numeric(38,2)`, which other programs read as a
decimal; rows of NaN, infinities and more digits are errors there. `round(x::numeric::numeric, 2)` has no scale and
holds them.

Window functions are the [aggregates](#aggregates) without `WITHIN GROUP`, and `row_number`, `rank`, `dense_rank`,
`percent_rank`, `cume_dist`, `ntile`, `lag`, `lead`, `first_value`, `last_value`, `nth_value`.

`exp`, `ln`, `power` and the trigonometric functions of floats are the C library's, as PostgreSQL's are: their last
digit is the same wherever the library is.
"""
_ROWS = """\
In `FROM`, also after `LATERAL`, in `ROWS FROM` and `WITH ORDINALITY`, and in the list of a `SELECT`; besides these
`unnest` of one or several arrays, `generate_subscripts`, `jsonb_to_record` and `jsonb_to_recordset`,
`json_to_record` and `json_to_recordset`, `jsonb_populate_record(NULL::t, ...)` and its kin, whose first argument may be
a row of `t`, too.
"""
_AGGREGATES = """\
Over the rows of a group or of a window's frame; each ignores rows whose argument is NULL, but for `array_agg` and those
that make JSON. `DISTINCT`, `ORDER BY` and `FILTER` are as in PostgreSQL. Maintained is an *accumulable* one by sums, a
*hierarchical* one by those of parts of its group, and a *basic* one by making it of its group again.
"""


def page() -> str:
    """Returns the text of the page."""
    operators, functions = dict[str, list[str]](), dict[str, list[str]]()
    for name, lines in _calls():
        (functions if name.replace("_", "a").isalnum() else operators).setdefault(name, []).extend(lines)
    rows = dict[str, list[str]]()
    for name, overloads in TABLE_OVERLOADS.items():
        rows[name] = [_line(one) for one in overloads]
    parts = [_HEAD, "## Operators\n", *_table(operators), "\n## Functions\n", *_table(functions)]
    parts += ["\n## Functions that return rows\n", _ROWS, *_table(rows)]
    parts += ["\n## Aggregates\n", _AGGREGATES, *_aggregates()]
    return "\n".join(parts) + "\n"


def _aggregates() -> Iterator[str]:
    yield "| name | what it returns | example | arguments and result | maintained |"
    yield "|---|---|---|---|---|"
    for name, one in sorted(AGGREGATES.items()):
        if one.example is None:
            continue
        shown = f"{_code(one.example.call)} of {_code(one.example.rows)} → {_code(one.example.gives)}"
        lines = "<br>".join(_signatures(one.signatures))
        yield f"| {_code(name)} | {one.says} | {shown} | {lines} | {one.aggregate_class.value} |"


def _signatures(signatures: Sequence[Signature]) -> Iterator[str]:
    """Yields lines for signatures, one for those that differ in one kind and return that, or all return the same."""
    found = dict[tuple[tuple[Kind | None, ...], int, int, str], list[Kind | None]]()
    for one in signatures:
        varying, fixed = (one.ordered, one.arguments) if one.ordered else (one.arguments[:1], one.arguments[1:])
        same = one.result is None or (one.result,) == varying
        result = f": refused. {one.refused}" if one.refused else f" → {'the same type' if same else _kind(one.result)}"
        found.setdefault((fixed, len(varying), len(one.ordered), result), []).extend(varying)
    for (fixed, count, ordered, result), kinds in found.items():
        if len(kinds) == 1 and None not in kinds:
            result = result.replace("the same type", _kind(kinds[0]))
        choice, others = " or ".join(map(_kind, kinds)), [_kind(kind) for kind in fixed]
        if ordered:
            yield f"{_listed(others)} within group {_listed([choice])}{result}"
        else:
            yield f"{_listed([choice, *others] if count else ['*'])}{result}"


def _kind(kind: Kind | None) -> str:
    return "any" if kind is None else kind.value


def _calls() -> Iterator[tuple[str, list[str]]]:
    for name, overloads in sorted(OVERLOADS.items()):
        yield name, [_line(one) for one in overloads]
    for name, calls in sorted(POLYMORPHIC.items()):
        yield name, [f"{_listed(map(_named, arguments))} → {_named(result)}" for _, arguments, result in calls]


def _line(one: Overload) -> str:
    arguments = _listed(kind.value for kind in one.signature)
    if one.refused:
        return f"{arguments}: refused, {one.refused}"
    result = FUNCTIONS[one.implementation].result
    return f"{arguments} → {'the same type' if result is None else result.value}"


def _listed(kinds: Iterable[str]) -> str:
    return f"({', '.join(kinds)})"


def _named(type_: Pseudo | ScalarType) -> str:
    match type_:
        case Pseudo.ARRAY:
            return "array"
        case Pseudo.ELEMENT:
            return "element"
        case _:
            return str(type_) if type_.kind is not Kind.NUMERIC else Kind.NUMERIC.value


def _table(calls: dict[str, list[str]]) -> Iterator[str]:
    yield "| name | what it returns | example | arguments and result |"
    yield "|---|---|---|---|"
    for name, lines in sorted(calls.items()):
        one = DESCRIPTIONS[name]
        example = f"{_code(one.example)} → {_code(one.result)}" if one.example else ""
        yield f"| {_code(name)} | {one.text} | {example} | {'<br>'.join(dict.fromkeys(lines))} |"


def _code(text: str) -> str:
    """Returns text as code in a cell of a table."""
    shown = text.replace("|", "\\|")
    return f"`{shown}`" if shown else "the empty text"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
