"""Tests that must not start Spark."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn

import pytest

from mz_dagster.compute import WarmSpark


def refused() -> Any:
    """Fails, in the place of a session of Spark: `Engine(..., session=refused)`."""
    raise AssertionError("Spark is not needed")


def refuse_spark(patch: pytest.MonkeyPatch) -> list[str]:
    """Makes fail whatever opens Spark, also through an engine that is there already, until `patch` is undone.

    Returns:
        Where it was tried, by then: somebody may have caught the error.
    """
    tried: list[str] = []

    def refuse(*_: object) -> NoReturn:
        tried.append("".join(traceback.format_stack(limit=12)))
        raise AssertionError("this needs no Spark")

    # Not `WarmSpark.open`, which whoever steps and reads has bound long ago; it looks these up when it is called.
    for name in ("open_session", "borrowed_session"):
        patch.setattr(sys.modules[WarmSpark.__module__], name, refuse)
    return tried


def refuse_jvm(patch: pytest.MonkeyPatch) -> list[str]:
    """Makes fail whatever starts a JVM for Spark from this process, until `patch` is undone.

    A test that puts its own into these places starts none, and goes on.

    Returns:
        Where it was tried, by then: somebody may have caught the error.
    """
    tried: list[str] = []

    def refuse(*_: object) -> NoReturn:
        tried.append("".join(traceback.format_stack(limit=12)))
        raise AssertionError("a fast test starts no Spark: have it use the fixture spark_config, or less data")

    patch.setattr("mz_dagster.storage.spark.server._launch", refuse)
    patch.setattr("mz_dagster.storage.spark.session._open_classic", refuse)
    return tried
