"""A look at a batch reads a little of it, shows it as text, and fails nobody when the batch is gone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, ErrorPart, Isolation, Project, errors_written, updates_written
from mz_dagster.catalog import CollectionRow, Sealed
from mz_dagster.compute import CollectionStep, Outcome
from mz_dagster.formalism import Antichain
from mz_dagster.storage import compare_and_append, update_table

ZERO = "22012 division by zero"
Written = tuple[Engine, CollectionRow, CollectionStep]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    """A collection of three columns with a batch of 1,000 rows, two errors and one that is taken back in it."""
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (a integer, b text, c numeric(38, 2))")
        engine = connection.engine
        row = engine.catalog.collection(engine.collection_of("t"))
        nothing = (None, None, None)
        errors = [(nothing, 5, 2, ZERO), (nothing, 5, 1, "22003 out of range"), (nothing, 6, -1, "22003 out of range")]
        frame = update_table(row.columns, [*(((n, "x" * n, None), 5, 1) for n in range(1000)), *errors])
        upper = Antichain.of(row.upper.lattice, 7)
        sealed = compare_and_append(engine.catalog, engine.shards, row, row.upper, upper, frame, holder="a test")
        assert isinstance(sealed, Sealed)
        (batch,) = engine.catalog.live_batches([row.id])[row.id]
        yield engine, row, CollectionStep(row.id, "t", Outcome.ADVANCED, 0, 7, batch.stats, batch.id)


def test_a_sample_is_the_first_updates_as_text(written: Written) -> None:
    sample = updates_written(*written, 3)
    assert sample.columns == ("a", "b", "c", "mz_timestamp", "mz_diff", "mz_error")
    assert sample.types == ("integer", "text", "numeric(38,2)", "bigint", "bigint", "text")
    assert sample.rows == tuple((str(n), "x" * n, "NULL", 5, 1, "NULL") for n in range(3))
    assert len(updates_written(*written, 5000).rows) == 1003


def test_errors_are_those_that_stay(written: Written) -> None:
    assert errors_written(*written, 5) == ErrorPart(2, 1, (ZERO,))


def test_nothing_is_shown_of_what_was_not_written_or_is_gone(written: Written) -> None:
    engine, row, step = written
    idle = replace(step, batch=None)
    shutil.rmtree(engine.shards.path(row))
    for one in (idle, step):
        assert updates_written(engine, row, one, 3).rows == ()
        assert errors_written(engine, row, one, 3).total == 0
