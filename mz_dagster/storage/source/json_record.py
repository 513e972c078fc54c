r"""What one JSON line says, in plain Python: for each declared column the text of its member.

A line is what PostgreSQL's type json takes, and a member's text is what its `->>` gives: of a string what it spells,
of anything else its JSON as it stands in the line. A string that no text can hold, with U+0000 or half of a surrogate
pair, is the fault of its column alone. Of a column that is an array it is the array's text: that which a string spells,
or of a list what PostgreSQL's `json_populate_record` makes of it; lists in lists are dimensions.

Runs on Spark's workers, which get this code by value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from mz_dagster.functions.arrays.arrays import dimensioned_text
from mz_dagster.functions.jsonb import jsonb
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.envelope.log_place import place_of

#: Why the line cannot be read; why its value cannot, although its key can; whether the key, and whether the value, is
#: null as a whole; each column's text; why a column's text cannot be had, or None if all can; and where in a log it
#: stands, of a change that says so.
JsonRecord = tuple[str | None, str | None, bool, bool, list[str | None] | None, list[str | None] | None, str | None]
Reader = Callable[[str], JsonRecord]
#: What a member's text is: what a string spells, or JSON of a string, too, with its quotes; or an array's, of these.
Form: TypeAlias = Literal["text", "json", "array of text", "array of json"]

#: What JSON may have around it.
_BLANKS = " \t\r"
#: How much of a line is shown.
_SHOWN = 100
_UNICODE = "22P05 unsupported Unicode escape sequence"
_SURROGATE = "22P02 invalid input syntax for type json"
_TEXTS = frozenset({str, jsonb.Number, type(None)})
_UNTEXTUAL = re.compile("[\0\ud800-\udfff]")
#: What stands for why a line cannot be read if it is no record, and there is nothing to be read.
NO_RECORD = ""
_TRUNCATED = "0A000 the table was truncated, which changes of its keys do not tell"
_KEY_CHANGED = '22P02 keys of "before" and "after" differ; such a change is a deletion and a creation'
_OP = '22P02 member "op" is none of "c", "u", "d", "r" and "t"'
#: What Debezium writes in the place of a large value that a change left alone, and does not know.
_UNAVAILABLE = "__debezium_unavailable_value"
_NO_LIST = "22P02 expected JSON array"
_RAGGED = "22P02 malformed JSON array"
_NOT_THERE = "22004 the change does not say the value, which it left alone"


def form_of(type_: ScalarType) -> Form:
    """Returns what the texts of a column of a type are."""
    element = type_.array_element
    if element is not None:
        return "array of json" if element.kind in (Kind.JSON, Kind.JSONB) else "array of text"
    return "json" if type_.kind in (Kind.JSON, Kind.JSONB) else "text"


def reader(names: Sequence[str], forms: Sequence[Form], key: Sequence[str] | None, *, debezium: bool = False) -> Reader:
    """Returns what reads a line.

    Args:
        names: The declared columns'.
        forms: What their texts are.
        key: None if a line is a row; if it is a key with its value, those columns that stand in the key.
        debezium: Whether a line is a change that Debezium writes, of a row with that key.
    """
    if debezium:
        return debezium_reader(names, forms, key or ())

    def read_row(line: str) -> JsonRecord:
        node = _document(line)
        if type(node) is str:
            return _malformed(node)
        values = list(map(node.get, names))
        if only_text and _are_texts(values, line):
            return None, None, False, False, values, None, None
        return None, None, False, False, *_columns(line, names, forms, [(node, ())] * len(names)), None

    def read_upsert(line: str) -> JsonRecord:
        node = _document(line)
        why = node if type(node) is str else _member_fault(node, "key")
        if why is not None:
            return _malformed(why)
        fault = _member_fault(node, "value")
        keyed, valued = node["key"], None if fault is not None else node["value"]
        if only_text and keyed is not None and valued is not None:
            values = [(keyed if name in keys else valued).get(name) for name in names]
            if _are_texts(values, line):
                return None, None, False, False, values, None, None
        places = [(keyed, ("key",)) if name in keys else (valued, ("value",)) for name in names]
        deleted = valued is None and fault is None
        return None, fault, keyed is None, deleted, *_columns(line, names, forms, places), None

    keys = frozenset(key or ())
    only_text = set(forms) == {"text"}
    return read_row if key is None else read_upsert


def debezium_reader(names: Sequence[str], forms: Sequence[Form], key: Sequence[str]) -> Reader:
    """Returns what reads a line that is a change, `{"before": ..., "after": ..., "op": "c" | "u" | "d" | "r" | "t"}`.

    It stands by itself, or in the member `payload` beside a `schema`. What creates (`c`), updates (`u`) or is read for
    a snapshot (`r`) says by `after` what its key's row is; what deletes (`d`) says by `before` which key has none. A
    null by itself, or in the place of `payload`, is written behind a deletion for the log's sake, and is no record.
    The line `{"key": null, "value": null}` is the NULL key's record of nothing, as it is for other sources with a key.
    """

    def read_change(line: str) -> JsonRecord:
        if line.strip(_BLANKS) == "null":
            return _malformed(NO_RECORD)
        node = _document(line)
        if type(node) is str:
            return _malformed(node)
        if node == {"key": None, "value": None}:
            return None, None, True, True, [None] * len(names), None, None
        path: tuple[str, ...] = ()
        if "op" not in node and "payload" in node:
            why = _member_fault(node, "payload")
            if why is not None:
                return _malformed(why)
            node, path = node["payload"], ("payload",)
            if node is None:
                return _malformed(NO_RECORD)
        op = node.get("op")
        if op not in ("c", "u", "d", "r"):
            return _malformed(_TRUNCATED if op == "t" else _OP)
        before, after = node.get("before"), node.get("after")
        side, other = ("before", "after") if op == "d" else ("after", "before")
        why = _member_fault({"before": before, "after": after}, other)
        if why is None and type(node.get(side)) is not dict:
            why = f'22P02 member "{side}" is not an object'
        if why is None and op == "u" and before is not None and not _is_of(before, after, key):
            why = _KEY_CHANGED
        if why is not None:
            return _malformed(why)
        row = node[side]
        places = [(row if op != "d" or name in key else None, (*path, side)) for name in names]
        texts, faults = _columns(line, names, forms, places)
        if _UNAVAILABLE in line and op != "d":
            faults = faults or [None] * len(names)
            faults = [
                _NOT_THERE if row.get(name) == _UNAVAILABLE else one for name, one in zip(names, faults, strict=True)
            ]
        return None, None, False, op == "d", texts, faults, place_of(node)

    return read_change


def _is_of(before: dict[str, jsonb.Node], after: dict[str, jsonb.Node], key: Sequence[str]) -> bool:
    """Returns whether two rows have the same key, as far as the first one says."""
    return all(before.get(name) is None or str(before[name]) == str(after.get(name)) for name in key)


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
    return why, None, True, False, None, None, None


def _member_fault(node: dict[str, jsonb.Node], name: str) -> str | None:
    if name not in node:
        return f'22P02 record has no member "{name}"'
    if node[name] is not None and type(node[name]) is not dict:
        return f'22P02 member "{name}" is not an object'
    return None


def _columns(
    line: str,
    names: Sequence[str],
    forms: Sequence[Form],
    places: Sequence[tuple[dict[str, jsonb.Node] | None, tuple[str, ...]]],
) -> tuple[list[str | None], list[str | None] | None]:
    """Returns the columns' texts and faults; a place is the object that has the column, and its path in the line."""
    texts: list[str | None] = []
    faults: list[str | None] | None = None
    members: dict[tuple[str, ...], dict[str, str]] = {}
    # A line is text: only an escape spells what no text holds.
    escapes = "\\u" in line
    for i, (name, form, (node, path)) in enumerate(zip(names, forms, places, strict=True)):
        value = None if node is None else node.get(name)
        is_array = form.startswith("array")
        if value is None:
            texts.append(None)
        elif is_array and not isinstance(value, list) and type(value) is not str:
            faults = faults or [None] * len(names)
            faults[i] = _NO_LIST
            texts.append(None)
        elif isinstance(value, jsonb.Number):
            texts.append(str(value))
        elif isinstance(value, bool):
            texts.append("true" if value else "false")
        elif isinstance(value, str) and form != "json":
            untextual = _UNTEXTUAL.search(value) if escapes else None
            if untextual is not None:
                faults = faults or [None] * len(names)
                faults[i] = _UNICODE if untextual[0] == "\0" else _SURROGATE
                value = ""
            texts.append(value)
        else:
            if path not in members:
                inner = line
                for part in path:
                    inner = jsonb.members_of(inner)[part]
                members[path] = jsonb.members_of(inner)
            found: str | None = members[path][name]
            if is_array and found is not None:
                try:
                    found = _array_text(found, of_json=form == "array of json")
                except SqlFailure as failure:
                    faults = faults or [None] * len(names)
                    faults[i], found = str(failure), None
            texts.append(found)
    return texts, faults


