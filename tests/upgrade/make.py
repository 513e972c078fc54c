"""Makes the project that a release has to open; see README.md. Uses nothing but the public surface of that release.

python make.py FOLDER ARCHIVE
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.clock import ManualClock

START = 1_700_000_000_000
SECOND = 1000
VIEWS = {
    "joined": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "outer_joined": "SELECT c.name, o.id, p.price FROM customers c LEFT JOIN orders o ON o.customer = c.id "
    "FULL JOIN prices p ON p.item = o.item",
    "totals": "SELECT customer, count(*) AS n, sum(amount) AS total, avg(weight) AS mean, min(item) AS first, "
    "max(amount) AS most, string_agg(item, ',' ORDER BY id) AS items FROM orders GROUP BY customer",
    "everything": "SELECT count(*) AS n, sum(amount) AS total FROM orders",
    "top": "SELECT id, customer, amount FROM orders ORDER BY amount DESC LIMIT 3",
    "recent": "SELECT id, item FROM orders WHERE mz_now() < at + INTERVAL '60 s'",
    "idle": "SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount, id) AS place FROM orders",
    "paired": "SELECT a.customer, count(*) AS n FROM orders a, orders b WHERE a.item = b.item AND "
    "((a.customer = 1 AND b.amount > 20) OR (a.customer = 2 AND b.amount > 10)) AND "
    "((b.customer = 3 AND a.amount > 10) OR (b.customer = 2 AND a.amount > 20)) GROUP BY a.customer",
    "of_totals": "SELECT t.customer, t.total * 2 AS twice, b.name FROM totals t JOIN buyers b ON b.id = t.customer",
}
MADE = [
    "CREATE TABLE customers (id int NOT NULL, name text)",
    "CREATE SOURCE orders (id int, customer int, item text, amount numeric(12, 2), weight double precision, "
    "at timestamptz) FROM FILES (FOLDER 'landing/orders') FORMAT JSON",
    "CREATE SOURCE prices (item text, price int, PRIMARY KEY (item)) FROM FILES (FOLDER 'landing/prices') "
    "FORMAT JSON ENVELOPE UPSERT",
    "CREATE VIEW buyers AS SELECT DISTINCT c.id, c.name FROM customers c JOIN orders o ON o.customer = c.id",
    *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()),
    "CREATE INDEX joined_name ON joined (name)",
    "CREATE INDEX joined_amount ON joined (amount)",
    "CREATE INDEX buyers_id ON buyers (id)",
]


def order(id: int, customer: int, item: str, amount: str, weight: float, at: int) -> dict[str, Any]:
    second = (at - START) // SECOND
    moment = f"2023-11-14T22:{13 + (20 + second) // 60:02}:{(20 + second) % 60:02}Z"
    return {"id": id, "customer": customer, "item": item, "amount": amount, "weight": weight, "at": moment}


#: At each second after the start: statements, orders that land, and the price of an item that lands.
HISTORY: dict[int, tuple[list[str], list[tuple[int, int, str, str, float]], tuple[str, int] | None]] = {
    10: (["INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo'), (3, NULL), (4, 'Dee')"], [], ("nut", 2)),
    20: ([], [(1, 1, "nut", "12.50", 0.1), (2, 2, "nut", "30.00", 0.2), (3, 3, "bolt", "7.25", 1e300)], None),
    30: (["UPDATE customers SET name = 'Bob' WHERE id = 2"], [(4, 2, "bolt", "12.50", -1e300)], ("nut", 3)),
    45: (["DELETE FROM customers WHERE id = 4"], [(5, 3, "nut", "55.00", 0.3), (6, 1, "gear", "55.00", 2.5)], None),
    75: (["INSERT INTO customers VALUES (5, 'Eve'), (5, 'Eve')"], [], ("gear", 9)),
    90: ([], [(7, 5, "gear", "0.01", 0.0), (8, 9, "bolt", "99.99", 4.0)], ("bolt", 1)),
}


def land(root: Path, source: str, name: str, records: list[dict[str, Any]]) -> None:
    path = root / "landing" / source / name
    path.with_suffix(".tmp").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    path.with_suffix(".tmp").rename(path)


def main() -> None:
    root, archive = Path(sys.argv[1]), Path(sys.argv[2])
    for folder in ("orders", "prices"):
        (root / "landing" / folder).mkdir(parents=True)
    clock = ManualClock(START)
    names = ["customers", "orders", "prices", *VIEWS]
    answers: dict[str, dict[str, list[str]]] = {}
    with Connection(Engine(Project.load(root), clock=clock), Isolation.STRICT_SERIALIZABLE) as connection:
        for statement in MADE:
            connection.execute(statement)
        for second, (statements, orders, price) in HISTORY.items():
            clock.advance(START + second * SECOND - clock.now_ms())
            for statement in statements:
                connection.execute(statement)
            if orders:
                land(root, "orders", f"{second:03}.jsonl", [order(*one, at=clock.now_ms()) for one in orders])
            if price is not None:
                key = {"item": price[0]}
                land(root, "prices", f"{second:03}.jsonl", [{"key": key, "value": key | {"price": price[1]}}])
            clock.advance(SECOND)
            poll = connection.engine.poll("default")
            if poll.tick is not None:
                report = connection.engine.step("default", poll.tick)
                assert not report.failures, report
        for second in (20, 25, 35, 50, 70, 80, 91):
            at = START + second * SECOND
            answers[str(at)] = {
                name: sorted(map(repr, connection.execute(f"SELECT * FROM {name} AS OF {at}").fetchall()))
                for name in names
            }
    (root / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(root, arcname=".", filter=lambda one: None if one.name.startswith("./.mz/spark") else one)


if __name__ == "__main__":
    main()
