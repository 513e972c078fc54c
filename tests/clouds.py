"""Object stores of other kinds than S3, each in a process of its own, with a bucket (Azure calls it a container).

Azure is Azurite, which `make test-deep` fetches (`setup/clients.py`). Google's XML interface, which obstore and
delta-rs speak, is S3's but for how requests are signed and for the names of a few headers; so Google is moto's server
behind `tests/gcs_server.py`, which translates them.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import Request, urlopen

import obstore

from mz_dagster.storage.object_client import Client, client_of
from tests.object_store import BUCKET, free_port

_AZURITE = Path(__file__).resolve().parents[1] / ".make/clients/azurite/node_modules/azurite/dist/src/blob/main.js"
#: The account that Azurite has, whose key is no secret.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Cloud:
    """Where it is, and how to get in.

    Attributes:
        scheme: How URIs of it begin.
        secret: What the variable `STORE_SECRET` is to hold.
        create: What gives a project the connection `store`.
        settings: What delta-rs and obstore are told of it.
        environment: What has delta-rs find it without being told.
        storage: What leads there in the table `storage` of a `mz.toml`.
    """

    scheme: str
    secret: str
    create: str
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    storage: str

    @property
    def statements(self) -> list[str]:
        """What gives a project the connection `store`, whose secret is the variable `STORE_SECRET`."""
        return ["CREATE SECRET hidden AS '${STORE_SECRET}'", self.create]

    def uri(self, path: str) -> str:
        """Returns what something in the bucket is called."""
        return f"{self.scheme}://{BUCKET}/{path}"

    def client(self, prefix: str) -> Client:
        """Returns a client of what is below a prefix."""
        return client_of(self.uri(prefix), self.settings)

    def put(self, prefix: str, path: str, content: str | bytes) -> None:
        """Writes an object."""
        obstore.put(self.client(prefix), path, content.encode() if isinstance(content, str) else content)


@contextmanager
def running_azure() -> Iterator[Cloud]:
    """Runs Azurite with an empty container."""
    assert _AZURITE.exists(), "make test-deep fetches Azurite: .venv/bin/python setup/clients.py --deep"
    port = free_port()
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with _running(["node", str(_AZURITE), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]):
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        settings = {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": ACCOUNT_KEY,
            "azure_storage_endpoint": endpoint,
            "allow_http": "true",
        }
        _until_answered(lambda: _container(endpoint))
        yield Cloud(
            "az",
            ACCOUNT_KEY,
            f"CREATE CONNECTION store TO AZURE (ACCOUNT NAME = '{ACCOUNT}', ACCOUNT KEY = SECRET hidden, "
            f"ENDPOINT = '{endpoint}')",
            settings,
            {
                "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
                "AZURE_STORAGE_ENDPOINT": endpoint,
                "AZURE_ALLOW_HTTP": "true",
            },
            f'account_name = "{ACCOUNT}"\naccount_key = "${{STORE_SECRET}}"\nendpoint = "{endpoint}"\n',
        )


@contextmanager
def running_gcs() -> Iterator[Cloud]:
    """Runs a server of Google's XML interface with an empty bucket."""
    port = free_port()
    with _running([sys.executable, str(Path(__file__).with_name("gcs_server.py")), str(port)]):
        url = f"http://127.0.0.1:{port}"
        key = json.dumps(
            {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        )
        _until_answered(lambda: urlopen(Request(f"{url}/{BUCKET}", method="PUT"), timeout=60).close())
        yield Cloud(
            "gs",
            key,
            "CREATE CONNECTION store TO GCS (SERVICE ACCOUNT KEY = SECRET hidden)",
            {"google_service_account_key": key, "allow_http": "true"},
            {"GOOGLE_SERVICE_ACCOUNT_KEY": key, "GOOGLE_ALLOW_HTTP": "true"},
            'service_account_key = "${STORE_SECRET}"\n',
        )


def _container(endpoint: str) -> None:
    """Makes a container, which takes a request that is signed as Azure has it."""
    now, version = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"), "2021-08-06"
    lines = ["PUT", *[""] * 11, f"x-ms-date:{now}", f"x-ms-version:{version}", f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}"]
    signed = hmac.digest(base64.b64decode(ACCOUNT_KEY), "\n".join([*lines, "restype:container"]).encode(), "sha256")
    headers = {
        "x-ms-date": now,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}",
    }
    urlopen(Request(f"{endpoint}/{BUCKET}?restype=container", method="PUT", headers=headers), timeout=60).close()


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.kill()
        server.wait()


def _until_answered(ask: Callable[[], None]) -> None:
    give_up = monotonic() + 60
    while True:
        try:
            ask()
            return
        except URLError as error:
            if monotonic() > give_up or not isinstance(error.reason, OSError):
                raise
            sleep(0.05)
