"""Planning is a function of its SQL and its catalog: new processes under other hash seeds make the same plans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A view whose alternatives say several things of each of two inputs, as TPC-DS's q13, q48 and q85 do.
PAIRS = (
    "CREATE MATERIALIZED VIEW m AS SELECT a.k, count(*) AS n, max(b.x) AS x FROM a, b WHERE a.k = b.k AND "
    "((a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)) AND ((a.y = 5 AND b.x = 6) OR (a.y = 7 AND b.x = 8)) GROUP BY 1"
)


def run_under(seed: int, *arguments: str, seconds: int = 280) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def digests(seed: int, wanted: int, every: int) -> dict[str, str]:
    found = json.loads(run_under(seed, "-m", "tests.plan.planned", str(wanted), str(every), seconds=3_000))
    assert len(found) > 500 // every
    assert sum(key.startswith("tpcds") for key in found) == -(-99 // every)
    return dict(found)


def compare(seeds: range, wanted: int, every: int) -> None:
    first = digests(seeds[0], wanted, every)
    for seed in seeds[1:]:
        other = digests(seed, wanted, every)
        assert other.keys() == first.keys()
        assert [key for key in first if first[key] != other[key]] == [], f"planned otherwise under hash seed {seed}"


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_plans_are_the_same_under_other_hash_seeds() -> None:
    compare(range(1, 3), 2, 200)


@pytest.mark.deep
@pytest.mark.timeout(36_000)
def test_many_plans_are_the_same_under_twenty_hash_seeds() -> None:
    compare(range(20), 300, 1)


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_project_opens_and_goes_on_under_other_hash_seeds(tmp_path: Path) -> None:
    script = (
        "import sys, mz_dagster\n"
        "with mz_dagster.connect(sys.argv[1]) as connection:\n"
        "    cursor = connection.cursor()\n"
        "    for one in sys.argv[2:]:\n"
        "        cursor.execute(one)\n"
        "    print(cursor.execute('SELECT * FROM m ORDER BY 1').fetchall())\n"
    )
    made = ("CREATE TABLE a (k int, x int, y int)", "CREATE TABLE b (k int, x int, y int)", PAIRS)
    run_under(0, "-c", script, str(tmp_path), *made)
    rows = []
    for seed in range(1, 3):
        writes = (f"INSERT INTO a VALUES ({seed}, 1, 5)", f"INSERT INTO b VALUES ({seed}, 6, 2)")
        rows.append((seed, 1, 6))
        assert run_under(seed, "-c", script, str(tmp_path), *writes).strip() == str(rows)
