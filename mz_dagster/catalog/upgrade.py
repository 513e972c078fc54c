"""Brings a catalog to the schema of this version of the code, under an exclusive lock; makes a new one.

Several processes may open a new or an old catalog at once: one migrates it, the others wait and find it done.
A migration is one transaction, so a crash in it leaves the catalog as it was.
"""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, create_mock_engine, func, insert, inspect, make_url, select, text

from mz_dagster.catalog.change_triggers import triggers
from mz_dagster.catalog.database import Database, tell_sqlite
from mz_dagster.catalog.errors import CatalogDamaged, CatalogTooNew, CatalogTooOld
from mz_dagster.catalog.schema import CHANGED, COUNTER, METADATA, PROJECT
from mz_dagster.catalog.state_format import FORMAT, format_of, is_current, migrate

HEAD = "0021"
"""The newest migration in `migrations/versions`; a test compares the two."""

COUNTERS = ("object", "batch", "writer", "lease", "capability", "role", "reference")
"""The kinds of id that are never reused."""

_VERSIONS = (
    "CREATE TABLE alembic_version "
    "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
"""The table in which Alembic keeps what was migrated to."""

_MIGRATED_TO = text("SELECT version_num FROM alembic_version")
_ID = select(PROJECT.c.id)

_LOCK_KEY = 0x6D7A_6361  # PostgreSQL's advisory locks are numbers


def upgrade(database: Database, *, may_make: bool = True) -> bool:
    """Makes or migrates the catalog in a database; costs two queries if there is nothing to do.

    Args:
        database: The database.
        may_make: Whether to make one if there is none.

    Returns:
        Whether there is a catalog now.

    Raises:
        CatalogTooNew: Its schema is newer than the code.
        StateTooNew: Its state is of a newer format than the code's.
        StateTooOld: Its state is of a format from which no migration leads to the code's.
    """
    with database.read() as connection:
        found = _version(connection)
        if found == HEAD and is_current(connection):
            return True
    if found is None and not may_make:
        return False
    with database.migrate() as connection:
        if not database.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK_KEY)))
        found = _version(connection)
        if found == HEAD and is_current(connection):
            return True
        if found is not None and not database.is_sqlite:
            # Keeps out writers of the version before: each of them locks this table's row first.
            connection.execute(text("LOCK TABLE project IN ACCESS EXCLUSIVE MODE"))
        if found is None:
            _make(connection)
        else:
            _run_migrations(connection)
        if connection.execute(_ID).first() is None:
            connection.execute(insert(PROJECT), {"id": secrets.token_hex(16), "state_format": FORMAT})
            connection.execute(insert(COUNTER), [{"name": name, "last": 0} for name in COUNTERS])
        migrate(connection)
    return True


def is_made(database: Database) -> bool:
    """Returns whether a database holds a catalog of this version of the code; False if it holds none.

    Raises:
        CatalogTooOld: Its schema, or the format of its state, is older than the code.
        CatalogTooNew: Its schema is newer than the code.
        StateTooNew: Its state is of a newer format than the code's.
        StateTooOld: Its state is of a format from which no migration leads to the code's.
    """
    with database.read() as connection:
        found = _version(connection)
        state = format_of(connection) if found == HEAD else FORMAT
    if found is not None and (found, state) != (HEAD, FORMAT):
        raise CatalogTooOld(f"{found}, of state {state}")
    return found is not None


def _version(connection: Connection) -> str | None:
    found: str | None = None
    if inspect(connection).has_table("alembic_version"):
        found = connection.execute(_MIGRATED_TO).scalar_one_or_none()
    if found is None and inspect(connection).has_table(PROJECT.name):
        raise CatalogDamaged("the catalog does not say any more which version its tables are of")
    if found is not None and found > HEAD:
        raise CatalogTooNew(found, _release(connection))
    return found


def _release(connection: Connection) -> str | None:
    """Returns which release wrote a catalog of a newer schema, if that still says so."""
    columns = {one["name"] for one in inspect(connection).get_columns(PROJECT.name)}
    return connection.execute(select(PROJECT.c.release)).scalar() if PROJECT.c.release.name in columns else None


def _make(connection: Connection) -> None:
    """Makes what all migrations lead to, at once: they and Alembic take forty times as long."""
    is_sqlite = connection.dialect.name == "sqlite"
    for statement in _statements(connection.dialect.name):
        if is_sqlite:
            tell_sqlite(connection, statement)
        else:
            connection.exec_driver_sql(statement)
    connection.execute(insert(CHANGED), {"object": "", "part": secrets.token_hex(16), "number": 0})


@cache
def _statements(dialect: str) -> tuple[str, ...]:
    """Returns what makes a catalog of the newest version, which takes longer to spell than to carry out."""
    found: list[str] = []
    url = make_url(f"{dialect}://")
    spelled = url.get_dialect()()
    spelling = create_mock_engine(url, lambda one, *_: found.append(str(one.compile(dialect=spelled))))
    METADATA.create_all(spelling, checkfirst=False)
    head = f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}')"
    return (*found, *triggers(sqlite=dialect == "sqlite"), _VERSIONS, head)


def _run_migrations(connection: Connection) -> None:
    # Imported here: Alembic takes longer to import than an up to date catalog takes to open.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
