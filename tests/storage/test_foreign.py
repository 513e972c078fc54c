"""What other people's libraries raise becomes an error of ours, with its cause in a line."""

from __future__ import annotations

import errno
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from mz_dagster.errors import DatabaseError, InternalError, OperationalError
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.spark.causes import cause_of

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 7, in main
    import pyarrow
ModuleNotFoundError: No module named 'pyarrow'

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:603)
"""
DAEMON = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.SparkException: \n\
Error from python worker:
  /usr/bin/python3.11: No module named 'pyarrow'
PYTHONPATH was:
  /x/pyspark.zip
\tat org.apache.spark.api.python.PythonWorkerFactory
"""
RPC = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.INTERNAL
\tdetails = "Received RST_STREAM
with error code 2"
\tdebug_error_string = "UNKNOWN:Error received"
>"""
JAVA = """Job aborted.
\tat org.apache.spark.x
Caused by: org.apache.spark.SparkException: Task failed
\tat y
Caused by: java.io.IOException: No space left on device
\tat z"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (WORKER, "ModuleNotFoundError: No module named 'pyarrow'"),
        (DAEMON, "No module named 'pyarrow'"),
        (RPC, "INTERNAL: Received RST_STREAM with error code 2"),
        (JAVA, "IOException: No space left on device"),
        ("\n[DIVIDE_BY_ZERO] Division by zero.\nmore", "RuntimeError: [DIVIDE_BY_ZERO] Division by zero."),
        ("", "RuntimeError: no message"),
    ],
)
def test_an_error_is_shown_by_its_cause_not_by_its_first_line(text: str, cause: str) -> None:
    assert cause_of(RuntimeError(text)) == cause


def test_the_cause_of_a_retry_that_gave_up_is_that_of_its_last_try() -> None:
    outer = RuntimeError("retries exceeded")
    outer.__context__ = RuntimeError(RPC)
    assert cause_of(outer) == "INTERNAL: Received RST_STREAM with error code 2"


def test_a_panic_of_rust_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="Delta tables failed"), only_our_errors():
        write_deltalake(str(tmp_path / "[x]"), pa.table({"a": [1]}))


def test_arrows_errors_are_ours() -> None:
    with pytest.raises(OperationalError, match="Arrow failed"), only_our_errors():
        pa.array(["x"]).cast(pa.int64())


def test_sqlalchemys_errors_are_ours() -> None:
    with (
        pytest.raises(OperationalError, match="a database, the catalog's or Dagster's, failed"),
        only_our_errors(),
        create_engine("sqlite://", poolclass=NullPool).connect() as connection,
    ):
        connection.exec_driver_sql("nonsense")


def test_protobufs_errors_say_what_to_do() -> None:
    with pytest.raises(OperationalError, match="too large") as told, only_our_errors():
        raise DecodeError("Error parsing message with type 'spark.connect.Plan'")
    assert "view" in (told.value.hint or "")


def test_an_rpcs_errors_are_ours() -> None:
    class Failed(grpc.RpcError):  # type: ignore[misc]
        __module__ = "grpc._channel"

        def __str__(self) -> str:
            return RPC

    with pytest.raises(OperationalError, match="RST_STREAM"), only_our_errors():
        raise Failed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EMFILE, errno.EIO])
def test_errors_of_the_system_name_the_file_and_what_to_do(number: int) -> None:
    with pytest.raises(OperationalError, match="/x/y") as told, only_our_errors(writing=True):
        raise OSError(number, "it failed", "/x/y")
    assert told.value.hint
    assert told.value.may_have_taken_effect


def test_what_nobody_expects_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError, match="unexpected KeyError"), only_our_errors():
        raise KeyError("x")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_and_exits_pass(interrupt: type[BaseException]) -> None:
    with pytest.raises(interrupt), only_our_errors():
        raise interrupt


def test_errors_of_ours_pass_as_they_are() -> None:
    error = DatabaseError("x")
    with pytest.raises(DatabaseError) as told, only_our_errors():
        raise error
    assert told.value is error
