"""TPC-H's data, and a stream of refreshes, as files that arrive in a landing folder.

`tpchgen-cli` makes the data. A part of the orders is held back; each refresh then inserts some of these with their
lineitems, deletes others with theirs, and changes customers, parts and suppliers. Orders and lineitems arrive as JSON
lines, which can delete; customers, parts and suppliers as CSV with a header; what never changes as Parquet.

The same scale and seed always give the same files. By chance alone a refresh would leave many answers as they are, so
much of what it changes is what the queries ask for.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import random
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: The tables with their keys.
KEYS: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
#: The day of the first load, for which query 3 asks what is unshipped. Each refresh is a day later.
FIRST_DAY = dt.date(1995, 3, 15)
_FIXED = ("region", "nation", "partsupp")
_CHANGED = ("supplier", "customer", "part")

Row = dict[str, Any]

#: What makes rows matter to some queries.
_MATTERS: Mapping[str, Sequence[Row]] = {
    "part": (
        {"p_brand": "Brand#23", "p_container": "MED BOX", "p_type": "ECONOMY ANODIZED STEEL"},
        {"p_name": "forest green lace blush snow", "p_type": "SMALL PLATED BRASS", "p_size": 15},
        {"p_brand": "Brand#12", "p_container": "SM CASE", "p_type": "PROMO BURNISHED TIN", "p_size": 3},
    ),
    "supplier": (
        {"s_nationkey": 3},
        {"s_nationkey": 7},
        {"s_nationkey": 20},
        {"s_nationkey": 2, "s_comment": "slyly Customer ironic Complaints"},
    ),
    "customer": (
        {"c_mktsegment": "BUILDING", "c_nationkey": 6},
        {"c_mktsegment": "BUILDING", "c_nationkey": 2},
        {"c_phone": "13-715-945-6730", "c_acctbal": "9999.99"},
    ),
}
#: The same for new orders, each with its lineitems.
_ORDERS_MATTER: Sequence[tuple[Row, Row]] = (
    (
        {"o_orderdate": dt.date(1995, 3, 1)},
        {"l_shipdate": dt.date(1995, 4, 1), "l_quantity": 50, "l_extendedprice": "99999.99"},
    ),
    (
        {"o_orderdate": dt.date(1993, 11, 1)},
        {
            "l_shipdate": dt.date(1994, 1, 15),
            "l_commitdate": dt.date(1994, 1, 20),
            "l_receiptdate": dt.date(1994, 1, 25),
            "l_quantity": 5,
            "l_extendedprice": "99999.99",
            "l_discount": "0.06",
            "l_returnflag": "R",
            "l_shipmode": "MAIL",
        },
    ),
    (
        {"o_orderdate": dt.date(1995, 6, 1)},
        {
            "l_shipdate": dt.date(1996, 2, 1),
            "l_quantity": 5,
            "l_extendedprice": "99999.99",
            "l_shipmode": "AIR",
            "l_shipinstruct": "DELIVER IN PERSON",
        },
    ),
    (
        {"o_orderdate": dt.date(1993, 8, 1)},
        {
            "l_shipdate": dt.date(1995, 9, 10),
            "l_commitdate": dt.date(1995, 9, 15),
            "l_receiptdate": dt.date(1995, 9, 20),
        },
    ),
)


@dataclass(frozen=True)
class Refresh:
    """Is what one drop changes: for each table the rows that come, or replace others, and the keys that go."""

    upserts: Mapping[str, Sequence[Row]]
    deletes: Mapping[str, Sequence[tuple[int, ...]]]


class Feed:
    """Is a landing folder that fills.

    Args:
        landing: The folder.
        data: Where the generated tables are kept.
        scale: TPC-H's scale factor.
        seed: Decides what the refreshes change.
    """

    def __init__(self, landing: Path, data: Path, scale: float, seed: int) -> None:
        generate(data, scale)
        self._landing = landing
        self._random = random.Random(seed)
        self._drops = 0
        self._tables = {name: _table(data / f"{name}.parquet") for name in KEYS}
        self._rows: dict[str, list[Row]] = {name: self._tables[name].to_pylist() for name in _CHANGED}
        keys: list[int] = self._tables["orders"]["o_orderkey"].to_pylist()
        self._waiting = self._random.sample(keys, len(keys) // 20)
        self._live = sorted(set(keys) - set(self._waiting))
        for name in _FIXED:
            self._place(f"{name}/0.parquet", (data / f"{name}.parquet").read_bytes())

    def load(self) -> Refresh:
        """Drops the first load: all tables but the orders that are held back."""
        orders, lines = self._orders(self._live)
        fixed = {name: self._tables[name].to_pylist() for name in _FIXED}
        changed = {name: list(rows) for name, rows in self._rows.items()}
        return self._drop(Refresh(fixed | changed | {"orders": orders, "lineitem": lines}, {}))

    def refresh(self) -> Refresh:
        """Drops the next refresh: one in 400 orders comes, and as many go."""
        count = len(self._live) // 400
        come, self._waiting = self._waiting[:count], self._waiting[count:]
        go = set(self._random.sample(self._live, count))
        changed = {name: self._changed(name) for name in _CHANGED}
        orders, lines = self._orders(come)
        _come_to_matter(orders, lines, changed)
        gone = self._orders(go)
        self._live = sorted({*self._live, *come} - go)
        deletes = {
            name: [tuple(row[key] for key in KEYS[name]) for row in rows]
            for name, rows in zip(("orders", "lineitem"), gone, strict=True)
        }
        return self._drop(Refresh(changed | {"orders": orders, "lineitem": lines}, deletes))

    def _orders(self, keys: Iterable[int]) -> tuple[list[Row], list[Row]]:
        """Returns orders, and their lineitems."""
        wanted = pa.array(list(keys), pa.int64())
        orders, lines = self._tables["orders"], self._tables["lineitem"]
        return (
            orders.filter(pc.is_in(orders["o_orderkey"], wanted)).to_pylist(),
            lines.filter(pc.is_in(lines["l_orderkey"], wanted)).to_pylist(),
        )

    def _changed(self, name: str) -> list[Row]:
        """Changes some rows: every second one comes to matter to a query, the others take what other rows have."""
        rows = self._rows[name]
        # Every third customer has no orders at first, for which query 22 asks.
        able = range(2, len(rows), 3) if name == "customer" else range(len(rows))
        places = self._random.sample(able, 2 * len(_MATTERS[name]))
        for n, place in enumerate(places):
            matter = _MATTERS[name][n // 2]
            like = self._random.choice(rows)
            rows[place] = rows[place] | (matter if n % 2 else {column: like[column] for column in matter})
        return [rows[place] for place in places]

    def _drop(self, refresh: Refresh) -> Refresh:
        for name in _CHANGED:
            self._place(f"{name}/{self._drops}.csv", _csv(refresh.upserts[name]))
        for name in ("orders", "lineitem"):
            records = [_record(name, row) for row in refresh.upserts[name]]
            for key in refresh.deletes.get(name, ()):
                records.append({"key": dict(zip(KEYS[name], key, strict=True)), "value": None})
            self._place(f"{name}/{self._drops}.jsonl", _json_lines(records))
        midnight = dt.datetime.combine(FIRST_DAY + dt.timedelta(days=self._drops), dt.time(), dt.UTC)
        self._place("clock", str(int(midnight.timestamp()) * 1000).encode())
        self._drops += 1
        return refresh

    def _place(self, path: str, content: bytes) -> None:
        target = self._landing / path
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.tmp")
        unfinished.write_bytes(content)
        os.replace(unfinished, target)


def generate(folder: Path, scale: float) -> None:
    """Makes the eight tables as Parquet files, unless they are there."""
    if not (folder / "lineitem.parquet").exists():
        program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        command = [str(program), "parquet", "--quiet", "--scale-factor", str(scale), "--output-dir", str(folder)]
        subprocess.run(command, check=True, timeout=300)


def _come_to_matter(orders: list[Row], lines: list[Row], changed: Mapping[str, Sequence[Row]]) -> None:
    """Changes new orders: all are large, and the longest few are what queries ask for, of what just came to matter."""
    _, first, _, second, *_ = changed["customer"]
    parts, supplier = changed["part"][1::2], changed["supplier"][-1]
    for line in lines:
        line["l_quantity"] = 50
    lengths = Counter(line["l_orderkey"] for line in lines)
    longest = sorted(orders, key=lambda order: -lengths[order["o_orderkey"]])
    buyers = (first, second, second, first)
    for order, (of_order, of_lines), buyer in zip(longest, _ORDERS_MATTER, buyers, strict=False):
        order.update(of_order, o_custkey=buyer["c_custkey"])
        own = (line for line in lines if line["l_orderkey"] == order["o_orderkey"])
        for n, line in enumerate(own):
            part = parts[2 * n % len(parts)]
            line.update(of_lines, l_partkey=part["p_partkey"], l_suppkey=supplier["s_suppkey"])


def _table(path: Path) -> Any:
    """Returns a file's rows; Arrow filters no views of strings."""
    table = pq.read_table(path)
    plain = [pa.string() if pa.types.is_string_view(one.type) else one.type for one in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, plain, strict=True))))


def _record(name: str, row: Row) -> Row:
    key = {column: row[column] for column in KEYS[name]}
    return {"key": key, "value": {column: cell for column, cell in row.items() if column not in key}}


def _json_lines(records: Iterable[Row]) -> bytes:
    return "".join(f"{json.dumps(one, default=str)}\n" for one in records).encode()


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
