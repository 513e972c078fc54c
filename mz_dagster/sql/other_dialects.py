"""Functions that Spark, DuckDB, Snowflake or BigQuery have and PostgreSQL has not, and how PostgreSQL says the same.

Who has queries of such a dialect meets them first; what stands here is told with the error, and is no translation:
`translation` is, by which `mz-dagster import` translates whole queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FIELDS = {
    "year": "year", "quarter": "quarter", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour",
    "minute": "minute", "second": "second", "dayofyear": "doy", "dayofweek": "dow", "weekday": "isodow",
    "weekofyear": "week", "week": "week",
}  # fmt: skip
_SAME = {
    "coalesce(x, y)": ("nvl", "ifnull", "isnull"),
    "coalesce(x, 0)": ("zeroifnull",),
    "nullif(x, 0)": ("nullifzero",),
    "CASE WHEN x IS NOT NULL THEN y ELSE z END": ("nvl2",),
    "CASE WHEN p THEN x ELSE y END": ("if", "iff", "iif"),
    "x IS NOT DISTINCT FROM y": ("equal_null",),
    "x / nullif(y, 0)": ("safe_divide", "try_divide", "div0", "div0null"),
    "min(x)": ("any_value", "arbitrary"),
    "(array_agg(x ORDER BY y))[1]": ("first", "min_by", "arg_min"),
    "(array_agg(x ORDER BY y DESC))[1]": ("last", "max_by", "arg_max"),
    "array_agg(x)": ("collect_list",),
    "array_agg(DISTINCT x)": ("collect_set", "array_unique_agg"),
    "count(*) FILTER (WHERE p)": ("count_if", "countif"),
    "string_agg(s, ',')": ("group_concat", "listagg"),
    "count(DISTINCT x)": ("approx_count_distinct", "approx_distinct", "ndv"),
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)": ("median", "percentile", "approx_percentile", "quantile_cont"),
    "d - e": ("datediff", "date_diff"),
    "t - u": ("timestampdiff", "timestamp_diff"),
    "t + interval '1 day'": ("dateadd", "date_add", "timestampadd", "timestamp_add"),
    "t - interval '1 day'": ("date_sub", "timestamp_sub"),
    "d + interval '1 month'": ("add_months",),
    "(date_trunc('month', d) + interval '1 month - 1 day')::date": ("last_day",),
    "to_char(t, 'YYYY-MM-DD')": ("date_format", "strftime", "format_date", "format_timestamp"),
    "to_timestamp(x)": ("from_unixtime",),
    "extract(epoch FROM t)": ("unix_timestamp", "epoch"),
    "now()": ("getdate", "sysdate"),
    "length(s)": ("len",),
    "upper(s)": ("ucase",),
    "lower(s)": ("lcase",),
    "strpos(s, 'a')": ("instr", "locate", "charindex"),
    "strpos(s, 'a') > 0": ("contains",),
    "starts_with(s, 'a')": ("startswith",),
    "right(s, 1) = 'a'": ("endswith", "ends_with"),
    "s ~ 'a'": ("regexp_contains",),
    "substring(s FROM 'a(.)')": ("regexp_extract",),
    "split_part(s, ',', 1)": ("substring_index",),
    "string_to_array(s, ',')": ("split",),
    "repeat(' ', x)": ("space",),
    "x::text": ("to_varchar",),
    "s::jsonb": ("parse_json", "from_json"),
    "j ->> 'a'": ("get_json_object", "json_extract_scalar"),
    "j -> 'a'": ("json_extract",),
    "jsonb_build_object('a', x)": ("named_struct", "struct", "object_construct"),
    "cardinality(a)": ("size", "array_size"),
    "x = ANY (a)": ("array_contains", "list_contains"),
    "a[1]": ("element_at",),
    "unnest(a)": ("explode",),
    "random()": ("rand",),
    "gen_random_uuid()": ("generate_uuid", "uuid_string"),
}

FORMS: Final[Mapping[str, str]] = {
    **{name: form for form, names in _SAME.items() for name in names},
    **{name: f"extract({field} FROM t)" for name, field in _FIELDS.items()},
}
"""What to write instead, by the other function's name: of numbers x, y and z, a text s, dates d and e, timestamps t and
u, a boolean p, an array a, a jsonb j."""


def advice_on(name: str) -> str | None:
    """Returns a hint that says how PostgreSQL writes a function of other dialects; None if it is not known.

    Example:
        >>> advice_on("nvl")
        'In PostgreSQL this is coalesce(x, y). "mz-dagster import" translates whole queries of other dialects.'
    """
    form = FORMS.get(name)
    if form is None:
        return None
    return f'In PostgreSQL this is {form}. "mz-dagster import" translates whole queries of other dialects.'
