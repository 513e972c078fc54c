"""Fixtures that every layer's tests share."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from alembic.config import Config
from alembic.script import ScriptDirectory
from hypothesis import settings

import mz_dagster
from mz_dagster.budget import Budget, budget
from mz_dagster.errors import Error
from mz_dagster.storage.spark import SparkConfig, close_sessions, ensure_server, open_session, warm_up
from tests.budgets import SetBudget
from tests.opened import Connect
from tests.postgres_server import Postgres, running_postgres
from tests.sparkless import refuse_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[1]

#: Where the server of this test run keeps its files; its workers find it there, too.
STATE = "MZ_TEST_SPARK_STATE"

#: Set in runs of the tests that are not deep: Spark interprets plans there, instead of compiling each stage.
_INTERPRETS = "MZ_TEST_SPARK_INTERPRETS"

#: The seconds that tests took which took longest: by function, of its parameters those that took longest.
DURATIONS = Path(__file__).with_name("durations.json")
#: What took so many seconds is not among the fast tests, and what took less is not recorded.
_LONG = 1.0

#: What is mounted as memory, and how many bytes have to be free there for what all tests write.
_MEMORY, _MUCH = Path("/dev/shm"), 8 << 30

# Stops the server when its standard input ends: by our hand, or because this process died of whatever.
_WATCHER = """
import shutil
import sys
from pathlib import Path
from mz_dagster.storage.spark import stop_server
by_our_hand = sys.stdin.read()
stop_server(Path(sys.argv[1]), seconds=300)
for folder in sys.argv[1:2] if by_our_hand else sys.argv[1:]:
    shutil.rmtree(folder, ignore_errors=True)
"""

# To compile the modules anew is a third of the time of the many short processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has what it runs in the background ignore interrupts, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests have Dagster's instances of their own: that of who runs them may have daemons, or not exist.
os.environ.pop("DAGSTER_HOME", None)
# They also have PostgreSQL's servers of their own: whom libpq is to connect as elsewhere says nothing of these.
for _name in [name for name in os.environ if name.startswith("PG")]:
    del os.environ[_name]

# Modules, tests and plans are many objects that stay: to look for cycles as often as by default takes a tenth of all.
# What is there once all tests are collected stays, all of it.
gc.set_threshold(50_000, 20, 20)
gc.disable()

# How long an example takes says nothing where others compute, too. Each run makes other examples; the long ones many.
settings.register_profile("mz", deadline=None, max_examples=15)
settings.register_profile("long", deadline=None, max_examples=400)
settings.load_profile("mz")

_watcher = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--fast`: the tests that need no Spark, and are not deep, nor long.

    That a test needs Spark is told by its fixtures. Long is what has a time limit of its own, or took its time when
    durations were last recorded, by `--record-durations`.
    """
    parser.addoption("--fast", action="store_true", help="only the tests that start no Spark and are not long")
    parser.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name} anew")


