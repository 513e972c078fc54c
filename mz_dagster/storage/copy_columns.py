"""Columns of texts, of what is sent or written for a COPY in lines, as long as all lines are plain.

Of plain lines Arrow reads the same fields as `copy_csv`: those whose fields stand as they are, and those of CSV with
whole fields in quotes. They are read in a hundredth of the time that a look at each field takes. What is not plain, or
wrong in any way, is left to that look, which says what is wrong and where.
"""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa
import pyarrow.csv

#: How many bytes are made columns of at once; a longer line is not plain.
_AT_ONCE = 1 << 23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def plain_columns(
    data: bytes, columns: int, *, delimiter: str, null: str, quote: str | None, escape: str
) -> list[pa.ChunkedArray] | None:
    r"""Returns the fields of lines by column, None if not all lines are plain.

    Args:
        data: The lines, in UTF-8.
        columns: How many fields each line has.
        delimiter: What separates them.
        null: What an unquoted NULL looks like.
        quote: What encloses a quoted part; None if nothing does, and `escape` may stand anywhere.
        escape: What takes the meaning of what follows away; within quotes, if there are any.

    Example:
        >>> found = plain_columns(b'1,"a,b"\n2,\n', 2, delimiter=",", null="", quote='"', escape='"')
        >>> [one.to_pylist() for one in found or ()]
        [['1', '2'], ['a,b', None]]
        >>> plain_columns(b'1,a "b"\n', 2, delimiter=",", null="", quote='"', escape='"') is None
        True
    """
    if not data or not columns or data.startswith(_BYTE_ORDER_MARK) or b"\r" in data or b"\0" in data:
        return None
    if columns > 1 and (data.startswith(b"\n") or b"\n\n" in data):  # a line that Arrow takes for one of NULLs
        return None
    if any(not one.isascii() or len(one) != 1 for one in (delimiter, quote or delimiter)):
        return None
    has_quotes = quote is not None and quote.encode() in data
    if has_quotes and (escape != quote or _quoted_wholly(delimiter, quote or "").fullmatch(data) is None):
        return None
    names = [str(place) for place in range(columns)]
    try:
        found = pyarrow.csv.read_csv(
            pa.py_buffer(data),
            read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=_AT_ONCE),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter,
                quote_char=quote if has_quotes else False,
                double_quote=True,
                newlines_in_values=has_quotes,
                ignore_empty_lines=False,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if quote is None:
        nulls = sum(one.null_count for one in found.columns)
        if data.count(escape.encode()) != nulls * null.count(escape):  # it stands elsewhere than in NULL
            return None
    return list(found.columns)


@cache
def _quoted_wholly(delimiter: str, quote: str) -> re.Pattern[bytes]:
    """Returns the form of lines in which quotes are around whole fields."""
    d, q = (re.escape(one.encode()) for one in (delimiter, quote))
    field = rb"(?:" + q + rb"(?:[^" + q + rb"]++|" + q + q + rb")*+" + q + rb"|[^" + q + d + rb"\n]*+)"
    return re.compile(rb"(?:" + field + rb"[" + d + rb"\n])*+" + field)
