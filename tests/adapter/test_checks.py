"""Checks are views of their violations: what rules say, what sessions and files make of them, and what is held up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from mz_dagster.adapter import (
    Action,
    BadProjectFile,
    ChangePlan,
    CheckResult,
    Connection,
    NotAllApplied,
    NoValidTimestamp,
    apply_project,
    check_results,
    load_project,
    preview_changes,
)
from mz_dagster.adapter.checking import last_held
from mz_dagster.catalog import StillNeeded, TickMinted
from mz_dagster.compute import Outcome, StepReport
from mz_dagster.compute.step import sinks, violations
from mz_dagster.errors import Error
from mz_dagster.sql.check_statement import parse_check_rule
from mz_dagster.sql.errors import (
    InvalidSyntax,
    InvalidTableDefinition,
    QueryOfTwoTimelines,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectKind,
)
from tests.errors import says_what_to_do
from tests.opened import opened

TIMELINE = "default"
HOUR = timedelta(hours=1)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE customers (id integer)")
        connection.execute(
            "CREATE TABLE orders (id integer, customer integer, amount integer, status text, at timestamp)"
        )
        yield connection


def step(connection: Connection) -> StepReport:
    """Mints a tick and steps to it."""
    engine, catalog = connection.engine, connection.engine.catalog
    tick = catalog.write_ts(TIMELINE, engine.now(TIMELINE))
    assert isinstance(catalog.mint_tick(TIMELINE, tick, {}, catalog.last_tick(TIMELINE)), TickMinted)
    return engine.step(TIMELINE, tick)


def said(connection: Connection, time: int | None = None) -> dict[str, CheckResult]:
    engine = connection.engine
    return {str(one.check.name): one for one in check_results(engine, engine.catalog.objects("check"), time)}


def refused(connection: Connection, kind: type[Error], sql: str) -> None:
    with pytest.raises(kind) as caught:
        connection.execute(sql)
    assert caught.value.hint or caught.value.position


# ---- rules


def test_a_rule_says_its_options_in_any_order() -> None:
    rule = parse_check_rule('not_null(a, "B c"), name known, severity warn')
    assert rule.arguments == ("a", '"B c"')
    assert rule.statement("s", "T x") == (
        'CREATE CHECK s.known ON s."T x" SEVERITY WARN AS SELECT * FROM s."T x" WHERE a IS NULL OR "B c" IS NULL'
    )
    assert parse_check_rule("expression(a > 0 OR (b, 1) = (1, 2)) blocking").statement(None, "t") == (
        "CREATE CHECK t_expression_a_0_or_b_1_1_2 ON t BLOCKING AS SELECT * FROM t WHERE NOT (a > 0 OR (b, 1) = (1, 2))"
    )
    assert parse_check_rule("on s.t severity warn").on == "s.t"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "says nothing"),
        ("uniqe(a)", 'no check "uniqe"'),
        ("unique()", "takes columns"),
        ("unique(a + 1)", "takes columns"),
        ("unique(a", "not closed"),
        ("unique(a) severity high", "WARN or ERROR"),
        ("unique(a) now", "end of the statement"),
        ("unique(a) blocking severity warn", "holds nothing up"),
        ("accepted_values(a)", "takes a column"),
        ("accepted_values(a, 1, NULL)", "beside NULL"),
        ("relationships(a, b)", "column of another object"),
        ("row_count(many)", "compared with"),
        ("freshness(a, 1)", "how old"),
        ("on", "a name"),
    ],
)
def test_what_is_no_rule_says_why(text: str, why: str) -> None:
    with pytest.raises((InvalidSyntax, InvalidTableDefinition), match=why):
        parse_check_rule(text)


# ---- in a session


def test_a_check_is_made_shown_renamed_and_dropped_as_a_view_is(connection: Connection) -> None:
    connection.execute("CREATE CHECK positive ON orders SEVERITY WARN AS SELECT id FROM orders WHERE amount < 0")
    connection.execute("CREATE CHECK IF NOT EXISTS positive ON orders AS SELECT 1 AS x")
    connection.execute("CREATE CHECK known BLOCKING AS SELECT id FROM orders WHERE customer IS NULL")
    connection.execute("INSERT INTO orders VALUES (1, 1, -5), (2, NULL, 5), (3, NULL, -5)")
    step(connection)
    assert connection.execute("SHOW CHECKS").fetchall() == [
        ("known", "orders", "error", "YES", "2"),
        ("positive", "orders", "warn", "NO", "2"),
    ]
    known = (
        "SELECT name, severity, blocking FROM mz_checks WHERE on_id = (SELECT id FROM mz_objects WHERE name = 'orders')"
    )
    assert sorted(connection.execute(known).fetchall()) == [("known", "error", True), ("positive", "warn", False)]
    listed = "SELECT matviewname, definition FROM pg_matviews WHERE matviewname = 'known'"
    assert connection.execute(listed).fetchall() == [("known", " SELECT id FROM orders WHERE customer IS NULL;")]
    assert connection.execute("SHOW CHECKS LIKE 'k%'").fetchall() == [("known", "orders", "error", "YES", "2")]
    assert Counter(connection.execute("SELECT * FROM known").fetchall()) == {(2,): 1, (3,): 1}
    assert said(connection)["positive"].sample is not None
    connection.execute("ALTER TABLE orders RENAME TO orders_of_old")
    connection.execute("ALTER CHECK positive RENAME TO is_positive")
    (shown,) = connection.execute("SHOW CREATE CHECK is_positive").fetchall()
    assert shown[1] == (
        "CREATE CHECK is_positive ON orders_of_old SEVERITY WARN AS SELECT id FROM orders_of_old AS orders "
        "WHERE amount < 0"
    )
    (plan,) = [row for row in connection.execute("EXPLAIN is_positive").fetchall() if "writes per step" in row[0]]
    assert plan == ("writes per step: at most 1",), "it keeps no state"
    refused(connection, StillNeeded, "DROP TABLE orders_of_old")
    connection.execute("DROP CHECK known")
    connection.execute("DROP TABLE orders_of_old CASCADE")
    assert connection.execute("SHOW CHECKS").fetchall() == []


def test_what_is_no_check_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE elsewhere (id integer) IN TIMELINE other")
    for kind, sql in (
        (UndefinedTable, "CREATE CHECK c ON nothing AS SELECT id FROM orders"),
        (UndefinedColumn, "CREATE CHECK c ON orders AS SELECT nothing FROM orders"),
        (InvalidTableDefinition, "CREATE CHECK c AS SELECT o.id FROM orders o, customers c"),
        (InvalidTableDefinition, "CREATE CHECK c AS SELECT 1 AS x"),
        (InvalidTableDefinition, "CREATE CHECK c ON orders SEVERITY WARN BLOCKING AS SELECT id FROM orders"),
        (QueryOfTwoTimelines, "CREATE CHECK c ON elsewhere AS SELECT id FROM orders"),
        (InvalidSyntax, "CREATE CHECK c ON orders AS unique(id)"),
    ):
        refused(connection, kind, sql)
    connection.execute("CREATE CHECK c AS SELECT id FROM orders")
    refused(connection, WrongObjectKind, "CREATE CHECK d ON c AS SELECT id FROM c")
    refused(connection, Error, "CREATE CHECK c AS SELECT id FROM orders")
    refused(connection, WrongObjectKind, "DROP MATERIALIZED VIEW c")


def test_an_error_is_no_answer(connection: Connection) -> None:
    connection.execute("CREATE CHECK share ON orders AS SELECT id FROM orders WHERE 100 / amount > 5")
    connection.execute("INSERT INTO orders VALUES (1, 1, 0)")
    step(connection)
    (one,) = said(connection).values()
    assert not one.holds
    assert one.count is None
    assert "division by zero" in str(one.reason)
    assert connection.execute("SHOW CHECKS").fetchall()[0][-1].startswith("unknown: ")
    connection.execute("DELETE FROM orders")
    step(connection)
    assert said(connection)["share"].holds


# ---- what a tick costs


def test_a_tick_costs_a_check_what_changed(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.execute("INSERT INTO customers SELECT * FROM generate_series(1, 1000)")
    connection.execute("INSERT INTO orders SELECT g, g % 1000 + 1, 1, 'new' FROM generate_series(1, 20000) g")
    rules = (
        "unique(id)",
        "not_null(id)",
        "accepted_values(status, 'new')",
        "row_count(>= 1)",
        "expression(amount > 0)",
    )
    for rule in rules:
        connection.execute(parse_check_rule(rule).statement(None, "orders"))
    step(connection)
    with monkeypatch.context() as unread:
        unread.setattr(violations, "stored_table", None)  # of a check that always held nothing is read
        assert all(one.holds for one in said(connection).values())
    connection.execute("INSERT INTO orders VALUES (7, 1, 1, 'new')")
    report = step(connection)
    read = {one.name: one.rows_read for one in report.collections if one.name.startswith("orders_")}
    assert len(read) == 7, "two of the checks keep a state"
    # That of groups is read by buckets, as `tests/compute/test_work.py` shows of a million; here it is one file.
    assert read.pop("orders_unique_id (arrangement 1)") <= 20001
    assert sum(read.values()) < 20, read
    assert [name for name, one in said(connection).items() if not one.holds] == ["orders_unique_id"]


# ---- in a project's files


SQL = """
CREATE TABLE customers (id integer);
-- Orders.
-- @check unique(id), blocking
-- @check not_null(id, amount), severity warn
-- @check relationships(customer, customers.id), name known
CREATE TABLE orders (id integer, customer integer, amount integer);
-- @check row_count(>= 1)
CREATE VIEW large AS SELECT * FROM orders WHERE amount > 100;
CREATE CHECK few_customers AS SELECT count(*) AS n FROM customers HAVING count(*) > 9;
"""
QUERY = """
-- Nobody orders for less than nothing.
-- @check on orders severity warn
SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer WHERE o.amount < 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "assets" / "checks").mkdir(parents=True)
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    (tmp_path / "assets" / "checks" / "amounts.sql").write_text(QUERY)
    with opened(tmp_path) as connection:
        apply_project(connection.engine)
        yield connection


