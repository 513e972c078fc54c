r"""What is kept of a password: what SCRAM compares it with, in the form in which PostgreSQL keeps it.

Of that nobody can tell the password, nor connect with it. A client may have made it, as psql's `\password` does; then
the password itself never leaves the client.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from mz_dagster.errors import OperationalError
from mz_dagster.sql.errors import InvalidParameterValue

_SCRAM = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{44}):([A-Za-z0-9+/=]{44})")
_MD5 = re.compile(r"md5[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, repr=False)
class Verifier:
    """What SCRAM compares a password with.

    Attributes:
        iterations: How often the password was hashed.
        salt: With what.
        stored_key: What the client has to prove that it knows.
        server_key: By what it knows the server.
    """

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, text: str) -> Verifier | None:
        """Returns the one that a text is, or None if it is none.

        Example:
            >>> Verifier.of("secret") is None
            True
        """
        found = _SCRAM.fullmatch(text)
        if found is None:
            return None
        try:
            salt, stored, server = (base64.b64decode(one, validate=True) for one in found.groups()[1:])
        except ValueError:
            return None
        return cls(int(found[1]), salt, stored, server) if len(stored) == len(server) == 32 and int(found[1]) else None

    @property
    def text(self) -> str:
        """It as a text."""
        salt, stored, server = (base64.b64encode(x).decode() for x in (self.salt, self.stored_key, self.server_key))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def verifier_text(password: str) -> str:
    """Returns what is kept of a password, which may be that already.

    Raises:
        InvalidParameterValue: It is empty, or what PostgreSQL kept of passwords before SCRAM.
        OperationalError: The extra `wire` is not installed.
    """
    if Verifier.of(password) is not None:
        return password
    if not password or _MD5.fullmatch(password):
        raise InvalidParameterValue(
            "a password is neither empty nor an MD5 hash", hint="Write the password, or what SCRAM-SHA-256 makes of it."
        )
    try:
        from scramp import ScramException, ScramMechanism
    except ModuleNotFoundError as error:
        raise OperationalError(
            f"passwords need a package that is not there: {error.name}", hint="pip install 'mz_dagster[wire]'"
        ) from error
    try:
        salt, stored_key, server_key, iterations = ScramMechanism().make_auth_info(password)
    except ScramException as error:
        raise InvalidParameterValue("the password has characters that no password has") from error
    return Verifier(iterations, salt, stored_key, server_key).text
