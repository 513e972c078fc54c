"""Fetches Delta's jars into Spark's own package cache, within a bounded time.

Submits a program that does nothing: Spark resolves its packages before it starts one. Without this the first step would
wait for the download; with it, and once the cache is filled, it costs seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from mz_dagster.storage.spark.config import DELTA_PACKAGE

_SECONDS = 900


def main() -> int:
    """Returns 0 if the jars are there."""
    assert pyspark.__file__ is not None
    # Left alone, spark-submit asks whatever `python3` is on the PATH where Spark is.
    spark_home = str(Path(pyspark.__file__).parent)
    environment = os.environ | {"SPARK_HOME": spark_home, "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "nothing.py"
        nothing.touch()
        command = [f"{spark_home}/bin/spark-submit", "--master", "local[1]", "--packages", DELTA_PACKAGE, str(nothing)]
        try:
            done = subprocess.run(
                command, env=environment, timeout=_SECONDS, check=False, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            print(f"Spark did not resolve {DELTA_PACKAGE} within {_SECONDS} s; try again.", file=sys.stderr)
            return 1
    if done.returncode or "UNRESOLVED DEPENDENCIES" in done.stderr:
        print(done.stderr[-4000:], file=sys.stderr)
        print(f"Spark could not resolve {DELTA_PACKAGE}. Is a Maven repository reachable from here?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