def changed(connection: Connection, *edits: tuple[str, str]) -> ChangePlan:
    path = connection.engine.project.assets / "all.sql"
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    try:
        return apply_project(connection.engine)
    except NotAllApplied as error:
        return error.plan


def test_files_say_checks_above_objects_and_as_queries(project: Connection) -> None:
    assert project.execute("SHOW CHECKS").fetchall() == [
        ("amounts", "orders", "warn", "NO", "unknown: it is not hydrated yet"),
        ("few_customers", "customers", "error", "NO", "unknown: it is not hydrated yet"),
        ("known", "orders", "error", "NO", "unknown: it is not hydrated yet"),
        ("large_row_count", "large", "error", "NO", "unknown: it is not hydrated yet"),
        ("orders_not_null_id_amount", "orders", "warn", "NO", "unknown: it is not hydrated yet"),
        ("orders_unique_id", "orders", "error", "YES", "unknown: it is not hydrated yet"),
    ]
    step(project)
    assert [row[-1] for row in project.execute("SHOW CHECKS").fetchall()] == ["0", "0", "0", "1", "0", "0"]
    objects = {one.name: one for one in load_project(project.engine.project).objects}
    assert objects["orders"].comment == "Orders."
    assert objects["amounts"].comment == "Nobody orders for less than nothing."
    assert (objects["amounts"].line, objects["known"].line) == (4, 6)


