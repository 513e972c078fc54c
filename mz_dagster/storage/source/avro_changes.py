"""Avro's records of changes that Debezium writes, as the lines of JSON that it writes otherwise.

What a line of such a file says is in `json_record.debezium_reader`. Values become what JSON has for them: of decimals,
dates and times their texts, of bytes PostgreSQL's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, BinaryIO
from uuid import UUID

from mz_dagster.storage.source.avro_files import named_if_damaged, records_of


def lines_of_avro(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields a line for each record of an object container file.

    Args:
        file: The file.
        path: What it is called.

    Raises:
        SourceUnreadable: It is damaged.
    """
    with named_if_damaged(path):
        _, records = records_of(file)
        for record in records:
            yield json.dumps(_plain(record), ensure_ascii=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    """Returns what JSON has for a value."""
    match value:
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case Decimal():
            return f"{value:f}"
        case datetime() | date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case bytes():
            return f"\\x{value.hex()}"
        case float() if not isfinite(value):
            return str(value)
    return value
