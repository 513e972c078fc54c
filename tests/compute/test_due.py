"""When a temporal state changes next by itself, in much."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from mz_dagster.compute.step.due import next_due


class _Opened(Exception):
    """Spark was asked for."""


def test_spark_is_there_before_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(*_: object) -> NoReturn:
        raise AssertionError("there is no session yet")

    def shards() -> NoReturn:
        raise _Opened

    monkeypatch.setattr(sys.modules[next_due.__module__], "sf", SimpleNamespace(col=early))
    columns = [SimpleNamespace(name=name) for name in ("starts", "ends", "valid")]
    row: Any = SimpleNamespace(columns=columns, is_due=lambda _: True)
    batch: Any = object()
    with pytest.raises(_Opened):
        next_due(row, 7, [], lambda: [batch], shards, None)
