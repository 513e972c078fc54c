"""Sessions: one for each Spark and process, alive or replaced, and always stopped.

Owns the sessions of this process, and fits those that others lend. Invariants: `open_session` never returns a session
whose server has gone; every session opened here is stopped before the interpreter exits, since several that are not
hang it there (pyspark 4.2 with grpcio 1.85). Spark Classic and Spark Connect look the same from outside, but one
process can hold only one kind at a time: pyspark's functions are either of the one or of the other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakSet

from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.process import ProcessIdentity
from mz_dagster.process_exit import before_exit
from mz_dagster.storage.spark.config import (
    DELTA_CONF,
    DELTA_PACKAGE,
    SHUFFLE_PARTITIONS,
    SMALLER_PIECES,
    SparkConfig,
    server_conf,
)
from mz_dagster.storage.spark.connecting import PING_SECONDS, connect, is_connect, stop
from mz_dagster.storage.spark.deadline import NoAnswer, call_with_deadline, is_lost, lost_spark
from mz_dagster.storage.spark.launch import TOKEN_VARIABLE, check_java
from mz_dagster.storage.spark.orphans import note_session, release_orphans
from mz_dagster.storage.spark.prepared import with_prepared_start
from mz_dagster.storage.spark.probe import probe
from mz_dagster.storage.spark.server import ServerInfo, ensure_server
from mz_dagster.storage.spark.task_progress import tell_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler

# pyspark's functions look at it to tell whether they make Connect's columns or Classic's.
_CONNECT_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"


class _Key(NamedTuple):
    """Tells the sessions of this process apart: by the Spark they are on, and by their settings."""

    address: str
    server: ProcessIdentity | None
    conf: tuple[tuple[str, str], ...]
    plan_bytes: int = 0
    smaller_pieces: bool = False


_lock = threading.RLock()
_sessions: dict[_Key, SparkSession] = {}
# Sessions that were too slow for one caller and may be in use by others; stopped with the rest.
_slow: list[SparkSession] = []
_lent: WeakSet[SparkSession] = WeakSet()
# A forked child must not use its parent's channels, nor release its parent's sessions when it exits.
for _held in (_sessions, _slow):
    os.register_at_fork(after_in_child=_held.clear)


def open_session(config: SparkConfig) -> SparkSession:
    """Returns this process's session on the Spark that `config` names, made if there is none that answers.

    An embedded server is started if it does not run. Safe to call from any thread and as often as wanted: for a
    session that is there it costs one small RPC (about 5 ms). The session belongs to this module: end it with
    `close_session`.

    Raises:
        OperationalError: Spark cannot be started or reached, or did not answer within the deadline.
        ProgrammingError: This process holds a Spark of the other kind, Classic against Connect.
    """
    with _lock:
        if config.master is not None:
            return _open_classic(config)
        if config.remote is not None:
            return _open_connect(config, config.remote, _token_of(config), server=None)
        server = ensure_server(config)
        return _open_connect(config, server.url, server.token, server=server)


def borrowed_session(session: SparkSession, config: SparkConfig) -> SparkSession:
    """Returns a session that somebody else opened, and will close, fit for the engine: its settings are made exact.

    They stay so for its other users, too: time zone UTC, ANSI mode, decimals that keep their scale; and smaller pieces
    once they were needed. What waits for its server waits as long as its own client does.

    Raises:
        ProgrammingError: It lacks Delta's extension or catalog, which only the starter of a Spark can add.
        OperationalError: It does not answer within the deadline.
    """
    with _lock:
        if session not in _lent:
            call_with_deadline(session, lambda: _check_delta(session), config.first_call_seconds)
            call_with_deadline(session, lambda: _settle(session, config, lent=True), config.first_call_seconds)
            if is_connect(session):
                session.registerProgressHandler(cast("ProgressHandler", tell_tasks))
            _lent.add(session)
        if config.smaller_pieces:
            call_with_deadline(session, lambda: _make_smaller(session), config.first_call_seconds)
        return session


def _check_delta(session: SparkSession) -> None:
    missing = [
        f"{key}={name}" for key, name in DELTA_CONF.items() if name not in (session.conf.get(key, "") or "").split(",")
    ]
    if missing:
        raise ProgrammingError(
            "the Spark session that was given cannot write Delta tables",
            detail=f"It lacks {' and '.join(missing)}.",
            hint="Set it where that Spark is started, which for Spark Connect is the server; "
            f"if Delta's jars are missing there, with spark.jars.packages={DELTA_PACKAGE}.",
        )


@contextlib.contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Makes a session this thread's active one for the length of a block.

    What the server of Spark Connect answers with a frame of its own, a checkpoint, pyspark 4.2 gives to the active
    session, whichever asked; in another one the frame is unknown.
    """
    if not is_connect(session):
        yield
        return
    of_thread = cast(Any, type(session))._active_session
    before = getattr(of_thread, "session", None)
    of_thread.session = session
    try:
        yield
    finally:
        of_thread.session = before


