"""What leads to an object store: settings, and references to secrets, which are looked up at each use and never kept.

Nothing here shows a value: what is printed of a reference is where it leads, and an error names it alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from mz_dagster.errors import OperationalError

_SIGNATURE = re.compile(r"([?&](?:sig|signature|X-Amz-Signature)=)[^&\s\"'>)]+", re.IGNORECASE)
"""What URLs of requests hold that were signed in advance."""


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
class ObjectStore:
    """A store of objects, by the protocol that a subclass is of.

    Attributes:
        name: What SQL calls the connection.
        options: Its settings, by the names that CREATE CONNECTION has for them.
    """

    #: How the URIs of what is there may begin, and what stands behind `CREATE CONNECTION ... TO`.
    schemes: ClassVar[tuple[str, ...]]
    words: ClassVar[str]
    #: The settings of delta-rs and its object store, by the options of CREATE CONNECTION.
    names: ClassVar[Mapping[str, str]]
    #: Which of the options are secret.
    secrets: ClassVar[frozenset[str]]

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
            self.names[option]: value.value(root) if isinstance(value, Secret) else value
            for option, value in self.options
        }
        if self._endpoint(found).startswith("http://"):
            found["allow_http"] = "true"
        return found

    def without_secrets(self, text: str, root: Path) -> str:
        """Returns a text, such as another's error, without what secrets stand for.

        Args:
            text: The text.
            root: Where relative paths of secrets lead from.
        """
        for _, value in self.options:
            if isinstance(value, Secret):
                with suppress(SecretUnavailable):
                    if found := value.value(root):
                        text = text.replace(found, "***").replace(quote(found, safe=""), "***")
        return _SIGNATURE.sub(r"\1***", text)

    def _endpoint(self, settings: Mapping[str, str]) -> str:
        """Returns the URL that settings say of a store; nothing if they say none."""
        return next((value for name, value in settings.items() if name.endswith("_endpoint")), "")


class S3(ObjectStore):
    """A store that speaks S3's protocol."""

    schemes = ("s3",)
    words = "S3"
    names: ClassVar[Mapping[str, str]] = {
        "access key id": "aws_access_key_id",
        "secret access key": "aws_secret_access_key",
        "session token": "aws_session_token",
        "region": "aws_region",
        "endpoint": "aws_endpoint",
    }
    secrets = frozenset({"secret access key", "session token"})


class Azure(ObjectStore):
    """Azure's Blob Storage."""

    schemes = ("az",)
    words = "AZURE"
    names: ClassVar[Mapping[str, str]] = {
        "account name": "azure_storage_account_name",
        "account key": "azure_storage_account_key",
        "sas token": "azure_storage_sas_key",
        "client id": "azure_storage_client_id",
        "client secret": "azure_storage_client_secret",
        "tenant id": "azure_storage_tenant_id",
        "endpoint": "azure_storage_endpoint",
    }
    secrets = frozenset({"account key", "sas token", "client secret"})


class Gcs(ObjectStore):
    """Google's Cloud Storage."""

    schemes = ("gs",)
    words = "GCS"
    names: ClassVar[Mapping[str, str]] = {"service account key": "google_service_account_key"}
    secrets = frozenset({"service account key"})

    def _endpoint(self, settings: Mapping[str, str]) -> str:
        """Returns the URL that a key names, which is none of Google's then."""
        with suppress(ValueError):
            key = json.loads(settings.get("google_service_account_key", "{}"))
            if isinstance(key, dict):
                return str(key.get("gcs_base_url", ""))
        return ""


class Web(ObjectStore):
    """A web server, of which what is below a URL is read."""

    schemes = ("https", "http")
    words = "HTTP"
    names: ClassVar[Mapping[str, str]] = {"url": "web_endpoint", "token": "web_token"}
    secrets = frozenset({"token"})

    @property
    def url(self) -> str:
        """The URL, without a `/` at its end."""
        return str(dict(self.options)["url"]).rstrip("/")


#: By what `CREATE CONNECTION ... TO` names.
OBJECT_STORES: Mapping[str, type[ObjectStore]] = {"s3": S3, "gcs": Gcs, "azure": Azure, "http": Web}
