"""Starts of Spark that were prepared: what is used, what is not, and that the JVM takes it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.storage.spark import SparkConfig, ensure_server, open_session, prepare, stop_server
from mz_dagster.storage.spark.config import server_conf
from mz_dagster.storage.spark.prepared import PreparedStart, prepared_folder, with_prepared_start

_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkConfig:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / 'a "cache" of mine'))
    return SparkConfig(state_dir=tmp_path / "state", driver_memory="1g")


def _kept(config: SparkConfig, jars: list[Path], *, classes: bool = True) -> Path:
    folder = prepared_folder(server_conf(config))
    folder.mkdir(mode=0o700, parents=True)
    (folder / "prepared.json").write_text(json.dumps({"jars": [str(jar) for jar in jars]}))
    if classes:
        (folder / "classes.jsa").touch()
    return folder


def _jar(folder: Path, name: str = "delta.jar") -> Path:
    (folder / name).touch()
    return folder / name


def test_nothing_prepared_changes_nothing(config: SparkConfig) -> None:
    assert with_prepared_start(server_conf(config)) == server_conf(config)


def test_what_was_prepared_stands_before_the_users_options_and_after_their_jars(
    config: SparkConfig, tmp_path: Path
) -> None:
    config = replace(config, conf={"spark.jars": "/mine.jar", _OPTIONS: "-XX:SharedArchiveFile=/mine.jsa"})
    jar = _jar(tmp_path)
    folder = _kept(config, [jar])
    settings = with_prepared_start(server_conf(config))
    assert "spark.jars.packages" not in settings
    assert settings["spark.jars"] == f"/mine.jar,{jar}"
    ours = settings[_OPTIONS].index("SharedArchiveFile=")
    quoted = str(folder).replace('"', '\\"')
    assert settings[_OPTIONS][ours:].startswith(f'SharedArchiveFile="{quoted}/classes.jsa" ')
    assert settings[_OPTIONS].index("/mine.jsa") > ours  # the JVM takes the last


def test_a_java_that_writes_no_archive_still_spares_ivy(config: SparkConfig, tmp_path: Path) -> None:
    jar = _jar(tmp_path)
    _kept(config, [jar], classes=False)
    settings = with_prepared_start(server_conf(config))
    assert settings["spark.jars"] == str(jar)
    assert settings[_OPTIONS] == server_conf(config)[_OPTIONS]


def test_jars_in_a_folder_whose_name_is_a_list_or_pattern_are_resolved_anew(
    config: SparkConfig, tmp_path: Path
) -> None:
    (folder := tmp_path / "a,b").mkdir()
    _kept(config, [_jar(folder)])
    settings = with_prepared_start(server_conf(config))
    assert settings["spark.jars.packages"] == server_conf(config)["spark.jars.packages"]
    assert "spark.jars" not in settings
    assert "SharedArchiveFile" in settings[_OPTIONS]


def test_other_packages_are_resolved_anew(config: SparkConfig, tmp_path: Path) -> None:
    _kept(config, [_jar(tmp_path)])
    other = server_conf(replace(config, conf={"spark.jars.packages": "org.example:more:1.0"}))
    assert with_prepared_start(other) == other


def test_jars_that_are_gone_are_resolved_anew(config: SparkConfig, tmp_path: Path) -> None:
    jar = _jar(tmp_path)
    _kept(config, [jar])
    jar.unlink()
    assert with_prepared_start(server_conf(config)) == server_conf(config)


def test_what_others_may_write_or_nobody_can_read_is_not_used(
    config: SparkConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = _kept(config, [_jar(tmp_path)])
    folder.chmod(0o770)
    assert with_prepared_start(server_conf(config)) == server_conf(config)
    assert "others may write there" in caplog.text
    folder.chmod(0o700)
    (folder / "prepared.json").write_text("{")
    assert with_prepared_start(server_conf(config)) == server_conf(config)
    assert "is not used: " in caplog.text


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_a_prepared_server_maps_the_archive_and_asks_no_ivy(config: SparkConfig) -> None:
    said: list[str] = []
    made = prepare(config, say=said.append)
    assert prepare(config, say=said.append) == made
    assert said == [
        "starting Spark; the first time ever its packages are fetched (87 MB)",
        "letting it work",
        "writing its classes",
    ]
    assert made.jars
    assert made == PreparedStart(made.folder, made.jars)
    assert sorted(os.listdir(made.folder)) == ["classes.jsa", "prepared.json"]
    assert sorted(os.listdir(made.folder.parent)) == [made.folder.name, f"{made.folder.name}.lock"]
    try:
        server = ensure_server(config)
        assert str(made.classes) in Path(f"/proc/{server.pid}/maps").read_text()
        assert "Ivy" not in (config.state_dir / "server.out").read_text()
        assert open_session(config).range(3).count() == 3
    finally:
        stop_server(config.state_dir)
