"""Files of ORC: its types as columns, what is refused, and that a file over which its reader dies is one of those."""

from __future__ import annotations

import gc
import signal
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import orc

from mz_dagster.adapter import Connection
from mz_dagster.errors import NotSupportedError, OperationalError
from mz_dagster.scalars.types import DATE, Column
from mz_dagster.storage.source import SourceUnreadable, orc_files, orc_reader
from mz_dagster.storage.source.orc_files import row_count, write_as_parquet
from tests.source.landing import drop, poll
from tests.source.test_formats import COLUMNS, FORMATS, as_orc
from tests.source.test_mutated_files import flipped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC_MICROS = pa.timestamp("us", "UTC")
#: Types of Arrow as which ORC has columns, what SQL has for them, and a value.
TYPES: list[tuple[pa.DataType, str, Any]] = [
    (pa.bool_(), "boolean", True),
    (pa.int8(), "smallint", -5),
    (pa.int32(), "integer", -5),
    (pa.int64(), "bigint", 2**62),
    (pa.int64(), "numeric(20,2)", Decimal("7.00")),
    (pa.float32(), "real", 1.5),
    (pa.float64(), "double precision", -0.5),
    (pa.string(), "text", "é"),
    (pa.string(), "uuid", UUID(int=5)),
    (pa.binary(), "bytea", b"\0\xff"),
    (pa.date32(), "date", date(1, 1, 1)),
    (pa.timestamp("us"), "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (UTC_MICROS, "timestamptz", datetime(2262, 4, 11, 23, 47, 16, 854775, UTC)),
    (pa.decimal128(38, 3), "numeric(38,3)", Decimal("-12345678901234567890123456789012345.678")),
    (pa.list_(pa.int64()), "bigint[]", [1, None]),
    (pa.list_(pa.timestamp("us")), "timestamp[]", [datetime(1700, 1, 1), None]),
]


def orc_file(columns: dict[str, pa.Array], **options: Any) -> bytes:
    target = BytesIO()
    orc.write_table(pa.table(columns), target, **options)
    return target.getvalue()


def deadly() -> bytes:
    """Returns a file whose footer says of a decimal that it has 70 digits, by which Arrow ends its process."""
    whole = orc_file({"c": pa.array([Decimal(1)], pa.decimal128(38, 2))}, compression="uncompressed")
    said = bytes((0x28, 38, 0x30, 2))
    assert whole.count(said) == 1
    return whole.replace(said, bytes((0x28, 70, 0x30, 2)))


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_each_type_is_what_sql_has_for_it(connection: Connection, tmp_path: Path, codec: str) -> None:
    of_file = {
        f"c{i}": pa.array([str(value) if isinstance(value, UUID) else value, None], type_)
        for i, (type_, _, value) in enumerate(TYPES)
    }
    other = {"other": pa.array([{"a": 1}, None])}
    drop(tmp_path, "in/1.orc", orc_file({**of_file, **other}, compression=codec))
    columns = ", ".join(f"c{i} {sql}" for i, (_, sql, _) in enumerate(TYPES))
    connection.execute(f"CREATE SOURCE s ({columns}) FROM FILES (FOLDER 'in') FORMAT ORC")
    poll(connection)
    found = connection.execute("SELECT * FROM s ORDER BY c0").fetchall()
    assert found == [tuple(value for *_, value in TYPES), (None,) * len(TYPES)]


@pytest.mark.parametrize(
    ("field", "sql", "why"),
    [
        (pa.array([{"a": 1}]), "integer", 'Its column "c" is struct<a: int64>, which is not readable as integer.'),
        (pa.array([[[1]]]), "bigint[]", 'Its column "c" is list'),
        (pa.array(["1"]), "integer", 'Its column "c" is string, which is not readable as integer.'),
        (pa.array([1], pa.timestamp("us")), "timestamptz", "which is not readable as timestamptz"),
        (None, "integer", 'It lacks column "c", and has the undeclared column "x".'),
        (pa.array([datetime(9999, 12, 31)]), "timestamp", "is out of range for nanosecond resolution"),
        (pa.array([datetime(1, 1, 1)]), "timestamp", "is out of range for nanosecond resolution"),
        (pa.array([[datetime(1, 1, 1)]]), "timestamp[]", "is out of range for nanosecond resolution"),
        (pa.array([1], pa.timestamp("ns")), "timestamp", "would lose data"),
    ],
)
def test_what_no_column_holds_is_refused(
    connection: Connection, tmp_path: Path, field: pa.Array | None, sql: str, why: str
) -> None:
    drop(tmp_path, "in/1.orc", orc_file({"x": pa.array([1])} if field is None else {"c": field}))
    connection.execute(f"CREATE SOURCE s (c {sql}) FROM FILES (FOLDER 'in') FORMAT ORC")
    with pytest.raises(SourceUnreadable, match=r"cannot read ORC file \"1\.orc\"") as caught:
        poll(connection)
    assert why in str(caught.value)


def test_days_that_may_be_of_another_calendar_are_refused() -> None:
    days = pa.array([[date(1582, 10, 14)], [None], None])
    orc_reader._check(days, "ORC_CPP")
    orc_reader._check(pa.array([date(1582, 10, 15), None]), "ORC_JAVA")
    with pytest.raises(ValueError, match="before 1582-10-15, and ORC_JAVA may count those by the Julian calendar"):
        orc_reader._check(days, "ORC_JAVA")


def test_digits_that_a_type_does_not_have_are_refused() -> None:
    large = pa.Array.from_buffers(pa.decimal128(3), 1, [None, pa.array([10**37], pa.decimal128(38)).buffers()[1]])
    with pytest.raises(pa.ArrowInvalid, match="does not fit in precision"):
        orc_reader._check(large, "ORC_CPP")


def test_a_file_over_which_the_reader_dies_is_named_and_the_others_are_read(
    connection: Connection, tmp_path: Path
) -> None:
    for name in ("s", "other"):
        drop(tmp_path, f"{name}/1.orc", orc_file({"c": pa.array([Decimal(1)], pa.decimal128(38, 2))}))
        connection.execute(f"CREATE SOURCE {name} (c numeric(38,2)) FROM FILES (FOLDER '{name}') FORMAT ORC")
    poll(connection)
    for name in ("s", "other"):
        drop(tmp_path, f"{name}/2.orc", orc_file({"c": pa.array([Decimal(2)], pa.decimal128(38, 2))}))
    drop(tmp_path, "s/3.orc", deadly())
    with pytest.raises(SourceUnreadable, match=r'cannot read ORC file "3\.orc"') as caught:
        poll(connection)
    assert "the process that read it ended, by signal 6" in str(caught.value)
    assert caught.value.hint == "Replace the file by one with the source's columns, or move it away."
    assert connection.execute("SELECT sum(c) FROM other").fetchall() == [(3,)], "the other one went on"
    with pytest.raises(OperationalError, match="could not be polled"):
        connection.execute("SELECT sum(c) FROM s")
    (tmp_path / "s/3.orc").unlink()
    poll(connection)
    assert connection.execute("SELECT sum(c) FROM s").fetchall() == [(3,)]


def test_a_reader_that_comes_to_no_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    data, columns = as_orc(COLUMNS, FORMATS["orc"].rows), COLUMNS
    write_as_parquet(BytesIO(data), "f", columns, BytesIO())
    process = orc_files._reader._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(orc_files, "_SECONDS", 0)
        with pytest.raises(SourceUnreadable, match="reading it has no end"):
            write_as_parquet(BytesIO(data), "f", columns, BytesIO())
    write_as_parquet(BytesIO(data), "f", columns, BytesIO())


def test_a_reader_that_went_away_meanwhile_is_no_files_fault() -> None:
    data = as_orc(COLUMNS, FORMATS["orc"].rows)
    assert row_count(BytesIO(data), "f") == len(FORMATS["orc"].rows)
    process = orc_files._reader._process
    assert process is not None
    process.terminate()
    process.wait()
    assert row_count(BytesIO(data), "f") == len(FORMATS["orc"].rows)
    orc_files._reader.close()
    gc.collect()


def test_a_full_disk_is_no_files_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_files._reader, "answer", lambda *_: {"full": "No space left on device"})
    with pytest.raises(OperationalError, match=r'cannot decode ORC file "f": No space left on device') as caught:
        write_as_parquet(BytesIO(b""), "f", COLUMNS, BytesIO())
    assert not isinstance(caught.value, SourceUnreadable)
    answer = orc_reader.answer
    with monkeypatch.context() as patch:
        patch.setattr(orc_reader, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        assert answer("in", "/dev/full", ["c"]) == {"full": "No space left on device"}


@pytest.mark.parametrize("files", [300, pytest.param(20_000, marks=[pytest.mark.deep, pytest.mark.timeout(1200)])])
def test_bytes_that_are_damaged_are_read_or_refused(files: int) -> None:
    rows, refused = FORMATS["orc"].rows, 0
    whole = [as_orc(COLUMNS, rows), as_orc(COLUMNS, rows, "uncompressed")]
    for seed in range(files):
        file = flipped(Random(seed), whole[seed % 2])
        assert row_count(BytesIO(file), "f") >= 0
        try:
            write_as_parquet(BytesIO(file), "f", COLUMNS, BytesIO())
        except SourceUnreadable:
            refused += 1
    assert 0 < refused < files


def test_an_older_library_is_told(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mz_dagster.storage.source.orc_files.pa.__version__", "25.0.0")
    with pytest.raises(NotSupportedError, match="files of ORC need pyarrow 26 or later") as caught:
        connection.execute("CREATE SOURCE s (c integer) FROM FILES (FOLDER 'in') FORMAT ORC")
    assert caught.value.hint == "Install it where this process runs: pip install 'pyarrow>=26'."


@pytest.mark.deep
def test_what_spark_writes_is_read(spark: SparkSession, connection: Connection, tmp_path: Path) -> None:
    spark.sql(
        "SELECT id, timestamp'1700-03-04 05:06:07.123456Z' + make_dt_interval(CAST(id AS INT) * 40) AS at, "
        "date'1582-10-15' + CAST(id AS INT) * 50 AS day, CAST(id AS DECIMAL(20, 3)) / 7 AS n, "
        "array(CAST(id AS STRING), NULL) AS a FROM range(5000)"
    ).coalesce(1).write.orc(str(tmp_path / "in"))
    connection.execute(
        "CREATE SOURCE s (id bigint, at timestamp, day date, a text[]) FROM FILES (FOLDER 'in') FORMAT ORC"
    )
    poll(connection)
    found = connection.execute("SELECT id, at, day, a FROM s ORDER BY id").fetchall()
    first = datetime(1700, 3, 4, 5, 6, 7, 123456)
    assert found == [
        (i, first + timedelta(days=40 * i), date(1582, 10, 15) + timedelta(days=50 * i), [str(i), None])
        for i in range(5000)
    ]
    spark.sql("SELECT date'0001-01-01' AS day").write.orc(str(tmp_path / "old"))
    (old,) = (tmp_path / "old").glob("*.orc")
    with pytest.raises(SourceUnreadable, match="before 1582-10-15, and ORC_JAVA may"):
        write_as_parquet(BytesIO(old.read_bytes()), "f", (Column("day", DATE),), BytesIO())
