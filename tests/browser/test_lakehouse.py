"""The example of a lakehouse in Dagster's UI: one asset is materialized by hand, and all that is downstream follows.

It has had one tick before. Then its own sensor sees the Delta table's new version.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from mz_dagster import connect
from mz_dagster.adapter import Project
from mz_dagster.orchestration.drive import dagster_home, drive, instance_of, load_definitions
from tests.demo.lakehouse import copied, delta_rows, expected

#: The project is driven without a browser by `tests/demo/test_lakehouse.py`. A backfill policy of an asset is what
#: Dagster calls beta.
pytestmark = [pytest.mark.deep, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::dagster.BetaWarning")]

#: Two runs, each in a fresh process, on a busy machine, and the sensor's look between them.
RUNS_MS = 120_000

EDGES = {
    ("shop_orders", "orders"),
    ("orders", "best_customers"),
    ("orders", "sales_by_city"),
    ("orders", "weekly_revenue"),
    ("customers", "best_customers"),
    ("customers", "sales_by_city"),
    ("sales_by_city", "published_sales"),
    ("sales_by_city", "sales_report"),
    ("best_customers", "sales_report"),
}
#: Of each kind of asset one, and what its box says of it.
KINDS = {
    "shop_orders": ("Python", "Delta Lake"),
    "orders": ("Source", "Delta Lake"),
    "sales_by_city": ("View",),
    "published_sales": ("sink", "Delta Lake"),
    "sales_report": ("Python", "pandas"),
}

#: The ends of each arrow of a graph: a box's right middle, and, a little before it, another one's left middle.
ARROWS = """() => [...document.querySelectorAll("path[marker-end]")].map(path => {
  const { x: startX, y: startY } = path.getPointAtLength(0)
  const { x: endX, y: endY } = path.getPointAtLength(path.getTotalLength())
  return [startX, startY, endX, endY]
})"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project.load(copied(tmp_path_factory.mktemp("examples")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(dagster_home(project)))
        patch.setenv("MZ_ENGINE", "local")
        patch.syspath_prepend(project.root)  # which loading the definitions does, too, but nobody undoes
        with instance_of(project) as instance:
            definitions = load_definitions(project)
            assert definitions.resolve_job_def("shop").execute_in_process(instance=instance).success
            assert drive(definitions, instance, ticks=1, on_run=lambda _: None) == 1
        yield project


def test_what_is_downstream_of_a_delta_table_follows(page: Page, project: Project) -> None:
    page.goto("/locations/lakehouse/asset-groups/lakehouse")
    for name, kinds in KINDS.items():
        for kind in kinds:
            expect(box(page, name)).to_contain_text(kind)
    assert edges(page) == EDGES

    page.goto("/assets/shop_orders")
    page.get_by_role("button", name="Materialize").click()
    expect(page.get_by_text("Launched run")).to_be_visible()
    page.goto("/locations/lakehouse/asset-groups/lakehouse")
    for name in {one for edge in EDGES for one in edge}:
        told = "Materialized" if name == "shop_orders" else "2 partitions"
        green = box(page, name).locator('[style*="--color-background-green"]')
        expect(green).to_contain_text(told, timeout=RUNS_MS)

    wanted = expected(project.root)
    with connect(project.root) as connection:
        for view, rows in wanted.items():
            assert connection.execute(f"SELECT * FROM {view} ORDER BY 1").fetchall() == rows
    published = sorted(tuple(row.values()) for row in delta_rows(project.root / "lake" / "sales_by_city"))
    assert published == wanted["sales_by_city"]
    _, report = sorted((project.root / "reports").iterdir())

    page.goto("/assets/sales_report")
    expect(page.get_by_text(str(report), exact=True)).to_be_visible()


def box(page: Page, name: str) -> Locator:
    """Returns the box of an asset in a graph."""
    return page.locator("foreignObject").filter(has=page.get_by_text(name, exact=True))


def edges(page: Page) -> set[tuple[str, str]]:
    """Returns the arrows of a graph by the boxes that they lead from and to."""
    left, right = {}, {}
    for name in {one for edge in EDGES for one in edge}:
        x, y, width, height = (float(str(box(page, name).get_attribute(one))) for one in ("x", "y", "width", "height"))
        left[x, y + height / 2] = right[x + width, y + height / 2] = name
    return {(nearest(right, x, y), nearest(left, to_x, to_y)) for x, y, to_x, to_y in page.evaluate(ARROWS)}


def nearest(places: dict[tuple[float, float], str], x: float, y: float) -> str:
    """Returns what is at a place, give or take the size of an arrow's head."""
    (found,) = [name for at, name in places.items() if abs(at[0] - x) <= 10 and abs(at[1] - y) <= 10]
    return found
