"""Secrets stay where they were put: planted in every place, and looked for in all that is told or written."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from mz_dagster.adapter import Project
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.catalog import Catalog, CatalogUrl, database
from mz_dagster.cli import main
from mz_dagster.errors import Error
from mz_dagster.operations.backup import backup
from mz_dagster.operations.doctor import examine
from mz_dagster.storage.spark import open_session
from tests.cli.small_project import make_project

SECRET = "Hush-4711"
NOWHERE = "?host=/nonexistent&port=1"

URLS = [
    f"postgresql://me:{SECRET}@localhost:1/db",
    f"postgresql+psycopg://me:{SECRET}@/db{NOWHERE}",
    f"postgresql+psycopg://me@/db{NOWHERE}&password={SECRET}",
    f"postgresql://localhost:1/db?user=me&password={SECRET}&connect_timeout=2",
    f"postgresql://localhost:1/db?sslpassword={SECRET}",
    f"postgresql://me:{SECRET}@localhost:port/db",
    f"postgresql://me:{SECRET}@localhost:70000/db",
    f"mysql://me:{SECRET}@localhost/db",
    f"postgresql+nonsense://me:{SECRET}@localhost/db",
    f"postgresql://me:{SECRET}@localhost:1/db?nonsense=1",
    f"//me:{SECRET}@localhost/db",
]


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, chain=False)) + str(error) + repr(error)


@pytest.mark.parametrize("place", ["mz.toml", "environment"])
@pytest.mark.parametrize("url", URLS)
def test_a_secret_in_a_catalogs_url_is_told_nowhere(
    url: str,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(database, "AWAY_MS", 0)
    written = url
    if place == "environment":
        monkeypatch.setenv("PLANTED", SECRET)
        written = url.replace(SECRET, "${PLANTED}")
    (tmp_path / "mz.toml").write_text(f'[catalog]\nurl = "{written}"\n')
    texts = []
    for command in (["doctor"], ["frontiers"], ["sql", "-c", "SELECT 1"], ["apply"], ["plan"]):
        assert main(["--project", str(tmp_path), *command]) == 1
    texts += [str(one) + repr(one) for one in examine(tmp_path).findings]
    try:
        project = Project.load(tmp_path)
    except BadSettings as error:
        texts.append(told(error))
    else:
        texts += [repr(project), str(project.catalog_url), repr(project.catalog_url), f"{project.catalog_url}"]
        assert SECRET in project.catalog_url.url.render_as_string(hide_password=False)
        with pytest.raises(Error) as failed:
            Catalog.open(project.catalog_url)
        texts.append(told(failed.value))
    texts += [*capsys.readouterr(), caplog.text]
    assert not [text for text in texts if SECRET in text]


def test_a_secret_in_the_settings_is_told_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    settings = f"""
# once: postgresql://me:{SECRET}@host/db, or postgresql://host/db?password={SECRET}&user=me
[catalog]
url = "sqlite:///catalog.sqlite?timeout=5"
[spark]
remote = "sc://localhost:1/;token={SECRET}"
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"
"spark.hadoop.fs.s3a.access.key" = "${{PLANTED}}"
"""
    project = make_project(tmp_path / "p", settings)
    texts = [repr(project), repr(project.spark_config())]
    assert project.spark.conf["spark.hadoop.fs.s3a.access.key"] == SECRET
    backup(project, tmp_path / "backup")
    for path in (tmp_path / "backup").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET in (project.root / "mz.toml").read_text()
    for path in (project.root / ".mz").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    texts += [str(one) for one in examine(project.root, deep=True).findings]
    main(["--project", str(project.root), "spark", "status"])
    main(["--project", str(project.root), "frontiers"])
    with pytest.raises(Error) as failed:
        open_session(project.spark_config())
    texts += [told(failed.value), *capsys.readouterr()]
    assert not [text for text in texts if SECRET in text]


def test_a_variable_that_is_not_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "mz.toml").write_text('[project]\nname = "${NOT_SET}"\n')
    with pytest.raises(BadSettings, match='no variable "NOT_SET"') as refused:
        Project.load(tmp_path)
    assert refused.value.hint
    monkeypatch.setenv("NOT_SET", "set")
    assert Project.load(tmp_path).name == "set"
    (tmp_path / "mz.toml").write_text('[project]\nname = "$${NOT_SET} ${env:X}"\n')
    assert Project.load(tmp_path).name == "${NOT_SET} ${env:X}"


def test_hidden_urls_name_what_is_no_secret() -> None:
    url = CatalogUrl.parse(f"postgresql://me:{SECRET}@h:5432/d?sslmode=require&password={SECRET}&passfile=f")
    assert str(url) == "postgresql://me:***@h:5432/d?passfile=f&password=***&sslmode=require"