def test_a_check_comes_and_goes_with_its_line(project: Connection) -> None:
    step(project)
    before = {row.name: row.id for row in project.engine.catalog.objects("check")}
    plan = changed(
        project,
        ("-- @check unique(id), blocking\n", ""),
        (", severity warn", " blocking"),
        ("row_count(>= 1)", "row_count(>= 2)"),
        ("-- Orders.", "-- Orders.\n-- @check expression(amount > 0)"),
    )
    assert plan.dropped == ("orders_unique_id",)
    assert plan.replaced == ("large_row_count",)
    assert plan.created == ("orders_expression_amount_0",)
    assert plan.names(Action.REWORD) == ("orders_not_null_id_amount",)
    shown = {row[0]: row[1:4] for row in project.execute("SHOW CHECKS").fetchall()}
    assert shown["orders_not_null_id_amount"] == ("orders", "error", "YES")
    assert "orders_unique_id" not in shown
    after = {row.name: row.id for row in project.engine.catalog.objects("check")}
    assert after["orders_not_null_id_amount"] == before["orders_not_null_id_amount"]
    assert after["large_row_count"] != before["large_row_count"]


def test_plan_shows_what_a_check_costs(project: Connection) -> None:
    project.execute("INSERT INTO orders VALUES (1, 1, 1), (2, 1, 1)")
    step(project)
    path = project.engine.project.assets / "all.sql"
    path.write_text(SQL.replace("-- Orders.", "-- @check unique(customer)\n-- @check expression(amount > 0)"))
    _, cost = preview_changes(project.engine.project)
    costs = {one.name: (one.reads, one.size.updates, one.states) for one in cost.hydrations}
    assert costs == {
        "orders_unique_customer": (("orders",), 2, ("Accumulate (keyed)",)),
        "orders_expression_amount_0": (("orders",), 2, ()),
    }


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (("unique(id), blocking", "unique(idd)"), r'all.sql:4.*"idd" does not exist'),
        (("unique(id), blocking", "uniqe(id)"), r"all.sql:4: invalid @check.*uniqe"),
        (("CREATE CHECK few", "-- @check unique(id)\nCREATE CHECK few"), r"all.sql:11.*does not stand here"),
        (("-- Orders.", "-- @check on customers"), r"all.sql:7: @check on does not stand here"),
        (("-- Orders.", "-- @check unique(customer), name known"), "two objects"),
        (("-- @check row", "-- @check expression(amount =)\n-- @check row"), r"all.sql:8: syntax error"),
    ],
)
def test_what_is_wrong_is_told_and_the_rest_goes_on(project: Connection, edit: tuple[str, str], why: str) -> None:
    step(project)
    plan = changed(project, edit)
    assert plan.faults
    assert re.search(why, str(plan.faults[0].error)), plan.faults[0].error
    assert "few_customers" in {*plan.kept, *(one.name for one in plan.faults)}
    left = {row[0] for row in project.execute("SHOW CHECKS").fetchall()}
    assert {"large_row_count", "amounts", "few_customers"} <= left, "what cannot be told stays as it was"
    if "uniqe" in edit[1]:
        assert {"known", "orders_not_null_id_amount", "orders_unique_id"} <= left


