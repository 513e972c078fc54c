"""What a user may choose about Spark, and the settings that this package needs whatever they choose.

Owns `SparkConfig` and the three layers of settings: `SESSION_CONF` and `PARQUET_CONF` (exactness and speed, set on
every session of every Spark), `server_conf` (what only the starter of a Spark can set) and the user's own `conf`,
which wins over both. It starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mz_dagster.errors import ProgrammingError

#: The one Delta release whose jars are published for the pinned Spark.
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

#: What only the starter of a Spark can set, and without which there is no Delta Lake on it.
DELTA_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

#: The setting that says into how many parts rows are shuffled.
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

#: After how long without use an embedded server ends by itself, by default.
IDLE_SECONDS = 900.0
#: How long to wait for a Spark to start, by default.
START_SECONDS = 300.0

#: How many bytes a plan has at most that is sent to Spark, by default. A Connect server takes 128 MB; of a tenth, its
#: planner spends minutes.
PLAN_BYTES = 33_554_432

#: Up to so many constants that a column may have, Spark looks for in the statistics of pages.
MOST_IN = 256

#: Settings of every session. UTC and ANSI decide what results are; the others decide what they cost.
SESSION_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Decimal results keep their scale, or overflow.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # Expressions that are shared through columns stand on many projections.
    "spark.sql.analyzer.maxIterations": "1000",
    SHUFFLE_PARTITIONS: str(max(2, os.cpu_count() or 2)),
    # Where replanning is on, a large shuffle keeps so many: a sort of millions of rows by two tasks fills the heap.
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "64",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Nobody asks the log for all files: to list them beside each commit takes a job behind commits of this process.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # A batch is one write execution: nothing may compact or rewrite files behind the catalog's back.
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    # A file that is not there is an error, never fewer rows.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # A stage is numbered as it happens to come about; with its number in it, its code would be compiled anew each time.
    "spark.sql.codegen.useIdInClassName": "false",
    # A batch's files are listed by name: looking at each is quicker than a job that does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # A batch is one partition: one open file for a task makes sorting by the partition column superfluous.
    "spark.sql.maxConcurrentOutputFileWriters": "1",
    # What is fetched with a limit is little, and wanted whole: one job, not one for the first part, one for four more.
    "spark.sql.limit.initialNumPartitions": "10000",
    # A set of constants tells the pages that may hold one of them, and stands in the code as an object, which is
    # compiled once, and not as its values.
    "spark.sql.parquet.pushdown.inFilterThreshold": str(MOST_IN),
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    # An error's message, not a page of Java.
    "spark.sql.connect.serverStacktrace.enabled": "false",
    # Rows, errors and bytes of a batch come from the statistics in the commit, never from a job.
    "spark.databricks.delta.stats.collect": "true",
}

#: Settings of a session in which what filled Spark's heap is computed once more: each task holds less at once, nothing
#: is sent to all of them, and what does not fit goes to disk. How many run at a time only the starter of a Spark sets.
SMALLER_PIECES: Mapping[str, str] = {
    SHUFFLE_PARTITIONS: "128",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.files.maxPartitionBytes": "4m",
    "spark.sql.files.openCostInBytes": "1m",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}

#: How many rows a page of a Parquet file that sessions write has at most.
PAGE_ROWS = 4096

#: Of the Parquet files that sessions write, which are sorted by key where they are large: groups of rows, of which a
#: lookup in process reads one, and pages, of which Spark reads those within the bounds of what it looks up. A scan of
#: everything takes a tenth longer than with Parquet's defaults.
PARQUET_CONF: Mapping[str, str] = {
    "parquet.block.row.count.limit": "32768",
    "parquet.page.row.count.limit": str(PAGE_ROWS),
    # Pages that lie apart are asked for one after the other: to ask other threads for them makes a scan of local files
    # take 1.4 times as long, and twice with few pages in each file.
    "parquet.hadoop.vectored.io.enabled": "false",
}


#: Of the driver's JVM. What plans and small jobs run is compiled to the fullest five times later than by default: with
#: two cores, the second compiler took half the time of a small step, for code that hardly ran again. What a large scan
#: runs still gets there in its first second.
_JVM_OPTIONS = " ".join(
    (
        "-Duser.timezone=UTC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:Tier4InvocationThreshold=25000",
        "-XX:Tier4MinInvocationThreshold=3000",
        "-XX:Tier4CompileThreshold=75000",
        "-XX:Tier4BackEdgeThreshold=200000",
        "-XX:ReservedCodeCacheSize=512m",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConfig:
    """Says which Spark to use.

    Neither `remote` nor `master`: the embedded default, one Spark Connect server started on demand that all
    processes with the same `state_dir` share. `remote`: a Spark Connect server that somebody else runs.
    `master`: Spark Classic within this process.

    Attributes:
        state_dir: The folder of the embedded server's files; created with mode 0700. Also the place of
            temporary files in classic mode.
        remote: `sc://host[:port][/;param=value...]`, or None; not in the `repr`, since it may hold a token. Spark
            itself speaks TLS to any host but `localhost` as soon as there is a token.
        master: A master URL such as `local[2]` or `spark://host:7077`, or None.
        conf: Spark settings that win over the defaults of this package.
        token: The token for `remote`, or a function that returns it; asked for at each new session and
            never stored. Default: `SPARK_CONNECT_AUTHENTICATE_TOKEN` of the environment.
        driver_memory: The heap of the embedded server or of the classic driver.
        start_seconds: The deadline for starting a Spark, the first download of Delta's jars (87 MB) included.
        first_call_seconds: The deadline for the first answer of a session.
        idle_seconds: After how long without use an embedded server ends by itself; None: never.
        plan_bytes: A larger plan is not sent to a Spark Connect server.
        smaller_pieces: Whether sessions are to need as little memory as can be, at the price of time; see
            `SMALLER_PIECES`. No setting of a server.
        probe_dir: A folder of the project's that executors must have, too, where `remote` or a cluster is named: see
            `probe`. None: nothing is probed.

    Example:
        >>> SparkConfig(state_dir=Path("/tmp/x"), remote="sc://h", master="local")
        Traceback (most recent call last):
        ...
        mz_dagster.errors.ProgrammingError: both "remote" and "master" are set
        HINT: Choose one Spark, or neither for the embedded one.
    """

    state_dir: Path
    remote: str | None = field(default=None, repr=False)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | Callable[[], str] | None = field(default=None, repr=False)
    driver_memory: str = "4g"
    start_seconds: float = START_SECONDS
    first_call_seconds: float = 60.0
    idle_seconds: float | None = IDLE_SECONDS
    plan_bytes: int = PLAN_BYTES
    smaller_pieces: bool = False
    probe_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.remote is not None and self.master is not None:
            raise ProgrammingError(
                'both "remote" and "master" are set', hint="Choose one Spark, or neither for the embedded one."
            )
        if self.remote is not None:
            _check_address(self.remote)

    @property
    def embedded(self) -> bool:
        """True if this package starts the Spark itself, as a server that outlives the process."""
        return self.remote is None and self.master is None

    def session_conf(self) -> dict[str, str]:
        """Returns the settings to make on a session: this package's, then the user's of Spark SQL, Delta, Parquet.

        Those that make pieces smaller win over both.
        """
        runtime = ("spark.sql.", "spark.databricks.delta.", "parquet.")
        chosen = {
            key: value
            for key, value in self.conf.items()
            if key.startswith(runtime) and not key.startswith(("spark.sql.extensions", "spark.sql.catalog"))
        }
        return {**SESSION_CONF, **PARQUET_CONF, **chosen, **(SMALLER_PIECES if self.smaller_pieces else {})}


def server_conf(config: SparkConfig) -> dict[str, str]:
    """Returns every setting of a Spark that this package starts, as a server or within the process."""
    state = config.state_dir.absolute()
    settings = {
        "spark.app.name": "mz_dagster",
        "spark.jars.packages": DELTA_PACKAGE,
        **DELTA_CONF,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(state / "warehouse"),
        "spark.local.dir": str(state / "local"),
        "spark.driver.memory": config.driver_memory,
        # Each join and sort of a plan takes at least one page from the heap, and a delta join has many.
        "spark.buffer.pageSize": "1m",
        # Small jobs of one step must not queue behind a large one of another.
        "spark.scheduler.mode": "FAIR",
        # Where a step makes the code of the one before, it is compiled already. A project has thousands of such pieces,
        # and Spark keeps a hundred.
        "spark.sql.codegen.cache.maxEntries": "10000",
        # Else pyspark walks the stack at each operation on a column, to blame a line of ours in an error of Spark's.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "5000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.ui.showConsoleProgress": "false",
        "spark.cleaner.periodicGC.interval": "10min",
        **SESSION_CONF,
    }
    user = dict(config.conf)
    packages = [settings["spark.jars.packages"], *filter(None, user.pop("spark.jars.packages", "").split(","))]
    extensions = [settings["spark.sql.extensions"], *filter(None, user.pop("spark.sql.extensions", "").split(","))]
    settings |= user
    settings["spark.jars.packages"] = ",".join(dict.fromkeys(packages))
    settings["spark.sql.extensions"] = ",".join(dict.fromkeys(extensions))
    driver = f"{_JVM_OPTIONS} {user.get('spark.driver.extraJavaOptions', '')}".strip()
    settings["spark.driver.extraJavaOptions"] = driver
    executor = f"-Duser.timezone=UTC {user.get('spark.executor.extraJavaOptions', '')}".strip()
    settings["spark.executor.extraJavaOptions"] = executor
    return settings


def _check_address(remote: str) -> None:
    """Checks the address of a Connect server, which errors do not repeat: it may hold a token.

    Raises:
        ProgrammingError: It is none.
    """
    wrong = ""
    try:
        found = urlsplit(remote)
        if found.scheme != "sc":
            wrong = "must begin with sc://"
        elif not found.hostname or found.port == 0:
            wrong = "has a host or port that is none"
    except ValueError:
        wrong = "has a host or port that is none"
    if wrong:
        raise ProgrammingError(
            f"the address of a Spark Connect server {wrong}",
            hint="Write sc://localhost:15002, as spark.remote in mz.toml.",
        )
