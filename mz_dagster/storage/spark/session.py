"""Sessions: one for each Spark and process, alive or replaced, and always stopped.

Owns the sessions of this process, and fits those that others lend. Invariants: `open_session` never returns a session
whose server has gone; every session opened here is stopped before the interpreter exits, since several that are not
hang it there (pyspark 4.2 with grpcio 1.85). Spark Classic and Spark Connect look the same from outside, but one
process can hold only one kind at a time: pyspark's functions are either of the one or of the other.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary, WeakSet

from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.storage.spark.config import DELTA_CONF, DELTA_PACKAGE, SparkConfig, server_conf
from mz_dagster.storage.spark.deadline import call_with_deadline, is_lost, lost_spark
from mz_dagster.storage.spark.launch import TOKEN_VARIABLE, check_java
from mz_dagster.storage.spark.process import ProcessIdentity
from mz_dagster.storage.spark.server import ServerInfo, ensure_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mz_dagster.storage.spark.channel import BoundedChannelBuilder

# pyspark's functions look at it to tell whether they make Connect's columns or Classic's.
_CONNECT_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"
_PING_SECONDS = 10.0


class _Key(NamedTuple):
    """Tells the sessions of this process apart: by the Spark they are on, and by their settings."""

    address: str
    server: ProcessIdentity | None
    conf: tuple[tuple[str, str], ...]


_lock = threading.RLock()
_sessions: dict[_Key, SparkSession] = {}
_lent: WeakSet[SparkSession] = WeakSet()
_builders: WeakKeyDictionary[SparkSession, BoundedChannelBuilder] = WeakKeyDictionary()
# A forked child must not use its parent's channels, nor release its parent's sessions when it exits.
os.register_at_fork(after_in_child=_sessions.clear)


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


def lent_session(session: SparkSession, config: SparkConfig) -> SparkSession:
    """Returns a session that somebody else opened, and will close, fit for the engine: its settings are made exact.

    They stay so for its other users, too: time zone UTC, ANSI mode, decimals that keep their scale. What waits for its
    server waits as long as its own client does.

    Raises:
        ProgrammingError: It lacks Delta's extension or catalog, which only the starter of a Spark can add.
        OperationalError: It does not answer within the deadline.
    """
    with _lock:
        if session not in _lent:
            call_with_deadline(session, lambda: _check_delta(session), config.first_call_seconds)
            call_with_deadline(session, lambda: _settle(session, config), config.first_call_seconds)
            _lent.add(session)
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
    if not _is_connect(session):
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
        _stop(session)
        _forget_mode()


def close_sessions() -> None:
    """Stops every session that this process opened here."""
    with _lock:
        while _sessions:
            _, session = _sessions.popitem()
            _stop(session)
        _forget_mode()


atexit.register(close_sessions)


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


def check_answer(server: ServerInfo, *, seconds: float) -> None:
    """Runs `SELECT 1` on `server` in a session of its own.

    Raises:
        OperationalError: There was no right answer within `seconds`.
    """
    session = _connect(server.url, server.token, server, own=False)
    try:
        rows = call_with_deadline(session, lambda: session.sql("SELECT 1 AS one").collect(), seconds)
        if [tuple(row) for row in rows] != [(1,)]:
            raise OperationalError("the Spark server answers nonsense", detail=f"SELECT 1 gave {rows}.")
    finally:
        _stop(session)


def _open_connect(config: SparkConfig, url: str, token: str | None, *, server: ServerInfo | None) -> SparkSession:
    if _classic_is_active():
        raise ProgrammingError(
            "this process already holds a Spark Classic session",
            hint="Close it before opening a session on a Spark Connect server.",
        )
    for other, session in list(_sessions.items()):
        if other.server is not None and not other.server.is_alive:
            del _sessions[other]
            _stop(session)
    key = _Key(url, None if server is None else server.process, tuple(sorted(config.conf.items())))
    held = _sessions.get(key)
    if held is not None:
        if _answers(held):
            return held
        _stop(_sessions.pop(key))
    os.environ[_CONNECT_VARIABLE] = "1"
    session = _connect(url, token, server, own=True)
    try:
        call_with_deadline(session, lambda: _settle(session, config), config.first_call_seconds)
    except BaseException as error:
        _stop(session)
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


def _connect(url: str, token: str | None, server: ServerInfo | None, *, own: bool) -> SparkSession:
    """Returns a new session on the Spark Connect server at `url`; makes no call yet.

    With `own`, it becomes the process's default session if there is none: parsing a schema needs one.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    from mz_dagster.storage.spark.channel import (
        EMBEDDED_STREAM_SECONDS,
        REMOTE_STREAM_SECONDS,
        UNARY_SECONDS,
        BoundedChannelBuilder,
        BoundedPolicy,
    )

    stream = REMOTE_STREAM_SECONDS if server is None else EMBEDDED_STREAM_SECONDS
    channel = BoundedChannelBuilder(url, token=token, stream_seconds=stream, unary_seconds=UNARY_SECONDS)
    session = ConnectSession.builder.channelBuilder(channel).create() if own else ConnectSession(connection=channel)
    _builders[cast("SparkSession", session)] = channel
    session.client.set_retry_policies([BoundedPolicy(lambda: server is not None and not server.is_alive)])
    return cast("SparkSession", session)


def _settle(session: SparkSession, config: SparkConfig) -> None:
    """Makes the settings of a new session and a first query."""
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
    session.sql("SELECT 1").collect()


def _open_classic(config: SparkConfig) -> SparkSession:
    master = cast(str, config.master)
    key = _Key(master, None, ())
    held = _sessions.get(key)
    if held is not None:
        if _answers(held):
            return held
        _stop(_sessions.pop(key))
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
    for name, value in {"spark.ui.enabled": "false", **server_conf(config)}.items():
        builder = builder.config(name, value)
    session = call_with_deadline(None, builder.getOrCreate, config.start_seconds)
    call_with_deadline(session, lambda: _settle(session, config), config.first_call_seconds)
    _sessions[key] = session
    return session


def _answers(session: SparkSession) -> bool:
    """Returns whether the Spark behind `session` still knows it; one small call."""
    if bool(getattr(session, "is_stopped", False)):
        return False
    try:
        zone = call_with_deadline(None, lambda: session.conf.get("spark.sql.session.timeZone"), _PING_SECONDS)
    except Exception:
        return False
    return zone is not None


def _stop(session: SparkSession) -> None:
    """Stops `session`, within seconds even if its server is silent."""
    if not _is_connect(session):
        session.stop()
        return
    client: Any = session.client
    # A dead or silent server forgets the session by itself. Not session.stop in the thread of the deadline: what it
    # resets belongs to the calling thread.
    with contextlib.suppress(Exception):
        call_with_deadline(None, client.release_session, _PING_SECONDS)
    cast(Any, session).release_session_on_close = False
    if (builder := _builders.get(session)) is not None:
        builder.refuse_calls()
    session.stop()


def _is_connect(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


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
