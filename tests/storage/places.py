"""Where the shards of the projects are that processes of tests work on: in their folder, or in a bucket."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.storage.object_store import S3, Secret
from mz_dagster.storage.shard_bucket import ShardBucket
from mz_dagster.storage.shard_place import ShardFolder, ShardPlace

if TYPE_CHECKING:  # a process that is killed soon needs no client of its own
    from tests.object_store import Store

_SETTINGS = "bucket.json"


def put_in_bucket(folder: Path, uri: str, store: Store) -> None:
    """Has a project's shards be below a prefix."""
    (folder / _SETTINGS).write_text(json.dumps({"uri": uri, "endpoint": store.endpoint, "key": store.key}))
    (folder / "secret").write_text(store.secret)


def place_of(folder: Path) -> ShardPlace:
    """Returns where the shards of the project in a folder are; in a bucket, with this process's own copies."""
    if not (folder / _SETTINGS).exists():
        return ShardFolder(folder)
    settings = json.loads((folder / _SETTINGS).read_text())
    options = (
        ("access key id", settings["key"]),
        ("secret access key", Secret("hidden", "file:secret")),
        ("region", "us-east-1"),
        ("endpoint", settings["endpoint"]),
    )
    copies = folder / f"objects-{os.getpid()}"
    return ShardBucket(settings["uri"], S3("store", options), copies, folder, 1 << 30)
