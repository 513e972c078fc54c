"""What leads to an object store: settings, and references to secrets, which are looked up at each use and never kept.

Nothing here shows a value: what is printed of a reference is where it leads, and an error names it alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.errors import OperationalError

#: The settings of delta-rs and its object store, by the options of CREATE CONNECTION ... TO S3.
_SETTINGS = {
    "access key id": "aws_access_key_id",
    "secret access key": "aws_secret_access_key",
    "session token": "aws_session_token",
    "region": "aws_region",
    "endpoint": "aws_endpoint",
}


class SecretUnavailable(OperationalError):
    """A secret whose reference leads to nothing in this process."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret's value is.

    Attributes:
        name: What SQL calls it.
        reference: `${VARIABLE}`, or `file:` and a path.
    """

    name: str
    reference: str

    def path(self, root: Path) -> Path | None:
        """Returns the file that it is in, None if it is a variable; relative paths lead from `root`."""
        return root / self.reference.removeprefix("file:") if self.reference.startswith("file:") else None

    def value(self, root: Path) -> str:
        """Returns what it stands for in this process now.

        Args:
            root: Where relative paths lead from.

        Raises:
            SecretUnavailable: There is no such variable or file.
        """
        path = self.path(root)
        if path is None:
            variable = self.reference[2:-1]
            if variable not in os.environ:
                raise SecretUnavailable(
                    f'the environment has no variable "{variable}", which secret "{self.name}" names',
                    hint="Set it where this process is started; nothing was read or written.",
                )
            return os.environ[variable]
        try:
            return path.read_text().removesuffix("\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise SecretUnavailable(
                f'cannot read file "{path}", which secret "{self.name}" names: {reason}',
                hint="Put it where this process can read it; nothing was read or written.",
            ) from None


@dataclass(frozen=True, slots=True)
class S3:
    """A store that speaks S3's protocol.

    Attributes:
        name: What SQL calls the connection.
        options: Its settings, by the names that CREATE CONNECTION has for them.
    """

    name: str
    options: tuple[tuple[str, str | Secret], ...]

    def settings(self, root: Path) -> Mapping[str, str]:
        """Returns what delta-rs is to be told, secrets included: for that call, and not to be kept.

        Args:
            root: Where relative paths of secrets lead from.

        Raises:
            SecretUnavailable: A secret is not there.
        """
        found = {
            _SETTINGS[option]: value.value(root) if isinstance(value, Secret) else value
            for option, value in self.options
        }
        if found.get("aws_endpoint", "").startswith("http://"):
            found["aws_allow_http"] = "true"
        return found
