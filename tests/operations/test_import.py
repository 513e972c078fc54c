"""`mz-dagster import`: files of SQL and dbt's compiled models become the project's files, or are told why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from mz_dagster.adapter import Connection, Engine, Isolation, Project, load_project
from mz_dagster.cli import main
from mz_dagster.operations.importing import NothingToImport, Proposal, compared, propose, read_models, write
from mz_dagster.operations.importing.comparison import difference
from mz_dagster.operations.importing.naming import Path as RelationPath
from mz_dagster.operations.importing.naming import named
from mz_dagster.sql.translation import SourceDialect
from mz_dagster.storage.spark import SparkConfig
from tests.sparkless import refuse_spark
from tests.tpcds import texts

TABLES = """
CREATE TABLE orders (id integer PRIMARY KEY, customer text, amount numeric(12, 2), paid boolean, day date);
CREATE TABLE customers (name text, city text);
"""
ROWS = """
INSERT INTO orders VALUES (1, 'Ana', 10.25, true, '2024-01-31'), (2, 'Bo', NULL, NULL, NULL), (3, 'Ana', -3, false,
    '2024-02-29'), (4, NULL, 0, true, '2023-12-31');
INSERT INTO customers VALUES ('Ana', 'Oslo'), ('Bo', NULL), ('Cy', 'Rome');
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "p" / "assets").mkdir(parents=True)
    (tmp_path / "p" / "mz.toml").touch()
    (tmp_path / "p" / "assets" / "tables.sql").write_text(TABLES)
    return Project.load(tmp_path / "p")


