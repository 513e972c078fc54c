"""Sessions: threads, exits, and a run of tests that dies."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pyspark.sql.connect.proto import ExecutePlanRequest

from mz_dagster.errors import OperationalError
from mz_dagster.finalizers import DeferredCalls
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    numeric,
)
from mz_dagster.storage.spark import SparkConfig, call_with_deadline, channel, checkpointed, close_session, open_session
from mz_dagster.storage.spark.config import SMALLER_PIECES
from mz_dagster.storage.spark.deadline import is_lost, reporting_lost_spark
from mz_dagster.storage.spark_shards import update_schema
from tests.conftest import STATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[2]


def test_all_threads_get_one_session(spark: SparkSession, spark_config: SparkConfig) -> None:
    start = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(lambda _: open_session(spark_config), range(16)))
    print(f"16 times open_session: {time.monotonic() - start:.3f} s")
    assert all(session is spark for session in sessions)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: spark.range(n).count(), range(4))) == [0, 1, 2, 3]


def test_smaller_pieces_are_a_session_of_their_own(spark: SparkSession, spark_config: SparkConfig) -> None:
    """Whatever a user has set."""
    chosen = replace(
        spark_config, conf={"spark.sql.shuffle.partitions": "3", "spark.sql.files.maxPartitionBytes": "1g"}
    )
    smaller = open_session(replace(chosen, smaller_pieces=True))
    try:
        assert {key: smaller.conf.get(key) for key in SMALLER_PIECES} == SMALLER_PIECES
        assert spark.conf.get("spark.sql.optimizer.disableHints") == "false"
        assert open_session(spark_config) is spark
    finally:
        close_session(smaller)


def test_a_session_that_is_slow_for_one_thread_is_not_taken_from_another(
    spark: SparkSession, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(spark_config, conf={**spark_config.conf, "spark.sql.shuffle.partitions": "3"})
    used = open_session(config)
    monkeypatch.setattr("mz_dagster.storage.spark.session.PING_SECONDS", 0.0)
    other = open_session(config)
    monkeypatch.undo()
    assert other is not used
    assert used.range(7).count() == 7
    assert open_session(config) is other
    close_session(other)


def test_what_is_kept_on_the_server_is_released_once_nothing_holds_it(spark: SparkSession) -> None:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation

    frame: Any = checkpointed(spark.range(5))
    session: Any = spark
    relation = frame._plan._relation_id
    again = DataFrame(CachedRemoteRelation(relation, session), session)
    assert again.count() == 5
    made_of_it: Any = frame.where("id > 3")
    del frame
    gc.collect()
    assert made_of_it.count() == 1
    del made_of_it
    gc.collect()

    def is_there(deadline: float) -> None:
        while time.monotonic() < deadline:
            assert again.count() == 5
            time.sleep(0.1)

    with pytest.raises(Exception, match=relation):
        is_there(time.monotonic() + 90)


# A frame is let go as the deepest of objects that hold one another, of which CPython takes 50 down at once.
_LET_GO = """
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from pyspark.sql.connect.proto import ExecutePlanRequest
from mz_dagster.storage.spark.connecting import releases_of
from mz_dagster.storage.spark.checkpoint import checkpointed_frame

released = set()
all_are = threading.Event()

def unary_unary(method, request_serializer, response_deserializer):
    def call(request, metadata):
        released.add(request.plan.command.remove_cached_remote_relation_command.relation.relation_id)
        if len(released) == 40 * 20:
            all_are.set()
    return call

class Session:
    client = SimpleNamespace(
        is_closed=False,
        _user_id="u",
        _builder=SimpleNamespace(metadata=list),
        _channel=SimpleNamespace(unary_unary=unary_unary),
        _execute_plan_request_with_metadata=ExecutePlanRequest,
        _retrying=lambda: [nullcontext()],
    )

class Holds:
    def __init__(self, held):
        self.held = held

