"""The example of a lakehouse does what its README says: views, sink and report are what a plain computation gives."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from deltalake import DeltaTable

import mz_dagster
from tests.command_line import dagster
from tests.demo.lakehouse import copied, delta_rows, expected
from tests.docs.test_pages import blocks, check, commands, run_own_commands


def readme_blocks(root: Path) -> Iterator[None]:
    """Runs the README's blocks of commands; yields after each."""
    for block in blocks(root / "README.md"):
        if block.info == "console":
            for command, printed in commands(block.text):
                if (found := run_own_commands(command, root)) is not None:
                    check(printed, found, command)
                else:
                    program, *arguments = shlex.split(command)
                    assert program == "dagster"
                    done = dagster(arguments, root, environment={"MZ_ENGINE": "local"})
                    assert done.returncode == 0, done.stdout + done.stderr
            yield


def test_two_days_of_the_readme(tmp_path: Path) -> None:
    root = copied(tmp_path)
    ordered: list[set[int]] = []
    for day, _ in enumerate(readme_blocks(root)):
        wanted = expected(root)
        with mz_dagster.connect(root) as connection:
            for view, rows in wanted.items():
                assert connection.execute(f"SELECT * FROM {view} ORDER BY 1").fetchall() == rows
        published = sorted(tuple(row.values()) for row in delta_rows(root / "lake" / "sales_by_city"))
        assert published == wanted["sales_by_city"]
        assert DeltaTable(root / "lake" / "sales_by_city").version() == day + 1  # after the empty one
        *_, report = sorted((root / "reports").iterdir())
        best = {city: (name, spent) for city, name, spent in wanted["best_customers"]}
        assert report.read_text().splitlines()[2:] == [
            f"- {city}: {orders} orders, {to_ship} of them to ship; {revenue} euros, most of them {best[city][0]}'s "
            f"({best[city][1]})"
            for city, orders, to_ship, revenue in sorted(wanted["sales_by_city"], key=lambda row: -row[3])
        ]
        ordered.append({row["order_id"] for row in delta_rows(root / "lake" / "orders")})
    first, second = ordered
    assert (len(first), len(first - second), len(second - first)) == (200, 20, 200)
    assert len([*(root / "reports").iterdir()]) == 2
