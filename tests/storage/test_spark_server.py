"""The life of the embedded server: real processes, real signals.

One server of its own is started here, and killed and replaced, so that the shared one of the `spark` fixture is
left in peace. The tests run in order on it: each finds the server the one before left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as sf

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.process import ProcessIdentity
from mz_dagster.storage.spark import (
    ServerInfo,
    SparkConfig,
    call_with_deadline,
    close_session,
    ensure_server,
    open_session,
    reporting_lost_spark,
    server_status,
    stop_server,
)
from mz_dagster.storage.spark.launch import check_java, has_ui, write_server_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[2]

#: None of these tests is of the fast ones.
STARTS_SPARK = True

# What another process prints about the server of the folder it is given.
OTHER_PROCESS = """
import sys
from pathlib import Path
from mz_dagster.storage.spark import SparkConfig, ensure_server, open_session
config = SparkConfig(state_dir=Path(sys.argv[1]), driver_memory="1g")
print(ensure_server(config).pid)
if len(sys.argv) > 2:
    print(open_session(config).sql("SELECT 6 * 7 AS x").collect()[0].x)
"""


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=REPOSITORY,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConfig]:
    state_dir = tmp_path_factory.mktemp("server") / "spark"
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.hadoop.fs.s3a.secret.key": "hush-hush",
    }
    yield SparkConfig(state_dir=state_dir, driver_memory="1g", conf=conf)
    stop_server(state_dir)


@pytest.fixture
def server(config: SparkConfig) -> ServerInfo:
    return ensure_server(config)


@pytest.mark.deep
def test_racing_processes_start_one_server(config: SparkConfig) -> None:
    assert server_status(config.state_dir) is None
    start = time.monotonic()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", OTHER_PROCESS, str(config.state_dir)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    pids = {racer.communicate(timeout=240)[0].strip() for racer in racers}
    print(f"cold start, three racers: {time.monotonic() - start:.1f} s")
    status = server_status(config.state_dir)
    assert status is not None, "the server outlives its starter"
    assert pids == {str(status.pid)}


@pytest.mark.deep
def test_second_process_reuses_the_server(config: SparkConfig, server: ServerInfo) -> None:
    start = time.monotonic()
    answer = run_python(OTHER_PROCESS, str(config.state_dir), "query")
    print(f"another process's first query: {time.monotonic() - start:.1f} s")
    assert answer.stdout.split() == [str(server.pid), "42"], answer.stderr


def test_server_listens_on_loopback_only(server: ServerInfo) -> None:
    listening, inodes = set(), set()
    for descriptor in os.listdir(f"/proc/{server.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            inodes.add(os.readlink(f"/proc/{server.pid}/fd/{descriptor}").removeprefix("socket:[").removesuffix("]"))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.add(fields[1].rpartition(":")[0])
    assert listening
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert listening <= loopback
    assert server.ui_url == "", "whoever is on this machine could read there what is queried"


def test_secrets_are_in_private_files_and_nowhere_else(config: SparkConfig, server: ServerInfo) -> None:
    state_dir = config.state_dir
    assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((state_dir / "server.json").stat().st_mode) == 0o600
    assert json.loads((state_dir / "server.json").read_text())["token"] == server.token
    command = Path(f"/proc/{server.pid}/cmdline").read_text()
    assert "SparkConnectServer" in command
    holders = {path.name for path in state_dir.iterdir() if path.is_file() and server.token in path.read_text()}
    assert holders == {"server.json"}
    for secret in (server.token, "hush-hush"):
        assert secret not in command
        assert secret not in repr(server)
        assert secret not in repr(config)


def test_wrong_token_is_refused(config: SparkConfig, server: ServerInfo) -> None:
    start = time.monotonic()
    answer = run_python(
        """
import sys
from pathlib import Path
from mz_dagster.errors import OperationalError
from mz_dagster.storage.spark import SparkConfig, open_session
for token in ("wrong", None):
    try:
        open_session(SparkConfig(state_dir=Path("/nonexistent"), remote=sys.argv[1], token=token))
    except OperationalError as error:
        print(error.message)
print(open_session(SparkConfig(state_dir=Path("/nonexistent"), remote=sys.argv[1],
                               token=lambda: sys.argv[2])).sql("SELECT 1 AS x").collect()[0].x)
