"""A shop in three layers: an hour's changes against DuckDB recomputing all views; goal: 1.5 s, and no JVM.

Seven upsert sources of JSON lines, eight silver views and seven gold ones, with joins, distinct counts, windows over
weeks and a trailing day that ends with the newest event. The data is generated, from a seed. An hour is 4,859 changes
however much there is: scale 1 is 2.4 million rows, 0.02 is 50,000.

Measured are the first load with hydration, and, in a process that goes on, from landed files to all views readable:
seconds, and processor seconds of this process, which tell more on a busy machine. Rows of all views are compared with
DuckDB's in the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.small import SmallProject, small_project, source, upsert
from mz_dagster.adapter import Session
from mz_dagster.storage.spark import server_status

_ROWS = 2_400_000
_CHANGED = 4_859
_WARMUPS = 1
_BEGIN = datetime(2026, 1, 5)
_DAYS = 180

#: Columns by source; the first is the key. What part of all rows each has, and of an hour's changes.
_COLUMNS = {
    "customers": "id bigint NOT NULL, name text, email text, city text, tier text, joined date",
    "products": "id bigint NOT NULL, name text, category text, price numeric(10,2), cost numeric(10,2)",
    "orders": "id bigint NOT NULL, customer_id bigint, status text, made_at timestamp",
    "items": "id bigint NOT NULL, order_id bigint, product_id bigint, quantity integer, price numeric(10,2)",
    "payments": "id bigint NOT NULL, order_id bigint, amount numeric(12,2), method text, made_at timestamp",
    "stock": "id bigint NOT NULL, product_id bigint, warehouse text, quantity integer",
    "clicks": "id bigint NOT NULL, customer_id bigint, product_id bigint, kind text, made_at timestamp",
}
_PARTS = {
    "customers": 0.02, "products": 0.002, "orders": 0.12, "items": 0.36, "payments": 0.12, "stock": 0.008,
    "clicks": 0.37,
}  # fmt: skip
_CHANGES = {
    "customers": 60, "products": 10, "orders": 600, "items": 1_600, "payments": 550, "stock": 239, "clicks": 1_800,
}  # fmt: skip
_DELETED = 0.02

#: The views, in order; their SQL is the same for both.
VIEWS = {
    "silver_customers": "SELECT id, trim(name) AS name, lower(email) AS email, city, coalesce(tier, 'none') AS tier, "
    "joined FROM customers WHERE email IS NOT NULL",
    "silver_products": "SELECT id, name, category, price, price - cost AS margin FROM products WHERE price > 0",
    "silver_orders": "SELECT o.id, o.customer_id, c.city, c.tier, o.made_at, date_trunc('day', o.made_at) AS day "
    "FROM orders o JOIN silver_customers c ON o.customer_id = c.id WHERE o.status <> 'cancelled'",
    "silver_items": "SELECT i.id, i.order_id, i.product_id, p.category, i.quantity, i.quantity * i.price AS amount, "
    "i.quantity * p.margin AS margin FROM items i JOIN silver_products p ON i.product_id = p.id WHERE i.quantity > 0",
    "silver_payments": "SELECT order_id, count(*) AS payments, sum(amount) AS paid, max(made_at) AS last_at "
    "FROM payments GROUP BY order_id",
    "silver_stock": "SELECT product_id, sum(quantity) AS quantity, count(*) AS warehouses FROM stock "
    "GROUP BY product_id",
    "silver_clicks": "SELECT k.id, k.customer_id, k.product_id, p.category, k.kind, k.made_at "
    "FROM clicks k JOIN silver_products p ON k.product_id = p.id",
    "silver_lines": "SELECT o.id AS order_id, o.customer_id, o.city, o.tier, o.made_at, o.day, i.product_id, "
    "i.category, i.quantity, i.amount, i.margin FROM silver_orders o JOIN silver_items i ON i.order_id = o.id",
    "gold_daily": "SELECT day, category, sum(amount) AS revenue, sum(margin) AS margin, count(*) AS lines, "
    "count(DISTINCT order_id) AS orders FROM silver_lines GROUP BY day, category",
    "gold_customers": "SELECT l.customer_id, l.tier, sum(l.amount) AS spent, count(DISTINCT l.order_id) AS orders, "
    "count(DISTINCT l.category) AS categories, max(l.made_at) AS last_at FROM silver_lines l "
    "GROUP BY l.customer_id, l.tier",
    "gold_weeks": "SELECT category, week, revenue, lag(revenue) OVER w AS before, "
    "sum(revenue) OVER (PARTITION BY category ORDER BY week ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS four, "
    "rank() OVER (PARTITION BY week ORDER BY revenue DESC) AS place FROM (SELECT category, "
    "date_trunc('week', day) AS week, sum(revenue) AS revenue FROM gold_daily GROUP BY category, "
    "date_trunc('week', day)) t WINDOW w AS (PARTITION BY category ORDER BY week)",
    "gold_funnel": "SELECT k.category, k.kind, count(*) AS clicks, count(DISTINCT k.customer_id) AS customers "
    "FROM silver_clicks k GROUP BY k.category, k.kind",
    "gold_day": "SELECT k.category, count(*) AS clicks, count(DISTINCT k.product_id) AS products "
    "FROM silver_clicks k CROSS JOIN (SELECT max(made_at) AS newest FROM clicks) n "
    "WHERE k.made_at > n.newest - INTERVAL '1 day' GROUP BY k.category",
    "gold_best": "SELECT category, product_id, sold, place FROM (SELECT category, product_id, sold, "
    "row_number() OVER (PARTITION BY category ORDER BY sold DESC, product_id) AS place FROM (SELECT category, "
    "product_id, sum(quantity) AS sold FROM silver_items GROUP BY category, product_id) s) r WHERE place <= 10",
    "gold_cover": "SELECT p.category, sum(s.quantity) AS stocked, count(*) AS products, "
    "sum(CASE WHEN s.quantity < 20 THEN 1 ELSE 0 END) AS short FROM silver_products p "
    "JOIN silver_stock s ON s.product_id = p.id GROUP BY p.category",
}

Row = dict[str, Any]


class OtherRows(Exception):
    """Reports a view whose rows are not DuckDB's."""


