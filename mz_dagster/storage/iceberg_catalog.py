"""What leads to a catalog of Iceberg tables: settings, and references to secrets, which are looked up at each use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mz_dagster.storage.object_store import S3, Secret

CatalogKind = Literal["rest", "sql"]


@dataclass(frozen=True, slots=True)
class IcebergCatalog:
    """A catalog that speaks Iceberg's REST protocol, or one in the tables of a SQL database.

    Attributes:
        name: What SQL calls the connection.
        kind: Which of the two it is.
        options: Its settings, by the names that CREATE CONNECTION has for them.
        store: What leads to the tables' files, if the catalog does not say it and they are not on this machine.
    """

    name: str
    kind: CatalogKind
    options: tuple[tuple[str, str | Secret], ...]
    store: S3 | None = None

    def settings(self, root: Path) -> Mapping[str, str]:
        """Returns its settings, secrets included: for that call, and not to be kept.

        Args:
            root: Where relative paths of secrets lead from.

        Raises:
            SecretUnavailable: A secret is not there.
        """
        return {option: value.value(root) if isinstance(value, Secret) else value for option, value in self.options}

    def secrets(self, root: Path) -> tuple[str, ...]:
        """Returns what no error may say; raises as `settings`."""
        options = (*self.options, *(self.store.options if self.store is not None else ()))
        return tuple(value.value(root) for _, value in options if isinstance(value, Secret))
