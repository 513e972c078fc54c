"""Where a catalog's database is: a URL that is built and taken apart, never formatted or compared as a text.

A SQLite catalog is a file of this machine, under an absolute path whatever the process's working directory is. A URL
holds secrets in two places, before the host and among its parameters; neither is in any text of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from mz_dagster.errors import ProgrammingError

_SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token", re.IGNORECASE)
"""The parameters of a URL whose values are nobody's business. (`passfile` names a file.)"""

_HIDDEN = "***"
_DATABASES = ("sqlite", "postgresql")
_LARGEST_PORT = 65_535


class BadCatalogUrl(ProgrammingError):
    """A text that is no URL of a database in which a catalog can live."""

    sqlstate = "08001"


@dataclass(frozen=True, slots=True)
class CatalogUrl:
    """The URL of a catalog's database.

    Example:
        >>> CatalogUrl.of_file(Path("/what?/c.sqlite"))
        CatalogUrl('sqlite:////what%3F/c.sqlite')
        >>> CatalogUrl.parse("sqlite:///c.sqlite", Path("/project")).file
        PosixPath('/project/c.sqlite')
        >>> print(CatalogUrl.parse("postgresql://me:a@h/d?password=b"))
        postgresql://me:***@h/d?password=***
    """

    url: URL

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Returns the URL of the SQLite database in a file."""
        return cls(URL.create("sqlite", database=str(path.absolute())))

    @classmethod
    def parse(cls, text: str, base: Path | None = None) -> Self:
        """Returns the URL that a text says.

        Args:
            text: The text; what is special in a URL stands in it as `%3F`, and so on.
            base: What the path of a file is relative to; None for the process's working directory.

        Raises:
            BadCatalogUrl: It is no URL, or of a database that no process could share. The error does not repeat it: it
                may hold a password.
        """
        try:
            url = make_url(text)
        except ArgumentError as error:
            raise _bad("it is not of the form of a URL") from error
        except ValueError as error:
            raise _bad("its port is not a number") from error
        if url.get_backend_name() not in _DATABASES:
            raise _bad(f'a catalog cannot live in "{url.get_backend_name()}"')
        if url.port is not None and not 0 < url.port <= _LARGEST_PORT:
            raise _bad(f"there is no port {url.port}")
        if url.get_backend_name() != "sqlite":
            return cls(url)
        path = url.database
        if path in (None, "", ":memory:") or (path or "").startswith("file:") or "uri" in url.query:
            raise BadCatalogUrl(
                "a catalog cannot live in memory, nor in what only a SQLite URI names",
                detail="Several processes share it, and it must survive them.",
                hint="Use sqlite:///path/to/file.",
            )
        assert path is not None
        return cls(url.set(database=str(Path.cwd() / path if base is None else base.absolute() / path)))

    @property
    def file(self) -> Path | None:
        """The SQLite database's file; None for any other database."""
        return Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None

    def secret_parameters(self) -> dict[str, str]:
        """Returns the parameters whose values are secret."""
        return {name: str(value) for name, value in self.url.query.items() if _SECRET.search(name)}

    def without_secret_parameters(self) -> URL:
        """Returns what may be told to whoever writes URLs into messages; a password before the host is hidden there."""
        return self.url.difference_update_query(tuple(self.secret_parameters()))

    def __str__(self) -> str:
        hidden = dict.fromkeys(self.secret_parameters(), _HIDDEN)
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True).replace("%2A%2A%2A", _HIDDEN)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def _bad(what: str) -> BadCatalogUrl:
    return BadCatalogUrl(
        f"not a catalog URL: {what}", hint="Use sqlite:///path/to/file or postgresql+psycopg://user@host:port/database."
    )
