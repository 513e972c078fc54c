"""Counter-examples that the oracle test found, each as small as it got."""

from __future__ import annotations

from mz_dagster.adapter import Connection


def test_a_plan_that_reads_less_than_its_query_names_never_passes_what_it_names(connection: Connection) -> None:
    """The catalog holds a view to all that it names; a step of it alone used to leave what its plan spares behind."""
    execute = connection.execute
    execute("CREATE TABLE t (a integer)")
    execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM t")
    execute("CREATE VIEW w AS SELECT b FROM m")
    execute("INSERT INTO t VALUES (1)")
    execute("CREATE MATERIALIZED VIEW never AS SELECT l.b FROM w l, t WHERE (l.b IS NULL) IS NULL")
    assert execute("SELECT * FROM never").fetchall() == []
    execute("INSERT INTO t VALUES (2)")
    assert execute("SELECT * FROM never").fetchall() == []
    assert sorted(execute("SELECT * FROM m").fetchall()) == [(2,), (3,)]


def test_a_view_whose_plan_reads_nothing_starts_where_what_it_names_is_readable(connection: Connection) -> None:
    execute = connection.execute
    execute("CREATE TABLE t (a integer)")
    execute("INSERT INTO t VALUES (1)")
    execute("CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS b FROM t")
    assert connection.engine.catalog.collection(connection.engine.collection_of("m")).since.only > 0
    execute("CREATE VIEW w AS SELECT b FROM m")
    execute("CREATE MATERIALIZED VIEW never AS SELECT b FROM w WHERE 1 = 2")
    assert execute("SELECT * FROM never").fetchall() == []
