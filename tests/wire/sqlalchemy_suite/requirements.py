"""What of SQLAlchemy's suite a project has, and what not: each with its reason."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: What PostgreSQL has as well, beyond what the suite takes for granted.
OPEN = (
    "ctes", "ctes_with_update_delete", "ctes_with_values", "ctes_on_dml", "window_functions", "window_range",
    "window_range_numeric", "window_range_non_numeric", "update_from", "delete_from", "intersect", "except_",
    "tuple_in", "tuple_in_w_empty", "views", "view_reflection", "view_column_reflection", "schemas",
    "comment_reflection", "comment_reflection_full_unicode", "check_constraint_reflection",
    "inline_check_constraint_reflection", "unique_constraint_reflection", "index_reflection",
    "indexes_with_ascdesc", "temporary_tables", "temp_table_names", "temp_table_reflection", "has_temp_table",
    "isolation_level", "get_isolation_level_values", "autocommit", "json_type", "json_array_indexes",
    "uuid_data_type", "array_type", "regexp_match", "regexp_replace", "fetch_first", "fetch_no_order_by",
    "fetch_expression", "nullsordering", "offset", "bound_limit_offset", "sql_expression_limit_offset",
    "datetime_timezone", "time_timezone", "datetime_interval", "datetime_microseconds",
    "timestamp_microseconds", "time_microseconds", "datetime_historic", "date_historic",
    "precision_numerics_general", "precision_numerics_enotation_small", "precision_numerics_enotation_large",
    "precision_numerics_many_significant_digits", "cast_precision_numerics_many_significant_digits",
    "precision_numerics_retains_significant_digits", "numeric_received_as_decimal_untyped", "infinity_floats",
    "identity_columns", "identity_columns_standard", "savepoints", "server_side_cursors",
    "supports_is_distinct_from", "supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_not",
    "supports_bitwise_xor", "supports_bitwise_shift", "materialized_views", "reflects_pk_names",
    "duplicate_key_raises_integrity_error", "unicode_ddl", "symbol_names_w_double_quote", "server_defaults",
    "expression_server_defaults", "aggregate_order_by", "nested_aggregates", "insert_from_select",
    "update_where_target_in_subquery", "mod_operator_as_percent_sign", "percent_schema_names",
    "order_by_label_with_expression", "order_by_col_from_union",
    "parens_in_union_contained_select_w_limit_offset", "parens_in_union_contained_select_wo_limit_offset",
    "boolean_col_expressions", "nullable_booleans", "standalone_binds", "standalone_null_binds_whereclause",
    "like_escapes", "binary_literals", "binary_comparisons", "datetime_literals", "default_schema_name_switch",
    "graceful_disconnects", "independent_connections", "multivalues_inserts", "empty_inserts", "sane_rowcount",
    "sane_rowcount_w_returning", "supports_distinct_on", "table_value_constructor",
    "implicitly_named_constraints", "named_constraints", "temp_table_comment_reflection", "table_ddl_if_exists",
    "index_ddl_if_exists", "unbounded_varchar", "unusual_column_name_characters",
    "float_or_double_precision_behaves_generically", "computed_columns", "computed_columns_stored",
    "computed_columns_reflect_persisted",
)  # fmt: skip
#: What there is none of, and why.
CLOSED = {
    "foreign_key_constraint_reflection": "there are no foreign keys: a statement writes one table",
    "self_referential_foreign_keys": "there are no foreign keys: a statement writes one table",
    "sequences": "only columns of tables generate numbers",
    "no_sequences": "only columns of tables generate numbers",
    "create_table_as": "CREATE TABLE AS cannot run inside a transaction block, in which SQLAlchemy's connections are",
    "create_temp_table_as": "likewise",
    "temporary_views": "objects of a session's own cannot be defined inside a transaction block",
    "create_or_replace_view": "a view that is there cannot be replaced inside a transaction block",
}
#: Single tests, by a pattern of their names, and why.
EXCLUDED = {
    r"CTETest::test_select_recursive_round_trip": "WITH RECURSIVE is refused",
    r"ReturningTest::test_insertmanyvalues_returning": "it takes a SELECT without ORDER BY to have an order",
    r"ServerSideCursorsTest::test_ss_cursor_status\[for_update_.*\]": "a cursor over FOR UPDATE is refused",
    r"TableViaSelectTest::test_without_metadata\[(plain0|plain1|use_schema0)\]": "CREATE TABLE AS in a block",
    r"WindowFunctionTest::test_window_r.*": "they take rows without ORDER BY to come in the order of a window",
    r"TrueDivTest::test_truediv_divisor\[numeric_38_digit_divisor-.*\]": "no digits are left for a quotient",
}


class Requirements(SuiteRequirements):
    """The suite's requirements, of which PostgreSQL's dialect decides the others."""


_exclusions: Any = exclusions
for _name in (*OPEN, *CLOSED):
    assert hasattr(SuiteRequirements, _name), _name
    setattr(Requirements, _name, _exclusions.closed() if _name in CLOSED else _exclusions.open())