@pytest.fixture
def filled(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The project with rows; whatever opens Spark fails."""
    tried = refuse_spark(monkeypatch)
    with Engine(project) as engine:
        engine.apply()
        with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
            for one in ROWS.strip().split(";\n"):
                connection.execute(one)
            yield engine
    assert not tried, tried[0]


def queries(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def proposed(project: Project, path: Path, dialect: str = "duckdb") -> Proposal:
    return propose(project, read_models(path), SourceDialect.named(dialect))


def reasons(proposal: Proposal) -> dict[str, str]:
    return {one.name: one.reason for one in proposal.imported if one.reason is not None}


# ---- files of SQL


def test_queries_become_files_that_the_project_loads(project: Project, tmp_path: Path) -> None:
    path = queries(
        tmp_path / "q",
        totals="-- What each customer has paid.\nSELECT customer, sum(amount) AS total FROM main.orders GROUP BY ALL",
        cities="CREATE VIEW cities AS SELECT c.city, t.total FROM totals t JOIN customers c ON c.name = t.customer",
    )
    proposal = proposed(project, path)
    assert [(one.name, one.outcome, one.file) for one in proposal.imported] == [
        ("totals", "written", "assets/totals.sql"),
        ("cities", "written", "assets/cities.sql"),
    ]
    write(proposal)
    loaded = {one.name: one for one in load_project(project).objects}
    assert loaded["totals"].comment == "What each customer has paid."
    assert loaded["totals"].definition.kind == "materialized view"
    assert loaded["cities"].depends == ("customers", "totals")


def test_what_cannot_come_in_whole_stays_out_with_what_reads_it(project: Project, tmp_path: Path) -> None:
    path = queries(
        tmp_path / "q",
        casts="SELECT try_cast(customer AS int) AS n FROM orders",
        reads="SELECT n + 1 AS m FROM casts",
        types="SELECT customer > 1 AS b FROM orders",
        lost="SELECT * FROM elsewhere.nowhere",
        orders="SELECT 1 AS a",
        two="SELECT 1 AS a; SELECT 2 AS b",
        fine="SELECT id FROM orders",
    )
    proposal = proposed(project, path)
    found = reasons(proposal)
    assert [one.name for one in proposal.imported if one.outcome == "written"] == ["fine"]
    assert set(proposal.files) == {project.assets / "fine.sql"}
    assert "NULL where the cast fails" in found["casts"]
    assert "casts" in found["reads"]
    assert "text > integer" in found["types"]
    assert '"nowhere" does not exist' in found["lost"]
    assert found["orders"] == 'the project has "orders" already'
    assert "several queries" in found["two"]
    assert dict(proposal.missing) == {"casts": ("reads",), "nowhere": ("lost",)}


def test_a_dump_of_postgresql_says_which_statement_stays_out(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = """--
-- PostgreSQL database dump
--
SET row_security = off;

ALTER TABLE public.orders OWNER TO shop;
CREATE MATERIALIZED VIEW public.totals AS
 SELECT o.customer,
    sum(o.amount) AS total
   FROM public.orders o
  GROUP BY o.customer
  WITH NO DATA;

REFRESH MATERIALIZED VIEW public.totals;
"""
    proposal = proposed(project, queries(tmp_path / "q", dump=dump), "postgres")
    assert [(one.name, one.outcome) for one in proposal.imported if one.reason is None] == [("totals", "written")]
    assert [(one.place, one.reason) for one in proposal.imported if one.reason is not None] == [
        ("dump.sql:4", "SET is no query."),
        ("dump.sql:6", "ALTER is no query."),
        ("dump.sql:14", "REFRESH is no query."),
    ]
    assert not caplog.records


def test_tables_come_in_with_their_constraints(project: Project, tmp_path: Path) -> None:
    path = queries(tmp_path / "q", t="CREATE TABLE items (id BIGINT PRIMARY KEY, price DECIMAL, tags VARCHAR NOT NULL)")
    proposal = proposed(project, path)
    assert reasons(proposal) == {}
    (text,) = proposal.files.values()
    assert "DECIMAL(18, 3)" in text
    write(proposal)
    assert "items" in {one.name for one in load_project(project).objects}


def test_the_lines_of_remarks_are_those_of_the_file(project: Project, tmp_path: Path) -> None:
    proposal = proposed(project, queries(tmp_path / "q", x="-- Said.\nSELECT id,\n amount / id AS y FROM orders"))
    (text,) = proposal.files.values()
    (remark,) = (one for one in proposal.imported[0].remarks if one.topic == "division")
    assert remark.line is not None
    assert "CAST(amount AS DOUBLE PRECISION) / id AS y" in text.splitlines()[remark.line - 1]
    assert text.splitlines()[remark.line - 2].strip().startswith("-- division: ")


def test_no_name_leads_out_of_the_project(project: Project, tmp_path: Path) -> None:
    names = ("../out", "/tmp/out", ".out", "a\\b", "a b")
    path = queries(tmp_path / "q", x=";\n".join(f'CREATE VIEW "{name}" AS SELECT 1 AS a' for name in names))
    proposal = proposed(project, path)
    assert all("is no name for an asset" in reason for reason in reasons(proposal).values())
    assert reasons(proposal).keys() == set(names)
    assert proposal.files == {}


def test_names_of_more_parts_are_told_apart() -> None:
    own: dict[RelationPath, str] = {("db", "main", "orders"): "orders"}
    reads: dict[str, list[RelationPath]] = {
        "orders": [("db", "raw", "orders")],
        "x": [("main", "orders"), ("db", "raw", "orders"), ("b", "c")],
    }
    assert named(own, reads) == {
        ("db", "raw", "orders"): "raw_orders",
        ("main", "orders"): "orders",
        ("b", "c"): "c",
    }
    assert named({}, {"x": [("a", "t"), ("b", "t")]}) == {("a", "t"): "t", ("b", "t"): "b_t"}


def test_a_path_without_queries_is_refused(project: Project, tmp_path: Path) -> None:
    with pytest.raises(NothingToImport, match="nothing to import"):
        read_models(tmp_path / "none")
    bad = tmp_path / "manifest.json"
    bad.write_text('{"metadata": {}}')
    with pytest.raises(NothingToImport, match=r"metadata\.dbt_schema_version"):
        read_models(bad)


# ---- dbt


def manifest(**changes: Any) -> dict[str, Any]:
    """Returns a manifest as dbt's schema v12 has it: two models, one of which reads the other, and a source."""

    def model(name: str, sql: str | None, materialized: str, **more: Any) -> dict[str, Any]:
        return {
            "resource_type": "model",
            "unique_id": f"model.shop.{name}",
            "package_name": "shop",
            "name": name,
            "alias": name,
            "database": "db",
            "schema": "main",
            "relation_name": f'"db"."main"."{name}"',
            "path": f"{name}.sql",
            "original_file_path": f"models/{name}.sql",
            "language": "sql",
            "raw_code": "",
            "compiled_code": sql,
            "description": "",
            "columns": {},
            "meta": {},
            "tags": [],
            "group": None,
            "config": {"enabled": True, "materialized": materialized, "meta": {}, "tags": [], "group": None},
            "depends_on": {"macros": [], "nodes": []},
            **more,
        }

    column: dict[str, Any] = {
        "name": "total",
        "description": "In euros; it's gross.",
        "data_type": None,
        "meta": {},
        "tags": [],
    }
    return {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "dbt_version": "1.10.0",
            "adapter_type": "duckdb",
        },
        "nodes": {
            "model.shop.orders": model("orders", 'select * from "db"."raw"."orders" where paid', "view", group="sales"),
            "model.shop.totals": model(
                "totals",
                'with orders as (select * from "db"."main"."orders")\n'
                "select customer, sum(amount) as total from orders group by all",
                "table",
                description="What each customer has paid.\n@see the wiki",
                columns={"total": column, "gone": {"name": "gone", "description": "Is no more."}},
                meta={"owner": "ana@example.com"},
                tags=["daily", "no good tag"],
            ),
            "model.shop.python": model("python", None, "table", language="python"),
            "model.shop.raw": model("uncompiled", None, "incremental"),
            "model.shop.between": model("between", "select 1 as a", "ephemeral", relation_name=None),
            "test.shop.unique": {
                "resource_type": "test",
                "name": "unique_totals",
                "columns": {},
                "config": {"materialized": "test"},
            },
        },
        "sources": {
            "source.shop.raw.orders": {
                "resource_type": "source",
                "name": "orders",
                "source_name": "raw",
                "identifier": "orders",
                "relation_name": '"db"."raw"."orders"',
                "description": "As the shop sends them.",
                "columns": {
                    "customer": {"name": "customer", "data_type": "varchar", "description": "Whose it is."},
                    "amount": {"name": "amount", "data_type": "decimal(12,2)", "description": ""},
                    "paid": {"name": "paid", "data_type": "boolean"},
                },
                "meta": {},
                "tags": ["raw"],
            }
        },
        "groups": {"group.shop.sales": {"name": "sales", "owner": {"name": "Sales Team", "email": None}}},
        "macros": {},
        "docs": {},
        "exposures": {},
        "metrics": {},
        **changes,
    }


