"""What Dagster loads: an asset upstream of the project's SQL, the SQL's assets, and an asset downstream of them.

`shop_orders` writes a Delta table, which the source `orders` in `assets/orders.sql` reads: both have the same
`dagster/uri`. `sales_report` gets two views as DataFrames, as of the tick of its run.
"""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mz_dagster import (
    MzIOManager,
    MzResource,
    Project,
    StepResult,
    build_compaction_job,
    build_compaction_schedule,
    build_frontier_sensor,
    build_mz_asset_checks,
    build_retention_sensor,
    mz_assets,
    step_selection,
)

PROJECT = Project.load(Path(__file__).resolve().parent)

ORDERS = PROJECT.root / "lake" / "orders"
ORDERS_A_DAY = 200
FIRST_DAY = dt.date(2026, 1, 1)
ORDER_COLUMNS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("customer_id", pa.int32()),
        ("ordered_on", pa.date32()),
        ("amount", pa.decimal128(10, 2)),
        ("status", pa.string()),
    ]
)


def orders_of(day: int, *, a_day_later: bool = False) -> pa.Table:
    """Returns what is ordered on a day, counted from 0: placed, or a day later shipped, some for less, or cancelled."""
    rows = []
    for order in range(day * ORDERS_A_DAY, (day + 1) * ORDERS_A_DAY):
        discount = Decimal("0.50") if a_day_later and order % 25 == 7 else Decimal(0)
        rows.append(
            {
                "order_id": order,
                "customer_id": order * 7 % 12 + 1,
                "ordered_on": FIRST_DAY + dt.timedelta(days=day),
                "amount": Decimal(order * 7919 % 20_000 + 100) / 100 - discount,
                "status": "placed" if not a_day_later else "cancelled" if order % 10 == 3 else "shipped",
            }
        )
    return pa.Table.from_pylist(rows, schema=ORDER_COLUMNS)


@dg.asset(group_name="lakehouse", kinds={"python", "deltalake"}, metadata={"dagster/uri": ORDERS.as_uri()})
def shop_orders() -> dg.MaterializeResult[None]:
    """The shop's next day: orders are added, and those of the day before shipped, some for less, or deleted."""
    if not DeltaTable.is_deltatable(str(ORDERS)):
        day = 0
        write_deltalake(ORDERS, orders_of(day))
    else:
        table = DeltaTable(ORDERS)
        last = max(table.to_pyarrow_table(columns=["ordered_on"])["ordered_on"].to_pylist())
        day = (last - FIRST_DAY).days + 1
        changes = pa.concat_tables([orders_of(day - 1, a_day_later=True), orders_of(day)])
        (
            table.merge(changes, "old.order_id = new.order_id", source_alias="new", target_alias="old")
            .when_matched_delete("new.status = 'cancelled'")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
    written = DeltaTable(ORDERS)
    return dg.MaterializeResult(
        metadata={
            "day": str(FIRST_DAY + dt.timedelta(days=day)),
            "version": written.version(),
            "dagster/row_count": written.to_pyarrow_dataset().count_rows(),
        }
    )


@mz_assets(project=PROJECT, upstream=[shop_orders])
def lakehouse(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
    """Steps the sources, views and sinks of assets/*.sql to the run's tick."""
    yield from mz.step(context)


@dg.asset(
    group_name="lakehouse",
    kinds={"python", "pandas"},
    ins={name: dg.AssetIn(input_manager_key="mz_io") for name in ("sales_by_city", "best_customers")},
    partitions_def=lakehouse.partitions_def,
    backfill_policy=dg.BackfillPolicy.single_run(),  # as that of the assets that it is in a job with
)
def sales_report(
    context: dg.AssetExecutionContext, sales_by_city: pd.DataFrame, best_customers: pd.DataFrame
) -> dg.MaterializeResult[None]:
    """What the shop's owner reads, one page for each run's newest tick: where it sells, and to whom most."""
    tick = context.partition_keys[-1]
    cities = sales_by_city.merge(best_customers, on="city").sort_values("revenue", ascending=False)
    lines = [
        f"# Sales as of {tick}",
        "",
        *(
            f"- {one.city}: {one.orders} orders, {one.to_ship} of them to ship; {one.revenue} euros, "
            f"most of them {one.name}'s ({one.spent})"
            for one in cities.itertuples()
        ),
        "",
    ]
    report = PROJECT.root / "reports" / f"{tick.replace(':', '-')}.md"
    report.parent.mkdir(exist_ok=True)
    report.write_text("\n".join(lines), encoding="utf-8")
    return dg.MaterializeResult(
        metadata={"path": dg.MetadataValue.path(report), "report": dg.MetadataValue.md("\n".join(lines))}
    )


shop_job = dg.define_asset_job("shop", selection=[shop_orders], executor_def=dg.in_process_executor)
step_job = dg.define_asset_job(
    "step",
    selection=step_selection(lakehouse) | dg.AssetSelection.assets(sales_report),
    executor_def=dg.in_process_executor,
)
compaction_job = build_compaction_job(PROJECT)

defs = dg.Definitions(
    assets=[shop_orders, lakehouse, sales_report],
    asset_checks=[build_mz_asset_checks(PROJECT)],
    jobs=[shop_job, step_job, compaction_job],
    schedules=[build_compaction_schedule(PROJECT, compaction_job)],
    sensors=[build_frontier_sensor(PROJECT, step_job), build_retention_sensor(PROJECT)],
    resources={"mz": MzResource(project_dir=str(PROJECT.root)), "mz_io": MzIOManager(project_dir=str(PROJECT.root))},
    executor=dg.in_process_executor,
)
