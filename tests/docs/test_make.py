"""What `make` does with what it is told, and that the fast loop starts no Spark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mz_dagster.storage.spark import SparkConfig, ensure_server
from tests.sparkless import refuse_jvm

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("ENGINE=spark", "TICKS=3"), "MZ_ENGINE=spark .venv/bin/mz-dagster run --ticks 3"),
        (("ENGINE=local",), "MZ_ENGINE=local .venv/bin/mz-dagster dev"),
        (("TICKS=3",), ".venv/bin/mz-dagster run --ticks 3"),
    ],
)
def test_make_run_tells_the_demos_process_which_engine_computes(given: tuple[str, ...], expected: str) -> None:
    told = ["make", "--no-print-directory", "-n", "run", *given]
    found = subprocess.run(told, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert found.splitlines()[-1].strip().replace(f"{REPOSITORY}/", "") == expected


def test_a_fast_test_that_starts_spark_fails(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        tried = refuse_jvm(patch)
        with pytest.raises(AssertionError, match="a fast test starts no Spark"):
            ensure_server(SparkConfig(state_dir=tmp_path))
        assert len(tried) == 1
