"""Sessions of processes that were killed: what they still compute is ended, so that nobody waits for it.

A server goes on with what a client has asked for, for minutes after the client is gone, and tasks that compute for
nobody keep all others from its cores: the next query may not even be answered. So each session is noted in a
file of the state folder while its process has it, and whoever is about to use that Spark releases those of processes of
this machine that are dead (`mz_dagster.liveness`). Of processes elsewhere nobody knows, and Spark forgets their
sessions by itself.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mz_dagster.liveness import is_dead, this_process
from mz_dagster.storage.spark.launch import write_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = "sessions"
#: How long the release of one session is waited for, in seconds; what it ends may take longer to be over.
_RELEASE_SECONDS = 10.0

_files: WeakKeyDictionary[SparkSession, Path] = WeakKeyDictionary()

_logger = logging.getLogger(__name__)


def note_session(state_dir: Path, address: str, session: SparkSession) -> None:
    """Notes that this process has a session on the Spark at `address`, until `forget_session`."""
    process = this_process()
    if process is None:
        return
    client: Any = session.client
    file = _files[session] = state_dir / _FOLDER / client._session_id
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, json.dumps({"process": process, "address": address, "user": client._user_id}))


def forget_session(session: SparkSession) -> None:
    """Notes that a session is over; does nothing if it was never noted."""
    if (file := _files.pop(session, None)) is not None:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def release_orphans(state_dir: Path, address: str, session: SparkSession) -> None:
    """Releases, by way of a session on the same Spark, those whose processes are dead, with all that they compute.

    Costs a few system calls unless there are any. It raises nothing: what cannot be released goes on.
    """
    for file in _noted(state_dir):
        try:
            noted = json.loads(file.read_text(encoding="utf-8"))
            process, on, user = noted["process"], noted["address"], noted["user"]
        except FileNotFoundError:
            continue  # another has released it
        except (OSError, ValueError, KeyError, TypeError) as error:
            _logger.warning("%s does not tell of a session: %s", file, error)
            continue
        if not is_dead(process):
            continue
        if on == address:  # what was on another server went with it
            _logger.info("releasing session %s, whose process is dead", file.name)
            _release(session, file.name, user)
        file.unlink(missing_ok=True)


def _release(session: SparkSession, orphan: str, user: str | None) -> None:
    from pyspark.sql.connect.proto import ReleaseSessionRequest

    client: Any = session.client
    request = ReleaseSessionRequest(session_id=orphan, client_type=client._builder.userAgent)
    if user:
        request.user_context.user_id = user

    def call() -> None:
        try:
            client._stub.ReleaseSession(request, metadata=client._builder.metadata(), timeout=_RELEASE_SECONDS)
        except Exception as error:  # whatever is wrong with the server, the caller's own next call says
            _logger.warning("session %s could not be released: %s", orphan, error)

    releasing = threading.Thread(target=call, name="mz-release-orphan", daemon=True)
    releasing.start()
    releasing.join(_RELEASE_SECONDS)


def _noted(state_dir: Path) -> list[Path]:
    try:
        with os.scandir(state_dir / _FOLDER) as entries:
            return [Path(one.path) for one in entries if not one.name.endswith(".new")]
    except OSError:
        return []