def run(bench: Bench) -> None:
    """Measures first load and hours, compares all rows, prints and records."""
    shop = Shop(round(_ROWS * bench.scale))
    sources = [source(name, columns, key="id") for name, columns in _COLUMNS.items()]
    views = [f"CREATE MATERIALIZED VIEW {name} AS {text};" for name, text in VIEWS.items()]
    with small_project(bench, "\n".join([*sources, *views]), sources=_COLUMNS) as project:
        land(project, "0", shop.first())
        loaded, busy = processed(project)
        say(f"  first load: {loaded:.1f} s, {busy:.1f} s of the processor")
        walls, works = [], []
        for number in range(_WARMUPS + bench.repetitions):
            land(project, str(number + 1), shop.hour())
            wall, work = processed(project)
            say(f"  {round_name(number, _WARMUPS)}: {wall:.2f} s, {work:.2f} s of the processor")
            if number >= _WARMUPS:
                walls.append(wall)
                works.append(work)
        recomputed = compared(project, shop, bench.repetitions)
    step, processor = Timing(tuple(walls)), Timing(tuple(works))
    ratio, is_started = Ratio(step, recomputed), server_status(bench.spark.state_dir) is not None
    bench.results.record(
        f"medallion.{bench.scale_key}",
        {
            "rows": sum(map(len, shop.tables.values())), "first_load": loaded, "first_load_processor": busy,
            "hour": step, "hour_processor": processor, "duckdb": recomputed, "hour_over_duckdb": ratio,
            "jvm_started": is_started,
        },
    )  # fmt: skip
    head = ("rows", "first load", "an hour", "its processor time", "DuckDB", "hour / DuckDB", "JVM")
    rows = f"{sum(map(len, shop.tables.values()))}"
    jvm = "started" if is_started else "none"
    print(table(head, [(rows, loaded, step, processor, recomputed, ratio, jvm)]))


def land(project: SmallProject, name: str, records: Mapping[str, Iterable[Row]]) -> None:
    """Lets a file arrive for each source."""
    for one, of_one in records.items():
        project.drop(one, name, of_one)


def processed(project: SmallProject) -> tuple[float, float]:
    """Brings all views to what has landed, and returns the seconds it took, and those of the processor."""
    before = time.process_time()
    seconds, _ = timed(lambda: project.step(project.poll()))
    return seconds, time.process_time() - before


def compared(project: SmallProject, shop: Shop, repetitions: int) -> Timing:
    """Compares the rows of all views with DuckDB's, and returns how long that one recomputes them.

    Raises:
        OtherRows: They are not equal.
    """
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        shop.fill(connection)
        seconds = []
        for _ in range(repetitions):
            took, _ = timed(_recomputed, connection)
            seconds.append(took)
        session = Session(project.engine)
        for name in VIEWS:
            ours = sorted(map(repr, map(_plain, session.execute(f"SELECT * FROM {name}").rows)))
            theirs = sorted(map(repr, map(_plain, connection.execute(f"SELECT * FROM {name}").fetchall())))
            if ours != theirs:
                other = [one for one in zip(ours, theirs, strict=False) if one[0] != one[1]]
                raise OtherRows(f"{name}: {len(ours)} rows, DuckDB has {len(theirs)}; {other[:1]}")
    return Timing(tuple(seconds))


