"""`mz-dagster import dbt-tests`: dbt's generic tests become lines above what they test, or are told why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mz_dagster.adapter import Project, load_project
from mz_dagster.cli import main
from mz_dagster.operations.importing import NothingToImport, propose_checks, write_checks

TABLES = """-- Orders.
CREATE TABLE orders (id integer, customer_id integer, status text, amount integer);

CREATE TABLE customers (id integer, name text); CREATE VIEW names AS SELECT name FROM customers;
"""
SCHEMA = """
version: 2
models:
  - name: orders
    columns:
      - name: id
        tests: [unique, not_null]
      - name: customer_id
        data_tests:
          - relationships:
              to: ref('customers')
              field: id
              config: {severity: warn}
          - not_null: {where: "amount > 0"}
      - name: status
        tests:
          - accepted_values:
              name: known_status
              arguments: {values: [new, "it's paid", 3]}
      - name: amount
        tests:
          - {name: amounts, test_name: accepted_values, values: [1, 2], quote: false, severity: WARN}
          - dbt_utils.accepted_range: {min_value: 0}
          - not_null: {config: {error_if: ">10"}}
          - unique: {enabled: false}
      - name: gone
        tests: [unique]
    tests:
      - unique: {column_name: customer_id}
      - unique: {column_name: "customer_id || status"}
  - name: nowhere
    columns:
      - name: id
        tests: [unique]
sources:
  - name: raw
    tables:
      - name: clients
        identifier: customers
        columns:
          - name: id
            tests: [not_null]
          - name: name
            tests: [relationships: {to: "{{ var('x') }}", field: id}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "p" / "assets").mkdir(parents=True)
    (tmp_path / "p" / "mz.toml").touch()
    (tmp_path / "p" / "assets" / "tables.sql").write_text(TABLES)
    (tmp_path / "dbt" / "models").mkdir(parents=True)
    (tmp_path / "dbt" / "models" / "schema.yml").write_text(SCHEMA)
    (tmp_path / "dbt" / "target").mkdir()
    (tmp_path / "dbt" / "target" / "other.yml").write_text("no: [yaml")
    return Project.load(tmp_path / "p")


def test_generic_tests_become_checks_and_the_rest_says_why_not(project: Project, tmp_path: Path) -> None:
    proposal = propose_checks(project, tmp_path / "dbt")
    assert not proposal.is_whole
    write_checks(proposal)
    text = (project.assets / "tables.sql").read_text()
    assert (
        text
        == """-- Orders.
-- @check unique(customer_id)
-- @check unique(id)
-- @check not_null(id)
-- @check relationships(customer_id, customers.id), severity warn
-- @check accepted_values(status, 'new', 'it''s paid', '3'), name known_status
-- @check accepted_values(amount, 1, 2), severity warn, name amounts
CREATE TABLE orders (id integer, customer_id integer, status text, amount integer);

-- @check not_null(id)
CREATE TABLE customers (id integer, name text); CREATE VIEW names AS SELECT name FROM customers;
"""
    )
    assert (project.assets / "checks" / "orders_not_null_customer_id.sql").read_text() == (
        "CREATE CHECK orders_not_null_customer_id ON orders AS SELECT * FROM (SELECT * FROM orders WHERE amount > 0) "
        "AS orders WHERE customer_id IS NULL;\n"
    )
    files = load_project(project)
    assert not files.faults
    written = {one.check for one in proposal.tests if one.check is not None}
    assert written == {one.name for one in files.objects if one.definition.kind == "check"}
    assert len(written) == 8
    why = {(one.on, one.test): one.reason for one in proposal.tests if one.reason is not None}
    expected = {
        ("orders", "unique(customer_id || status)"): "takes columns",
        ("orders", "dbt_utils.accepted_range(amount)"): "only unique",
        ("orders", "not_null(amount)"): "error_if decides",
        ("orders", "unique(amount)"): "disabled",
        ("orders", "unique(gone)"): '"gone" does not exist',
        ("nowhere", "unique(id)"): 'no "nowhere"',
        ("clients", "relationships(name)"): "by ref()",
    }
    assert why.keys() == expected.keys()
    assert all(expected[one] in str(reason) for one, reason in why.items()), why
    again = propose_checks(project, tmp_path / "dbt")
    assert not again.files
    assert sum("already" in str(one.reason) for one in again.tests) == 8


def test_the_command_reports_and_writes_nothing_when_dry(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--project", str(project.root), "import", "dbt-tests", str(tmp_path / "dbt"), "--dry-run"]
    assert main([*command, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)["tests"]
    assert [one["check"] for one in told][:2] == ["orders_unique_customer_id", None]
    assert main(command) == 1
    assert "left out: unique(id) of nowhere (models/schema.yml)" in capsys.readouterr().out
    assert (project.assets / "tables.sql").read_text() == TABLES


def test_where_there_is_nothing_says_so(project: Project, tmp_path: Path) -> None:
    for text in ("version: 2", "models: [", "models: {a: b}"):
        (tmp_path / "one.yml").write_text(text)
        with pytest.raises(NothingToImport) as caught:
            propose_checks(project, tmp_path / "one.yml")
        assert caught.value.hint
