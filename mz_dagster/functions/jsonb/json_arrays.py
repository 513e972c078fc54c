"""Arrays of SQL as JSON has them: a member that a record's column of an array type is made of."""

from __future__ import annotations

from mz_dagster.functions.jsonb.jsonb import element_texts, string_of
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind


@function("array_text_jsonb", (Kind.JSONB, Kind.BOOL), Kind.TEXT, fallible=True)
@function("array_text_json", (Kind.JSON, Kind.BOOL), Kind.TEXT, fallible=True)
def array_text(text: str, of_documents: bool) -> str:
    """Returns the text of the array that a JSON array is; a JSON string is that text.

    Arrays in arrays are dimensions, as many as the first elements are within each other.

    Args:
        text: The JSON.
        of_documents: Whether elements are JSON, too, so that strings keep their quotes.

    Example:
        >>> array_text('[1, null, "a b"]', False), array_text("[[1], [2]]", False), array_text("[1, [2]]", False)
        ('{"1",NULL,"a b"}', '{{"1"},{"2"}}', '{"1","[2]"}')
    """
    if text.startswith('"'):
        return string_of(text)
    depth, first = 0, text
    while first.startswith("["):
        depth += 1
        elements = element_texts(first)
        first = elements[0] if elements else ""
    sizes: list[int | None] = [None] * depth
    found = _array(text, 0, sizes, of_documents)
    return found if all(sizes) else "{}"


def _array(text: str, level: int, sizes: list[int | None], of_documents: bool) -> str:
    if not text.startswith("["):
        raise SqlFailure("22P02", "expected JSON array")
    elements = element_texts(text)
    if level + 1 < len(sizes):
        elements = [_array(one, level + 1, sizes, of_documents) for one in elements]
    else:
        elements = [_element(one, of_documents) for one in elements]
    if sizes[level] not in (None, len(elements)):
        raise SqlFailure("22P02", "malformed JSON array")
    sizes[level] = len(elements)
    return "{" + ",".join(elements) + "}"


def _element(text: str, of_documents: bool) -> str:
    if text == "null":
        return "NULL"
    shown = string_of(text) if text.startswith('"') and not of_documents else text
    quoted = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