""",
        server.url,
        server.token,
    )
    print(f"two refusals and an answer: {time.monotonic() - start:.1f} s")
    assert answer.stdout.splitlines() == ["the Spark server refused the token"] * 2 + ["1"], answer.stderr


def test_session_is_utc_ansi_and_delta(config: SparkConfig, server: ServerInfo) -> None:
    session = open_session(config)
    assert open_session(config) is session
    row = session.sql("SELECT current_timezone() AS zone, typeof(timestamp'2020-01-01 00:00:00') AS type").collect()[0]
    assert (row.zone, row.type) == ("UTC", "timestamp")
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    assert session.conf.get("spark.databricks.delta.snapshotPartitions") == "1"
    assert session.conf.get("spark.sql.catalogImplementation") == "in-memory"


#: Of one stage: what Spark runs before the last one it submits by the way, and an interruption that comes just then
#: leaves it running, without the operation that it belonged to.
ENDLESS = "SELECT id FROM range(100000000000) WHERE hash(id, 1) = 7 AND id < 0"


def test_call_beyond_its_deadline_is_given_up_and_interrupted(config: SparkConfig, server: ServerInfo) -> None:
    session = open_session(config)
    start = time.monotonic()
    with pytest.raises(OperationalError, match="did not answer in time") as raised:
        call_with_deadline(
            session,
            lambda: session.sql(ENDLESS).collect(),
            1.0,
            writing=True,
        )
    assert time.monotonic() - start < 60
    assert raised.value.may_have_taken_effect
    assert _answers(session)


def test_call_that_starts_its_work_after_its_deadline_is_interrupted_then(
    config: SparkConfig, server: ServerInfo
) -> None:
    session = open_session(config)
    ended = threading.Event()

    def slow_to_begin() -> None:
        time.sleep(1)
        try:
            session.sql(ENDLESS).collect()
        finally:
            ended.set()

    with pytest.raises(OperationalError, match="did not answer in time"):
        call_with_deadline(session, slow_to_begin, 0.2)
    assert ended.wait(60), "nobody waits for it, and it holds the server's cores"
    assert _answers(session)


@pytest.mark.deep
@pytest.mark.timeout(400)
def test_the_parent_of_python_workers_ends_when_it_has_none_and_comes_back(
    config: SparkConfig, server: ServerInfo
) -> None:
    session = open_session(config)

    def parent(_: int) -> int:
        return os.getppid()

    asked = session.range(1).select(sf.udf(parent, "int", useArrow=True)("id"))

    def answer() -> int:
        return int(call_with_deadline(session, lambda: asked.collect()[0][0], 120.0))

    first = answer()
    assert answer() == first
    end = time.monotonic() + 240
    while Path(f"/proc/{first}").exists():
        assert time.monotonic() < end, "it is still there, four minutes after its last work"
        time.sleep(1)
    assert answer() != first


def _answers(session: SparkSession) -> bool:
    return call_with_deadline(session, lambda: bool(session.sql("SELECT 1 AS x").collect()[0].x == 1), 60.0)


@pytest.mark.deep
def test_killed_server_is_reported_in_seconds_and_replaced(config: SparkConfig, server: ServerInfo) -> None:
    session = open_session(config)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            with reporting_lost_spark(writing=True):
                session.sql("SELECT count(*) FROM range(100000000000) WHERE hash(id, 1) = 7").collect()
        except BaseException as error:
            failure.append(error)

    running = threading.Thread(target=run)
    running.start()
    time.sleep(1)
    os.kill(server.pid, signal.SIGKILL)
    killed = time.monotonic()
    running.join(30)
    print(f"a running query noticed after {time.monotonic() - killed:.1f} s")
    assert not running.is_alive(), "a query on a dead server must not hang"
    assert isinstance(failure[0], OperationalError)
    assert failure[0].may_have_taken_effect
    assert "mz-dagster spark start" in (failure[0].hint or "")
    assert "SIGKILL" in (failure[0].detail or ""), failure[0]

    begin = time.monotonic()
    with pytest.raises(OperationalError, match="connection to Spark was lost"), reporting_lost_spark():
        session.sql("SELECT 1").collect()
    assert time.monotonic() - begin < 60

    begin = time.monotonic()
    replaced = open_session(config)
    print(f"open_session after a kill: {time.monotonic() - begin:.1f} s")
    status = server_status(config.state_dir)
    assert status is not None
    assert status.pid != server.pid
    assert replaced is not session
    assert getattr(session, "is_stopped", None) is True, "what is dead is not kept"
    assert replaced.sql("SELECT 1 AS x").collect()[0].x == 1
    with pytest.raises(OperationalError), reporting_lost_spark():
        session.sql("SELECT 1").collect()
    close_session(replaced)


@pytest.mark.deep
def test_a_server_whose_heap_was_full_says_so_and_what_to_set(config: SparkConfig, server: ServerInfo) -> None:
    session = open_session(config)
    with pytest.raises(OperationalError, match="connection to Spark was lost") as lost, reporting_lost_spark():
        session.sql("SELECT size(collect_list(id)) FROM range(400000000)").collect()
    assert "heap of 1g was full" in (lost.value.detail or ""), lost.value
    assert "OutOfMemoryError" in (lost.value.detail or "")
    assert "spark.driver.memory" in (lost.value.hint or "")
    assert not server.is_alive
    assert ensure_server(config).pid != server.pid
    assert "OutOfMemoryError" in (config.state_dir / "server.out.1").read_text(), "its words outlive the next start"
    assert stat.S_IMODE((config.state_dir / "server.out.1").stat().st_mode) == 0o600


@pytest.mark.deep
def test_silent_server_hangs_neither_a_query_nor_opening_a_session(
    config: SparkConfig, server: ServerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_session(config).range(7).count() == 7, "a server's first query may take longer than the deadline below"
    monkeypatch.setattr("mz_dagster.storage.spark.channel.EMBEDDED_STREAM_SECONDS", 8.0)
    session = open_session(replace(config, conf={"spark.sql.shuffle.partitions": "1"}))
    assert session.range(7).count() == 7
    os.kill(server.pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        with pytest.raises(OperationalError, match="connection to Spark was lost"), reporting_lost_spark():
            session.range(7).count()
        assert time.monotonic() - begin < 60
        impatient = SparkConfig(state_dir=config.state_dir, first_call_seconds=2.0)
        begin = time.monotonic()
        with pytest.raises(OperationalError, match="did not answer in time"):
            open_session(impatient)
        assert time.monotonic() - begin < 60
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_stop_ends_the_server_and_clears_its_files(config: SparkConfig, server: ServerInfo) -> None:
    assert stop_server(config.state_dir) is True
    assert server_status(config.state_dir) is None
    assert not server.is_alive
    assert stop_server(config.state_dir) is False
    assert {path.name for path in config.state_dir.iterdir()} <= {
        "server.lock",
        "server.used",
        "server.log",
        "server.out",
        "server.out.1",
        "server.out.2",
        "server.ended",
        "log4j2.properties",
        "sessions",  # whoever had one forgets it, on this server or another
    }


def test_recycled_pid_is_neither_believed_nor_killed(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        state = {"url": "sc://localhost:1", "token": "t", "pid": bystander.pid, "ui_url": "u", "started": "1"}
        (tmp_path / "server.json").write_text(json.dumps(state))
        assert server_status(tmp_path) is None
        assert stop_server(tmp_path) is False
        assert not (tmp_path / "server.json").exists()
        assert bystander.poll() is None
        identity = ProcessIdentity.of(bystander.pid)
        assert identity is not None
        assert identity.is_alive
    finally:
        bystander.kill()
        dead = bystander.pid
        time.sleep(0.1)
        assert ProcessIdentity.of(dead) is None, "a zombie is not alive"
        bystander.wait()


def test_unreadable_state_is_stale(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("{")
    assert server_status(tmp_path) is None
    assert stop_server(tmp_path) is False


def test_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    config = SparkConfig(state_dir=tmp_path / "spark", driver_memory="nonsense")
    with pytest.raises(OperationalError, match="ended while it started") as raised:
        ensure_server(config)
    assert "nonsense" in (raised.value.detail or "")
    assert server_status(config.state_dir) is None


@pytest.mark.parametrize(("version", "message"), [("11.0.2", "Java 11 is too old"), ("1.8.0_202", "Java 8 is too old")])
def test_old_java_is_refused_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, message: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OperationalError, match=message) as raised:
        check_java()
    assert "JAVA_HOME" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("version", "is_used"),
    [("25", False), ("25.0.1", False), ("25.0.2", False), ("25.0.3", True), ("26", True), ("21.0.2", True)],
)
def test_java_that_corrupts_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_used: bool
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-09-16' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if is_used:
        assert check_java() == int(version.partition(".")[0])
        return
    with pytest.raises(OperationalError, match="corrupts data") as refused:
        check_java()
    assert "25.0.3" in (refused.value.hint or "")


def test_a_server_has_no_user_interface_unless_it_is_asked_for(tmp_path: Path) -> None:
    for settings, has_one in (({}, False), ({"spark.ui.enabled": "true"}, True)):
        write_server_files(tmp_path, settings, port=1, ui_port=2)
        written = (tmp_path / "server.properties").read_text().splitlines()
        assert f"spark.ui.enabled={str(has_one).lower()}" in written
        assert "spark.driver.bindAddress=127.0.0.1" in written
        assert has_ui(settings) is has_one


def test_missing_java_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(OperationalError, match="no Java was found"):
        check_java()


def test_configuration_of_two_sparks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError):
        SparkConfig(state_dir=tmp_path, remote="sc://localhost", master="local[1]")
    with pytest.raises(ProgrammingError):
        ensure_server(SparkConfig(state_dir=tmp_path, master="local[1]"))


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("localhost:15002", "must begin with sc://"),
        ("sc://localhost:fifteen/;token=hidden", "host or port"),
        ("sc://localhost:99999/;token=hidden", "host or port"),
        ("sc://localhost:0", "host or port"),
        ("sc://:15002", "host or port"),
        ("sc://[::1", "host or port"),
    ],
)
def test_a_wrong_address_is_one_line_that_says_what_is_wrong(tmp_path: Path, address: str, wrong: str) -> None:
    with pytest.raises(ProgrammingError, match=wrong) as caught:
        SparkConfig(state_dir=tmp_path, remote=address)
    assert caught.value.hint
    assert "hidden" not in str(caught.value)


@pytest.mark.deep
def test_classic_master_runs_the_same_code(tmp_path: Path) -> None:
    start = time.monotonic()
    answer = run_python(
        """
