"""Preparing the starts of a Spark: `prepare` makes what `prepared.py` describes and finds."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from mz_dagster.errors import OperationalError
from mz_dagster.storage.spark.config import SparkConfig, server_conf
from mz_dagster.storage.spark.deadline import call_with_deadline
from mz_dagster.storage.spark.prepared import (
    CLASSES,
    JARS,
    JAVA_OPTIONS,
    PREPARED,
    PreparedStart,
    archive_option,
    find_prepared_start,
    own_jars,
    prepared_folder,
)
from mz_dagster.storage.spark.server import ensure_server, stop_server
from mz_dagster.storage.spark.session import close_session, open_session, warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How long a JVM may take to write its classes at its end.
_DUMP_SECONDS = 300.0
#: How many folders are kept, the newest included: each holds some 220 MB.
_KEPT = 3


def prepare(config: SparkConfig, *, say: Callable[[str], None]) -> PreparedStart:
    """Returns what starts of an embedded Spark use from now on, made if it is not there: takes about a minute.

    Args:
        config: What kind of Spark; its state folder is not used.
        say: Is told what is done.

    Raises:
        OperationalError: There is no Java, the packages are not found, or another process has been at it for longer
            than `config.start_seconds`.
    """
    settings = server_conf(config)
    if (found := find_prepared_start(settings)) is not None:
        return found
    folder = prepared_folder(settings)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with FileLock(f"{folder}.lock", timeout=config.start_seconds, mode=0o600):
            if (found := find_prepared_start(settings)) is None:
                found = _made(config, folder, say)
    except Timeout as error:
        raise OperationalError(
            "another process is preparing Spark's starts",
            detail=f"It has held {error.lock_file} for {config.start_seconds:.0f} s.",
            hint="Wait, or look for a process that hangs.",
        ) from error
    _forget_others(folder)
    return found


def _made(config: SparkConfig, folder: Path, say: Callable[[str], None]) -> PreparedStart:
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        state = draft / "state"
        options = (
            archive_option("ArchiveClassesAtExit", draft / CLASSES),
            config.conf.get(JAVA_OPTIONS, ""),
            "-XX:TieredStopAtLevel=1",  # what it compiles goes with it: a quarter of its time
        )
        training = replace(
            config,
            state_dir=state,
            idle_seconds=None,
            conf={**config.conf, JAVA_OPTIONS: " ".join(filter(None, options))},
        )
        try:
            say("starting Spark; the first time ever its packages are fetched (87 MB)")
            server = ensure_server(training)
            session = open_session(training)
            say("letting it work")
            warm_up(session)
            call_with_deadline(session, partial(_exercise, session), config.start_seconds)
            resolved = call_with_deadline(session, lambda: str(session.conf.get(JARS, "")), config.start_seconds)
            close_session(session)
            say("writing its classes")
            server.process.end(seconds=_DUMP_SECONDS)
            if not (draft / CLASSES).exists():
                say("this Java has written none; starts are only spared the look for packages")
        finally:
            stop_server(state)
            shutil.rmtree(state, ignore_errors=True)
        own = set(own_jars(config.conf))
        jars = [path for path in map(_path, filter(None, resolved.split(","))) if path not in own]
        (draft / PREPARED).write_text(json.dumps({"jars": jars}), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # of jars that are gone
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return PreparedStart(folder, tuple(jars))


def _exercise(session: SparkSession) -> None:
    """Does a little of what steps do, so that its classes are in the archive, too."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    rows = session.range(100).select(
        sf.col("id"),
        (sf.col("id") % 7).alias("k"),
        sf.col("id").cast("decimal(38,2)").alias("d"),
        sf.lit("x").alias("t"),
    )
    numbered = rows.withColumn("n", sf.row_number().over(Window.partitionBy("k").orderBy(sf.col("d").desc(), "id")))
    sums = rows.groupBy("k").agg(sf.sum("d").alias("s"), sf.max("t").alias("m"), sf.count("*").alias("c"))
    joined = numbered.where("n <= 3").join(sums, "k").join(rows.select("id").where("id > 50"), "id", "left_anti")
    joined.unionByName(joined).distinct().orderBy("id").toArrow()


def _forget_others(folder: Path) -> None:
    """Removes what was used longest ago."""
    folders = [one for one in folder.parent.iterdir() if one.is_dir() and one != folder and "." not in one.name]
    for old in sorted(folders, key=lambda one: one.stat().st_mtime, reverse=True)[_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def _path(jar: str) -> str:
    return unquote(urlsplit(jar).path) if jar.startswith("file:") else jar
