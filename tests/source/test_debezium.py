"""`ENVELOPE DEBEZIUM`: a source of a table's changes is the table, and what its records do not tell is an error."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from mz_dagster.scalars.types import INT4, JSONB, TEXT, Column, numeric
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.folder import InFolder
from tests.source.landing import bind, drop, poll, records
from tests.source.test_avro import avro, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (Column("id", INT4), Column("name", TEXT), Column("price", numeric(2)), Column("data", JSONB))
CREATE = (
    "CREATE SOURCE s (id integer, name text, price numeric(10, 2), PRIMARY KEY (id)) "
    "FROM FILES (FOLDER 'in') FORMAT JSON ENVELOPE DEBEZIUM"
)


def change(op: str, before: Any = None, after: Any = None, **more: Any) -> str:
    source = {"version": "3.0", "connector": "postgresql", "lsn": 24023128, "snapshot": "false", "table": "t"}
    return json.dumps({"before": before, "after": after, "source": source, "op": op, "ts_ms": 1720000000000, **more})


def wrapped(line: str) -> str:
    return f'{{"schema": {{"type": "struct", "fields": []}}, "payload": {line}}}'


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.deep) for one in (1, 2))])
def test_a_source_of_changes_is_the_table(connection: Connection, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    connection.execute(CREATE)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n FROM s GROUP BY name")
    table: dict[int, tuple[str | None, float]] = {}

    def row(key: int, values: tuple[str | None, float] | None) -> dict[str, Any] | None:
        return None if values is None else {"id": key, "name": values[0], "price": values[1], "undeclared": [1]}

    def drawn() -> tuple[str | None, float]:
        return random.choice(["a", "b", None, "é\u2028"]), random.randrange(999) / 4

    for key in range(4):
        table[key] = drawn()
    last = [change("r", None, row(key, values)) for key, values in table.items()]  # the snapshot
    for tick in range(10):
        # A connector that was killed repeats what it wrote last; the first tick has the snapshot.
        lines = list(last if tick == 0 or random.random() < 0.3 else ())
        last = []
        for _ in range(random.randrange(1, 6)):
            key, is_full = random.randrange(8), random.random() < 0.5
            before = row(key, table.get(key)) if is_full else None
            if key not in table:
                table[key] = drawn()
                made = [change("c", None, row(key, table[key]))]
            elif random.random() < 0.4:
                del table[key]
                made = [
                    change("d", before or {"id": key, "name": None, "price": None}),
                    random.choice(["null", " null\t"]),
                ]
            else:
                table[key] = drawn()
                made = [change("u", before, row(key, table[key]))]
            last += made
        lines += last
        drop(
            tmp_path, f"in/{tick:02}.jsonl", "\n".join(wrapped(one) if random.random() < 0.5 else one for one in lines)
        )
        poll(connection)
        found = Counter(
            (key, name, float(price)) for key, name, price in connection.execute("SELECT * FROM s").fetchall()
        )
        assert found == Counter((key, *values) for key, values in table.items())
        names = Counter(name for name, _ in table.values())
        assert Counter(connection.execute("SELECT * FROM v").fetchall()) == Counter(names.items())


#: Lines, and of each the texts that its record has, or what is wrong with it; None if it is no record.
LINES: list[tuple[str, Any]] = [
    (
        change("c", None, {"id": 1, "name": "x", "price": 1.25, "data": {"b": [7]}}),
        (1, "x", "1.25", '{"b": [7]}'),
    ),
    (wrapped(change("r", None, {"id": 2, "data": [None]})), (2, None, None, "[null]")),
    (change("u", {"id": 1}, {"id": 1, "name": "\u00e9"}), (1, "\u00e9", None, None)),
    (change("u", {"id": None, "name": "y"}, {"id": 1}), (1, None, None, None)),
    (change("d", {"id": 1, "name": "x"}), (1, None, None, None)),
    ("null", None),
    (wrapped("null"), None),
    ("  ", None),
    ('{"key": null, "value": null}', (None, None, None, None)),
    (change("t"), "0A000 the table was truncated"),
    (change("m"), 'member "op" is none of'),
    ('{"before": null, "after": {"id": 1}}', 'member "op" is none of'),
    (change("u", {"id": 1}, {"id": 2}), 'keys of "before" and "after" differ'),
    (change("c", None, None), 'member "after" is not an object'),
    (change("c", None, [1]), 'member "after" is not an object'),
    (change("c", 3, {"id": 1}), 'member "before" is not an object'),
    (change("d", None, None), 'member "before" is not an object'),
    (change("d", {"name": "x"}), 'null value in column "id"'),
    (change("u", None, {"name": "x"}), 'null value in column "id"'),
    (wrapped("[]"), 'member "payload" is not an object'),
    ("[]", "invalid input syntax for type json"),
    (change("c", None, {"id": 1})[:-1], "invalid input syntax for type json"),
    (change("u", None, {"id": 3, "name": "__debezium_unavailable_value"}), "22004 the change does not say the value"),
    (change("u", None, {"id": 3, "price": "x"}), "invalid input syntax for type numeric"),
    (change("u", None, {"id": 3, "name": "\ud800"}), "22P02"),
]


@pytest.mark.deep
def test_both_engines_say_the_same_of_every_line(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(InFolder(tmp_path), "*", "json", COLUMNS, ("id",), "upsert", debezium=True)
    drop(tmp_path, "f", "\n".join(line for line, _ in LINES))
    found = {row: (error, data) for _, _, row, _, error, *data in records(spark, source, bind({1: source.poll({})}))}
    for number, (line, wanted) in enumerate(LINES, 1):
        if wanted is None:
            assert number not in found, line
            continue
        error, data = found[number]
        if isinstance(wanted, str):
            assert error is not None, line
            assert wanted in error, line
            assert f'(file "f", line {number}' in error
        else:
            assert error is None, (line, error)
            assert tuple(None if one is None else str(one) for one in data) == tuple(
                None if one is None else str(one) for one in wanted
            )


def test_changes_are_read_from_avro(spark: SparkSession, connection: Connection, tmp_path: Path) -> None:
    row = record(
        id="int",
        name=["null", "string"],
        price=["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
        x="double",
        day={"type": "int", "logicalType": "date"},
        raw="bytes",
    )
    change = {
        "type": "record", "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None}, {"name": "after", "type": ["null", "r"]},
            {"name": "op", "type": "string"},
        ],
    }  # fmt: skip

    def state(key: int, **more: Any) -> dict[str, Any]:
        return {"id": key, "name": None, "price": None, "x": 0.5, "day": date(2026, 1, 2), "raw": b"", **more}

    connection.execute(
        "CREATE SOURCE s (id integer, name text, price numeric(10, 2), x double precision, day date, raw bytea, "
        "PRIMARY KEY (id)) FROM FILES (FOLDER 'in', PATTERN '*') FORMAT AVRO ENVELOPE DEBEZIUM"
    )
    first = [
        {"op": "r", "before": None, "after": state(1, name="\u00e9", price=Decimal("-1.50"), raw=b"\0\xff")},
        {"op": "c", "before": None, "after": state(2, x=float("-inf"))},
    ]
    drop(tmp_path, "in/1", avro(change, *first))
    poll(connection)
    found = connection.execute("SELECT * FROM s ORDER BY id").fetchall()
    assert found == [
        (1, "\u00e9", Decimal("-1.50"), 0.5, date(2026, 1, 2), b"\0\xff"),
        (2, None, None, float("-inf"), date(2026, 1, 2), b""),
    ]
    last = [
        {"op": "d", "before": state(1), "after": None},
        {"op": "u", "before": state(2), "after": state(2, name="y")},
    ]
    content = avro(change, *last)
    drop(tmp_path, "in/2", content)
    poll(connection)
    assert connection.execute("SELECT id, name FROM s").fetchall() == [(2, "y")]
    source = connection.engine.definitions.source(connection.engine.collection_of("s"))
    assert isinstance(source, FileSource)
    bindings = bind({1: source.poll({})})
    with source.found_by_spark(bindings) as (files, bound):
        assert len(records(spark, files, bound, source.read_here(bindings))) == 4, "both engines say the same"
    drop(tmp_path, "in/3", content[:-20])
    with pytest.raises(SourceUnreadable, match='cannot read Avro file "3"'):
        poll(connection)


def test_an_error_is_healed_by_the_next_change_of_its_key(connection: Connection, tmp_path: Path) -> None:
    connection.execute(CREATE)
    drop(tmp_path, "in/1.jsonl", change("c", None, {"id": 1, "price": "x"}) + "\n" + change("t"))
    poll(connection)
    with pytest.raises(Error, match=r"1\.jsonl"):
        connection.execute("SELECT * FROM s").fetchall()
    drop(tmp_path, "in/2.jsonl", '{"key": null, "value": null}\n' + change("u", None, {"id": 1, "price": 2}))
    poll(connection)
    assert len(connection.execute("SELECT * FROM s").fetchall()) == 1


def test_what_it_needs_is_asked_for(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(InvalidTableDefinition, match="ENVELOPE DEBEZIUM requires a primary key"):
        connection.execute(CREATE.replace(", PRIMARY KEY (id)", ""))
    with pytest.raises(InvalidTableDefinition, match="ENVELOPE DEBEZIUM is not one of CSV"):
        connection.execute(CREATE.replace("JSON", "CSV"))
    with pytest.raises(InvalidTableDefinition, match="ENVELOPE DEBEZIUM is not one of tables"):
        connection.execute("CREATE SOURCE s (PRIMARY KEY (id)) FROM DELTA (URI 'x') ENVELOPE DEBEZIUM")
    connection.execute(CREATE)
    assert "ENVELOPE DEBEZIUM" in connection.execute("SHOW CREATE SOURCE s").fetchall()[0][1]
