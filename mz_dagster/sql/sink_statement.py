"""`CREATE SINK`: what leaves, where to, and in which form."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.sql.options import Common
from mz_dagster.sql.source_statement import parse_delta
from mz_dagster.sql.statements import CreateSink, Layout

#: Units of sizes, as PostgreSQL has them.
_UNITS = {"MB": 1 << 20, "GB": 1 << 30}


def parse_create_sink(cursor: TokenCursor, common: Common) -> CreateSink:
    """Moves past what follows `CREATE SINK`.

    Raises:
        UnsupportedForm: It is of a kind or an envelope that is not known.
    """
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    cursor.expects("from")
    on = cursor.name()
    cursor.expects("into")
    if not cursor.sees("delta"):
        raise cursor.refuse("this kind of sink", "Only DELTA is known.", "Write INTO DELTA (URI '...').")
    layout = Layout()

    def option() -> bool:
        nonlocal layout
        if not layout.partition and cursor.accepts("partition", "columns"):
            layout = replace(layout, partition=tuple(cursor.names_in_parentheses()))
        elif layout.file_bytes is None and cursor.accepts("file", "size"):
            layout = replace(layout, file_bytes=_bytes(cursor))
        else:
            return False
        return True

    delta = parse_delta(cursor, option)
    key = cursor.names_in_parentheses() if cursor.accepts("key") else ()
    envelope: Literal["upsert", "append changes", "debezium"] = "upsert"
    if cursor.accepts("append", "changes"):
        envelope = "append changes"
    else:
        cursor.expects("envelope")
        if cursor.accepts("append", "changes"):
            envelope = "append changes"
        elif cursor.accepts("debezium"):
            envelope = "debezium"
        elif not cursor.accepts("upsert"):
            raise cursor.refuse("this envelope", "Envelopes of sinks are UPSERT, DEBEZIUM and APPEND CHANGES.")
    return CreateSink(*common, name, on, delta, layout, key, envelope, if_not_exists)


def _bytes(cursor: TokenCursor) -> int:
    """Moves past a size, and returns it."""
    cursor.accepts_symbol("=")
    at = cursor.current
    said = cursor.string("a size")
    found = re.fullmatch(r"([1-9][0-9]{0,8}) ?(MB|GB)", said)
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 1 << 20 <= size <= 1 << 40:
        raise InvalidTableDefinition(
            f'a file cannot be of size "{said}"',
            hint="Write a number from '1 MB' on, of MB or GB; what is not said is '128 MB'.",
            position=at.start + 1,
        )
    return size