def close_session(session: SparkSession) -> None:
    """Stops a session that `open_session` returned; the server goes on. Does nothing the second time."""
    with _lock:
        for key, held in list(_sessions.items()):
            if held is session:
                del _sessions[key]
        stop(session)
        _forget_mode()


def close_sessions() -> None:
    """Stops every session that this process opened here."""
    with _lock:
        while _sessions:
            _, session = _sessions.popitem()
            stop(session)
        while _slow:
            stop(_slow.pop())
        _forget_mode()


before_exit(close_sessions)


def warm_up(session: SparkSession, *, seconds: float = 120.0) -> None:
    """Writes and reads a tiny Delta table and discards it, so that the next write takes 0.2 s and not 5 s.

    The table is written by Spark's side of the connection: with a remote Spark it lies in that machine's
    temporary folder, so only call this for a Spark on this machine.
    """
    folder = Path(tempfile.mkdtemp(prefix="mz-warm-up-"))

    def run() -> None:
        from pyspark.sql import functions as sf

        path = str(folder / "table")
        for batch in (1, 2):
            frame = session.range(2).withColumn("mz_batch", sf.lit(batch).cast("bigint"))
            frame.write.format("delta").mode("append").partitionBy("mz_batch").save(path)
        read = session.read.format("delta").load(path).where("mz_batch IN (1, 2)")
        read.groupBy("id").agg(sf.sum("mz_batch")).orderBy("id").collect()

    try:
        call_with_deadline(session, run, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _open_connect(config: SparkConfig, url: str, token: str | None, *, server: ServerInfo | None) -> SparkSession:
    if _classic_is_active():
        raise ProgrammingError(
            "this process already holds a Spark Classic session",
            hint="Close it before opening a session on a Spark Connect server.",
        )
    for other, session in list(_sessions.items()):
        if other.server is not None and not other.server.is_alive:
            del _sessions[other]
            stop(session)
    conf = tuple(sorted(config.conf.items()))
    key = _Key(url, None if server is None else server.process, conf, config.plan_bytes, config.smaller_pieces)
    address = _address(url)
    if (held := _answering(key)) is not None:
        release_orphans(config.state_dir, address, held)
        return held
    os.environ[_CONNECT_VARIABLE] = "1"
    session = connect(url, token, server, own=True, plan_bytes=config.plan_bytes)
    session.registerProgressHandler(cast("ProgressHandler", tell_tasks))
    try:
        note_session(config.state_dir, address, session)
        release_orphans(config.state_dir, address, session)
        call_with_deadline(session, lambda: _settle(session, config), config.first_call_seconds)
        if config.remote is not None:
            _probe(session, config, address)
    except BaseException as error:
        stop(session)
        _forget_mode()
        if isinstance(error, Exception) and is_lost(error):
            raise lost_spark(error, writing=False) from error
        if "UNAUTHENTICATED" in str(error) or "Invalid authentication token" in str(error):
            raise OperationalError(
                "the Spark server refused the token", hint=f"Set {TOKEN_VARIABLE}, or spark.token."
            ) from None
        raise
    _sessions[key] = session
    return session


def _probe(session: SparkSession, config: SparkConfig, address: str) -> None:
    """Finds out whether a Spark that somebody else runs can do what will be asked of it."""
    folder = config.probe_dir
    if folder is not None:
        call_with_deadline(session, lambda: probe(session, folder, address), config.start_seconds)


def _address(remote: str) -> str:
    """Returns the address of a Spark Connect server without its parameters, among which may be a token."""
    return remote.partition("/;")[0]


def _settle(session: SparkSession, config: SparkConfig, *, lent: bool = False) -> None:
    """Makes the settings of a new session and a first query.

    What is shuffled has as many parts as a Spark of somebody else has cores, and not this machine.
    """
    for key, value in config.session_conf().items():
        try:
            session.conf.set(key, value)
        except Exception as error:
            if "CANNOT_MODIFY_STATIC_CONFIG" not in str(error):
                raise
            if config.remote is not None:
                raise ProgrammingError(
                    f'the setting "{key}" cannot be made on a session',
                    hint="Make it where the Spark server is started.",
                ) from None
    if (lent or not config.embedded) and SHUFFLE_PARTITIONS not in config.conf and not config.smaller_pieces:
        # A range has as many partitions as there are cores, unless whoever runs the Spark says otherwise.
        parts = session.range(100_000).selectExpr("spark_partition_id() AS part").selectExpr("max(part) + 1 AS parts")
        session.conf.set(SHUFFLE_PARTITIONS, str(max(2, parts.collect()[0][0])))
    else:
        session.sql("SELECT 1").collect()


def _make_smaller(session: SparkSession) -> None:
    """Makes the settings of smaller pieces on the only session that there can be, for good."""
    for key, value in SMALLER_PIECES.items():
        session.conf.set(key, value)


def _open_classic(config: SparkConfig) -> SparkSession:
    master = cast(str, config.master)
    key = _Key(master, None, ())
    if (held := _answering(key)) is not None:
        if config.smaller_pieces:
            call_with_deadline(held, lambda: _make_smaller(held), config.first_call_seconds)
        return held
    if _sessions:
        raise ProgrammingError(
            "this process already holds another Spark session",
            hint="Close it before opening a Spark Classic session.",
        )
    if _connect_is_active():
        raise ProgrammingError(
            "this process already holds a Spark Connect session", hint="Stop it before opening a Spark Classic session."
        )
    os.environ.pop(_CONNECT_VARIABLE, None)  # inherited from a process that did hold one
    check_java()
    from pyspark.sql import SparkSession as ClassicSession

    state = config.state_dir.absolute()
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    builder = ClassicSession.builder.master(master)
    for name, value in {"spark.ui.enabled": "false", **with_prepared_start(server_conf(config))}.items():
        builder = builder.config(name, value)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark takes the first on the PATH
    session = call_with_deadline(None, builder.getOrCreate, config.start_seconds)
    call_with_deadline(session, lambda: _settle(session, config), config.first_call_seconds)
    if not master.startswith("local"):
        _probe(session, config, master)
    _sessions[key] = session
    return session


def _answering(key: _Key) -> SparkSession | None:
    """Returns the session of a key, if there is one and it answers; else there is none any more.

    One that its server has forgotten is stopped. One that is only too slow is left to those that use it: an answer may
    take its time where much else is computed.
    """
    held = _sessions.get(key)
    if held is None:
        return None
    try:
        if not getattr(held, "is_stopped", False):
            call_with_deadline(None, lambda: held.conf.get("spark.sql.session.timeZone"), PING_SECONDS)
            return held
    except NoAnswer:
        _slow.append(_sessions.pop(key))
        return None
    except Exception:
        pass  # it is gone, for whatever reason
    stop(_sessions.pop(key))
    return None


def _classic_is_active() -> bool:
    core = sys.modules.get("pyspark.core.context")
    return core is not None and core.SparkContext._active_spark_context is not None


def _connect_is_active() -> bool:
    connect = sys.modules.get("pyspark.sql.connect.session")
    return connect is not None and connect.SparkSession._get_default_session() is not None


def _forget_mode() -> None:
    """Lets this process open a Spark of either kind once it holds no session."""
    if not _sessions:
        os.environ.pop(_CONNECT_VARIABLE, None)


def _token_of(config: SparkConfig) -> str | None:
    """Returns the token for a named server, asked for now."""
    if callable(config.token):
        return config.token()
    return config.token if config.token is not None else os.environ.get(TOKEN_VARIABLE)