def test_queries_stand_in_files_of_checks_only(project: Connection) -> None:
    path = project.engine.project.assets / "checks" / "one.sql"
    path.write_text("SELECT id FROM orders WHERE id < 0")
    assert apply_project(project.engine).created == ("one",)
    path.write_text("SELECT o.id FROM orders o, customers")
    with pytest.raises(BadProjectFile, match=r"one.sql:1.*does not say what it is about"):
        apply_project(project.engine)
    path.write_text("-- One.\nSELECT nothing FROM orders WHERE id < 0")
    with pytest.raises(BadProjectFile, match=r'one.sql:2:8: column "nothing" does not exist'):
        apply_project(project.engine)
    path.rename(project.engine.project.assets / "one.sql")
    with pytest.raises(BadProjectFile, match="only definitions may stand"):
        apply_project(project.engine)


# ---- random histories


Order = tuple[int | None, int | None, int | None, str | None, datetime | None]


def _violated(customers: list[int], orders: list[Order], now: datetime) -> dict[str, int]:
    """Returns how many violations of each kind there are, by the definitions of the kinds in Python."""
    ids = Counter(one[0] for one in orders if one[0] is not None)
    newest = max((one[4] for one in orders if one[4] is not None), default=None)
    return {
        "orders_unique_id": sum(n > 1 for n in ids.values()),
        "orders_not_null_id_amount": sum(one[0] is None or one[2] is None for one in orders),
        "orders_accepted_values_status": sum(one[3] not in (None, "new", "paid") for one in orders),
        "orders_relationships_customer": sum(one[1] is not None and one[1] not in customers for one in orders),
        "orders_expression_amount_0": sum(one[2] is not None and one[2] < 0 for one in orders),
        "orders_row_count": int(not len(orders) >= 3),
        "orders_freshness_at": int(newest is None or now > newest + HOUR),
        "orders_lone": int(len({one[1] for one in orders}) == 1),
    }


RULES = (
    "unique(id)",
    "not_null(id, amount)",
    "accepted_values(status, 'new', 'paid')",
    "relationships(customer, customers.id)",
    "expression(amount >= 0)",
    "row_count(>= 3)",
    "freshness(at, '1 h')",
)
LONE = (
    "CREATE CHECK orders_lone ON orders AS SELECT min(customer) AS customer FROM orders "
    "HAVING count(DISTINCT coalesce(customer, -1)) = 1"
)


