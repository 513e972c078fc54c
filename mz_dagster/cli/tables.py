"""Rows as the command line prints them."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under their columns' names, numbers to the right; NULL is empty."""
    body = [["" if cell is None else _text(cell) for cell in row] for row in rows]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(names))]
    widths = [max(len(name), *(len(row[i]) for row in body)) if body else len(name) for i, name in enumerate(names)]
    for row in [list(names), ["-" * width for width in widths], *body]:
        cells = (cell.rjust(w) if flush else cell.ljust(w) for cell, w, flush in zip(row, widths, right, strict=True))
        print("  ".join(cells).rstrip())


def _text(cell: object) -> str:
    r"""Returns a cell as text, an array as PostgreSQL prints it.

    Example:
        >>> _text([1, None, "a b", "", 'say "x"'])
        '{1,NULL,"a b","","say \\"x\\""}'
    """
    return "{" + ",".join(map(_element, cell)) + "}" if isinstance(cell, list) else str(cell)


def _element(cell: object) -> str:
    if cell is None:
        return "NULL"
    text = str(cell)
    if isinstance(cell, bool):
        return text[0].lower()
    plain = text and text.upper() != "NULL" and not any(one in '{},"\\' or one.isspace() for one in text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))