def dbt(folder: Path, content: dict[str, Any]) -> Path:
    (folder / "target").mkdir(parents=True)
    (folder / "target" / "manifest.json").write_text(json.dumps(content))
    return folder


def test_dbts_models_come_in_with_what_is_written_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "p"
    (root / "assets").mkdir(parents=True)
    (root / "mz.toml").touch()
    path = dbt(tmp_path / "dbt", manifest())
    assert main(["--project", str(root), "import", str(path), "--format", "json"]) == 1  # some are left out
    told = json.loads(capsys.readouterr().out)
    left = {one["name"]: one["reason"] for one in told["queries"] if one["outcome"] == "left out"}
    assert left == {
        "python": "it is written in python",
        "uncompiled": 'it is not compiled; run "dbt compile"',
        "between": "it is ephemeral: dbt has put it into each query that reads it",
    }
    assert told["sources"] == ["assets/raw_orders.sql"]
    assert told["missing"] == {}
    loaded = {one.name: one for one in load_project(Project.load(root)).objects}
    assert loaded["raw_orders"].comment == "As the shop sends them."
    assert loaded["raw_orders"].column_comments == {"customer": "Whose it is."}
    assert [(one.name, str(one.type)) for one in loaded["raw_orders"].definition.relation_type.columns] == [
        ("customer", "text"),
        ("amount", "numeric(38,2)"),
        ("paid", "boolean"),
    ]
    orders, totals = loaded["orders"], loaded["totals"]
    assert (orders.definition.kind, orders.depends) == ("view", ("raw_orders",))
    assert (orders.annotations.group, orders.annotations.owners) == ("sales", ("team:Sales-Team",))
    assert (totals.definition.kind, totals.depends) == ("materialized view", ("orders",))
    assert totals.comment == "What each customer has paid.\n- @see the wiki"
    assert totals.annotations.owners == ("ana@example.com",)
    assert totals.annotations.tags == (("daily", ""),)
    assert totals.column_comments == {"total": "In euros; it's gross."}
    (unfit,) = (one for one in told["queries"][1]["remarks"] if one["topic"] == "annotation")
    assert "no good tag" in unfit["text"]


