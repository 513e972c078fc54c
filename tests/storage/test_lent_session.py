"""A session that somebody else opened: it is made exact, once, or refused with what its Spark lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mz_dagster.errors import ProgrammingError
from mz_dagster.storage.spark import SparkConfig, borrowed_session
from mz_dagster.storage.spark.config import DELTA_CONF


class Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        assert key not in DELTA_CONF, "it can only be set where a Spark is started"
        self[key] = value


class Session:
    """Is as much of a session as is looked at."""

    def __init__(self, **conf: str) -> None:
        self.conf = Conf(conf)
        self.queries: list[str] = []

    def addTag(self, tag: str) -> None:
        """Would let the call be interrupted."""

    def sql(self, text: str) -> Session:
        self.queries.append(text)
        return self

    def collect(self) -> None:
        """Answers."""


@pytest.mark.parametrize("missing", list(DELTA_CONF))
def test_a_spark_without_delta_is_refused_with_the_setting_that_it_lacks(tmp_path: Path, missing: str) -> None:
    session: Any = Session(**{key: value for key, value in DELTA_CONF.items() if key != missing})
    with pytest.raises(ProgrammingError) as caught:
        borrowed_session(session, SparkConfig(state_dir=tmp_path))
    assert f"{missing}={DELTA_CONF[missing]}" in str(caught.value.detail)
    assert "io.delta:delta-spark" in str(caught.value.hint)
    assert not session.queries


def test_its_settings_are_made_exact_once_and_extensions_of_others_do_not_matter(tmp_path: Path) -> None:
    others = {"spark.sql.extensions": f"org.example.Other,{DELTA_CONF['spark.sql.extensions']}"}
    session: Any = Session(**{**DELTA_CONF, **others})
    config = SparkConfig(state_dir=tmp_path, conf={"spark.sql.shuffle.partitions": "3"})
    lent: list[Any] = [borrowed_session(session, config), borrowed_session(session, config)]
    assert session.conf["spark.sql.session.timeZone"] == "UTC"
    assert session.conf["spark.sql.ansi.enabled"] == "true"
    assert session.conf["spark.sql.shuffle.partitions"] == "3"
    assert len(session.queries) == 1
    assert lent == [session, session]
