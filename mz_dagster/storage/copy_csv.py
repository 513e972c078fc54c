"""Reads CSV, and its own text format, as PostgreSQL's COPY does: into a table's stored columns, or not at all.

A quote opens and closes a quoted part anywhere in a field; in it the escape character takes a quote's or its own
meaning away. A field that has no quoted part and equals the NULL string is NULL. All lines end alike. Memory: the whole
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.functions import Failure, literal_of
from mz_dagster.scalars.types import Column
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.copy_columns import plain_columns
from mz_dagster.storage.copy_errors import BadCopyFormat, BadCopyValue, FileUnreadable, NotUtf8
from mz_dagster.storage.source.local.decode import decoded_plainly

Header = Literal["no", "skip", "match"]
#: A record's first line, from 1 on, and what its cells are spelled as.
Record = tuple[int, list[str | None]]


def read_csv(
    path: Path,
    columns: Sequence[Column],
    *,
    header: Header = "no",
    delimiter: str = ",",
    quote: str = '"',
    escape: str | None = None,
    null: str = "",
) -> list[pa.Array]:
    """Returns the file's columns in their stored form.

    Args:
        path: The file, in UTF-8.
        columns: The columns of the file, in order.
        header: Whether its first line is one of names, which are read over or must be the columns'.
        delimiter: What separates the fields of a line.
        quote: What encloses a quoted part.
        escape: What takes a quote's meaning away within such a part; by default another quote.
        null: What an unquoted NULL looks like.

    Raises:
        FileUnreadable: It cannot be opened.
        BadCopyFormat: It is not CSV, or a line has too few fields or too many.
        BadCopyValue: A field does not spell a value of its column.
    """
    data, escape = _bytes(path), escape or quote
    found = stored_plainly(data, columns, header, delimiter=delimiter, null=null, quote=quote, escape=escape)
    if found is None:
        records = csv_records(_text(path, data), delimiter=delimiter, quote=quote, escape=escape, null=null)
        found = stored_columns(records, columns, header)
    return found


def stored_plainly(
    data: bytes,
    columns: Sequence[Column],
    header: Header = "no",
    *,
    delimiter: str,
    null: str,
    quote: str | None,
    escape: str,
) -> list[pa.ChunkedArray] | None:
    """Returns columns in their stored form, of lines; None if not all are plain (`plain_columns`), or one is wrong."""
    if header != "no":
        first, _, data = data.partition(b"\n")
        if any(one.encode() in first for one in (quote or escape, escape, "\r")):
            return None
        if header == "match" and first.split(delimiter.encode()) != [one.name.encode() for one in columns]:
            return None
    texts = plain_columns(data, len(columns), delimiter=delimiter, null=null, quote=quote, escape=escape)
    found: list[pa.ChunkedArray] = []
    for column, cells in zip(columns, texts or (), strict=texts is not None):
        values = spelled_values(cells, column)
        if values is None:
            return None
        found.append(values)
    return found or None


def stored_columns(records: Iterator[Record], columns: Sequence[Column], header: Header = "no") -> list[pa.Array]:
    """Returns columns in their stored form, of records that spell their values; raises as `read_csv`."""
    if header != "no":
        _, names = next(records, (1, [column.name for column in columns]))
        if header == "match":
            _check_names(names, columns)
    read: list[Record] = []
    try:
        for record in records:
            read.append(record)
            if len(record[1]) != len(columns):
                break
    except (BadCopyFormat, NotUtf8):
        _check(read, columns)
        raise
    found: list[pa.Array] = []
    if all(len(fields) == len(columns) for _, fields in read[-1:]):
        texts = zip(*(fields for _, fields in read), strict=True) if read else ((),) * len(columns)
        for column, cells in zip(columns, texts, strict=True):
            if (values := spelled_values(pa.array(cells, pa.string()), column)) is None:
                break
            found.append(values)
    if len(found) < len(columns):
        _check(read, columns)
    return found


def spelled_values(texts: pa.Array | pa.ChunkedArray, column: Column) -> pa.Array | pa.ChunkedArray | None:
    """Returns a column's stored values, None if one of the texts spells none; each distinct one is read once."""
    if isinstance(texts, pa.ChunkedArray):
        parts = [spelled_values(one, column) for one in texts.chunks]
        return None if any(one is None for one in parts) else pa.chunked_array(parts)
    if pc.any(pc.match_substring(texts, "\0")).as_py():
        return None
    plain, others = decoded_plainly(texts, column.type)
    if others is None:
        return plain
    encoded = others.dictionary_encode()
    values: list[object] = []
    for text in encoded.dictionary.to_pylist():
        found = literal_of(text, column.type, assigned=True)
        if isinstance(found, Failure):
            return None
        values.append(to_stored(found.value, column.type))
    read = pa.array(values, arrow_type(column.type)).take(encoded.indices)
    return read if plain is None else pc.coalesce(plain, read)