@pytest.mark.parametrize("materialized", ["materialized_view", "materializedview", "dynamic_table"])
def test_what_a_database_keeps_up_to_date_for_dbt_is_a_materialized_view(tmp_path: Path, materialized: str) -> None:
    content = manifest()
    content["nodes"]["model.shop.totals"]["config"]["materialized"] = materialized
    (totals,) = (one for one in read_models(dbt(tmp_path / "dbt", content)).models if one.name == "totals")
    assert (totals.kind, totals.reason) == ("materialized view", None)


def test_sources_of_unknown_types_must_exist_first(tmp_path: Path) -> None:
    project = Project.load(tmp_path / "p")
    content = manifest()
    del content["sources"]["source.shop.raw.orders"]["columns"]["paid"]["data_type"]
    path = dbt(tmp_path / "dbt", content)
    proposal = propose(project, read_models(path), SourceDialect.named("duckdb"))
    assert dict(proposal.missing) == {"raw_orders": ("orders",)}
    assert proposal.sources == ()
    catalog = {"customer": "VARCHAR", "amount": "DECIMAL(12,2)", "paid": "BOOLEAN"}
    columns = {name: {"name": name, "type": type_, "index": at} for at, (name, type_) in enumerate(catalog.items())}
    (path / "target" / "catalog.json").write_text(
        json.dumps({"nodes": {}, "sources": {"source.shop.raw.orders": {"columns": columns}}})
    )
    proposal = propose(project, read_models(path), SourceDialect.named("duckdb"))
    assert proposal.sources == ("assets/raw_orders.sql",)
    assert proposal.missing == {}


# ---- both on the same data

#: Queries of DuckDB whose translation is said to be exact, or is what it says on these data.
SAME = {
    "nulls": "SELECT id, row_number() OVER (ORDER BY amount DESC, id) AS n FROM orders",
    "texts": "SELECT concat(customer, NULL) AS a, substr(customer, -2) AS b, substr(customer, 0, 2) AS c FROM orders",
    "grouped": "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY ALL",
    "none": "SELECT sum(id) AS p, count(*) AS n FROM orders WHERE id > 100",
    "days": "SELECT date_diff('day', day, DATE '2024-03-01') AS d, year(day) AS y, day + INTERVAL 1 DAY FROM orders",
    "least": "SELECT greatest(amount, 1) AS g, least(amount, NULL) AS l FROM orders",
    "qualified": "SELECT id, customer FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY id) = 1",
    "upon": "SELECT g.customer, g.s FROM grouped g SEMI JOIN customers c ON c.name = g.customer",
    "cased": 'SELECT "ID" AS "Id", ORDERS.Customer FROM orders',
}


def test_results_of_both_are_the_same(filled: Engine, tmp_path: Path) -> None:
    dialect = SourceDialect.named("duckdb")
    proposal = proposed(filled.project, queries(tmp_path / "q", **SAME))
    assert reasons(proposal) == {}
    found = {one.name: one.compared for one in compared(filled.project, proposal, dialect, filled).imported}
    assert {name: said for name, said in found.items() if not str(said).startswith("same")} == {}
    assert found.keys() == SAME.keys()


