"""Iceberg tables by a REST server and in an object store: the same sources, and no secret gets out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from mz_dagster import Error
from mz_dagster.adapter import Connection
from mz_dagster.storage.iceberg_catalog import IcebergCatalog
from mz_dagster.storage.source.iceberg import opening
from tests.errors import says_what_to_do
from tests.iceberg_server import CREDENTIAL, TOKEN, running_server
from tests.iceberg_tables import commit, data_files, equality_deletes, position_deletes, rows_of
from tests.object_store import BUCKET, SECRET, Store, running_store
from tests.opened import opened
from tests.postgres_server import Postgres
from tests.source.test_delta import TIMELINE, held, last_tick, unpolled
from tests.source.test_iceberg import SCHEMA, rows


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as found:
        yield found


def keys(store: Store) -> dict[str, str]:
    return {
        "s3.endpoint": store.endpoint,
        "s3.access-key-id": store.key,
        "s3.secret-access-key": store.secret,
        "s3.region": "us-east-1",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the catalog's database is, outside of any project."""
    return tmp_path_factory.mktemp("catalog")


@pytest.fixture(scope="module")
def catalog(folder: Path, store: Store) -> Iterator[SqlCatalog]:
    made = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"s3://{BUCKET}/ice", **keys(store))
    with made:
        made.create_namespace("db")
        yield made


@pytest.fixture(scope="module")
def url(folder: Path, catalog: SqlCatalog, store: Store) -> Iterator[str]:
    """A server that hands out keys to the store."""
    with running_server(folder, {"warehouse": f"s3://{BUCKET}/ice", **keys(store)}, keys(store)) as found:
        yield found


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("LOGIN", CREDENTIAL)
    monkeypatch.setenv("STORE_SECRET", SECRET)
    with opened(tmp_path) as connection:
        connection.execute("CREATE SECRET login AS '${LOGIN}'")
        connection.execute("CREATE SECRET hidden AS '${STORE_SECRET}'")
        yield connection


@pytest.fixture
def table(catalog: SqlCatalog) -> Iterator[Table]:
    yield catalog.create_table("db.t", SCHEMA)
    catalog.drop_table("db.t")


def rest(url: str, name: str = "lake") -> str:
    return (
        f"CREATE CONNECTION {name} TO ICEBERG CATALOG "
        f"(CATALOG TYPE = 'rest', URL = '{url}', CREDENTIAL = SECRET login, WAREHOUSE = 'shop')"
    )


def changed(table: Table) -> None:
    """Adds rows to a table, and takes some away by both kinds of deletes."""
    table.append(rows((3, "x", 1.0), (4, "y", None)))
    (file, *_) = data_files(table)
    commit(table, Operation.DELETE, [position_deletes(table, {file.file_path: [0]}, file)])
    commit(table, Operation.DELETE, [equality_deletes(table, pa.table({"p": ["y"]}))])


def test_a_server_leads_to_tables_and_their_files(connection: Connection, url: str, table: Table) -> None:
    table.append(rows((1, "x", 0.5), (2, "a b/c", None)))
    connection.execute(rest(url))
    connection.execute("CREATE SOURCE t FROM ICEBERG (TABLE 'db.t', CONNECTION lake)")
    assert held(connection) == rows_of(table)
    first = last_tick(connection)
    connection.engine.poll(TIMELINE)
    assert last_tick(connection) == first, "nothing is new"
    changed(table)
    assert held(connection) == rows_of(table)
    connection.execute("ALTER CONNECTION lake RENAME TO other")
    (made,) = connection.execute("SHOW CREATE SOURCE t").fetchall()
    assert made[1].endswith("FROM ICEBERG (TABLE 'db.t', CONNECTION other)")
    with pytest.raises(Error, match="other"):
        connection.execute("DROP CONNECTION other")


def test_a_connection_leads_to_the_store(
    connection: Connection, catalog: SqlCatalog, table: Table, store: Store, folder: Path, tmp_path: Path
) -> None:
    table.append(rows((1, "x", 0.5), (2, "x", None)))
    (tmp_path / "catalog.db").symlink_to(folder / "catalog.db")
    connection.execute(
        f"CREATE CONNECTION files TO S3 (ACCESS KEY ID '{store.key}', SECRET ACCESS KEY = SECRET hidden, "
        f"REGION = 'us-east-1', ENDPOINT = '{store.endpoint}')"
    )
    connect = (
        "CREATE CONNECTION {} TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = 'sqlite:///{}', S3 CONNECTION = files)"
    )
    connection.execute(connect.format("outside", "catalog.db"))
    connection.execute("CREATE SOURCE o (a integer) FROM ICEBERG (TABLE 'db.t', CONNECTION outside)")
    says_what_to_do(unpolled(connection), "is outside of the project", "It leads to")
    connection.execute("DROP SOURCE o")
    (tmp_path / "catalog.db").unlink()
    (tmp_path / "catalog.db").write_bytes((folder / "catalog.db").read_bytes())
    connection.execute(connect.format("lake", "catalog.db"))
    connection.execute("CREATE SOURCE t FROM ICEBERG (TABLE 'db.t', CONNECTION lake)")
    assert held(connection) == {(1, "x", 0.5): 1, (2, "x", None): 1}
    changed(table)
    (tmp_path / "catalog.db").write_bytes((folder / "catalog.db").read_bytes())
    assert held(connection) == rows_of(table)


