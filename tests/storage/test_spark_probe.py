"""A Spark that is not ours: what it lacks is told when it is opened, by what an executor says."""

from __future__ import annotations

import os
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from mz_dagster.errors import OperationalError
from mz_dagster.storage.spark import SparkConfig, close_session, ensure_server, open_session
from mz_dagster.storage.spark.config import SESSION_CONF, SHUFFLE_PARTITIONS
from mz_dagster.storage.spark.probe import check_files, check_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class OtherFiles:
    """A session whose executors have another file system: every path lies below another folder there."""

    def __init__(self, session: SparkSession, below: Path) -> None:
        self._session = session
        self._below = below
        self.read = self

    def text(self, path: str) -> Any:
        return self._session.read.text(f"{self._below}{path}")


def test_a_named_spark_is_probed_once_an_hour(
    tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ensure_server(spark_config)
    folder = tmp_path / "a folder"
    folder.mkdir()
    config = SparkConfig(state_dir=tmp_path, remote=server.url, token=server.token, probe_dir=folder)
    asked: list[Path] = []

    def counted(session: Any, where: Path, address: str) -> None:
        asked.append(where)
        check_files(session, where, address)

    monkeypatch.setattr("mz_dagster.storage.spark.probe.check_files", counted)
    for _ in range(2):
        close_session(open_session(config))
    assert len(asked) == 1
    (passed,) = folder.iterdir()
    os.utime(passed, (0, 0))
    close_session(open_session(config))
    assert len(asked) == 2
    assert [*folder.iterdir()] == [passed], "the probe's own files are removed"


def test_what_is_shuffled_has_as_many_parts_as_the_named_spark_has_cores(
    tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's count of cores is of no use to others, and a setting of the user's wins."""
    monkeypatch.setitem(cast(dict[str, str], SESSION_CONF), SHUFFLE_PARTITIONS, "97")
    server = ensure_server(spark_config)
    for conf, parts in (({}, str(max(2, os.cpu_count() or 2))), ({SHUFFLE_PARTITIONS: "13"}, "13")):
        config = SparkConfig(state_dir=tmp_path, remote=server.url, token=server.token, conf=conf)
        session = open_session(config)
        assert session.conf.get(SHUFFLE_PARTITIONS) == parts
        close_session(session)


def test_executors_that_do_not_see_the_folder_are_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(OperationalError, match=r"at sc://h:1 does not have the project's folder") as raised:
        check_files(OtherFiles(spark, tmp_path / "elsewhere"), tmp_path / "project", "sc://h:1")
    assert "Mount the folder" in str(raised.value.hint)
    assert "elsewhere" in str(raised.value.detail)
    assert not [*(tmp_path / "project").iterdir()]


def test_executors_without_the_packages_are_told(spark: SparkSession, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    setting = "spark.sql.execution.pyspark.python"
    spark.conf.set(setting, str(tmp_path / "bare" / "bin" / "python"))
    try:
        with pytest.raises(OperationalError, match="cannot run what this process sends") as raised:
            check_python(spark, "sc://h:1")
    finally:
        spark.conf.unset(setting)
    assert "No module named" in str(raised.value.detail)
    assert "PYSPARK_PYTHON" in str(raised.value.hint)
    check_python(spark, "sc://h:1")
