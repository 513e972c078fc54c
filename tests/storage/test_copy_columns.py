"""What COPY reads on columns is what each cell says by itself, and its errors are those of the first wrong cell."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from mz_dagster.functions import Failure, literal_of
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    Kind,
    Modifier,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.copy_csv import Record, csv_records, stored_columns, stored_plainly, text_records
from mz_dagster.storage.copy_errors import BadCopyFormat, BadCopyValue, NotUtf8

#: By type: texts that spell values, in plain forms and in others, and such that do not.
CELLS: dict[ScalarType, tuple[list[str], list[str]]] = {
    INT2: (["0", "-7", " 12 ", "+3", "0x1f", "32767"], ["", "x", "32768", "1.5"]),
    INT4: (["0", "-2147483648", "1_000", "007"], ["2147483648", "--1"]),
    INT8: (["9223372036854775807", "-5", "123456789012345678"], ["9223372036854775808"]),
    numeric(2): (["1.5", "-0.07", "1e3", "2.555", ".5", "99999999999999999999", "NaN"], ["1.2.3", "abc"]),
    FLOAT4: (["1.5", "-0", "1e10", "Infinity", "NaN", "271.54688"], ["1e39", "one"]),
    FLOAT8: (["0.1", "-1e-300", " 2 ", "inf", "1e308"], ["1e309", "0x"]),
    BOOL: (["t", "false", "yes", "0", " TRUE "], ["maybe", "2"]),
    DATE: (["2024-02-29", "Feb 3 2024", "20240101", "0044-03-15", "infinity"], ["2023-02-29", "soon"]),
    TIMESTAMP: (["2024-01-01 10:00:00", "2024-01-01T10:00:00.123456", "2024-01-01", "-infinity"], ["25:00"]),
    TIMESTAMPTZ: (["2024-01-01 10:00:00+02:00", "2024-01-01 10:00:00Z", "2024-01-01 10:00:00+02"], ["2024-13-01"]),
    TEXT: (["", "a", "é\u0301", " x ", "\\N"], []),
    UUID: (
        [
            "12345678-1234-1234-1234-123456789abc",
            "12345678-1234-1234-1234-123456789ABC",
            "{12345678123412341234123456789ABC}",
        ],
        ["1234"],
    ),
    BYTEA: (["\\x00ff", "abc"], ["\\x0"]),
    JSONB: (['{"a": [1, null]}', "1.50", '"x"'], ["{", "nul"]),
    array_of(INT4): (["{1,2,NULL}", "{}", "{{1,2},{3,4}}"], ["{1", "{a}"]),
}


def by_cell(records: Sequence[Record], columns: Sequence[Column]) -> list[pa.Array]:
    """Returns what `stored_columns` does, one cell after the other."""
    cells: list[list[object]] = [[] for _ in columns]
    for _, fields in records:
        for column, field, values in zip(columns, fields, cells, strict=True):
            found = None if field is None else literal_of(field, column.type, assigned=True)
            assert not isinstance(found, Failure)
            values.append(None if found is None else to_stored(found.value, column.type))
    return [pa.array(values, arrow_type(column.type)) for column, values in zip(columns, cells, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_what_their_cells_are(seed: int) -> None:
    chosen = random.Random(seed)
    columns = [Column(f"c{i}", type_) for i, type_ in enumerate(chosen.sample(list(CELLS), chosen.randrange(1, 6)))]
    # Half of all columns are of plain forms alone, which Arrow reads.
    spelled = [CELLS[one.type][0][: chosen.choice([1, 2, 9])] for one in columns]
    records: list[Record] = [
        (line, [None if chosen.random() < 0.2 else chosen.choice(one) for one in spelled])
        for line in range(1, chosen.choice([0, 1, 30]) + 1)
    ]
    assert shown(stored_columns(iter(records), columns)) == shown(by_cell(records, columns))


def shown(arrays: Sequence[pa.Array]) -> list[tuple[pa.DataType, str]]:
    return [(one.type, one.to_string(window=100)) for one in arrays]


@pytest.mark.parametrize("seed", range(20))
def test_the_first_wrong_cell_is_told(seed: int) -> None:
    chosen = random.Random(seed)
    columns = [
        Column(f"c{i}", type_) for i, type_ in enumerate(chosen.sample([one for one in CELLS if CELLS[one][1]], 3))
    ]
    records: list[Record] = [(line, [chosen.choice(CELLS[one.type][0]) for one in columns]) for line in range(1, 21)]
    for line, place in sorted([chosen.randrange(20), chosen.randrange(3)] for _ in range(3)):
        records[line][1][place] = chosen.choice(CELLS[columns[place].type][1])
    wrong = next(
        (line, column)
        for line, fields in records
        for column, field in zip(columns, fields, strict=True)
        if field is not None and isinstance(literal_of(field, column.type, assigned=True), Failure)
    )
    with pytest.raises(BadCopyValue) as told:
        stored_columns(iter(records), columns)
    assert f"line {wrong[0]}" in str(told.value)
    assert f'"{wrong[1].name}"' in str(told.value)


def test_what_is_wrong_first_is_told_whatever_kind_it_is() -> None:
    columns = [Column("a", INT4), Column("b", TEXT)]

    def broken(records: list[Record]) -> Iterator[Record]:
        yield from records
        raise BadCopyFormat("unterminated CSV quoted field")

    cases: tuple[tuple[Iterator[Record], type[Exception], str], ...] = (
        (iter([(1, ["x", "y"]), (2, ["1"])]), BadCopyValue, "line 1"),
        (iter([(1, ["1", "y"]), (2, ["1"]), (3, ["x", "y"])]), BadCopyFormat, 'missing data for column "b"'),
        (iter([(1, ["1", "y"]), (2, ["x", "y", "z"])]), BadCopyFormat, "extra data"),
        (iter([(1, ["1", "y"]), (2, ["x"])]), BadCopyValue, "line 2"),
        (broken([(1, ["1", "y"])]), BadCopyFormat, "unterminated"),
        (broken([(1, ["x", "y"])]), BadCopyValue, "line 1"),
        (iter([(1, ["1", "a\0"])]), NotUtf8, "line 1"),
        (text_records("1,y\n2,\\xff\n", delimiter=",", null=""), NotUtf8, "line 2"),
        (text_records("x,y\n2,\\xff\n", delimiter=",", null=""), BadCopyValue, "line 1"),
    )
    for records, error, words in cases:
        with pytest.raises(error, match=words):
            stored_columns(records, columns)


@pytest.mark.parametrize("seed", range(30))
def test_lines_that_stand_as_they_are_are_read_as_all_others(seed: int) -> None:
    """A line is split where its fields need nothing else, unless lines end otherwise."""
    chosen = random.Random(seed)
    pieces = ["a", "1", "", "\\N", "\\t", "\\", '"x"', '"a""b"', '"1,\n2"', "é", "NULL"]
    lines = [[chosen.choice(pieces[: chosen.choice([3, 4, 11])]) for _ in range(3)] for _ in range(8)]
    text = "\n".join(",".join(one) for one in lines) + chosen.choice(["", "\n"])
    for null in ("", "\\N", "NULL"):
        found = told(csv_records(text, delimiter=",", quote='"', escape='"', null=null))
        assert found == told(csv_records(text.replace("\n", "\r\n"), delimiter=",", quote='"', escape='"', null=null))
        plain = told(text_records(text, delimiter=",", null=null))
        assert plain == told(text_records(text.replace("\n", "\r\n"), delimiter=",", null=null))


def told(records: Iterator[Record]) -> list[Record | str]:
    """Returns records, and the error that ends them."""
    found: list[Record | str] = []
    try:
        for line, fields in records:
            found.append((line, [None if one is None else one.replace("\r\n", "\n") for one in fields]))
    except BadCopyFormat as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_plain_lines_are_read_at_once_as_their_records_are(seed: int) -> None:
    chosen = random.Random(seed)
    columns = [Column(f"c{i}", TEXT) for i in range(chosen.choice([1, 1, 2, 3]))]
    pieces = ["a", "", " ", "é", "\\N", "NULL", '""', '"a,""\n"', '" "', "'", "\\", 'a"b"', '"', "\r", "\ufeff", "\0"]
    some = pieces[: chosen.choice([4, 6, 10, len(pieces)])]
    lines = [[chosen.choice(some) for _ in columns] for _ in range(chosen.randrange(6))]
    if lines and chosen.random() < 0.1:
        lines[-1].append("x")
    header = chosen.choice(["no", "no", "skip", "match"])
    head = [] if header == "no" else [[f"c{i}" for i in range(len(columns) + (chosen.random() < 0.1))]]
    text = "\n".join(",".join(one) for one in [*head, *lines]) + chosen.choice(["", "\n", "\n\n"])
    null = chosen.choice(["", "\\N", "NULL"])
    is_csv = chosen.random() < 0.6
    found = stored_plainly(
        text.encode(),
        columns,
        header,  # type: ignore[arg-type]
        delimiter=",",
        null=null,
        quote='"' if is_csv else None,
        escape='"' if is_csv else "\\",
    )
    if found is None:
        return
    if is_csv:
        records = csv_records(text, delimiter=",", quote='"', escape='"', null=null)
    else:
        records = text_records(text, delimiter=",", null=null)
    expected = stored_columns(records, columns, header)  # type: ignore[arg-type]
    assert [one.to_pylist() for one in found] == [one.to_pylist() for one in expected]


def test_lines_as_clients_write_them_are_plain() -> None:
    columns = [Column("a", INT8), Column("b", TEXT), Column("c", numeric(2))]
    cases = (
        (b'1,"a ""b"", c",1.50\n2,,\n3,"",-1\n', '"', '"', ""),
        (b"1,a b,1.50\n2,\\N,\\N\n3,\\N,1", None, "\\", "\\N"),
    )
    for data, quote, escape, null in cases:
        found = stored_plainly(data, columns, delimiter=",", null=null, quote=quote, escape=escape)
        assert found is not None
        assert found[0].to_pylist() == [1, 2, 3]
    for data in (b"1,a,2\n\n3,b,4\n", b"1,a,2\n3,b\n", b"1,a,2\nx,b,1\n", b"1,\xff,2\n", b"1,a,2\r\n3,b,4\r\n", b""):
        assert stored_plainly(data, columns, delimiter=",", null="", quote='"', escape='"') is None
    assert stored_plainly(b"1,\\t,2\n", columns, delimiter=",", null="", quote=None, escape="\\") is None


def test_a_modifier_rounds_and_refuses_in_columns() -> None:
    chosen = random.Random(5)
    spelled = {
        ScalarType(Kind.NUMERIC, 2, modifier=Modifier(5)): [
            "1.5",
            "123.45",
            "-999.99",
            "0.005",
            "12.345",
            "-0.00",
            "7",
        ],
        ScalarType(Kind.TIMESTAMP, modifier=Modifier(0)): ["2024-01-01 10:00:00", "2024-01-01 10:00:00.5"],
        ScalarType(Kind.TIMESTAMPTZ, modifier=Modifier(3)): [
            "2024-01-01 10:00:00.123+00",
            "2024-01-01 10:00:00.1235+02",
        ],
        ScalarType(Kind.TIME, modifier=Modifier(1)): ["10:00:00.25", "10:00:00.2"],
        ScalarType(Kind.INTERVAL, modifier=Modifier(0, "day to second")): ["1 day 00:00:01.5"],
    }
    columns = [Column(f"c{i}", one) for i, one in enumerate(spelled)]
    records: list[Record] = [(line, [chosen.choice(texts) for texts in spelled.values()]) for line in range(1, 40)]
    assert shown(stored_columns(iter(records), columns)) == shown(by_cell(records, columns))
    with pytest.raises(BadCopyValue, match="numeric field overflow"):
        stored_columns(iter([(1, ["1000"])]), columns[:1])