def _array_text(text: str, *, of_json: bool) -> str:
    """Returns the text of the array that a list is, and lists in it.

    There are as many dimensions as lists stand in one another where the first member stands that is no list. What is
    nested deeper is an element.
    """
    elements: list[str | None] = []
    lengths: list[int | None] = []
    known = 0

    def read(of: str, depth: int) -> None:
        nonlocal known
        members = jsonb.element_texts(of)
        if len(lengths) < depth:
            lengths.append(None)
        for one in members:
            if one[0] == "[" and (not known or depth < known):
                read(one, depth + 1)
                continue
            known = known or depth
            if depth < known:
                raise SqlFailure(*_NO_LIST.split(" ", 1))
            elements.append(_element_text(one, of_json=of_json))
        known = known or depth
        if lengths[depth - 1] not in (None, len(members)):
            raise SqlFailure(*_RAGGED.split(" ", 1))
        lengths[depth - 1] = len(members)

    read(text, 1)
    shape = [one or 0 for one in lengths]
    return dimensioned_text(elements, shape, [1] * len(shape)) if elements else "{}"


def _element_text(json: str, *, of_json: bool) -> str | None:
    if json == "null":
        return None
    if json[0] != '"' or of_json:
        return json
    found = jsonb.string_of(json)
    untextual = _UNTEXTUAL.search(found)
    if untextual is not None:
        raise SqlFailure(*(_UNICODE if untextual[0] == "\0" else _SURROGATE).split(" ", 1))
    return found
