"""`CREATE SINK`: what leaves, where to, and in which form."""

from __future__ import annotations

from typing import Literal

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.options import Common
from mz_dagster.sql.source_statement import parse_delta
from mz_dagster.sql.statements import CreateSink


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
    delta = parse_delta(cursor)
    key = cursor.names_in_parentheses() if cursor.accepts("key") else ()
    envelope: Literal["upsert", "append changes"] = "upsert"
    if cursor.accepts("append", "changes"):
        envelope = "append changes"
    else:
        cursor.expects("envelope")
        if cursor.accepts("append", "changes"):
            envelope = "append changes"
        elif not cursor.accepts("upsert"):
            raise cursor.refuse("this envelope", "Envelopes of sinks are UPSERT and APPEND CHANGES.")
    return CreateSink(*common, name, on, delta, key, envelope, if_not_exists)
