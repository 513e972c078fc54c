"""Deadlines for calls into Spark, and the words for a Spark that is gone.

Owns the translation of what pyspark raises when a server has died, been restarted or stopped answering into
one `OperationalError`. It does not retry: the caller knows whether that is safe.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from mz_dagster.errors import Error, OperationalError
from mz_dagster.storage.spark.causes import cause_of, chain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mz_dagster.storage.spark.ending import WatchedServer

T = TypeVar("T")

_HINT = (
    'See "mz-dagster spark status"; "mz-dagster spark stop" and "mz-dagster spark start" give a new server. '
    "Then open a new session."
)
_HINT_OF_NAMED = (
    'See that the Spark that "spark.remote" or "spark.master" in mz.toml names runs and can be reached from here; '
    "it is started by whoever keeps it. Then open a new session."
)
_embedded: WeakSet[Any] = WeakSet()  # sessions on servers that `mz-dagster spark` starts and stops
# An operation that the server has not begun yet cannot be interrupted, so it is tried again, for five minutes.
_INTERRUPTIONS = 600
_INTERRUPT_AGAIN_SECONDS = 0.5
# What pyspark says for a server that died, was replaced, or has forgotten the session.
_LOST_STATUS = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})
_LOST_TEXT = (
    "server side session identifier",
    "INVALID_HANDLE.SESSION",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "RESPONSE_ALREADY_RECEIVED",
    "NO_ACTIVE_SESSION",
    "closed channel",
    "Channel closed",
    "RETRIES_EXCEEDED",
    "Cannot call methods on a stopped SparkContext",
)
_MISSING_FILE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "FileNotFoundException")
_NO_MEMORY = (
    "OutOfMemoryError",
    "UNABLE_TO_ACQUIRE_MEMORY",
    "Cannot broadcast the table",
    "spark.driver.maxResultSize",
)
_LOST_TYPES = frozenset({"Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"})


class HeapFull(OperationalError):
    """Spark needed more memory than it has, for what it was to compute."""

    sqlstate = "53200"

    def of(self, computed: str) -> HeapFull:
        """Returns the error that says what was to be computed, too."""
        return HeapFull(
            f"Spark has too little memory for {computed}",
            detail=self.detail,
            hint=self.hint,
            may_have_taken_effect=self.may_have_taken_effect,
        )


class NoAnswer(OperationalError):
    """A Spark that has not answered within a deadline; it may yet."""

    sqlstate = "57014"


@contextmanager
def reporting_lost_spark(*, writing: bool = False) -> Iterator[None]:
    """Turns the many ways in which pyspark says "the server is gone" into one `OperationalError`.

    So it does with a data file that vanished before Spark came to it: then nothing was written; and with a lack of
    memory.

    Any other exception passes unchanged.

    Args:
        writing: True if what runs inside may change durable state, so that its failure may have come after
            its effect.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if is_lost(error):
            raise lost_spark(error, writing=writing) from error
        if (gone := vanished_file(error)) is not None:
            raise gone from error
        if (full := heap_full(error, writing=writing)) is not None:
            raise full from error
        raise


def note_embedded(session: SparkSession) -> None:
    """Notes that a session is on an embedded server, which the commands in hints are for."""
    _embedded.add(session)


def vanished_file(error: BaseException) -> OperationalError | None:
    """Returns what reports that a data file was gone when Spark came to it; None if `error` does not say so."""
    if not any(text in str(error) for text in _MISSING_FILE):
        return None
    return OperationalError(
        "a file was removed while it was read",
        detail=cause_of(error),
        hint="Read again with a fresh lease; if that fails too, the shard is damaged.",
        may_have_taken_effect=False,
    )


def is_lost(error: BaseException) -> bool:
    """Returns whether `error` says that the Spark behind a session is gone, as opposed to that it refused."""
    if type(error).__name__ in _LOST_TYPES or any(text in str(error) for text in _LOST_TEXT):
        return True
    return _status(error) in _LOST_STATUS


