r"""What one JSON line says, in plain Python: for each declared column the text of its member.

A line is what PostgreSQL's type json takes, and a member's text is what its `->>` gives: of a string what it spells,
of anything else its JSON as it stands in the line. A string that no text can hold, with U+0000 or half of a surrogate
pair, is the fault of its column alone.

Runs on Spark's workers, which get this code by value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mz_dagster.functions.jsonb import jsonb
from mz_dagster.functions.registry import SqlFailure

#: Why the line cannot be read; why its value cannot, although its key can; whether the key, and whether the value, is
#: null as a whole; each column's text; and why a column's text cannot be had, or None if all can.
JsonRecord = tuple[str | None, str | None, bool, bool, list[str | None] | None, list[str | None] | None]
Reader = Callable[[str], JsonRecord]

#: How much of a line is shown.
_SHOWN = 100
_UNICODE = "22P05 unsupported Unicode escape sequence"
_SURROGATE = "22P02 invalid input syntax for type json"
_TEXTS = frozenset({str, jsonb.Number, type(None)})
_UNTEXTUAL = re.compile("[\0\ud800-\udfff]")


def reader(names: Sequence[str], keep_json: Sequence[bool], key: Sequence[str] | None) -> Reader:
    """Returns what reads a line.

    Args:
        names: The declared columns'.
        keep_json: For each of them whether its text is JSON for a string, too, which then has its quotes.
        key: None if a line is a row; if it is a key with its value, those columns that stand in the key.
    """

    def read_row(line: str) -> JsonRecord:
        node = _document(line)
        if type(node) is str:
            return _malformed(node)
        values = list(map(node.get, names))
        if no_json and _are_texts(values, line):
            return None, None, False, False, values, None
        return None, None, False, False, *_columns(line, names, keep_json, [(node, ())] * len(names))

    def read_upsert(line: str) -> JsonRecord:
        node = _document(line)
        why = node if type(node) is str else _member_fault(node, "key")
        if why is not None:
            return _malformed(why)
        fault = _member_fault(node, "value")
        keyed, valued = node["key"], None if fault is not None else node["value"]
        if no_json and keyed is not None and valued is not None:
            values = [(keyed if name in keys else valued).get(name) for name in names]
            if _are_texts(values, line):
                return None, None, False, False, values, None
        places = [(keyed, ("key",)) if name in keys else (valued, ("value",)) for name in names]
        deleted = valued is None and fault is None
        return None, fault, keyed is None, deleted, *_columns(line, names, keep_json, places)

    keys = frozenset(key or ())
    no_json = not any(keep_json)
    return read_row if key is None else read_upsert


def _are_texts(values: Sequence[jsonb.Node], line: str) -> bool:
    """Returns whether values of members are their own texts, as most are."""
    return _TEXTS.issuperset(map(type, values)) and "\\u" not in line


def _document(line: str) -> jsonb.Node:
    """Returns the object that `line` is; a text if it is none: why."""
    try:
        node = jsonb.document_of(line)
    except SqlFailure as error:
        if not str(error).startswith("22P02"):
            return str(error)
        node = None
    if type(node) is dict:
        return node
    cut = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    return f'22P02 invalid input syntax for type json: "{cut}"'


def _malformed(why: str) -> JsonRecord:
    return why, None, True, False, None, None


def _member_fault(node: dict[str, jsonb.Node], name: str) -> str | None:
    if name not in node:
        return f'22P02 record has no member "{name}"'
    if node[name] is not None and type(node[name]) is not dict:
        return f'22P02 member "{name}" is not an object'
    return None


def _columns(
    line: str,
    names: Sequence[str],
    keep_json: Sequence[bool],
    places: Sequence[tuple[dict[str, jsonb.Node] | None, tuple[str, ...]]],
) -> tuple[list[str | None], list[str | None] | None]:
    """Returns the columns' texts and faults; a place is the object that has the column, and its path in the line."""
    texts: list[str | None] = []
    faults: list[str | None] | None = None
    members: dict[tuple[str, ...], dict[str, str]] = {}
    # A line is text: only an escape spells what no text holds.
    escapes = "\\u" in line
    for i, (name, as_json, (node, path)) in enumerate(zip(names, keep_json, places, strict=True)):
        value = None if node is None else node.get(name)
        if value is None:
            texts.append(None)
        elif isinstance(value, jsonb.Number):
            texts.append(str(value))
        elif isinstance(value, bool):
            texts.append("true" if value else "false")
        elif isinstance(value, str) and not as_json:
            untextual = _UNTEXTUAL.search(value) if escapes else None
            if untextual is not None:
                faults = faults or [None] * len(names)
                faults[i] = _UNICODE if untextual[0] == "\0" else _SURROGATE
                value = ""
            texts.append(value)
        else:
            if path not in members:
                members[path] = jsonb.members_of(jsonb.members_of(line)[path[0]] if path else line)
            texts.append(members[path][name])
    return texts, faults
