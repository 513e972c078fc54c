"""Who may connect: the owner, with a password that is made by chance and lies in a file that only the owner can read.

Other roles have theirs by SQL (`adapter.sequence.roles`). The file is one that libpq reads (`PGPASSFILE`), so that
whoever may read it need not type the password. A server keeps of it in memory what SCRAM needs to compare it; unknown
users are compared with what nobody knows, and take as long.
"""

from __future__ import annotations

import getpass
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scramp import ScramMechanism

from mz_dagster.adapter.passwords import Verifier
from mz_dagster.catalog import RoleRow
from mz_dagster.disk import make_private_file, sync
from mz_dagster.errors import OperationalError

_NAME = "pgpass"


class BadCredentials(OperationalError):
    """A file of credentials that cannot be used."""

    sqlstate = "28000"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The owner, and what the owner's password is compared with.

    Attributes:
        user: The owner's name.
        path: The file with the password.
    """

    user: str
    path: Path
    _known: Any = field(repr=False)
    _unknown: Any = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> Credentials:
        """Returns those that a folder keeps; if there are none, a password is made.

        Raises:
            BadCredentials: The file is not one of ours, or others can read it.
        """
        path = folder / _NAME
        if not path.exists():
            user = getpass.getuser()
            made = path.with_name(f"{_NAME}.{os.getpid()}")
            make_private_file(made)
            made.write_text(f"*:*:*:{_escaped(user)}:{secrets.token_urlsafe(24)}\n", encoding="utf-8")
            sync(made, private=True)
            try:
                os.link(made, path)  # another server may have been faster
            except FileExistsError:
                pass
            finally:
                made.unlink()
            sync(folder)
        return cls._read(path)

    @classmethod
    def _read(cls, path: Path) -> Credentials:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadCredentials(f'others than its owner can read "{path}"', hint=f'chmod 600 "{path}"')
        line = path.read_text(encoding="utf-8").strip()
        fields = line.replace("\\\\", "\0").replace("\\:", "\1").split(":")
        if len(fields) != 5 or "\n" in line:
            raise BadCredentials(
                f'"{path}" is not a line of host:port:database:user:password', hint="Delete it, and a new one is made."
            )
        user, password = (one.replace("\0", "\\").replace("\1", ":") for one in fields[3:])
        mechanism = ScramMechanism()
        known = mechanism.make_auth_info(password)
        return cls(user, path, known, mechanism.make_auth_info(secrets.token_urlsafe(24)))

    def verifier(self, user: str, role: RoleRow | None) -> Any:
        """Returns what to compare a user's password with: salt, keys, iterations; by chance for one that has none.

        Args:
            user: The user's name.
            role: The role of that name, if there is one.
        """
        if user == self.user:
            return self._known
        kept = None if role is None or role.verifier is None else Verifier.of(role.verifier)
        if kept is None:
            return self._unknown
        return kept.salt, kept.stored_key, kept.server_key, kept.iterations


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def set_client_first(scram: Any, text: str) -> None:
    """Gives SCRAM a client's first message; libpq leaves the name in it empty, which `scramp` refuses."""
    header, _, bare = text.partition(",,")
    if bare.startswith("n=,"):
        scram.set_client_first(f"{header},,n=*,{bare[3:]}")
        scram.client_first_bare = bare
    else:
        scram.set_client_first(text)