def _check(records: Sequence[Record], columns: Sequence[Column]) -> None:
    """Raises what is wrong with the first cell, in the records' order, that is wrong."""
    for line, fields in records:
        if len(fields) > len(columns):
            raise _malformed("extra data after last expected column", line)
        for column, field in zip(columns, fields, strict=False):
            if field is not None:
                _check_cell(field, column, line)
        if len(fields) < len(columns):
            raise _malformed(f'missing data for column "{columns[len(fields)].name}"', line)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileUnreadable(
            f'could not open file "{path}" for reading: {error.strerror or error}',
            hint="Name a file that this process can read; a path is relative to the project's folder.",
        ) from error


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotUtf8(
            f'file "{path}" is not UTF-8', detail=f"Its byte {error.start + 1} is none of a character.",
            hint="Recode the file.",
        ) from error  # fmt: skip


def _check_names(names: Sequence[str | None], columns: Sequence[Column]) -> None:
    if len(names) != len(columns):
        raise _malformed(
            f"wrong number of fields in header line: field count is {len(names)}, expected {len(columns)}", 1
        )
    for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        if name != column.name:
            raise _malformed(
                f'column name mismatch in header line field {number}: got "{name or ""}", expected "{column.name}"', 1
            )


def text_records(text: str, *, delimiter: str, null: str) -> Iterator[Record]:
    r"""Yields the records of COPY's text format: a line each, with backslashes before what would be misread.

    Raises:
        BadCopyFormat: A line ends in a backslash.

    Example:
        >>> list(text_records("1\t\\N\na\\tb\t\n", delimiter="\t", null="\\N"))
        [(1, ['1', None]), (2, ['a\tb', ''])]
    """
    d = re.escape(delimiter)
    cell = re.compile(rf"((?:[^\\{d}\r\n]++|\\(?:\r\n|[\s\S]))*+)({d}|\r\n|\r|\n|\Z)")
    at, line, begun = 0, 1, 1
    fields: list[str | None] = []
    while at < len(text):
        if not fields and (plain := _plain_line(text, at, delimiter, "\\", null)) is not None:
            cells, at = plain
            yield line, cells
            line += 1
            begun = line
            continue
        found = cell.match(text, at)
        if found is None:
            raise _malformed("a backslash stands at the end", line)
        raw, at, end = found[1], found.end(), found[2]
        if not fields and raw == "\\." and end != delimiter:
            return
        fields.append(None if raw == null else _unescaped(raw, line) if "\\" in raw else raw)
        line += raw.count("\n")
        if end == delimiter:
            if at < len(text):
                continue
            fields.append(None if null == "" else "")
        yield begun, fields
        line += 1
        fields, begun = [], line