def test_what_cannot_be_reached_says_why_and_no_secret(
    connection: Connection, url: str, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows((1, "x", None)))
    connection.execute(rest(url))
    connection.execute("CREATE SOURCE t (a integer) FROM ICEBERG (TABLE 'db.t', CONNECTION lake)")
    connection.execute("CREATE TABLE other (a integer)")
    assert held(connection) == {(1,): 1}
    first = last_tick(connection)
    table.append(rows((2, "x", None)))
    said = []

    def fails(*parts: str) -> None:
        error = unpolled(connection)
        says_what_to_do(error, *parts)
        said.append(str(error))
        cause = error.__cause__
        while cause is not None:
            said.append(str(cause))
            cause = cause.__cause__

    monkeypatch.delenv("LOGIN")
    fails('no variable "LOGIN", which secret "login" names')
    monkeypatch.setenv("LOGIN", "reader:Wrong+secrEt/1")
    fails("cannot read Iceberg table", "nobody is ***", "the next poll goes on")
    monkeypatch.setenv("LOGIN", CREDENTIAL)
    with monkeypatch.context() as away:
        away.setattr(IcebergCatalog, "settings", lambda *_: {"url": "http://127.0.0.1:9", "token": "x"})
        fails("cannot read Iceberg table", "Connection refused", "the next poll goes on")
        assert held(connection, at=first) == {(1,): 1}
        connection.execute("INSERT INTO other VALUES (1)")
        assert held(connection, "other") == {(1,): 1}
    assert held(connection) == {(1,): 1, (2,): 1}
    connection.execute("CREATE SECRET given AS '${TOKEN}'")
    connection.execute(rest(url, "by_token").replace("CREDENTIAL = SECRET login", "TOKEN = SECRET given"))
    connection.execute("CREATE SOURCE u (a integer) FROM ICEBERG (TABLE 'db.t', CONNECTION by_token)")
    monkeypatch.setenv("TOKEN", "Wrong-tokEn-2")
    fails("cannot read Iceberg table", "Bearer ***")
    monkeypatch.setenv("TOKEN", TOKEN)
    assert held(connection, "u") == {(1,): 1, (2,): 1}
    for name, parts in (("nothing", ("has no Iceberg table",)), ("odd", ("it broke",)), ("slow", ("timed out",))):
        connection.execute(f"CREATE SOURCE {name} (a integer) FROM ICEBERG (TABLE 'db.{name}', CONNECTION lake)")
        monkeypatch.setattr(opening, "_ANSWERING", 0.5)
        begun = monotonic()
        fails(*parts)
        assert monotonic() - begun < 20
        monkeypatch.undo()
        monkeypatch.setenv("LOGIN", CREDENTIAL)
        monkeypatch.setenv("TOKEN", TOKEN)
        connection.execute(f"DROP SOURCE {name}")
    said += [str(row) for row in connection.execute("SHOW CREATE CONNECTION lake").fetchall()]
    assert "CREDENTIAL = SECRET login" in said[-1]
    hidden = [CREDENTIAL, CREDENTIAL.partition(":")[2], TOKEN, SECRET, "Wrong+secrEt/1", "Wrong-tokEn-2"]
    for one in hidden:
        assert one not in "\n".join(said)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        for path in files:
            with suppress(FileNotFoundError):  # leases come and go
                assert one.encode() not in path.read_bytes(), path


def test_a_catalog_in_postgres(
    connection: Connection, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql+psycopg://{postgres.user}:plAnted%2Bpw@/{{}}?host={postgres.socket_dir}"
    warehouse = tmp_path / "lake"
    warehouse.mkdir()
    connection.execute("CREATE SECRET tables AS '${TABLES_URL}'")
    connection.execute(
        "CREATE CONNECTION lake TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = SECRET tables, NAME = 'prod')"
    )
    connection.execute("CREATE SOURCE t (a integer) FROM ICEBERG (TABLE 'db.t', CONNECTION lake)")
    monkeypatch.setenv("TABLES_URL", url.format(postgres.database))
    says_what_to_do(unpolled(connection), 'relation "iceberg_tables" does not exist')
    assert postgres.run("SELECT count(*) FROM information_schema.tables WHERE table_name ~ 'iceberg'").strip() == "0"
    with SqlCatalog("prod", uri=url.format(postgres.database), warehouse=f"file://{warehouse}") as catalog:
        says_what_to_do(unpolled(connection), "has no Iceberg table", 'under the name "prod"')
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(rows((1, "x", None), (2, "x", None)))
        assert held(connection) == {(1,): 1, (2,): 1}
        table.delete("a = 1")
        assert held(connection) == {(2,): 1}
    monkeypatch.setenv("TABLES_URL", url.format("nowhere"))
    error = unpolled(connection)
    says_what_to_do(error, "cannot read Iceberg table", "does not exist")
    assert "plAnted" not in str(error)
