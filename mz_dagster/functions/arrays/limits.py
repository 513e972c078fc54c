"""How large arrays can be, and what is said of those that are larger."""

from __future__ import annotations

#: PostgreSQL's limit to the elements of an array.
ARRAY_ELEMENTS = 134_217_727
#: PostgreSQL's limit to its dimensions.
MOST_DIMENSIONS = 6
TOO_LONG = f"54000 array size exceeds the maximum allowed ({ARRAY_ELEMENTS})"
#: What is said where an array is made that is to be a list, and is none.
SEVERAL_DIMENSIONS = (
    "0A000 arrays of several dimensions are not supported here: cast to, or declare, a type like integer[][]"
)
OTHER_BOUNDS = (
    "0A000 arrays that are not counted from 1 are not supported here: cast to, or declare, a type like integer[][]"
)


def not_a_list(type_: str) -> str:
    """Returns what is said of an array of other dimensions than those of a type of lists.

    Example:
        >>> not_a_list("text[]")
        'a value of type text[] has one dimension here, counted from 1: cast it, or declare its column, as text[][]'
    """
    return (
        f"a value of type {type_} has one dimension here, counted from 1: cast it, or declare its column, as {type_}[]"
    )


#: The most elements of a series of numbers, which are in memory together; one of moments has fewer
#: (`functions/moments/series.py`).
SERIES_ROWS = 10_000_000
ZERO_STEP = "22023 step size cannot equal zero"
TOO_MANY_ROWS = f"54000 generate_series makes more than {SERIES_ROWS} rows"