def _plain_line(text: str, at: int, delimiter: str, special: str, null: str) -> tuple[list[str | None], int] | None:
    r"""Returns the fields of a line from `at` on, and where the next one begins; None unless they stand as they are.

    Example:
        >>> _plain_line("1\t\\N\n2", 0, "\t", "\\", "\\N"), _plain_line("1\t\\t\n", 0, "\t", "\\", "\\N")
        ((['1', None], 5), None)
    """
    end = text.find("\n", at)
    if end < 0:
        return None
    raw = text[at:end]
    cells: list[str | None] = [None if cell == null else cell for cell in raw.split(delimiter)]
    is_plain = "\r" not in raw and (special not in raw or not any(cell and special in cell for cell in cells))
    return (cells, end + 1) if is_plain else None


#: What a backslash stands before, as PostgreSQL reads it; anything else stands for itself.
_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|[\s\S])")
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _unescaped(raw: str, line: int) -> str:
    def meant(found: re.Match[bytes]) -> bytes:
        what = found[1]
        if what[:1] == b"x" and len(what) > 1:
            return bytes([int(what[1:], 16)])
        return bytes([int(what, 8) & 0xFF]) if what[:1] in b"01234567" else _CONTROLS.get(what, what)

    try:
        return _ESCAPED.sub(meant, raw.encode()).decode()
    except UnicodeDecodeError:
        raise NotUtf8("what stands behind backslashes is not UTF-8", detail=f"It is line {line} of the file.") from None


def csv_records(text: str, *, delimiter: str, quote: str, escape: str, null: str) -> Iterator[Record]:
    """Yields each line's fields with the number at which the line begins.

    Raises:
        BadCopyFormat: It is not CSV.
    """
    d, q, e = (re.escape(one) for one in (delimiter, quote, escape))
    plain = re.compile(rf"([^{d}{q}\r\n]*)({d}|{q}|\r\n|\r|\n|\Z)")
    # Possessive: what was escaped once is never tried as the closing quote.
    quoted = re.compile(rf"((?:[^{q}]++|{q}{q})*+){q}" if e == q else rf"((?:[^{q}{e}]++|{e}[{q}{e}]|{e})*+){q}")
    escaped = re.compile(rf"{e}([{q}{e}])")
    at, line, begun = 0, 1, 1
    line_end = ""
    fields: list[str | None] = []
    while at < len(text):
        if (
            not fields
            and line_end in ("", "\n")
            and (plain_ := _plain_line(text, at, delimiter, quote, null)) is not None
        ):
            cells, at = plain_
            line_end = "\n"
            yield line, cells
            line += 1
            begun = line
            continue
        field, has_quotes = "", False
        while True:
            found = plain.match(text, at)
            assert found is not None, "the last alternative matches at the end"
            field, at, end = field + found[1], found.end(), found[2]
            if end != quote:
                break
            inner = quoted.match(text, at)
            if inner is None:
                raise _malformed("unterminated CSV quoted field", begun)
            has_quotes = True
            field, at = field + escaped.sub(r"\1", inner[1]), inner.end()
            line += inner[1].count("\n")
        fields.append(None if field == null and not has_quotes else field)
        if end == delimiter:
            if at == len(text):  # the last line has no end, and its last field is empty
                fields.append(None if null == "" else "")
                yield begun, fields
            continue
        if end:
            line_end = line_end or end
            if end != line_end:
                what = "newline" if end == "\n" else "carriage return"
                raise _malformed(f"unquoted {what} found in data", line, "Use a quoted field to represent it.")
        yield begun, fields
        line += 1
        fields, begun = [], line


def _check_cell(text: str, column: Column, line: int) -> None:
    if "\0" in text:
        raise NotUtf8(
            'invalid byte sequence for encoding "UTF8": 0x00',
            detail=f"It is in line {line} of the file.",
            hint="Take it out; nothing was written.",
        )
    found = literal_of(text, column.type, assigned=True)
    if isinstance(found, Failure):
        raise BadCopyValue.of(found, column, f"line {line}")


def _malformed(message: str, line: int, hint: str | None = None) -> BadCopyFormat:
    return BadCopyFormat(message, detail=f"It is line {line} of the file.", hint=hint or "Nothing was written.")
