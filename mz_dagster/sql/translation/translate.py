"""A query of another dialect as PostgreSQL's, with a comment above each place that may mean something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.translation.dialect import SourceDialect
from mz_dagster.sql.translation.differences import Remark, remarks_on
from mz_dagster.sql.translation.originals import Original, Untranslatable, rename
from mz_dagster.sql.translation.rewriting import rewritten

#: The mark of a remark's place while sqlglot writes the text.
_MARK = re.compile(r"[ ]?/\* @remark (\d+)@ \*/")
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)


@dataclass(frozen=True, slots=True)
class Translation:
    """What an original is here.

    Attributes:
        text: A query; of a table its columns in parentheses.
        remarks: What it says otherwise, and what may mean something else, in the order of the text.
    """

    text: str
    remarks: tuple[Remark, ...]


def translate(original: Original, names: Mapping[tuple[str, ...], str]) -> Translation:
    """Translates a statement.

    Args:
        original: What to translate.
        names: By the name of each relation it reads, what that is called here.

    Raises:
        Untranslatable: It holds what has no equal, or what sqlglot cannot write.
    """
    tree, dialect = original.tree.copy(), original.dialect
    remarks = list(remarks_on(tree, dialect))
    for number, (node, _) in enumerate(remarks):
        _leaf(node).add_comments([f" @remark {number}@ "])
    if original.kind != "table":
        rename(tree, dialect, names)
    text = _written(rewritten(tree, dialect))
    if original.kind == "table":
        return Translation(*_columns(_MARK.sub("", text), [one for _, one in remarks]))
    return Translation(*_commented(text, [one for _, one in remarks]))


def column_type(text: str, dialect: SourceDialect) -> str | None:
    """Returns what a type of another dialect is here; None if nobody can tell.

    Example:
        >>> column_type("DECIMAL", SourceDialect.named("duckdb"))
        'DECIMAL(18, 3)'
    """
    try:
        found = exp.DataType.build(text, dialect=dialect.of)
        return _written(rewritten(found, dialect))
    except (SqlglotError, Untranslatable):
        return None


def _written(tree: exp.Expr) -> str:
    try:
        text: str = tree.sql("postgres", pretty=True, unsupported_level=ErrorLevel.RAISE, max_unsupported=5)
    except SqlglotError as error:
        raise Untranslatable(f"sqlglot cannot write it: {error}") from error
    except RecursionError as error:
        raise Untranslatable("nested too deeply") from error
    return text


def _leaf(node: exp.Expr) -> exp.Expr:
    """Returns the first part of a node beside which sqlglot writes comments."""
    if isinstance(node, exp.Query):
        return node
    return next((one for one in node.walk(bfs=False) if isinstance(one, exp.Column | exp.Literal | exp.Star)), node)


def _columns(text: str, remarks: list[Remark]) -> tuple[str, tuple[Remark, ...]]:
    return text[text.index("(") :], tuple(remarks)


def _commented(text: str, remarks: list[Remark]) -> tuple[str, tuple[Remark, ...]]:
    """Returns a text with comments in the place of marks, and the remarks with their lines."""
    whole = _MARK.sub("", text)
    inside = _lines_inside(whole)
    above: dict[int, list[int]] = {}
    placed: set[int] = set()
    for at, line in enumerate(text.split("\n")):
        for number in map(int, _MARK.findall(line)):
            if number not in placed:
                placed.add(number)
                above.setdefault(next(n for n in range(at, -1, -1) if n not in inside), []).append(number)
    lines: list[str] = []
    found = [one for number, one in enumerate(remarks) if number not in placed]
    said: set[Remark] = set()
    lines += _comments(found, "", said)
    for at, line in enumerate(whole.split("\n")):
        here = [remarks[number] for number in above.get(at, ())]
        lines += _comments(here, line[: len(line) - len(line.lstrip())], said)
        lines.append(line)
        found += dict.fromkeys(replace(one, line=len(lines)) for one in here)
    return "\n".join(lines), tuple(found)


def _comments(remarks: list[Remark], indent: str, said: set[Remark]) -> Iterator[str]:
    """Yields a line for each remark that is not exact; what has been said is said again in short."""
    for one in dict.fromkeys(one for one in remarks if not one.is_exact):
        text = "as above" if one in said else " ".join(one.text.split())
        said.add(one)
        yield f"{indent}-- {one.topic}: {text}"


def _lines_inside(text: str) -> set[int]:
    """Returns which lines, counted from 0, begin within a text, a name or a comment."""
    spans = [(one.start, one.end) for one in tokens_of(text)]
    gaps = zip([0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)], strict=True)
    spans += [
        (start + one.start(), start + one.end()) for start, end in gaps for one in _COMMENT.finditer(text[start:end])
    ]
    return {text.count("\n", 0, at) + 1 for start, end in spans for at in _breaks(text, start, end)}


def _breaks(text: str, start: int, end: int) -> Iterator[int]:
    at = text.find("\n", start, end)
    while at >= 0:
        yield at
        at = text.find("\n", at + 1, end)