session = Session()
for depth in range(25, 65):
    for number in range(20):
        held = checkpointed_frame(session, f"{depth} {number}")
        for _ in range(depth):
            held = Holds(held)
        del held
assert all_are.wait(60), len(released)
releases_of(session).end()
print("released", len(released))
"""


@pytest.mark.deep
def test_what_is_kept_goes_wherever_it_is_let_go() -> None:
    """pyspark's finalizer frees a message twice where it runs among others, which ends the process."""
    ended = subprocess.run([sys.executable, "-c", _LET_GO], capture_output=True, text=True, timeout=300, cwd=REPOSITORY)
    assert (ended.returncode, ended.stdout) == (0, "released 800\n"), ended.stderr[-2000:]


def test_a_finalizer_s_call_is_made_by_another_thread_and_one_that_hangs_holds_up_no_other() -> None:
    """It may have interrupted a thread that holds gRPC's lock, or that another waits for who does."""
    later = DeferredCalls(2)
    made: SimpleQueue[str] = SimpleQueue()
    hung = threading.Event()

    def fails() -> None:
        raise ConnectionError("for now")

    for call in (hung.wait, fails, lambda: made.put(threading.current_thread().name)):
        later.call(call)
    assert made.get(timeout=30) == "mz-later"
    later.call(lambda: made.put("another"))
    assert made.get(timeout=30) == "another"
    hung.set()
    later.end()
    later.call(lambda: made.put("after the end"))
    assert not any(thread.is_alive() for thread in later.threads)
    assert made.empty()


def test_no_call_begins_on_a_channel_that_is_closed() -> None:
    calls, request = channel._Calls(1.0, 1.0), ExecutePlanRequest()
    made: list[float] = []
    details = channel._Details(channel._EXECUTE, None, None, None, None, None)
    calls.intercept_unary_unary(lambda details, _: made.append(details.timeout), details, request)
    calls.close()
    with pytest.raises(ConnectionError):
        calls.intercept_unary_unary(lambda details, _: made.append(details.timeout), details, request)
    assert made == [1.0]


# A call that was given up may go on in its thread until after the session was closed.
_LATE = """
from mz_dagster.storage.spark import connecting
connecting.PING_SECONDS = 0.1
session = connecting.connect("sc://127.0.0.1:1", None, None, own=False)
client = session.client
stub = client._stub
connecting.stop(session)
try:
    stub.Interrupt(client._interrupt_request("all"))
except ConnectionError as error:
    print(error)
"""


@pytest.mark.deep
def test_a_call_after_the_session_was_closed_is_an_error_and_no_crash() -> None:
    done = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "the Spark session is closed"), done.stderr[-2000:]


def test_stored_types_come_back_as_they_are(spark: SparkSession) -> None:
    scalars = (BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, MZ_TIMESTAMP, numeric(5))
    schema = update_schema([Column(f"c{position}", scalar) for position, scalar in enumerate(scalars)])
    assert spark.createDataFrame([], schema).schema == schema
    assert schema.simpleString() == (
        "struct<c0:boolean,c1:smallint,c2:int,c3:bigint,c4:float,c5:double,c6:string,c7:date,c8:timestamp_ntz,"
        "c9:timestamp,c10:bigint,c11:decimal(38,5),mz_timestamp:bigint,mz_diff:bigint,mz_error:string>"
    )


def test_hints_of_a_spark_that_is_named_are_not_of_commands_for_an_embedded_one() -> None:
    with pytest.raises(OperationalError) as lost, reporting_lost_spark():
        raise ConnectionResetError("Channel closed")
    with pytest.raises(OperationalError) as silent:
        call_with_deadline(None, threading.Event().wait, 0.01)
    for raised in (lost, silent):
        assert "spark.remote" in str(raised.value.hint)
        assert "mz-dagster" not in str(raised.value.hint)


