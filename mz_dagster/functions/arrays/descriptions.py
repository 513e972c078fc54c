"""What the functions and operators of arrays, and those that return rows are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.function import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "&&": Description("Whether two arrays have an element in common.", "ARRAY[1, 4, 3] && ARRAY[2, 1]", "true"),
    "array_append": Description("An array with one more element.", "array_append(ARRAY[1, 2], 3)", "{1,2,3}"),
    "array_prepend": Description("Likewise before it.", "array_prepend(0, ARRAY[1, 2])", "{0,1,2}"),
    "array_cat": Description("Two arrays, one after the other.", "array_cat(ARRAY[1, 2], ARRAY[3])", "{1,2,3}"),
    "array_dims": Description("The bounds of an array, as text.", "array_dims(ARRAY[5, 6])", "[1:2]"),
    "array_ndims": Description("How many dimensions an array has.", "array_ndims(ARRAY[1])", "1"),
    "array_fill": Description("An array of so many equal elements.", "array_fill(7, ARRAY[3])", "{7,7,7}"),
    "array_length": Description(
        "How many elements an array has in a dimension, NULL if none.", "array_length(ARRAY[1, 2, 3], 1)", "3"
    ),
    "array_lower": Description("The number of the first element.", "array_lower(ARRAY[5], 1)", "1"),
    "array_upper": Description("The number of the last element.", "array_upper(ARRAY[1, 8, 3], 1)", "3"),
    "array_position": Description(
        "Where an element first is.", "array_position(ARRAY['sun', 'mon', 'tue'], 'mon')", "2"
    ),
    "array_positions": Description(
        "All places where an element is.", "array_positions(ARRAY['A', 'B', 'A'], 'A')", "{1,3}"
    ),
    "array_remove": Description(
        "An array without the elements that are a value.", "array_remove(ARRAY[1, 2, 3, 2], 2)", "{1,3}"
    ),
    "array_replace": Description(
        "An array with such elements replaced.", "array_replace(ARRAY[1, 2, 5], 5, 3)", "{1,2,3}"
    ),
    "array_slice": Description("The elements from one place to another.", "(ARRAY[1, 2, 3, 4])[2:3]", "{2,3}"),
    "array_subscript": Description("An element, from 1 on.", "(ARRAY[7, 8, 9])[2]", "8"),
    "array_to_string": Description(
        "The elements' texts, with a separator between, and a text for NULL.",
        "array_to_string(ARRAY[1, NULL, 3], ',', '*')",
        "1,*,3",
    ),
    "cardinality": Description("How many elements an array has.", "cardinality(ARRAY[1, 2])", "2"),
    "trim_array": Description("An array without so many last elements.", "trim_array(ARRAY[1, 2, 3, 4], 2)", "{1,2}"),
    "string_to_array": Description(
        "The parts of a text between separators.", "string_to_array('xx~~yy~~zz', '~~', 'yy')", "{xx,NULL,zz}"
    ),
    "generate_series": Description(
        "The numbers or moments from one to another, by steps.",
        "(SELECT sum(n) FROM generate_series(2, 10, 4) AS g(n))",
        "18",
    ),
    "generate_subscripts": Description(
        "The places of an array's elements.",
        "(SELECT max(n) FROM generate_subscripts(ARRAY['a', 'b'], 1) AS g(n))",
        "2",
    ),
    "string_to_table": Description(
        "The parts of a text between separators.", "(SELECT max(w) FROM string_to_table('a,b', ',') AS s(w))", "b"
    ),
}
