"""A process that is told how much memory it may take stays within it, and needs no Spark for 400,000 rows.

What is asked is what the system has counted: the most memory that a process has ever had (`VmHWM`), which is all that
it maps, what it read of files, too. The data is made by another process, whose memory is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: How many bytes of memory the process may take. Python and what it loads take some 250 MB of it.
MEMORY = 704 << 20
ORDERS = 400_000

SQL = """
CREATE SOURCE customers (id integer NOT NULL, name text NOT NULL, city text NOT NULL, PRIMARY KEY (id))
    FROM FILES (FOLDER 'landing/customers') FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE orders (
    id integer NOT NULL, customer integer NOT NULL, at timestamp NOT NULL, status text NOT NULL,
    price numeric(15, 2) NOT NULL, quantity integer NOT NULL, note text, PRIMARY KEY (id)
) FROM FILES (FOLDER 'landing/orders') FORMAT JSON ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW sold AS
    SELECT o.id, c.city, o.at, o.price * o.quantity AS amount
    FROM orders o JOIN customers c ON c.id = o.customer WHERE o.status IN ('sent', 'kept');
CREATE MATERIALIZED VIEW by_customer AS
    SELECT c.id, c.name, count(*) AS n, sum(o.price * o.quantity) AS amount
    FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.id, c.name;
CREATE MATERIALIZED VIEW by_day AS
    SELECT city, date_trunc('day', at) AS day, count(*) AS n, sum(amount) AS amount FROM sold GROUP BY city, day;
CREATE MATERIALIZED VIEW by_label AS
    SELECT o.status, d.city, count(*) AS n, sum(length(o.note || c.name || c.city || d.name || o.status)) AS letters,
        sum(length(upper(o.note || c.name || d.name)) * o.price * o.quantity) AS amount
    FROM orders o JOIN customers c ON c.id = o.customer JOIN customers d ON d.id = o.quantity GROUP BY o.status, d.city;
CREATE MATERIALIZED VIEW largest AS
    SELECT DISTINCT ON (city) city, id, amount FROM sold ORDER BY city, amount DESC, id;
"""

#: Loads and hydrates what has landed, then takes a step.
CHILD = """
import json, sys
from pathlib import Path
from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import ManualClock

def refused():
    raise AssertionError("Spark is not needed")

root = Path(sys.argv[1])
with Engine(Project.load(root), clock=ManualClock(1_700_000_000_000), session=refused) as engine:
    engine.apply()
    for drop in range(2):
        if drop:
            for one in root.glob("later/*"):
                one.rename(root / "landing" / one.name / "1.jsonl")
        tick = engine.poll("default").tick
        report = engine.step("default", tick)
        assert not report.failures, [(one.name, one.reason, one.placements) for one in report.failures]
        rows = {one.name: one.stats.rows for one in report.collections}
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        print(json.dumps({"rows": rows, "most": int(status["VmHWM"].split()[0]) * 1024}))
"""


def order(number: int) -> dict[str, object]:
    return {
        "customer": number * 7 % 20_000,
        "at": f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d} 10:00:00",
        "status": ("new", "paid", "sent", "returned", "kept")[number % 5],
        "price": f"{number % 1000}.{number % 100:02d}",
        "quantity": number % 9,
        "note": f"note {number} " + "x" * (number % 120),
    }


def lines(key: str, rows: dict[int, dict[str, object]]) -> str:
    return "".join(f"{json.dumps({'key': {key: one}, 'value': value})}\n" for one, value in rows.items())


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a project's data, and of a thousandth of it that comes later."""
    root = tmp_path_factory.mktemp("landed")
    customers: dict[int, dict[str, object]] = {
        one: {"name": f"customer {one}", "city": f"city {one % 50}"} for one in range(20_000)
    }
    files: dict[str, dict[int, dict[str, object]]] = {
        "landing/customers/0.jsonl": customers,
        "landing/orders/0.jsonl": {one: order(one) for one in range(ORDERS)},
        "later/customers": {one: {**customers[one], "city": "another"} for one in range(0, 20_000, 1000)},
        "later/orders": {one: order(one + 3) for one in range(0, 2 * ORDERS, 2_000)},
    }
    for path, rows in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(lines("id", rows))
    return root


def most_taken(root: Path, landed: Path, memory: int | None) -> int:
    """Returns how many bytes a process took at most that loads a project, hydrates its views and takes a step."""
    (root / "assets").mkdir(parents=True)
    (root / "assets" / "all.sql").write_text(SQL)
    for path in landed.rglob("*"):
        if path.is_file():
            (root / path.relative_to(landed)).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, root / path.relative_to(landed))
    limit = "" if memory is None else f"memory = {memory}\n"
    (root / "mz.toml").write_text(f"[project]\nworkers = 0\n{limit}")
    told = subprocess.run(
        [sys.executable, "-c", CHILD, str(root)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    first, second = map(json.loads, told.stdout.splitlines())
    assert first["rows"]["orders"] == ORDERS
    assert 0 < second["rows"]["by_customer"] < ORDERS // 100
    return int(second["most"])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody tells how much memory was taken")
def test_a_process_stays_within_the_memory_that_it_may_take(tmp_path: Path, landed: Path) -> None:
    assert most_taken(tmp_path / "limited", landed, MEMORY) <= MEMORY


@pytest.mark.deep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody tells how much memory was taken")
def test_which_one_exceeds_that_is_told_nothing(tmp_path: Path, landed: Path) -> None:
    assert most_taken(tmp_path / "unlimited", landed, None) > MEMORY
