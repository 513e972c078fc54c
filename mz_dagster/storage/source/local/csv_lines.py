"""Reads CSV lines in this process; the rules are those of `source.csv_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.faults import BAD_BYTES, EXTRA_DATA, ILL_QUOTED, UNTERMINATED
from mz_dagster.storage.source.local.cells import Cells, line_portions, text_lines, texts


def cells_of_csv(pieces: Iterable[bytes], columns: Sequence[Column], header: Sequence[str]) -> Iterator[Cells]:
    """Yields the cells of lines whose fields stand in the order of `header`, without the header row itself."""
    lines = (one for one in text_lines(pieces) if one[0] > 1 and one[1] != "")
    for portion in line_portions(lines):
        malformed: dict[int, str] = {}
        nulls: set[int] = set()
        rows: list[Sequence[str | None]] = []
        for row, (_, line) in enumerate(portion):
            fields, why = _fields(line, header)
            if why is not None:
                malformed[row] = why
            elif not any(field is not None for field in fields):
                nulls.add(row)
            rows.append(fields)
        by_name = dict(zip(header, zip(*rows, strict=True), strict=True))
        absent = (None,) * len(rows)
        yield Cells(
            numbers=[number for number, _ in portion],
            columns=texts([by_name.get(column.name, absent) for column in columns]),
            malformed=malformed,
            null_keys=nulls,
            deleted=nulls,
        )


def _fields(line: str | None, header: Sequence[str]) -> tuple[Sequence[str | None], str | None]:
    """Returns the fields' contents, or why there are none, as many NULLs instead.

    A field separator is a comma with an even number of quotes before it. Lines hold no line feed, so it can take the
    separators' place, and the line is split there.
    """
    nothing = (None,) * len(header)
    if line is None:
        return nothing, BAD_BYTES
    if '"' not in line:
        fields = line.split(",")
        contents: list[str | None] = [field or None for field in fields]
    else:
        pieces = line.split('"')
        if len(pieces) % 2 == 0:
            return nothing, UNTERMINATED
        pieces[::2] = [piece.replace(",", "\n") for piece in pieces[::2]]
        fields = '"'.join(pieces).split("\n")
        if any(map(_is_ill_quoted, fields)):
            return nothing, ILL_QUOTED
        contents = [_content(field) for field in fields]
    if len(fields) < len(header):
        return nothing, f'22P04 missing data for column "{header[len(fields)]}"'
    return (contents, None) if len(fields) == len(header) else (nothing, EXTRA_DATA)


def _is_ill_quoted(field: str) -> bool:
    if not field.startswith('"'):
        return '"' in field
    return len(field) < 2 or not field.endswith('"') or '"' in field[1:-1].replace('""', "")


def _content(field: str) -> str | None:
    return field[1:-1].replace('""', '"') if field.startswith('"') else field or None
