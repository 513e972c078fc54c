"""Secrets and connections: references in the catalog and in files, and never what they stand for."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from mz_dagster import Error
from mz_dagster.adapter import Connection, Engine, Project
from mz_dagster.adapter.change_plan import Action, ChangePlan, plan_changes
from mz_dagster.adapter.connection_users import UsedOtherwise
from mz_dagster.adapter.project_files import load_project
from mz_dagster.catalog import Redefined, Redefinition, StillNeeded
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import Severity, examine
from mz_dagster.sql.errors import InvalidSyntax, InvalidTableDefinition, UndefinedObject, WrongObjectKind
from mz_dagster.storage.iceberg_catalog import IcebergCatalog
from mz_dagster.storage.object_store import S3, Secret, SecretUnavailable
from tests.errors import says_what_to_do

PLANTED = "plAnted/Secret+7f3c"
SECRET = "CREATE SECRET key AS '${MZ_TEST_KEY}'"
STORE = "CREATE CONNECTION store TO S3 (ACCESS KEY ID = 'me', SECRET ACCESS KEY = SECRET key, ENDPOINT 'http://here:1')"


def store_of(connection: Connection, name: str) -> S3:
    definitions, id = connection.engine.definitions, connection.engine.catalog.id_of(name)
    assert id is not None
    means = definitions.item(id).means
    assert isinstance(means, S3)
    return means


def test_a_connection_has_what_its_secrets_stand_for_when_it_is_used(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(SECRET)
    connection.execute("CREATE SECRET token AS 'file:token'")
    connection.execute(STORE.replace("ENDPOINT", "SESSION TOKEN = SECRET token, REGION 'eu-west-1', ENDPOINT"))
    store = store_of(connection, "store")
    with pytest.raises(SecretUnavailable, match='no variable "MZ_TEST_KEY", which secret "key" names'):
        store.settings(tmp_path)
    monkeypatch.setenv("MZ_TEST_KEY", PLANTED)
    with pytest.raises(SecretUnavailable) as raised:
        store.settings(tmp_path)
    says_what_to_do(raised.value, "cannot read file", 'which secret "token" names', "No such file")
    (tmp_path / "token").write_text("t0ken\n")
    assert store.settings(tmp_path) == {
        "aws_access_key_id": "me",
        "aws_secret_access_key": PLANTED,
        "aws_session_token": "t0ken",
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://here:1",
        "allow_http": "true",
    }
    assert PLANTED not in repr(store)


def test_they_are_objects_as_others_are(connection: Connection) -> None:
    connection.execute(SECRET)
    connection.execute("CREATE SECRET IF NOT EXISTS key AS 'file:/elsewhere'")
    connection.execute(STORE)
    assert connection.execute("SHOW SECRETS").fetchall() == [("key", "secret")]
    assert connection.execute("SHOW CONNECTIONS").fetchall() == [("store", "connection")]
    assert connection.execute("SHOW CREATE SECRET key").fetchall() == [("key", SECRET)]
    with pytest.raises(StillNeeded, match="store"):
        connection.execute("DROP SECRET key")
    connection.execute("ALTER SECRET key RENAME TO other")
    (made,) = connection.execute("SHOW CREATE CONNECTION store").fetchall()
    assert "SECRET ACCESS KEY = SECRET other," in made[1]
    with pytest.raises(WrongObjectKind, match="is a connection"):
        connection.execute("SELECT * FROM store")
    with pytest.raises(Error, match="is a secret"):
        connection.execute("DROP TABLE other")
    connection.execute("DROP SECRET other CASCADE")
    connection.execute("DROP CONNECTION IF EXISTS store")
    assert connection.execute("SHOW OBJECTS").fetchall() == []
    connection.execute(SECRET)
    connection.execute("CREATE SCHEMA lake")
    connection.execute(STORE.replace("store TO", "lake.store TO"))
    assert connection.execute("SELECT name, type FROM mz_catalog.mz_objects ORDER BY name").fetchall() == [
        ("key", "secret"),
        ("lake.store", "connection"),
    ]


def test_a_secret_that_is_written_out_is_refused_and_not_repeated(connection: Connection) -> None:
    connection.execute(SECRET)
    for statement in (
        f"CREATE SECRET other AS '{PLANTED}'",
        f"CREATE SECRET other AS ' ${{X}}{PLANTED}'",
        f"CREATE CONNECTION c TO S3 (ACCESS KEY ID 'me', SECRET ACCESS KEY '{PLANTED}')",
        f"CREATE CONNECTION c TO S3 (SESSION TOKEN = '{PLANTED}')",
        f"CREATE SECRET other AS 'file:x' '{PLANTED}'",
        f"CREATE SECRET other '{PLANTED}'",
        f"CREATE CONNECTION c TO S3 (SESSION TOKEN = SECRET '{PLANTED}')",
        f"CREATE CONNECTION c TO S3 (REGION = 'a' '{PLANTED}')",
    ):
        with pytest.raises((InvalidTableDefinition, InvalidSyntax)) as raised:
            connection.execute(statement)
        error = raised.value
        if isinstance(error, InvalidTableDefinition):
            says_what_to_do(error, "${VARIABLE}")
        shown = [str(error), error.shown(), repr(error), error.detail, error.hint, *getattr(error, "__notes__", ())]
        assert not [one for one in shown if one is not None and PLANTED in one]


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("CREATE CONNECTION c TO KAFKA (BROKER 'b')", Error, "S3 is known"),
        ("CREATE CONNECTION c TO S3 (REGION 'a', REGION 'b')", InvalidSyntax, "given twice"),
        ("CREATE CONNECTION c TO S3 (BUCKET 'b')", InvalidSyntax, "expected ACCESS KEY ID or"),
        ("CREATE CONNECTION c TO S3 (ACCESS KEY ID = 'me')", InvalidTableDefinition, "go together"),
        (STORE.replace("SECRET key", "SECRET nothing"), UndefinedObject, 'secret "nothing" does not exist'),
        ("DROP CONNECTION nothing", Error, "does not exist"),
    ],
)
def test_what_is_no_connection_says_why(connection: Connection, statement: str, error: type[Error], text: str) -> None:
    with pytest.raises(error, match=text):
        connection.execute(statement)


def test_a_backup_leaves_out_the_files_that_secrets_are_in(connection: Connection, tmp_path: Path) -> None:
    for name in ("key", "other"):
        (tmp_path / "hidden").mkdir(exist_ok=True)
        (tmp_path / "hidden" / name).write_text(PLANTED)
    connection.execute("CREATE SECRET key AS 'file:hidden/key'")
    connection.execute(f"CREATE SECRET other AS 'file:{tmp_path}/hidden/../hidden/other'")
    manifest = backup(connection.engine.project, tmp_path.parent / f"{tmp_path.name} backup")
    assert [one for one in manifest.left_out if "hidden" in one] == ["hidden/key", "hidden/other"]
    for path in (tmp_path.parent / f"{tmp_path.name} backup").rglob("*"):
        assert not path.is_file() or PLANTED.encode() not in path.read_bytes(), path


def test_files_have_them_too(connection: Connection, tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    source = "CREATE SOURCE t (a bigint) FROM DELTA (URI 's3://lake/t', CONNECTION store)"
    (assets / "store.sql").write_text(f"{STORE};\n{SECRET};\n{source};\n")
    with Engine(Project.load(tmp_path)) as engine:
        assert engine.apply().created == ("key", "store", "t")
        assert not engine.apply().changed
        assert connection.execute("SHOW SECRETS").fetchall() == [("key", "secret")]
        id = engine.collection_of("t")
        (assets / "store.sql").write_text(f"{STORE.replace('here', 'there')};\n{SECRET};\n{source};\n")
        files = {one.name: one.definition for one in load_project(engine.project).objects}
        assert isinstance(files["t"].means, S3)
        assert dict(files["t"].means.options)["endpoint"] == "http://there:1", "nobody kept what it was"
        planned = plan_changes(load_project(engine.project), engine.catalog.objects(), engine.definitions)
        assert reason_of(planned, "store") == (
            "its definition changed: what uses it goes on, and takes that way from now on"
        )
        applied = engine.apply()
        assert (applied.names(Action.ALTER), applied.replaced) == (("store",), ())
        assert engine.collection_of("t") == id
        assert dict(store_of(connection, "store").options)["endpoint"] == "http://there:1"
        assert options_of(engine, "t")["endpoint"] == "http://there:1"
        token = "CREATE SECRET token AS 'file:token'"  # a new secret, which the connection has from then on
        with_token = STORE.replace("here", "there").replace("ENDPOINT", "SESSION TOKEN = SECRET token, ENDPOINT")
        (assets / "store.sql").write_text(f"{with_token};\n{token};\n{SECRET};\n{source};\n")
        applied = engine.apply()
        assert (applied.created, applied.names(Action.ALTER), applied.replaced) == (("token",), ("store",), ())
        assert options_of(engine, "t")["session token"] == Secret("token", "file:token")
        with pytest.raises(StillNeeded, match="store, t"):
            connection.execute("DROP SECRET token")
        elsewhere = SECRET.replace("MZ_TEST_KEY", "MZ_TEST_OTHER")
        reworded = with_token.replace("ENDPOINT 'http", "ENDPOINT = 'http")
        (assets / "store.sql").write_text(f"{reworded};\n{token};\n{elsewhere};\n{source};\n")
        applied = engine.apply()
        assert (applied.names(Action.ALTER), applied.names(Action.REWORD)) == (("key",), ("store",))
        assert options_of(engine, "t")["secret access key"] == Secret("key", "${MZ_TEST_OTHER}")
        assert engine.collection_of("t") == id
        (assets / "store.sql").write_text("CREATE CONNECTION store TO GCS ();\n" + source.replace("s3:", "gs:"))
        applied = engine.apply()
        assert set(applied.replaced) == {"store", "t"}
        assert reason_of(applied, "store") == "its definition changed: it led to S3, and leads to GCS"
        assert not engine.apply().changed


def reason_of(plan: ChangePlan, name: str) -> str:
    return next(one.reason for one in plan.changes if one.name == name)


def options_of(engine: Engine, name: str) -> dict[str, str | Secret]:
    means = engine.definitions.definition(engine.collection_of(name)).means
    assert isinstance(means, S3)
    return dict(means.options)


def test_a_connection_is_altered_and_what_uses_it_goes_on(connection: Connection, tmp_path: Path) -> None:
    for statement in (SECRET, STORE, "CREATE SECRET token AS 'file:token'", "CREATE SCHEMA lake"):
        connection.execute(statement)
    connection.execute("CREATE SOURCE t (a bigint) FROM DELTA (URI 's3://lake/t', CONNECTION store)")
    with Engine(Project.load(tmp_path)) as other:  # another process, which knows what was
        id = other.collection_of("t")
        assert options_of(other, "t")["endpoint"] == "http://here:1"
        connection.execute("ALTER SECRET key RENAME TO lock")
        connection.execute(
            "ALTER CONNECTION store SET (ENDPOINT = 'http://there:1', SESSION TOKEN = SECRET token, REGION 'x''y')"
        )
        for engine in (other, connection.engine):
            assert options_of(engine, "t") == {
                "access key id": "me",
                "secret access key": Secret("key", "${MZ_TEST_KEY}"),  # as it was called when it was created
                "endpoint": "http://there:1",
                "session token": Secret("token", "file:token"),
                "region": "x'y",
            }
            assert engine.collection_of("t") == id
        assert connection.execute("SHOW CREATE CONNECTION store").fetchall()[0][1] == (
            "CREATE CONNECTION store TO S3 (ACCESS KEY ID = 'me', SECRET ACCESS KEY = SECRET lock, "
            "ENDPOINT = 'http://there:1', SESSION TOKEN = SECRET token, REGION = 'x''y')"
        )
        connection.execute("ALTER SECRET lock AS '${MZ_TEST_OTHER}'")
        connection.execute("ALTER CONNECTION store RESET (SESSION TOKEN, REGION), SET (ACCESS KEY ID = 'you')")
        connection.execute("ALTER CONNECTION IF EXISTS nothing SET (REGION = 'x')")
        connection.execute("ALTER SECRET IF EXISTS nothing AS 'file:x'")
        assert {key: getattr(one, "reference", one) for key, one in options_of(other, "t").items()} == {
            "access key id": "you",
            "secret access key": "${MZ_TEST_OTHER}",
            "endpoint": "http://there:1",
        }
        connection.execute("DROP SECRET token")
    with Engine(Project.load(tmp_path)) as later:
        assert options_of(later, "t")["access key id"] == "you"


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("ALTER CONNECTION store SET (URL = 'http://x/y')", InvalidTableDefinition, "leads to S3, which has no option"),
        ("ALTER CONNECTION store RESET (ACCESS KEY ID)", InvalidTableDefinition, "go together"),
        ("ALTER CONNECTION store SET (REGION 'a'), RESET (REGION)", InvalidSyntax, "given twice"),
        ("ALTER CONNECTION store SET (SESSION TOKEN = SECRET nothing)", UndefinedObject, 'secret "nothing"'),
        ("ALTER CONNECTION store SET (BUCKET = 'b')", InvalidSyntax, "expected"),
        ("ALTER CONNECTION store SET ()", InvalidSyntax, "expected"),
        ("ALTER CONNECTION store", InvalidSyntax, "expected SET or RESET"),
        ("ALTER CONNECTION nothing SET (REGION 'a')", Error, "does not exist"),
        ("ALTER CONNECTION key SET (REGION 'a')", WrongObjectKind, "is a secret"),
        ("ALTER SECRET store AS 'file:x'", WrongObjectKind, "is a connection"),
        ("ALTER CONNECTION web SET (URL = 'http://here:1/other')", UsedOtherwise, 'source "page" would not bind'),
        ("ALTER CONNECTION web RESET (URL)", InvalidTableDefinition, "requires a URL"),
        (f"ALTER CONNECTION store SET (SESSION TOKEN '{PLANTED}')", InvalidTableDefinition, "has to be a secret"),
        (f"ALTER SECRET key AS '{PLANTED}'", InvalidTableDefinition, "is not a reference"),
        (f"ALTER SECRET key '{PLANTED}'", InvalidSyntax, "expected AS"),
    ],
)
def test_what_a_connection_cannot_become_says_why_and_changes_nothing(
    connection: Connection, statement: str, error: type[Error], text: str
) -> None:
    for one in (SECRET, STORE, "CREATE CONNECTION web TO HTTP (URL = 'http://here:1/pages')"):
        connection.execute(one)
    connection.execute(
        "CREATE SOURCE page (a bigint) FROM FILES (URI 'http://here:1/pages/list.txt', CONNECTION web) FORMAT JSON"
    )
    before = connection.engine.catalog.objects()
    with pytest.raises(error, match=text) as raised:
        connection.execute(statement)
    assert PLANTED not in f"{raised.value} {raised.value.shown()} {raised.value.detail} {raised.value.hint}"
    assert connection.engine.catalog.objects() == before


def test_it_is_not_altered_in_a_transaction(connection: Connection) -> None:
    connection.execute(SECRET)
    connection.execute("BEGIN")
    with pytest.raises(Error, match="transaction block"):
        connection.execute("ALTER SECRET key AS 'file:x'")
    connection.execute("ROLLBACK")


def test_of_two_who_alter_a_connection_at_once_one_is_told(connection: Connection) -> None:
    connection.execute(SECRET)
    connection.execute(STORE)
    catalog = connection.engine.catalog
    row = catalog.resolve_name("store")
    assert row is not None
    connection.execute("ALTER CONNECTION store SET (REGION = 'a')")
    late = Redefinition("store", STORE, row.dependencies, row.options, before=row.sql)
    with pytest.raises(Redefined, match="just been altered"):
        catalog.swap((), (), {row.id: late})
    assert dict(store_of(connection, "store").options)["region"] == "a"


def test_what_a_connection_leads_through_is_taken_up_however_it_was_made(
    connection: Connection, tmp_path: Path
) -> None:
    """A catalog's store may be newer than the catalog, and its secret newer than both."""
    for statement in (
        "CREATE CONNECTION lake TO ICEBERG CATALOG (CATALOG TYPE = 'sql', URL = 'sqlite:///lake/catalog.db')",
        "CREATE SOURCE i (a bigint) FROM ICEBERG (TABLE 'n.t', CONNECTION lake)",
        "CREATE CONNECTION store TO S3 (REGION = 'a')",
        SECRET,
    ):
        connection.execute(statement)

    def store_of_table(engine: Engine) -> dict[str, str | Secret] | None:
        means = engine.definitions.definition(engine.collection_of("i")).means
        assert isinstance(means, IcebergCatalog)
        return None if means.store is None else dict(means.store.options)

    with Engine(Project.load(tmp_path)) as other:
        assert store_of_table(other) is None
        connection.execute("ALTER CONNECTION lake SET (S3 CONNECTION = store)")
        assert store_of_table(other) == {"region": "a"}
        connection.execute("ALTER CONNECTION store SET (ACCESS KEY ID = 'me', SECRET ACCESS KEY = SECRET key)")
        connection.execute("ALTER SECRET key AS 'file:key'")
        for engine in (other, connection.engine):
            assert store_of_table(engine) == {
                "region": "a",
                "access key id": "me",
                "secret access key": Secret("key", "file:key"),
            }
        for wrong, why in {
            "ALTER CONNECTION lake SET (CATALOG TYPE = 'rest', NAME = 'x')": "NAME is no option of a catalog",
            "ALTER CONNECTION lake SET (S3 CONNECTION = lake)": 'connection "lake" does not lead to S3',
            "DROP SECRET key": "lake, store",
        }.items():
            with pytest.raises(Error, match=why):
                connection.execute(wrong)
        assert not [one for one in examine(tmp_path, deep=True).findings if one.severity is Severity.BREAK]
        connection.execute("DROP SECRET key CASCADE")
        assert connection.execute("SHOW OBJECTS").fetchall() == []


def test_what_an_altered_connection_was_is_forgotten_while_another_thread_learns_of_objects(
    sparkless: Connection,
) -> None:
    sparkless.execute(SECRET)
    definitions = sparkless.engine.definitions
    item = definitions.item(sparkless.engine.catalog.objects("secret")[0].id)
    items, is_over, interval = definitions._known.items, threading.Event(), sys.getswitchinterval()
    items.update({(GlobalId(f"x{number}"), 0): item for number in range(3_000)})

    def learn() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            items[GlobalId(f"y{number}"), 0] = item

    sys.setswitchinterval(1e-6)
    learning = threading.Thread(target=learn)
    learning.start()
    try:
        for number in range(50):
            definitions.forget(GlobalId(f"x{number}"))
    finally:
        is_over.set()
        learning.join()
        sys.setswitchinterval(interval)
    assert len([id for id, _ in items if id.startswith("x")]) == 2_950
