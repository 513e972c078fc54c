"""Files of which all rows are needed are read several at once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier
from typing import Any

import pytest

from mz_dagster.storage.source.read_together import read_together


def test_files_are_read_at_once_and_come_in_their_order() -> None:
    both = Barrier(2)

    def file(name: str) -> Iterator[str]:
        both.wait(timeout=30)  # who reads one after the other waits here for ever
        yield from (f"{name}1", f"{name}2")

    assert list(read_together([lambda: file("a"), lambda: file("b")])) == ["a1", "a2", "b1", "b2"]


def test_what_fails_is_raised_where_it_stands() -> None:
    def gone() -> Iterator[Any]:
        raise FileNotFoundError("b")

    found = read_together([lambda: iter("a"), gone, lambda: iter("c")])
    assert next(found) == "a"
    with pytest.raises(FileNotFoundError, match="b"):
        next(found)
