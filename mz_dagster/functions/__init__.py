"""The functions of scalar expressions: what exists, what a call means, what a cast is.

Owns the table of implementations that the binder may put into a `Call` and the renderer can emit, PostgreSQL's
resolution of names over argument types, the casts with their contexts, and the reading of literals. Invariant: a
name that resolves has exactly PostgreSQL 15's result, value or error (C collation, UTC); what has not is
refused here, so that nothing above or below needs a fallback.

- `registry.py`: what makes the record of a function at its reference in Python: name, types, SQL names, what it is for,
  whether it can fail. `function.py`: what a record is made of. `table.py`: all functions and overloads, by name.
- `numbers/`, `text/`, `regexps/`, `moments/`, `jsonb/`, `arrays/`, `aggregates/`, `catalog/`: the functions of each
  area; `aggregates/algebra.py`, `aggregates/spelled.py`: the records of aggregates; `comparing.py`: comparisons.
- `signature.py`: what a call or cast is found to be.
- `casts.py`: the matrix of casts, `common_type`.
- `resolution.py`: overload resolution; `polymorphic.py`: that of functions over arrays.
- `literals.py`: reading a literal's text.
- `references.py`: the references of the areas, which it imports; `plain.py`: the form in which they have cells.
- `evaluation.py`: scalars in Python, for which every function has a reference; `value_order.py`: what values compare
  by; `errors.py`: errors that are alike wherever they are found.

Open to other layers beside this front door: `aggregates.algebra`, `aggregates.sums`, `arrays.arrays`,
`arrays.dimensioned`, `arrays.dimensions`, `arrays.limits`, `arrays.parts`, `casts`, `catalog.catalog_functions`,
`catalog.keywords`, `cell_text`, `descriptions`, `errors`, `evaluation`, `json_cell`, `jsonb.as_json`, `jsonb.as_jsonb`,
`jsonb.jsonb`, `jsonb.path_syntax`, `literals`, `membership`, `modifiers`, `moments.calendar`, `moments.infinite`,
`moments.interval`, `moments.interval_text`, `moments.field_names`, `moments.moment_text`, `moments.zones`,
`numbers.float_evaluation`, `numbers.numerics`, `numbers.transcendental`, `numbers.unconstrained_functions`,
`numbers.unconstrained_sums`, `output`, `plain`, `references`, `registry`, `session_zone`, `signature`,
`text.characters`, `text.like_patterns`, `value_order`.
"""

from mz_dagster.functions.aggregates.algebra import AGGREGATES
from mz_dagster.functions.casts import CastContext, cast, common_type, element_context
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import Function, Nullability, Overload
from mz_dagster.functions.literals import interval_literal, literal_of, numeric_literal
from mz_dagster.functions.polymorphic import POLYMORPHIC
from mz_dagster.functions.resolution import (
    ambiguous,
    no_match,
    resolve_date_part,
    resolve_date_trunc,
    resolve_extract,
    resolve_function,
    resolve_operator,
    resolve_table_function,
)
from mz_dagster.functions.session_zone import UTC, in_zone, session_zone
from mz_dagster.functions.signature import (
    UNKNOWN,
    ArgumentType,
    Cast,
    OpenParameter,
    Resolved,
    Unknown,
    modified_element,
    type_name,
)
from mz_dagster.functions.table import FUNCTIONS, INTERNAL_FUNCTIONS, OVERLOADS, SET_COLUMNS, TABLE_OVERLOADS

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "INTERNAL_FUNCTIONS",
    "OVERLOADS",
    "POLYMORPHIC",
    "SET_COLUMNS",
    "TABLE_OVERLOADS",
    "UNKNOWN",
    "UTC",
    "ArgumentType",
    "Cast",
    "CastContext",
    "Failure",
    "Function",
    "Nullability",
    "OpenParameter",
    "Overload",
    "Resolved",
    "Unknown",
    "ambiguous",
    "cast",
    "common_type",
    "element_context",
    "in_zone",
    "interval_literal",
    "literal_of",
    "modified_element",
    "no_match",
    "numeric_literal",
    "resolve_date_part",
    "resolve_date_trunc",
    "resolve_extract",
    "resolve_function",
    "resolve_operator",
    "resolve_table_function",
    "session_zone",
    "type_name",
]