def test_what_differs_is_shown(filled: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = queries(
        tmp_path / "q",
        counted="SELECT count_if(paid) AS n FROM orders WHERE id > 9",
        pattern=r"SELECT 'a\_b' LIKE 'a\_b' AS x",
    )
    assert main(["--project", str(filled.project.root), "import", str(path), "--dialect", "duckdb", "--check"]) == 1
    printed = capsys.readouterr().out
    assert "differs: here (0), there (NULL)" in printed
    assert "differs: here (False), there (True)" in printed
    assert (filled.project.assets / "counted.sql").exists()


def test_rows_are_compared_in_any_order() -> None:
    assert difference([(2, "b"), (1, None)], [(Decimal("1.0"), None), (2.0, "b")]) == "same, 2 rows"
    assert difference([(1,)], []) == "differs: 1 rows here, 0 there"
    assert difference([("a ",)], [("a",)]) == "differs: here (a ), there (a)"


def test_sparks_queries_are_compared_on_spark(project: Project, spark_config: SparkConfig, tmp_path: Path) -> None:
    path = queries(
        tmp_path / "q",
        texts="SELECT concat(customer, 'x') AS a, substr(customer, 0, 2) AS b, substr(customer, -2) AS c FROM orders",
        sums="SELECT customer, sum(amount) AS s, avg(id) AS m, count_if(paid) AS p FROM orders GROUP BY ALL",
        ordered="SELECT id, row_number() OVER (ORDER BY amount, id) AS n FROM orders",
        cut="SELECT id, cast(cast(amount AS double) AS int) AS i FROM orders",
    )
    quotients = queries(
        tmp_path / "d",
        quotients="SELECT id, amount / 4 AS q, id / 2 AS h, amount / (id + 1) AS r FROM main.orders",
        rounded="SELECT id, round(amount / 3, 2) AS r FROM orders",
        zero="SELECT id, 1 / (id - 1) AS q FROM orders",
    )
    spark, duckdb = SourceDialect.named("spark"), SourceDialect.named("duckdb")
    with Engine(project, spark=spark_config) as engine, Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
        engine.apply()
        for one in ROWS.strip().split(";\n"):
            connection.execute(one)
        connection.execute("UPDATE orders SET amount = 10.75 WHERE id = 1")
        proposal = proposed(project, path, "spark")
        assert reasons(proposal) == {}
        found = {one.name: one.compared for one in compared(project, proposal, spark, engine).imported}
        exact = compared(project, proposed(project, quotients), duckdb, engine).imported
    assert {one.name: str(one.compared).partition(".")[0] for one in exact} == {
        "quotients": "same, 4 rows",
        "rounded": "same, 4 rows",
        "zero": "differs: here it fails: division by zero",
    }
    assert found == {
        "texts": "same, 4 rows",
        "sums": "same, 3 rows",
        "ordered": "same, 4 rows",
        "cut": "differs: here (1, 11), there (1, 10)",
    }


# ---- TPC-DS


def tpcds(root: Path, dialect: str, names: list[str]) -> Proposal:
    """Returns what an import of some of TPC-DS's queries, as a dialect has them, would do."""
    (root / "assets").mkdir(parents=True)
    (root / "assets" / "tables.sql").write_text("".join(f"{one};\n" for one in texts.tables().values()))
    found = {name: texts.queries()[name] for name in names}
    if dialect != "duckdb":
        found = {name: sqlglot.transpile(text, read="duckdb", write=dialect)[0] for name, text in found.items()}
    return proposed(Project.load(root), queries(root / "q", **found), dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_tpcds_is_translated(dialect: str, tmp_path: Path) -> None:
    proposal = tpcds(tmp_path, dialect, ["q02", "q21", "q32", "q39", "q66", "q84", "q98"])
    assert reasons(proposal) == {}
    assert len(proposal.files) == 7
    topics = {remark.topic for one in proposal.imported for remark in one.remarks}
    assert topics >= {"division", "null order", "overflow", "rounding", "column name"}


@pytest.mark.deep
@pytest.mark.parametrize("dialect", ["duckdb", "spark", "databricks", "snowflake"])
def test_all_of_tpcds_is_translated(dialect: str, tmp_path: Path) -> None:
    proposal = tpcds(tmp_path, dialect, list(texts.queries()))
    assert reasons(proposal) == {}
    assert len(proposal.files) == 99
