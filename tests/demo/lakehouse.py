"""The example `examples/lakehouse`, copied as it is committed, and its views computed once more from its tables."""

from __future__ import annotations

import csv
import datetime as dt
import shutil
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "lakehouse"
Rows = list[tuple[Any, ...]]


def copied(folder: Path) -> Path:
    """Copies the example below a folder, without what it makes; returns the copy."""
    made = [line.strip("/") for line in (EXAMPLE / ".gitignore").read_text().split()]
    return Path(shutil.copytree(EXAMPLE, folder / EXAMPLE.name, ignore=shutil.ignore_patterns(*made)))


def delta_rows(table: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return rows


def expected(root: Path) -> dict[str, Rows]:
    """Returns what each view has to have, ordered by its first column."""
    with (root / "landing" / "customers" / "1.csv").open(encoding="utf-8") as file:
        customers = {int(row["customer_id"]): row for row in csv.DictReader(file)}
    by_city: dict[str, list[dict[str, Any]]] = defaultdict(list)
    spent: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    by_day: dict[dt.date, Decimal] = defaultdict(Decimal)
    for order in delta_rows(root / "lake" / "orders"):
        customer = customers[order["customer_id"]]
        by_city[customer["city"]].append(order)
        spent[customer["city"]][customer["name"]] += order["amount"]
        by_day[order["ordered_on"]] += order["amount"]
    week = dt.timedelta(days=6)
    return {
        "best_customers": [
            (city, *min(names.items(), key=lambda one: (-one[1], one[0]))) for city, names in sorted(spent.items())
        ],
        "sales_by_city": [
            (
                city,
                len(orders),
                sum(order["status"] == "placed" for order in orders),
                sum(order["amount"] for order in orders),
            )
            for city, orders in sorted(by_city.items())
        ],
        "weekly_revenue": [
            (day, revenue, sum(of for other, of in by_day.items() if day - week <= other <= day))
            for day, revenue in sorted(by_day.items())
        ],
    }
