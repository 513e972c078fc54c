"""What a process keeps and computes at once follows from the memory that the settings give it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Project

ROOT = Path(__file__).resolve().parents[2]
#: Opens projects one after the other, and tells of each what the budget is then.
OPENED = r"""
import sys
from pathlib import Path
from mz_dagster.adapter import Engine, Project
from mz_dagster.budget import EngineSetting, budget, engine_of
for root in sys.argv[1:]:
    with Engine(Project.load(Path(root))):
        one = budget()
        with engine_of(EngineSetting.LOCAL):
            print(one.hot_bytes, one.mapped_bytes, one.decoded_bytes)
            print(one.returned_bytes, one.frame_rows, budget().frame_rows, end="\n\n")
"""


def project(root: Path, memory: int | None) -> str:
    root.mkdir()
    (root / "mz.toml").write_text("" if memory is None else f"[project]\nworkers = 0\nmemory = {memory}\n")
    return str(root)


def test_the_budget_of_a_process_follows_from_its_memory_and_the_least_holds(tmp_path: Path) -> None:
    limits = (None, 4 << 30, 1 << 30, None, 2 << 30)
    roots = [project(tmp_path / str(number), memory) for number, memory in enumerate(limits)]
    told = subprocess.run(
        [sys.executable, "-c", OPENED, *roots],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    machine, four, *others = [[int(one) for one in line.split()] for line in told.stdout.split("\n\n") if line]
    decoded = machine[2]  # on disk, which is the machine's
    assert machine[1] == decoded
    assert four == [1 << 29, 1 << 29, decoded, 1 << 30, 2_000_000, 33_554_432]
    assert others == [[1 << 27, 1 << 27, decoded, 1 << 28, 1_048_576, 8_388_608]] * 3
    assert all(few <= many for few, many in zip(four, machine, strict=True))


@pytest.mark.parametrize(
    ("memory", "workers", "expected"),
    [
        (None, 3, (3, None, "4096m")),
        (1 << 29, 3, (0, 1 << 29, "1024m")),
        (2 << 30, 3, (1, 1 << 30, "2048m")),
        (16 << 30, 3, (3, 4 << 30, "4096m")),
        (16 << 30, 0, (0, 16 << 30, "4096m")),
    ],
)
def test_a_process_its_workers_and_a_spark_have_their_shares(
    tmp_path: Path, memory: int | None, workers: int, expected: tuple[int, int | None, str]
) -> None:
    one = replace(Project.load(tmp_path), memory=memory, workers=workers)
    assert (one.most_workers, one.process_memory, one.spark_config().driver_memory) == expected
