"""The reasons for which legal forms of expression are refused, in one table each."""

from __future__ import annotations

from sqlglot import exp

from mz_dagster.errors import NotSupportedError
from mz_dagster.plan.functions import TABLE_OVERLOADS
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import UnsupportedForm

_VOLATILE = frozenset((
    "now", "random", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday",
    "gen_random_uuid", "uuid_generate_v4", "setseed", "nextval", "currval", "lastval", "setval", "txid_current",
    "pg_sleep", "version", "current_database", "current_setting", "pg_backend_pid", "current_user",
    "current_schema", "session_user",
))  # fmt: skip
_AGGREGATES = frozenset((
    "list_agg", "map_agg", "any_value", "xmlagg",
    "range_agg",
))  # fmt: skip
_TABLES = frozenset((
    "regexp_matches", "regexp_split_to_table", "string_to_table",
    "generate_subscripts",
))  # fmt: skip
_POPULATING = ("jsonb_populate_record", "jsonb_populate_recordset")
_TO_JSON = ("to_json", "row_to_json", "array_to_json")
_LATER_AGGREGATE = "It is not among the aggregates that are maintained."
_NO_QUERY = "It has a plan within the clauses of a query only: not in UPDATE, DELETE, LIMIT or a time."

_FORMS: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str, str, str | None], ...] = (
    ((exp.Exists, exp.Query, exp.Values), "a subquery here", _NO_QUERY, None),
    (exp.In, "this form of IN", "It tests a list of values or a subquery.", None),
    ((exp.Any, exp.All), "this form of ANY or ALL", "It stands behind an operator only.", None),
    (exp.Slice, "a slice here", "It is a subscript of an array.", None),
    (exp.Tuple, "a row of several values here", "It compares with rows only.", "Compare the columns one by one."),
    (exp.Collate, "COLLATE", "Text is compared by its bytes.", None),
    ((exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser), "a clock or session value",
     "Its value is not a function of the collections, so a view of it could not be maintained.", None),
    (exp.Concat, "string literals side by side", "The text could be read in two ways.", "Write ||."),
    (exp.Star, '"*"', "It stands for columns only as an item of SELECT.", None),
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
    elif name in _TABLES and name not in TABLE_OVERLOADS:
        reason = "Functions that return rows are not maintained yet."
        hint = "Use regexp_match()." if name == "regexp_matches" else None
    elif name.startswith("jsonb_path_"):
        reason = "The language of its paths is not known here."
        hint = "Use ->, ->>, #> and #>>, and jsonb_array_elements()."
    elif name in _POPULATING:
        reason = "Relations are no types here."
        hint = f"Write {name.replace('populate', 'to', 1)}(...) AS t (a integer, b text)."
    elif name.startswith("json_") or name in _TO_JSON:
        reason = "There is no type json: it keeps its text as written, and has no equality."
        hint = f"Use {'to_jsonb' if name in _TO_JSON else name.replace('json', 'jsonb', 1)}()."
    elif name in ("map", "list"):
        reason = "There are no composite types yet."
    else:
        return None
    return UnsupportedForm(f"{name}() is not supported", detail=reason, hint=hint, position=body.position(node))
