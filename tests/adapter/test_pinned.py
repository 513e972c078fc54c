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


def test_an_arrangement_is_stored_under_the_names_by_which_it_is_read(connection: Connection) -> None:
    """An arrangement whose plan has two columns of one name was stored under other names than its reader asked for."""
    execute = connection.execute
    execute("CREATE TABLE r (n integer)")
    execute(
        "CREATE MATERIALIZED VIEW v AS SELECT t0.c0, t0.kept, r.n FROM ("
        "SELECT l.v0 AS c0, l.v0 AS c1, l.v0 AS c2, l.v1 + 1 AS kept "
        "FROM (VALUES (1, 2), (5, 7)) AS l (v0, v1) JOIN (VALUES (2)) AS k (v1) USING (v1) "
        "UNION ALL VALUES (3, 4, 5, 6)) AS t0 JOIN r ON t0.c1 >= r.n AND t0.c0 <> t0.c2 + 10"
    )
    execute("INSERT INTO r VALUES (1), (4)")
    assert sorted(execute("SELECT * FROM v").fetchall()) == [(1, 3, 1), (3, 6, 1), (3, 6, 4)]
    execute("DELETE FROM r WHERE n = 1")
    assert execute("SELECT * FROM v").fetchall() == [(3, 6, 4)]
