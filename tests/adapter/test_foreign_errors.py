"""`except mz_dagster.Error` catches all that a connection raises, whatever failed below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.exc import OperationalError as DatabaseFailed

import mz_dagster
from mz_dagster.adapter import Connection
from mz_dagster.catalog import Catalog
from mz_dagster.errors import InterfaceError
from mz_dagster.storage.foreign import as_error
from mz_dagster.storage.local_shards import LocalShards
from tests.budgets import SetBudget
from tests.errors import says_what_to_do


def panic(folder: Path) -> BaseException:
    with pytest.raises(BaseException, match="object store") as raised:
        write_deltalake(str(folder / "[x]"), pa.table({"a": [1]}))
    assert not isinstance(raised.value, Exception)
    return raised.value


FOREIGN = ("panic", "protobuf", "arrow", "sqlalchemy", "system", "python")


@pytest.fixture(params=FOREIGN)
def foreign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BaseException:
    errors = {
        "protobuf": DecodeError("x"),
        "arrow": pa.ArrowInvalid("x"),
        "sqlalchemy": InvalidRequestError("x"),
        "system": OSError(28, "No space left on device", "/x"),
        "python": ZeroDivisionError("x"),
    }
    return errors[request.param] if request.param in errors else panic(tmp_path_factory.mktemp("panic"))


def raising(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("foreign", "inlined_rows"),
    [
        pytest.param(one, rows, marks=() if bool(rows) == number % 2 else pytest.mark.deep)
        for number, one in enumerate(FOREIGN)
        for rows in (0, 1_000)
    ],
    indirect=["foreign"],
)
def test_errors_of_reads_writes_and_steps_are_ours(
    foreign: BaseException,
    sparkless: Connection,
    monkeypatch: pytest.MonkeyPatch,
    set_budget: SetBudget,
    inlined_rows: int,
) -> None:
    set_budget(inlined_rows=inlined_rows)
    sparkless.execute("CREATE TABLE t (a integer)")
    sparkless.execute("INSERT INTO t VALUES (1)")
    with monkeypatch.context() as patched:
        patched.setattr(LocalShards, "append" if inlined_rows == 0 else "inline", raising(foreign))
        with pytest.raises(mz_dagster.Error):
            sparkless.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(mz_dagster.Error) as failed:
            sparkless.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        assert failed.value.hint
    monkeypatch.setattr(LocalShards, "read_files", raising(foreign))
    with pytest.raises(mz_dagster.Error):
        sparkless.execute("SELECT * FROM t")


def test_errors_of_opening_are_ours(foreign: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "open", raising(foreign))
    with pytest.raises(mz_dagster.Error):
        mz_dagster.connect(tmp_path)


@pytest.mark.parametrize("arguments", [(None,), (b"SELECT 1",), ("SELECT ?", 1), ("SELECT ?", "a"), ("SELECT ?", {1})])
def test_what_is_no_statement_is_refused(arguments: tuple[Any, ...], sparkless: Connection) -> None:
    with pytest.raises(InterfaceError):
        sparkless.execute(*arguments)
    with pytest.raises(InterfaceError):
        sparkless.cursor().executemany(arguments[0], [arguments[1]] if len(arguments) > 1 else [])


@pytest.mark.parametrize("said", ["database or disk is full", "No space left on device"])
def test_a_database_without_room_says_where_to_free_space(said: str) -> None:
    """Dagster's event log is such a database, and its errors come untranslated."""
    failed = as_error(DatabaseFailed("INSERT", {}, Exception(said)))
    says_what_to_do(failed, "Dagster's", "Free space on the disk of the project and of Dagster's instance")
