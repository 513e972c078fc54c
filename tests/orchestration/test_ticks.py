"""Keys of ticks: told back, and in the order of times, also beyond the years that a date has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mz_dagster import Project
from mz_dagster.orchestration.ticks import partition_key, partitions_of, tick_of

_LAST_OF_9999 = 253402300799999
_TICKS = (0, 1357102800001, _LAST_OF_9999, _LAST_OF_9999 + 1, 10**15, 2**63 - 1)


@pytest.mark.parametrize("tick", _TICKS)
def test_a_key_tells_its_tick(tick: int) -> None:
    assert tick_of(partition_key(tick)) == tick


def test_keys_sort_as_ticks_do() -> None:
    keys = [partition_key(tick) for tick in _TICKS]
    assert sorted(keys) == keys


@pytest.mark.parametrize(
    "key", ["T253402300800000", "T0000000000000000001", "T", "2013-01-02", "10000-01-01T00:00:00.000Z"]
)
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        tick_of(key)


def test_projects_of_one_instance_have_partitions_of_their_own(tmp_path: Path) -> None:
    sets = set()
    for name in ("depot", "shop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mz.toml").write_text(f'[project]\nname = "{name}"\n')
        sets.add(partitions_of(Project.load(tmp_path / name), "default").name)
    assert len(sets) == 2
