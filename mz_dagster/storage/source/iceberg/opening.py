"""Asks a catalog for a table, each time anew: secrets are looked up, and forgotten with the answer.

Nothing is written: a catalog in SQLite is opened to be read, one in another database is not given tables that it lacks.
Each request has a deadline. Of this machine's files only those are opened that the project lets sources read, wherever
metadata lead, and no error says a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from mz_dagster.errors import Error
from mz_dagster.storage.iceberg_catalog import IcebergCatalog
from mz_dagster.storage.source.errors import SourceUnreadable, UnknownFeature
from mz_dagster.storage.table_place import reason

#: pyiceberg's settings, by the options of CREATE CONNECTION ... TO ICEBERG CATALOG.
_SETTINGS = {
    "warehouse": "warehouse",
    "credential": "credential",
    "token": "token",
    "scope": "scope",
    "token url": "oauth2-server-uri",
}
_STORE_SETTINGS = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
    "aws_endpoint": "s3.endpoint",
}
#: For how long a catalog and a store may keep us waiting, in seconds: until they take a connection, and between bytes.
_CONNECTING, _ANSWERING = 5, 60
#: What is between the parts of a login and of a URL, and from how many characters on a part is a secret, too.
_SEPARATORS, _SECRET = re.compile("[:@]|//"), 4
_MAY_READ = "mz.may-read"
#: The highest version of the format that is read.
_FORMAT = 3


def opened(catalog: IcebergCatalog, name: str, root: Path, may_read: Callable[[str], object]) -> Table:
    """Returns a table as the catalog has it now.

    Args:
        catalog: What to ask.
        name: The table's, behind those of its namespaces.
        root: Where relative paths lead from.
        may_read: Raises if a path of this machine is not to be read.

    Raises:
        SourceUnreadable: It has no such table, or the catalog cannot be asked.
        UnknownFeature: The table's format is newer than what is read.
        FolderNotAllowed: It, or the catalog, is where sources may not read.
        SecretUnavailable: A secret is not there.
    """
    table = f'Iceberg table "{name}"'
    secrets = catalog.secrets(root)
    try:
        with _catalog(catalog, root, may_read) as asked:
            found = asked.load_table(name)
    except Error:
        raise
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        named = dict(catalog.options).get("name", "default")
        what = f' under the name "{named}", which is the NAME of the connection' if catalog.kind == "sql" else ""
        raise SourceUnreadable(
            f'connection "{catalog.name}" has no {table}',
            detail=f"Its catalog was asked for it{what}.",
            hint="Write TABLE 'namespace.table'; the source begins once the table is there.",
        ) from error
    except Exception as error:  # whatever pyiceberg, the network and the database raise over what they got
        text = _reason(error, secrets)
        if "format version" in text.lower() or "format-version" in text.lower():
            raise _too_new(table, text) from error
        raise SourceUnreadable(
            f'connection "{catalog.name}" cannot read {table}',
            detail=f"{text}.",
            hint="Nothing was bound; once the table can be read, the next poll goes on.",
        ) from None  # whose context may say a secret
    if found.metadata.format_version > _FORMAT:
        raise _too_new(table, f"It has version {found.metadata.format_version}")
    return found


def _too_new(table: str, detail: str) -> UnknownFeature:
    return UnknownFeature(
        f"{table} has a version of the format that is not read",
        detail=f"{detail}. Versions up to {_FORMAT} are read.",
        hint="Have it written in an older version of the format; nothing was read.",
    )


def _reason(error: BaseException, secrets: tuple[str, ...]) -> str:
    """Returns what an error says, but for secrets."""
    if isinstance(error, SQLAlchemyError):
        error = getattr(error, "orig", None) or error
    text = str(error)
    parts = (part for secret in secrets for part in (secret, *_SEPARATORS.split(secret)) if len(part) >= _SECRET)
    for part in parts:
        text = text.replace(part, "***").replace(quote(part, safe=""), "***")
    return reason(OSError(text)) if text else type(error).__name__


def _catalog(catalog: IcebergCatalog, root: Path, may_read: Callable[[str], object]) -> Catalog:
    settings = catalog.settings(root)
    properties: dict[str, Any] = {
        "s3.connect-timeout": str(_CONNECTING),
        "s3.request-timeout": str(_ANSWERING),
        "py-io-impl": f"{AllowedFileIO.__module__}.{AllowedFileIO.__name__}",
        _MAY_READ: may_read,
    }
    properties |= {_SETTINGS[option]: value for option, value in settings.items() if option in _SETTINGS}
    if catalog.store is not None:
        found = catalog.store.settings(root)
        properties |= {own: found[name] for name, own in _STORE_SETTINGS.items() if name in found}
    name = settings.get("name", "default")
    if catalog.kind == "sql":
        properties |= {"uri": _database(settings["url"], root, may_read), "init_catalog_tables": "false"}
        return _Sql(name, **properties)
    url = settings["url"].rstrip("/")
    return _Rest(name, **{"uri": url, "oauth2-server-uri": f"{url}/v1/oauth/tokens", **properties})


def _database(text: str, root: Path, may_read: Callable[[str], object]) -> str:
    """Returns the URL of a catalog's database, of SQLite's to be read alone."""
    url = make_url(text)
    if url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": str(_CONNECTING)})
    if url.get_backend_name() != "sqlite":
        return url.render_as_string(hide_password=False)
    path = root / (url.database or "")
    may_read(str(path))
    if not path.is_file():
        raise FileNotFoundError(f"There is no database {path}")
    return f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true"


class AllowedFileIO(PyArrowFileIO):
    """Opens files of object stores, and of this machine those that sources may read."""

    def new_input(self, location: str) -> PyArrowFile:
        """Returns what opens a file.

        Raises:
            FolderNotAllowed: Sources may not read there.
        """
        scheme, _, path = self.parse_location(location, self.properties)
        if scheme == "file":
            cast(Callable[[str], object], self.properties[_MAY_READ])(path)
        return super().new_input(location)


def _file_io(own: Mapping[str, Any], others: Mapping[str, Any]) -> FileIO:
    """Returns what opens files, by settings of the connection and those that catalog and table add."""
    return AllowedFileIO({**own, **others, _MAY_READ: own[_MAY_READ]})


class _Sql(SqlCatalog):
    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:
        return _file_io(self.properties, {})


class _Rest(RestCatalog):
    def __init__(self, name: str, **properties: Any) -> None:
        self._own = properties
        super().__init__(name, **properties)

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Deadline())

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:
        return _file_io(self._own, {**self.properties, **properties})


class _Deadline(HTTPAdapter):  # type: ignore[misc]  # requests has no types
    """Waits for an answer for so long."""

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        """Returns the answer to a request."""
        return super().send(request, *arguments, **{**options, "timeout": (_CONNECTING, _ANSWERING)})
