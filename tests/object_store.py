"""An object store that runs: moto's server, or versitygw, in a process of its own, with a bucket."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.storage.object_store import S3, Secret
from tests.opened import opened

BUCKET = "lake"
#: What `go install` makes, and of which version.
GO = Path(__file__).resolve().parents[1] / ".make" / "go"
GATEWAY_VERSION = "v1.8.0"
SECRET = "plAnted+secRet/7f3c0b"
#: Serves until its standard input ends, however the process ends that began it.
_MOTO = """
import os, sys, threading
from moto.server import main
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
main()
"""


@dataclass(frozen=True)
class Store:
    """Where it is, and how to get in."""

    endpoint: str
    key: str = "tester"
    secret: str = SECRET

    @property
    def environment(self) -> Mapping[str, str]:
        """What has delta-rs find it without being told."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
        }

    def client(self) -> Any:
        """Returns boto3's client of it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
        )

    @property
    def means(self) -> S3:
        """What leads there, whose secret is the variable `STORE_SECRET`."""
        secret = Secret("hidden", "${STORE_SECRET}")
        return S3(
            "store",
            (
                ("access key id", self.key),
                ("secret access key", secret),
                ("region", "us-east-1"),
                ("endpoint", self.endpoint),
            ),
        )

    @property
    def settings(self) -> str:
        """What leads there in the table `storage` of a `mz.toml`; the secret is the variable `STORE_SECRET`."""
        return f"""endpoint = "{self.endpoint}"
region = "us-east-1"
access_key_id = "{self.key}"
secret_access_key = "${{STORE_SECRET}}"
"""

    @property
    def statements(self) -> list[str]:
        """What gives a project the connection `store`, whose secret is the variable `STORE_SECRET`."""
        return [
            "CREATE SECRET hidden AS '${STORE_SECRET}'",
            f"CREATE CONNECTION store TO S3 (ACCESS KEY ID '{self.key}', SECRET ACCESS KEY = SECRET hidden, "
            f"REGION = 'us-east-1', ENDPOINT = '{self.endpoint}')",
        ]


@contextmanager
def opened_beside(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """Opens a new project that has the connection `store`."""
    monkeypatch.setenv("STORE_SECRET", store.secret)
    with opened(root) as connection:
        for statement in store.statements:
            connection.execute(statement)
        yield connection


@contextmanager
def running_store() -> Iterator[Store]:
    """Has moto's store, which runs until this process ends, hold an empty bucket."""
    store = _moto()
    urlopen(Request(f"{store.endpoint}/moto-api/reset", method="POST"), timeout=60).close()
    store.client().create_bucket(Bucket=BUCKET)
    yield store


@cache
def _moto() -> Store:
    port = free_port()
    running = ExitStack()
    running.enter_context(serving([sys.executable, "-c", _MOTO, "-H", "127.0.0.1", "-p", str(port)], port))
    atexit.register(running.close)
    return Store(f"http://127.0.0.1:{port}")


@contextmanager
def running_gateway(folder: Path) -> Iterator[Store]:
    """Runs versitygw with an empty bucket in a folder; builds it if that was never done, which takes ten minutes."""
    gateway = GO / "versitygw"
    if not gateway.exists():
        module = f"github.com/versity/versitygw/cmd/versitygw@{GATEWAY_VERSION}"
        subprocess.run(["go", "install", module], env=os.environ | {"GOBIN": str(GO)}, timeout=3000, check=True)
    port = free_port()
    with _running([str(gateway), "--port", f"127.0.0.1:{port}", "posix", str(folder)], port) as store:
        yield store


def free_port() -> int:
    """Returns a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[Store]:
    with serving(command, port):
        store = Store(f"http://127.0.0.1:{port}")
        store.client().create_bucket(Bucket=BUCKET)
        yield store


@contextmanager
def serving(command: Sequence[str], port: int) -> Iterator[None]:
    """Runs a server, from when it listens at a port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"ROOT_ACCESS_KEY": "tester", "ROOT_SECRET_KEY": SECRET}
    silent = subprocess.DEVNULL
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=silent, stderr=silent)
    try:
        give_up = monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or monotonic() > give_up:
                    raise
                sleep(0.05)
        yield
    finally:
        server.kill()
        server.communicate()
