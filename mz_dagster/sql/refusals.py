"""The reasons for which legal forms of expression are refused, in one table each."""

from __future__ import annotations

from sqlglot import exp

from mz_dagster.errors import NotSupportedError
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import UnsupportedForm

_VOLATILE = frozenset((
    "now", "random", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday",
    "gen_random_uuid", "uuid_generate_v4", "setseed", "nextval", "currval", "lastval", "setval", "txid_current",
    "pg_sleep", "version", "current_database", "current_setting", "pg_backend_pid", "current_user",
    "current_schema", "session_user",
))  # fmt: skip
_AGGREGATES = frozenset((
    "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "bit_and", "bit_or", "bit_xor", "list_agg",
    "map_agg", "corr", "covar_pop", "covar_samp", "mode", "percentile_cont", "percentile_disc", "any_value",
    "regr_slope", "regr_intercept", "regr_count", "xmlagg", "range_agg",
))  # fmt: skip
_TABLES = frozenset((
    "generate_series", "unnest", "regexp_matches", "regexp_split_to_table", "string_to_table", "json_each",
    "jsonb_each", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_object_keys", "generate_subscripts",
))  # fmt: skip
_LATER_AGGREGATE = "It is not among the aggregates that are maintained."
_NO_QUERY = "It has a plan within the clauses of a query only: not in UPDATE, DELETE, LIMIT or a time."
_NO_JSON = "There is no jsonb type yet."
_NO_ARRAY = "There are no arrays yet."

_FORMS: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str, str, str | None], ...] = (
    ((exp.Exists, exp.Query, exp.Values), "a subquery here", _NO_QUERY, None),
    (exp.In, "this form of IN", "It tests a list of values or a subquery.", None),
    ((exp.Any, exp.All), "this form of ANY or ALL", "It has a plan for comparisons with a subquery's rows only.",
     "Use IN (...), or compare with = ANY (SELECT ...)."),
    (exp.WithinGroup, "an ordered-set aggregate", _LATER_AGGREGATE, None),
    ((exp.Array, exp.Bracket, exp.Slice, exp.ArrayContainsAll), "an array", _NO_ARRAY, None),
    (exp.Tuple, "a row of several values", "There are no record types yet.", "Compare the columns one by one."),
    ((exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract), "operator -> or ->>", _NO_JSON, None),
    ((exp.RegexpLike, exp.RegexpILike, exp.SimilarTo), "a regular expression", "Spark's differ.", "Use LIKE."),
    (exp.AtTimeZone, "AT TIME ZONE", "Time zones other than UTC are not maintained yet.", None),
    (exp.Interval, "an interval", "There is no interval type yet.", None),
    (exp.Collate, "COLLATE", "Text is compared by its bytes.", None),
    ((exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser), "a clock or session value",
     "Its value is not a function of the collections, so a view of it could not be maintained.", None),
    (exp.Concat, "string literals side by side", "The text could be read in two ways.", "Write ||."),
    (exp.Star, '"*"', "It stands for columns only as an item of SELECT.", None),
    ((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
     "a bitwise operator", "It is not in the table of functions.", None),
    (exp.Xor, "XOR", "PostgreSQL has no such operator.", "Use <> between booleans."),
    (exp.TryCast, "TRY_CAST", "PostgreSQL has no such cast.", "Use CAST."),
)  # fmt: skip


def refusal_of(body: Body, node: exp.Expr) -> NotSupportedError:
    """Returns the error that refuses `node`, with the most precise reason known."""
    for kinds, what, reason, hint in _FORMS:
        if isinstance(node, kinds):
            return UnsupportedForm(f"{what} is not supported", detail=reason, hint=hint, position=body.position(node))
    shown = " ".join(body.source(node).split())
    return UnsupportedForm(
        f'the expression "{shown[:40]}" is not supported',
        detail="Its form is not known to have exact semantics here.",
        position=body.position(node),
    )


def refusal_of_function(body: Body, node: exp.Expr, name: str) -> NotSupportedError | None:
    """Returns the error that refuses the function `name`, or None if it may exist."""
    hint: str | None = None
    if name in _VOLATILE:
        reason = "Its value is not a function of the collections, so a view of it could not be maintained."
        hint = "Keep the time in a column, or compare one with mz_now()."
    elif name in _AGGREGATES:
        reason = _LATER_AGGREGATE
    elif name in _TABLES:
        reason = "Functions that return rows are not maintained yet."
    elif name in ("row", "array", "map", "list"):
        reason = "There are no composite types yet."
    else:
        return None
    return UnsupportedForm(f"{name}() is not supported", detail=reason, hint=hint, position=body.position(node))
