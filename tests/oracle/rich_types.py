"""Random expressions over the types that are not numbers, texts, booleans or moments; none of them can fail.

Values have one representation where equal values may have several ('1.0' beside '1.00' in jsonb): which of them a group
shows is nobody's business. Intervals are justified, and numerics lose zeros at their end, before they are compared (see
`expressions.plain`).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.expressions import Expr

ARRAYS = ("integer[]", "text[]", "integer[][]")
RICH_TYPES = ("interval", "time", "uuid", "bytea", "jsonb", "numeric", "varchar(5)", "char(3)", *ARRAYS)

#: Values that are often equal, as text.
RICH_POOLS: dict[str, tuple[str, ...]] = {
    "interval": ("1 day", "24:00:00", "1 mon", "30 days", "-00:00:01.5", "1 year 2 mons -3 days 04:05:06", "00:00:00"),
    "time": ("00:00:00", "12:34:56.789", "23:59:59.999999", "01:02:03"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
             "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12"),
    "bytea": (r"\x", r"\x00", r"\xdeadbeef", r"\xff00", "abc"),
    "jsonb": ("null", "true", "1", "-2.5", '"a"', '""', "[]", '[1, "a", null]', '{"a": 1}', '{"b": [1], "a": {"a": 2}}',
              '{"a": "x", "c": null}'),
    "numeric": ("0", "1", "2.5", "-3.25", "10", "1e40", "-0.000000000000000000000000000000000000000001", "NaN",
                "Infinity"),
    "varchar(5)": ("", "a", "ab", "é", "a b", "abcde"),
    "char(3)": ("", "a", "ab", "abc", "é"),
    "integer[]": ("{}", "{1}", "{1,2}", "{2,NULL,1}", "{1,1}"),
    "integer[][]": ("{}", "{{1,2},{3,NULL}}", "{{1,2}}", "{1,2}", "[0:1]={1,2}", "{{{1}},{{2}}}"),
    "text[]": ("{}", "{a}", "{a,b}", '{"a b",NULL}', '{"",a}'),
}  # fmt: skip

#: Makes an expression of a type over columns, one level less deep.
Make = Callable[[str], "Expr"]

#: Type -> forms with the types of their arguments.
_FORMS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "interval": (
        ("({} + {})", ("interval", "interval")), ("({} - {})", ("interval", "interval")), ("(- {})", ("interval",)),
        ("({} * 2)", ("interval",)), ("({} - {})", ("timestamp", "timestamp")), ("({} - {})", ("time", "time")),
        ("justify_interval({})", ("interval",)), ("CAST({} AS interval)", ("time",)),
        ("date_trunc('day', {})", ("interval",)), ("age({}, {})", ("timestamp", "timestamp")),
    ),
    "time": (
        ("({} + {})", ("time", "interval")), ("({} - {})", ("time", "interval")), ("CAST({} AS time)", ("timestamp",)),
        ("date_trunc('hour', {})::time", ("time",)),
    ),
    "uuid": (("CAST(CAST({} AS text) AS uuid)", ("uuid",)), ("CAST(md5({}) AS uuid)", ("text",))),
    "bytea": (
        ("({} || {})", ("bytea", "bytea")), ("substring({} FROM 1 FOR 2)", ("bytea",)), ("sha256({})", ("bytea",)),
        ("decode(md5({}), 'hex')", ("text",)),
    ),
    "jsonb": (
        ("({} -> 'a')", ("jsonb",)), ("({} -> 0)", ("jsonb",)), ("({} #> '{{a,a}}')", ("jsonb",)),
        ("to_jsonb({})", ("integer",)), ("to_jsonb({})", ("text",)), ("to_jsonb({})", ("boolean",)),
        ("jsonb_build_object('k', {}, 'b', {})", ("integer", "text")), ("jsonb_build_array({}, {})", ("text", "jsonb")),
        ("jsonb_strip_nulls({})", ("jsonb",)),
    ),
    "numeric": (
        ("({} + {})", ("numeric", "numeric")), ("({} - {})", ("numeric", "numeric")), ("(- {})", ("numeric",)),
        ("({} * {})", ("numeric", "numeric")), ("abs({})", ("numeric",)), ("trim_scale({})", ("numeric",)),
        ("greatest({}, {})", ("numeric", "numeric")), ("round({}, 1)", ("numeric",)),
    ),
    "varchar(5)": (("CAST({} AS varchar(5))", ("text",)),),
    "char(3)": (("CAST({} AS char(3))", ("text",)), ("CAST({} AS char(3))", ("varchar(5)",))),
    "integer[]": (
        ("({} || {})", ("integer[]", "integer[]")), ("array_append({}, {})", ("integer[]", "integer")),
        ("ARRAY[{}, {}]", ("integer", "integer")), ("array_remove({}, {})", ("integer[]", "integer")),
    ),
    "integer[][]": (
        ("({})[1:1]", ("integer[][]",)), ("array_replace({}, 1, {})", ("integer[][]", "integer")),
        ("CAST({} AS integer[][])", ("integer[]",)), ("ARRAY[[{}, {}]]", ("integer", "integer")),
        ("greatest({}, {})", ("integer[][]", "integer[][]")),
    ),
    "text[]": (
        ("({} || {})", ("text[]", "text[]")), ("string_to_array({}, 'a')", ("text",)), ("ARRAY[{}]", ("text",)),
        ("array_replace({}, 'a', {})", ("text[]", "text")), ("regexp_split_to_array({}, '[ab]+')", ("text",)),
    ),
    "boolean": (
        ("({} @> {})", ("jsonb", "jsonb")), ("({} ? 'a')", ("jsonb",)), ("({} @> {})", ("integer[]", "integer[]")),
        ("({} < {})", ("integer[][]", "integer[][]")), ("({} = ANY ({}))", ("integer", "integer[][]")),
        ("({} < {})", ("numeric", "numeric")), ("(ARRAY[{}, {}] = ARRAY[{}, 1.0])", ("numeric", "numeric", "numeric")),
        ("({} && {})", ("text[]", "text[]")), ("({} = ANY ({}))", ("integer", "integer[]")),
        ("({} ~ '^[a-z]+$')", ("text",)), ("({} !~* 'A')", ("text",)), ("({} SIMILAR TO '%(a|b)%')", ("text",)),
    ),
    "text": (
        ("({} ->> 'a')", ("jsonb",)), ("jsonb_typeof({})", ("jsonb",)), ("CAST({} AS text)", ("uuid",)),
        ("CAST({} AS text)", ("interval",)), ("CAST({} AS text)", ("time",)), ("CAST({} AS text)", ("jsonb",)),
        ("encode({}, 'hex')", ("bytea",)), ("regexp_replace({}, '([a-z])', '<\\1>', 'g')", ("text",)),
        ("initcap({})", ("text",)), ("array_to_string({}, ',', '-')", ("text[]",)), ("CAST({} AS text)", ("char(3)",)),
        ("CAST({} AS text)", ("double precision",)), ("CAST({} AS text)", ("integer[]",)), ("({})[1]", ("text[]",)),
        ("CAST({} AS text)", ("integer[][]",)), ("array_dims({})", ("integer[][]",)),
        ("to_char({}, 'YYYY-MM-DD HH24:MI:SS.US')", ("timestamp",)),
    ),
    "integer": (
        ("({})[1][2]", ("integer[][]",)),
        ("array_length({}, 1)", ("integer[]",)), ("cardinality({})", ("text[]",)), ("length({})", ("bytea",)),
        ("CAST(extract(hour FROM {}) AS integer)", ("time",)), ("regexp_count({}, '[a-z]')", ("text",)),
    ),
    "timestamp": (("({} + {})", ("timestamp", "interval")), ("({} + {})", ("date", "interval")),
                  ("({} + {})", ("date", "time"))),
    "timestamptz": (("({} - {})", ("timestamptz", "interval")), ("({} AT TIME ZONE 'UTC')", ("timestamp",))),
}  # fmt: skip
#: What of the expressions of an integer type is bounded by: lengths, and elements of arrays as they come.
_BOUND = 10_000


def rich(source: Random, type_: str, make: Make) -> tuple[str, float] | None:
    """Returns the text and the bound of an operation that yields `type_`, or None if there is none."""
    forms = _FORMS.get(type_)
    if forms is None:
        return None
    form, types = source.choice(forms)
    return form.format(*(make(one).text for one in types)), _BOUND