class Unavailable(grpc.RpcError):  # type: ignore[misc]  # gRPC has no types
    """What a call meets whose server is gone."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


def test_who_ends_does_not_wait_for_a_server_that_was_given_up() -> None:
    def attempts(policy: channel.BoundedPolicy) -> int:
        call, count = policy.to_state(), 1
        while call.can_retry(Unavailable()):
            call.next_attempt()
            count += 1
        return count

    policy = channel.BoundedPolicy(lambda: False)
    assert [attempts(policy), attempts(policy)] == [7, 1], "the second call is not retried"
    ended = channel.BoundedPolicy(lambda: False)
    ended.end()
    assert attempts(ended) == 1


def test_error_of_a_query_is_not_taken_for_a_lost_server(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as raised, reporting_lost_spark():
        spark.sql("SELECT 1 / 0").collect()
    assert not isinstance(raised.value, OperationalError)
    assert not is_lost(raised.value)
    assert "at org.apache.spark" not in str(raised.value)


def test_exception_of_a_call_with_deadline_is_the_callers(spark: SparkSession) -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call_with_deadline(spark, fail, 5)
    assert call_with_deadline(spark, lambda: spark.range(3).count(), 60) == 3


@pytest.mark.deep
def test_process_that_forgets_its_sessions_exits_at_once(spark: SparkSession, spark_config: SparkConfig) -> None:
    check_exit(spark_config.state_dir, "")


@pytest.mark.deep
def test_process_whose_server_was_killed_exits_at_once(tmp_path: Path) -> None:
    watcher = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from mz_dagster.storage.spark import stop_server;"
            "sys.stdin.read(); stop_server(Path(sys.argv[1]))",
            str(tmp_path / "spark"),
        ],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
    )
    try:
        check_exit(tmp_path / "spark", "os.kill(ensure_server(config).pid, signal.SIGKILL)")
    finally:
        watcher.communicate(timeout=60)


def check_exit(state_dir: Path, ending: str) -> None:
    """Runs a process with two sessions, of which `ending` is the last statement, and checks that it ends soon."""
    code = f"""
import os, signal, sys, time
from pathlib import Path
from mz_dagster.storage.spark import SparkConfig, ensure_server, open_session
config = SparkConfig(state_dir=Path(sys.argv[1]), driver_memory="1g")
other = SparkConfig(state_dir=Path(sys.argv[1]), driver_memory="1g", conf={{"spark.sql.shuffle.partitions": "3"}})
first, second = open_session(config), open_session(other)
assert first is not second
assert second.conf.get("spark.sql.shuffle.partitions") == "3" != first.conf.get("spark.sql.shuffle.partitions")
assert first.range(2).count() == second.range(2).count() == 2
{ending}
print(time.monotonic())
"""
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(state_dir)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    took = time.monotonic() - float(answer.stdout or "nan")
    print(f"exit took {took:.1f} s")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert took < 60


@pytest.mark.deep
@pytest.mark.timeout(400)
def test_server_of_a_killed_test_run_is_stopped(tmp_path: Path) -> None:
    test = tmp_path / "test_dies.py"
    test.write_text(
        "import os, pathlib, signal\n"
        "from mz_dagster.storage.spark import ensure_server\n"
        "def test_dies(spark_config):\n"
        "    pathlib.Path('pid').write_text(str(ensure_server(spark_config).pid))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "tmp").mkdir()
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path / "tmp")}
    environment.pop(STATE, None)  # else it takes the server of this run for one that is to outlive it
    conftest = (REPOSITORY / "tests" / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(
        conftest.replace("Path(__file__).resolve().parents[1]", f"Path({str(REPOSITORY)!r})")
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == -9, run.stdout
    server = Path("/proc") / (tmp_path / "pid").read_text()
    deadline = time.monotonic() + 30
    while (server.exists() or list((tmp_path / "tmp").glob("mz-spark-*"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not server.exists()
    assert not list((tmp_path / "tmp").glob("mz-spark-*")), "its files are left"