def _random_order(random: Random) -> Order:
    at = datetime.now(UTC).replace(tzinfo=None) - HOUR + timedelta(milliseconds=random.randint(-500, 500))
    return (
        random.choice((None, 1, 2)),
        random.choice((None, 1, 2, 3)),
        random.choice((None, -1, 0, 5)),
        random.choice((None, "new", "paid", "odd")),
        random.choice((None, at.replace(microsecond=at.microsecond // 1000 * 1000))),
    )


@pytest.mark.parametrize(
    ("seed", "turns"), [(1, 9), *(pytest.param(seed, 14, marks=pytest.mark.deep) for seed in range(1, 20))]
)
def test_each_kind_equals_its_query_at_every_tick(
    tmp_path: Path, connection: Connection, seed: int, turns: int
) -> None:
    random = Random(seed)
    for rule in RULES:
        connection.execute(parse_check_rule(rule).statement(None, "orders"))
    connection.execute(LONE)
    queries = {str(row.name): row.sql.split(" AS ", 1)[1] for row in connection.engine.catalog.objects("check")}
    customers: list[int] = []
    orders: list[Order] = []
    before: dict[str, int] = {}
    violated: set[str] = set()
    healed: set[str] = set()
    connection.close()
    for turn in range(turns):
        with opened(tmp_path) as again:
            for _ in range(random.randint(0, 3)):
                if orders and random.random() < 0.6:
                    gone = random.choice(orders)
                    orders = [one for one in orders if one[0] != gone[0]]
                    again.execute("DELETE FROM orders WHERE id IS NOT DISTINCT FROM ?", (gone[0],))
                elif random.random() < 0.3:
                    one = random.randint(1, 3)
                    customers = [*customers, one] if one not in customers else [c for c in customers if c != one]
                    added = one in customers
                    again.execute(
                        "INSERT INTO customers VALUES (?)" if added else "DELETE FROM customers WHERE id = ?", (one,)
                    )
                else:
                    orders.append(_random_order(random))
                    again.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", orders[-1])
            tick = step(again).tick
            now = datetime.fromtimestamp(tick / 1000, UTC).replace(tzinfo=None)
            wanted = _violated(customers, orders, now)
            found = said(again, tick)
            assert {name: one.count for name, one in found.items()} == wanted, turn
            assert {name: one.change for name, one in found.items()} == {
                name: count - before.get(name, 0) for name, count in wanted.items()
            }, turn
            for name in queries if turn % 6 == 5 else random.sample(list(queries), 1):
                held, asked = (
                    Counter(map(repr, again.execute(f"{one} AS OF {tick}").fetchall()))
                    for one in (f"SELECT * FROM {name}", f"SELECT * FROM ({queries[name]}) AS asked")
                )
                assert held == asked, name
            healed |= {name for name, count in before.items() if count and not wanted[name]}
            violated |= {name for name, count in wanted.items() if count}
            before = wanted
    assert len(violated) >= 4
    assert len(healed) >= 2, "the histories heal what they violate"


# ---- blocking


def rows_of(table: Path) -> Counter[str]:
    return Counter(repr(tuple(one.values())) for one in DeltaTable(table).to_pyarrow_table().to_pylist())


BLOCKED = """
CREATE MATERIALIZED VIEW sums AS SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer;
CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid';
CREATE MATERIALIZED VIEW payers AS SELECT customer, count(*) AS n FROM paid GROUP BY customer;
CREATE CHECK once ON orders BLOCKING AS SELECT id FROM orders GROUP BY id HAVING count(*) > 1;
CREATE CHECK rich ON paid BLOCKING AS SELECT id FROM paid WHERE amount < 0;
CREATE CHECK some_sum ON sums AS SELECT * FROM sums WHERE amount < 0;
CREATE SINK all_orders FROM sums INTO DELTA (URI 'out/sums') ENVELOPE UPSERT;
CREATE SINK all_payers FROM payers INTO DELTA (URI 'out/payers') ENVELOPE UPSERT;
"""


def define_blocked(connection: Connection) -> None:
    for one in filter(str.strip, BLOCKED.split(";")):
        connection.execute(one)


#: Which checks hold up which sink, and what it writes.
HELD_BY = {"all_orders": ("sums", ("once",)), "all_payers": ("payers", ("once", "rich"))}


def test_a_blocking_check_holds_up_sinks_downstream_and_nothing_else(connection: Connection, tmp_path: Path) -> None:
    define_blocked(connection)
    connection.execute("INSERT INTO orders VALUES (1, 1, 5, 'paid'), (2, 1, -9, 'new')")
    first = step(connection)
    assert {one.outcome for one in first.collections if one.name in HELD_BY} == {Outcome.ADVANCED}
    connection.execute("INSERT INTO orders VALUES (3, 1, -1, 'paid')")
    second = step(connection)
    by_name = {one.name: one for one in second.collections}
    assert by_name["all_orders"].outcome is Outcome.ADVANCED, "only the paid ones are wrong"
    held = by_name["all_payers"]
    assert held.outcome is Outcome.FAILED
    assert held.upper == first.tick + 1
    assert str(held.reason) == 'sink "all_payers" is held up: check "rich" has 1 violation: (3)'
    assert held.error is not None
    says_what_to_do(held.error)
    assert {by_name[one].outcome for one in ("orders", "sums", "payers", "once", "rich")} <= {
        Outcome.ADVANCED,
        Outcome.IDLE,
        Outcome.CURRENT,
    }
    connection.execute("INSERT INTO orders VALUES (3, 2, 1, 'new'), (3, 2, 1, 'new')")
    third = {one.name: one for one in step(connection).collections}
    assert 'check "once" has 1 violation: (3)' in str(third["all_payers"].reason)
    assert third["all_orders"].upper == second.tick + 1
    engine = connection.engine
    payers, sums, rich = (engine.collection_of(one) for one in ("payers", "sums", "rich"))
    third_tick = step(connection).tick
    assert last_held(engine, payers, third_tick) == first.tick
    assert last_held(engine, sums, third_tick) == second.tick
    assert last_held(engine, rich, first.tick) == first.tick
    connection.execute("DELETE FROM orders WHERE id = 3")
    healed = step(connection)
    assert last_held(engine, payers, healed.tick) == healed.tick
    assert {one.upper for one in healed.collections if one.name in HELD_BY} == {healed.tick + 1}
    assert rows_of(tmp_path / "out" / "sums") == rows(connection, "sums", healed.tick)


def test_what_never_held_is_not_read_as_if_it_had(connection: Connection) -> None:
    connection.execute("INSERT INTO orders VALUES (1, 1, 1), (1, 1, 1)")
    connection.execute("CREATE CHECK once ON orders BLOCKING AS SELECT id FROM orders GROUP BY id HAVING count(*) > 1")
    tick = step(connection).tick
    with pytest.raises(NoValidTimestamp, match="once") as caught:
        last_held(connection.engine, connection.engine.collection_of("orders"), tick)
    says_what_to_do(caught.value)


class Killed(BaseException):
    """A process that ends."""


def killed(_: str) -> None:
    raise Killed


def rows(connection: Connection, name: str, time: int) -> Counter[str]:
    return Counter(map(repr, connection.execute(f"SELECT * FROM {name} AS OF {time}").fetchall()))


@pytest.mark.parametrize(
    ("seed", "turns"), [(1, 8), *(pytest.param(seed, 12, marks=pytest.mark.deep) for seed in range(1, 20))]
)
def test_blocking_checks_hold_back_exactly_what_they_say_through_restarts(
    connection: Connection, tmp_path: Path, seed: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    define_blocked(connection)
    connection.close()
    last = dict.fromkeys(HELD_BY, -1)
    contents: dict[str, dict[int, Counter[str]]] = {name: {} for name in HELD_BY}
    held: dict[int, set[str]] = {}
    stayed = gone_on = 0
    ticks: list[int] = []
    for _ in range(turns):
        with opened(tmp_path) as again:
            catalog = again.engine.catalog
            for _ in range(random.randint(1, 3)):  # several ticks may lie between two steps
                id, amount = random.randint(1, 4), random.choice((-1, 1, 5, 7))
                if random.random() < 0.5:
                    again.execute("DELETE FROM orders WHERE id = ?", (id,))
                else:
                    row = (id, random.randint(1, 2), amount, random.choice(("new", "paid")))
                    again.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", row)
                tick = catalog.write_ts(TIMELINE, again.engine.now(TIMELINE))
                assert isinstance(catalog.mint_tick(TIMELINE, tick, {}, catalog.last_tick(TIMELINE)), TickMinted)
                ticks.append(tick)
            if random.random() < 0.3:
                with monkeypatch.context() as patched, suppress(Killed):
                    patched.setattr(sinks, "fail_point", killed)
                    again.engine.step(TIMELINE, ticks[-1])
                again.close()
        with opened(tmp_path) as again:
            catalog = again.engine.catalog
            again.engine.step(TIMELINE, ticks[-1])
            for sink, (view, checks) in HELD_BY.items():
                stands = catalog.collection(again.engine.collection_of(sink)).upper.only - 1
                for tick in (one for one in ticks if one not in contents[sink]):
                    contents[sink][tick] = rows(again, view, tick)
                    if tick not in held:
                        held[tick] = {name for name, one in said(again, tick).items() if one.holds}
                    if held[tick].issuperset(checks):
                        last[sink] = tick
                if last[sink] >= 0:
                    assert stands == last[sink]
                    assert rows_of(tmp_path / "out" / view) == contents[sink][stands]
                stayed += last[sink] != ticks[-1]
                gone_on += last[sink] == ticks[-1]
    assert stayed
    assert gone_on