import os, sys
from pathlib import Path
from mz_dagster.errors import ProgrammingError
from mz_dagster.storage.spark import SparkConfig, close_session, open_session, warm_up
config = SparkConfig(state_dir=Path(sys.argv[1]), master="local[1]", driver_memory="1g")
session = open_session(config)
assert open_session(config) is session
warm_up(session)
print(type(session).__module__, session.conf.get("spark.sql.ansi.enabled"),
      session.sql("SELECT current_timezone() AS z").collect()[0].z,
      os.environ["PYSPARK_PYTHON"] == sys.executable)
try:
    open_session(SparkConfig(state_dir=Path(sys.argv[1]), remote="sc://localhost:1"))
except ProgrammingError as error:
    print(error.message)
close_session(session)
""",
        str(tmp_path),
    )
    print(f"classic session with a write and a read: {time.monotonic() - start:.1f} s")
    assert answer.stdout.splitlines() == [
        "pyspark.sql.session true UTC True",
        "this process already holds a Spark Classic session",
    ], answer.stderr


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_server_that_nobody_uses_ends_and_the_next_query_starts_another(tmp_path: Path) -> None:
    """A long query is use; so is a session that asks now and then. What a process holds is opened anew."""
    config = SparkConfig(state_dir=tmp_path / "spark", driver_memory="1g", idle_seconds=40.0)
    (tmp_path / "project").mkdir()
    engine = Engine(Project.load(tmp_path / "project"), spark=config)
    with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("SET engine = spark")
        connection.execute("CREATE TABLE t (x integer)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        count = "SELECT count(*) FROM t"
        assert connection.execute(count).fetchall() == [(2,)]
        first = server_status(config.state_dir)
        assert first is not None
        session = open_session(config)
        slow = session.range(1).select(sf.expr("java_method('java.lang.Thread', 'sleep', 60000L + id)"))
        slow.collect()
        assert first.is_alive, "a query of a minute is no idleness"
        assert first.process.await_end(seconds=90)
        assert server_status(config.state_dir) is None
        assert connection.execute(count).fetchall() == [(2,)]
        second = server_status(config.state_dir)
        assert second is not None
        assert second.process != first.process
        stop_server(config.state_dir)