def lost_spark(error: BaseException, *, writing: bool) -> OperationalError:
    """Returns the error that reports `error` to a user: with why the server ended, where that is known."""
    servers = (getattr(one, "mz_server", None) for one in chain(error))
    server: WatchedServer | None = next((one for one in servers if one is not None), None)
    ended = None if server is None else server.why_ended()
    own = _HINT_OF_NAMED if server is None else _HINT
    detail, hint = (cause_of(error), own) if ended is None else (ended.cause, f"{ended.hint} {own}")
    kind = HeapFull if ended is not None and ended.of_heap else OperationalError
    return kind("the connection to Spark was lost", detail=detail, hint=hint, may_have_taken_effect=writing)


def heap_full(error: BaseException, *, writing: bool) -> HeapFull | None:
    """Returns what reports that tasks or the driver of a Spark that goes on had no memory; None if that is not so."""
    if not any(sign in str(one) for one in chain(error) for sign in _NO_MEMORY):
        return None
    return HeapFull(
        "Spark has too little memory",
        detail=f"{cause_of(error)}.",
        hint='Give it more: raise "spark.driver.memory", of a cluster also "spark.executor.memory", in mz.toml, table '
        "[spark.conf].",
        may_have_taken_effect=writing,
    )


def call_with_deadline(
    session: SparkSession | None, call: Callable[[], T], seconds: float, *, writing: bool = False
) -> T:
    """Returns `call()`, made in a thread of its own and given up after `seconds`.

    What the call started on the server is interrupted when it is given up, and so is what it starts later: a call that
    is slow to begin must not hold the server's cores for nobody. (Spark 4.2 may leave a stage running that it was just
    submitting.) Its thread is abandoned, and ends when the client's own deadlines do.

    Args:
        session: The session `call` uses, whose jobs are interrupted at the deadline; None if there is nothing
            to interrupt.
        call: The call; it must not depend on the calling thread.
        seconds: How long to wait.
        writing: As in `reporting_lost_spark`.

    Raises:
        NoAnswer: The deadline passed.
        OperationalError: Spark is gone.
    """
    tag = f"mz-{uuid.uuid4().hex}"
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            if session is not None:
                session.addTag(tag)
            outcome.append(call())
        except BaseException as error:  # it is raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=run, name="mz-spark-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        if session is not None:
            interrupt(session, tag, partial(_is_over, thread))
            thread.join(2.0)
        raise NoAnswer(
            "Spark did not answer in time",
            detail=f"The deadline was {seconds:g} s.",
            hint=_HINT if session in _embedded else _HINT_OF_NAMED,
            may_have_taken_effect=writing,
        )
    if failure:
        with reporting_lost_spark(writing=writing):
            raise failure[0]
    value: T = outcome[0]
    return value


def interrupt(session: SparkSession, tag: str, is_over: Callable[[float], bool]) -> None:
    """Ends what a session's server does under a tag, in a thread that goes on until it is over or the server is gone.

    Args:
        session: The session.
        tag: The tag.
        is_over: Returns whether the callers are done with it, after waiting so many seconds for it.
    """

    def again_and_again() -> None:
        for _ in range(_INTERRUPTIONS):
            if is_over(0):
                return
            try:
                session.interruptTag(tag)
            except Exception:  # it is only a courtesy to a server that may be gone
                return
            if is_over(_INTERRUPT_AGAIN_SECONDS):
                return

    threading.Thread(target=again_and_again, name="mz-interrupt", daemon=True).start()


def _is_over(call: threading.Thread, seconds: float) -> bool:
    call.join(seconds)
    return not call.is_alive()


def _status(error: BaseException) -> str | None:
    """Returns the name of the gRPC status that `error` carries, if any."""
    for name in ("getGrpcStatusCode", "code"):
        method = getattr(error, name, None)
        if callable(method):
            try:
                return str(getattr(method(), "name", None))
            except Exception:
                return None
    return None
