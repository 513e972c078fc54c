"""Files of Avro: its types as columns, and that no bytes whatever are more than a refused file."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import NotSupportedError
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage.source import SourceUnreadable
from mz_dagster.storage.source.avro_changes import lines_of_avro
from mz_dagster.storage.source.avro_files import row_count, write_as_parquet
from tests.source.landing import drop, poll
from tests.source.test_formats import COLUMNS, ROWS, as_avro
from tests.source.test_mutated_files import flipped

#: Types of Avro, what SQL has for them, a value, and what it is there.
TYPES: list[tuple[Any, str, Any, Any]] = [
    ("int", "integer", -5, -5),
    ("int", "numeric(9,2)", 7, Decimal("7.00")),
    ("long", "bigint", 2**62, 2**62),
    ("float", "real", 1.5, 1.5),
    ("string", "text", "é", "é"),
    ("bytes", "bytea", b"\0\xff", b"\0\xff"),
    ({"type": "fixed", "name": "f", "size": 2}, "bytea", b"ab", b"ab"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "text", "B", "B"),
    ({"type": "int", "logicalType": "date"}, "date", date(1, 1, 1), date(1, 1, 1)),
    ({"type": "int", "logicalType": "time-millis"}, "time", time(1, 2, 3, 4000), time(1, 2, 3, 4000)),
    ({"type": "long", "logicalType": "time-micros"}, "time", time(23, 59, 59, 999999), time(23, 59, 59, 999999)),
    ({"type": "long", "logicalType": "timestamp-millis"}, "timestamptz", datetime(1969, 1, 1, tzinfo=UTC), None),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp", datetime(2024, 1, 1, 1), None),
    ({"type": "string", "logicalType": "uuid"}, "uuid", UUID(int=5), UUID(int=5)),
    (
        {"type": "fixed", "name": "d", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 3},
        "numeric(20,3)",
        Decimal("-12345678901234567.891"),
        Decimal("-12345678901234567.891"),
    ),
    ({"type": "array", "items": ["null", "long"]}, "bigint[]", [1, None], [1, None]),
    ("e", "text", "A", "A"),  # a name that stands above
]


def avro(schema: Any, *rows: Any, codec: str = "null") -> bytes:
    target = BytesIO()
    fastavro.writer(target, fastavro.parse_schema(schema), rows, codec=codec)
    return target.getvalue()


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": one} for name, one in fields.items()]}


def test_each_type_is_what_sql_has_for_it(connection: Connection, tmp_path: Path) -> None:
    fields = {f"c{i}": ["null", one] for i, (one, *_) in enumerate(TYPES)}
    values = {f"c{i}": value for i, (_, _, value, _) in enumerate(TYPES)}
    nothing = dict.fromkeys(values)
    schema = record(**fields, other={"type": "map", "values": "int"})
    for number, codec in enumerate(("null", "deflate")):
        rows = [{**values, "other": {"a": 1}}, {**nothing, "other": {}}]
        drop(tmp_path, f"in/{number}.avro", avro(schema, *rows, codec=codec))
    columns = ", ".join(f"c{i} {sql}" for i, (_, sql, *_) in enumerate(TYPES))
    connection.execute(f"CREATE SOURCE s ({columns}) FROM FILES (FOLDER 'in') FORMAT AVRO")
    poll(connection)
    found = connection.execute("SELECT * FROM s ORDER BY c0").fetchall()
    assert found[:2] == [tuple(value if wanted is None else wanted for *_, value, wanted in TYPES)] * 2
    assert found[2:] == [(None,) * len(TYPES)] * 2


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"type": "map", "values": "int"}, 'Its column "c" is of a type that no column has here.'),
        (["int", "string"], 'Its column "c" is of a type that no column has here.'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, 'Its column "c" is of a type'),
        ("string", 'Its column "c" is string, which is not readable as integer.'),
        (None, 'It lacks column "c", and has the undeclared column "x".'),
    ],
)
def test_what_no_column_holds_is_refused(connection: Connection, tmp_path: Path, field: Any, why: str) -> None:
    drop(tmp_path, "in/1.avro", avro(record(x="int") if field is None else record(c=field)))
    connection.execute("CREATE SOURCE s (c integer) FROM FILES (FOLDER 'in') FORMAT AVRO")
    with pytest.raises(SourceUnreadable, match=r"cannot read Avro file \"1\.avro\"") as caught:
        poll(connection)
    assert why in str(caught.value)
    drop(tmp_path, "in/1.avro", avro(record(c="int"), {"c": 3}))
    poll(connection)
    assert connection.execute("SELECT * FROM s").fetchall() == [(3,)]


def test_bytes_that_are_damaged_are_read_or_refused() -> None:
    data, refused = as_avro(COLUMNS, ROWS), 0
    for seed in range(300):
        file = flipped(Random(seed), data)
        assert row_count(BytesIO(file)) >= 0
        try:
            write_as_parquet(BytesIO(file), "f", COLUMNS, pa.BufferOutputStream())
        except SourceUnreadable:
            refused += 1
    assert 0 < refused < 300
    with pytest.raises(SourceUnreadable, match="cannot read Avro file"):
        write_as_parquet(BytesIO(avro("int", 1)), "f", (Column("a", INT4),), pa.BufferOutputStream())


def test_a_block_that_says_too_few_records_is_damaged() -> None:
    data = avro(record(a="int"), {"a": 1}, {"a": 2})
    sync = data[-16:]
    at = data.index(sync) + 16
    assert data[at] == 4, "two records, as a zigzag number"
    damaged = data[:at] + b"\2" + data[at + 1 :]
    with pytest.raises(SourceUnreadable, match="a block has more than the 1 records that it says"):
        write_as_parquet(BytesIO(damaged), "f", (Column("a", INT4),), pa.BufferOutputStream())
    with pytest.raises(SourceUnreadable, match="a block has more"):
        list(lines_of_avro(BytesIO(damaged), "f"))
    assert list(lines_of_avro(BytesIO(data), "f")) == [b'{"a": 1}\n', b'{"a": 2}\n']


def test_without_its_package_the_extra_is_named(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mz_dagster.adapter.origins.find_spec", lambda name: None)
    with pytest.raises(NotSupportedError, match=r"mz_dagster\[avro\]"):
        connection.execute("CREATE SOURCE s (c integer) FROM FILES (FOLDER 'in') FORMAT AVRO")