class _Examples:
    """Looks for examples in those files alone that have some: to look through all objects takes a third as long."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        if any(isinstance(one, DoctestModule) for one in found) and b">>> " not in file_path.read_bytes():
            return [one for one in found if not isinstance(one, DoctestModule)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    """Watches over one server for all workers: two would compile the same code twice, on two cores."""
    config.pluginmanager.register(_Examples())
    if hasattr(config, "workerinput"):
        return  # a worker; the process that started it watches
    if config.option.markexpr == "not deep":
        os.environ[_INTERPRETS] = "1"
    if STATE in os.environ:
        return  # a server that outlives this run, for those who run single tests again and again
    in_memory = _folder_in_memory()
    os.environ[STATE] = state_dir = tempfile.mkdtemp(prefix="mz-spark-")
    os.environ["XDG_STATE_HOME"] = f"{state_dir}/xdg"  # what servers this user has is none of the tests' business
    config.stash[_watcher] = subprocess.Popen(
        [sys.executable, "-c", _WATCHER, state_dir, *in_memory],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _folder_in_memory() -> list[str]:
    """Makes temporary files in memory, where there is much and programs may be; returns the folder, if there is one.

    No test's files have to outlive it, and a disk lets each of their many small commits wait. A TMPDIR is kept.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return []
    found = os.statvfs(_MEMORY)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if min(found.f_bavail * found.f_frsize, memory // 2) < _MUCH or found.f_flag & os.ST_NOEXEC:
        return []
    os.environ["TMPDIR"] = tempfile.tempdir = folder = tempfile.mkdtemp(prefix="mz-tests-", dir=_MEMORY)
    os.chmod(folder, 0o755)  # PostgreSQL runs as somebody else
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # behind what pytest does at the end
    return [folder]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops the server."""
    watcher = config.stash.get(_watcher, None)
    if watcher is not None and watcher.stdin is not None:
        watcher.stdin.write(b"stop")
        watcher.stdin.close()
        watcher.wait(60)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the fast files first: those that need no Spark. Of the others, the long ones first: no worker ends late."""
    if config.option.fast:
        left = [item for item in items if _needs_spark(item) or _is_long(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not (_needs_spark(item) or _is_long(item))]
    need_spark = {item.path for item in items if _needs_spark(item)}
    seconds = defaultdict[Path, float](float)
    for item in items:
        seconds[item.path] += _recorded_durations().get(_function(item.nodeid), 0.0)
    items.sort(key=lambda item: (item.path in need_spark, -seconds[item.path]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts the server while those tests run that need none."""
    gc.freeze()  # what all modules and tests are is looked through by no collection any more
    gc.enable()
    if any(map(_needs_spark, session.items)) and not session.config.option.collectonly:
        threading.Thread(target=_start_server, daemon=True).start()


def _start_server() -> None:
    with suppress(Error):  # told by the first test that needs it
        ensure_server(_config())


def _needs_spark(item: pytest.Item) -> bool:
    own = getattr(getattr(item, "module", None), "STARTS_SPARK", False)  # a server that is nobody else's
    return own or "spark_config" in getattr(item, "fixturenames", ()) or "[spark" in item.name


def _is_long(item: pytest.Item) -> bool:
    return (
        item.get_closest_marker("timeout") is not None
        or item.get_closest_marker("deep") is not None
        or _recorded_durations().get(_function(item.nodeid), 0.0) >= _LONG
    )


@cache
def _recorded_durations() -> dict[str, float]:
    found: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return found


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Records how long tests took, if that was asked for."""
    if not config.option.record_durations:
        return
    by_test = defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                by_test[report.nodeid] += report.duration
    found: dict[str, float] = {}
    for nodeid, seconds in by_test.items():
        found[_function(nodeid)] = max(found.get(_function(nodeid), 0.0), round(seconds, 1))
    long = {function: seconds for function, seconds in sorted(found.items()) if seconds >= _LONG}
    DURATIONS.write_text(json.dumps(long, indent=0) + "\n", encoding="utf-8")


def _config() -> SparkConfig:
    # What a test compiles hardly runs twice: without the second compiler a run takes a third less time.
    # It has garbage of little use to collect in parallel, and two cores that tests want: a tenth less.
    quickly = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    if _INTERPRETS in os.environ:  # a third of the time of all that Spark does here
        quickly["spark.sql.codegen.wholeStage"] = "false"
        quickly["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    # What it has done is asked of its UI.
    return SparkConfig(
        state_dir=Path(os.environ[STATE]), driver_memory="3g", conf={**quickly, "spark.ui.enabled": "true"}
    )


@pytest.fixture(autouse=True)
def without_jvm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test of `--fast` that starts Spark, even if somebody catches the error."""
    if not request.config.option.fast:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        tried = refuse_jvm(patch)
        yield
    if tried:
        pytest.fail(f"a fast test starts no Spark, but this one tried to:\n{tried[0]}")


@pytest.fixture(autouse=True, scope="session")
def migrations_read_once() -> Iterator[None]:
    """Keeps the scripts of migrations, which Dagster loads anew for each run's database to know the newest of them."""
    load, found = ScriptDirectory.from_config, dict[tuple[str | None, str | None], ScriptDirectory]()

    def kept(config: Config) -> ScriptDirectory:
        key = config.config_file_name and str(config.config_file_name), config.get_main_option("script_location")
        return found.get(key) or found.setdefault(key, load(config))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", kept)
        yield


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections to embedded projects, which are closed after the test."""
    with ExitStack() as opened:
        yield lambda folder: opened.enter_context(closing(mz_dagster.connect(folder)))


@pytest.fixture
def set_budget(monkeypatch: pytest.MonkeyPatch) -> SetBudget:
    """Sets thresholds until the end of the test: `set_budget(evaluated_updates=0)`."""

    def changed(whole: Budget | None = None, /, **thresholds: int) -> None:
        monkeypatch.setattr("mz_dagster.budget._in_force", replace(whole or budget(), **thresholds))

    return changed


@pytest.fixture(scope="session")
def spark_config() -> Iterator[SparkConfig]:
    """The configuration of this test run's own server, which is started by whoever needs it first."""
    try:
        yield _config()
    finally:
        close_sessions()


@pytest.fixture
def compiling_spark_config(spark_config: SparkConfig) -> SparkConfig:
    """The configuration of the same server, on which sessions compile stages, as they do in production."""
    compiles = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    return replace(spark_config, conf={**spark_config.conf, **compiles})


@pytest.fixture(scope="session")
def warm_server(spark_config: SparkConfig) -> SparkConfig:
    """The configuration of this test run's server, which has worked a little."""
    ensure_server(spark_config)
    warm_up(open_session(spark_config))
    return spark_config


@pytest.fixture(scope="module")
def spark(warm_server: SparkConfig) -> SparkSession:
    """A session on one warm Spark Connect server of this test run: UTC, ANSI, Delta; other files may close theirs."""
    return open_session(warm_server)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """The one PostgreSQL of this worker."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def postgres(postgres_server: Postgres) -> Postgres:
    """PostgreSQL with an empty database for this file."""
    return postgres_server.new_database()