def _recomputed(connection: duckdb.DuckDBPyConnection) -> None:
    for name, text in VIEWS.items():
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS {text}")


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    """Returns a row whose values are equal only if their texts are."""
    return tuple(map(_cell, row))


def _cell(value: Any) -> Any:
    if isinstance(value, Decimal | int):
        return f"{Decimal(value).normalize():f}"
    return datetime.combine(value, datetime.min.time()) if type(value) is date else value


@dataclass
class Shop:
    """Is the data: what each source's keys hold.

    Attributes:
        rows: How many there are about, in the beginning.
        tables: By source, then by key.
    """

    rows: int
    tables: dict[str, dict[int, Row]] = field(default_factory=lambda: {name: {} for name in _COLUMNS})
    _dice: random.Random = field(default_factory=lambda: random.Random(20))
    _next_ids: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COLUMNS, 0))
    _newest: datetime = _BEGIN + timedelta(days=_DAYS)

    def first(self) -> dict[str, Iterator[Row]]:
        """Returns the records that fill all sources, by source, each to be taken in its turn."""
        return {name: self._filled(name, max(20, round(self.rows * part))) for name, part in _PARTS.items()}

    def _filled(self, name: str, count: int) -> Iterator[Row]:
        for id in range(count):
            # What happens later has a greater id, as it mostly does.
            at = _BEGIN + timedelta(seconds=_DAYS * 86_400 * id // count)
            yield self._put(name, id, at)

    def hour(self) -> dict[str, list[Row]]:
        """Returns the records of the next hour's changes, by source."""
        begin, self._newest = self._newest, self._newest + timedelta(hours=1)
        return {name: [self._change(name, begin) for _ in range(count)] for name, count in _CHANGES.items()}

    def fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Makes the tables in DuckDB."""
        for name, columns in _COLUMNS.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            names = [one.split()[0] for one in columns.split(", ")]
            rows = self.tables[name].values()
            given = pa.table({one: pa.array([row[one] for row in rows], pa.string()) for one in names})
            connection.register("given", given)
            connection.execute(f"INSERT INTO {name} SELECT * FROM given")
            connection.unregister("given")

    def _change(self, name: str, begin: datetime) -> Row:
        at = begin + timedelta(seconds=self._dice.randrange(3600))
        held, next_id = self.tables[name], self._next_ids[name]
        is_growing = name in ("orders", "items", "payments", "clicks")
        if is_growing and self._dice.random() < 0.8:
            return self._put(name, next_id, at)
        id = self._dice.randrange(next_id)
        if id in held and self._dice.random() < _DELETED and is_growing:
            del held[id]
            return {"key": {"id": id}, "value": None}
        return self._put(name, id, at)

    def _put(self, name: str, id: int, at: datetime) -> Row:
        row = {"id": id, **self._made(name, id, at)}
        self._next_ids[name] = max(self._next_ids[name], id + 1)
        self.tables[name][id] = {key: None if cell is None else str(cell) for key, cell in row.items()}
        return dict(upsert(row, key="id"))

    def _made(self, name: str, id: int, at: datetime) -> Row:
        dice = self._dice
        match name:
            case "customers":
                email = None if dice.random() < 0.01 else f"Customer{id}@Example.org"
                tier = dice.choice(("gold", "silver", "bronze", None))
                joined = str((at - timedelta(days=dice.randrange(900))).date())
                city = f"city {dice.randrange(80)}"
                return {"name": f" Customer {id} ", "email": email, "city": city, "tier": tier, "joined": joined}
            case "products":
                price = dice.randrange(100, 50_000)
                category = f"category {dice.randrange(24)}"
                return {"name": f"product {id}", "category": category, "price": _money(price),
                        "cost": _money(price * 6 // 10)}  # fmt: skip
            case "orders":
                status = dice.choice(("new", "paid", "sent", "sent", "sent", "cancelled"))
                return {"customer_id": self._any("customers"), "status": status, "made_at": str(at)}
            case "items":
                return {"order_id": self._any("orders"), "product_id": self._any("products"),
                        "quantity": dice.randrange(6), "price": _money(dice.randrange(100, 50_000))}  # fmt: skip
            case "payments":
                return {"order_id": self._any("orders"), "amount": _money(dice.randrange(100, 200_000)),
                        "method": dice.choice(("card", "transfer", "cash")), "made_at": str(at)}  # fmt: skip
            case "stock":
                return {"product_id": self._any("products"), "warehouse": f"w{dice.randrange(5)}",
                        "quantity": dice.randrange(100)}  # fmt: skip
            case _:
                kind = dice.choice(("view", "view", "view", "cart", "buy"))
                return {"customer_id": self._any("customers"), "product_id": self._any("products"), "kind": kind,
                        "made_at": str(at)}  # fmt: skip

    def _any(self, name: str) -> int:
        return self._dice.randrange(max(1, self._next_ids[name]))


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
