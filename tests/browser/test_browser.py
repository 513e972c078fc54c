"""What a person does in Dagster's UI: finds assets, ticks, frontiers and failed checks; starts runs and sees them end.

The pages are those of the real webserver over a project that Dagster ran; everything is found by its text or role.
"""

from __future__ import annotations

import re

import pytest
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES
from playwright.sync_api import BrowserContext, Locator, Page, expect

from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.orchestration import partition_key
from mz_dagster.orchestration.drive import instance_of
from tests.browser.conftest import STEPPED, TICKS

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

KEYS = [partition_key(tick) for tick in TICKS]
#: A run in a fresh process, on a busy machine; a backfill begins up to half a minute later.
RUN_MS = 120_000

#: True once a line of the UI's blue, which neither axes nor grid have, is drawn on a canvas.
HAS_LINE = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  for (let i = 0; i < data.length; i += 4) if (data[i + 2] > data[i] + 80 && data[i + 2] > data[i + 1] + 80) return true
  return false
}"""


@pytest.fixture(scope="module")
def range_run(browser: BrowserContext) -> str:
    """Starts a run of the range of ticks that were not stepped in the dialog; returns the link to its backfill."""
    page = browser.new_page()
    page.goto("/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Missing", exact=True).click()
    for key in KEYS[STEPPED:]:
        expect(dialog).to_contain_text(key)
    expect(dialog).to_contain_text("2 partitions")
    dialog.get_by_role("button", name="Launch backfill").click()
    started = page.get_by_text(re.compile("Created backfill"))
    expect(started).to_be_visible()
    (backfill,) = re.findall(r"Created backfill (\w+)", started.inner_text())
    page.close()
    return f"/runs/b/{backfill}"


def test_range_run_starts_in_the_dialog(page: Page, range_run: str) -> None:
    page.goto(range_run)
    for key in KEYS[STEPPED:]:
        expect(page.get_by_text(key).first).to_be_visible()


def test_assets_are_found_with_what_they_are(page: Page) -> None:
    page.goto("/assets")
    for name in ("orders", "part_prices", "part_prices_by_customer"):
        expect(page.locator(f'a[href="/assets/{name}"]')).to_be_visible()
    page.locator('a[href="/assets/part_prices"]').click()
    for text in ("What one part of each order costs.", "View", "Spark", "Delta Lake", "reports"):
        expect(page.get_by_text(text, exact=True).first).to_be_visible()
    for owner_or_tag in ("ada@example.com", "tier: gold"):
        expect(page.get_by_text(owner_or_tag).locator("visible=true").first).to_be_visible()
    for column, type_ in (("id", "integer"), ("customer", "text"), ("price", "integer")):
        expect(page.get_by_role("row", name=re.compile(rf"^{column} \S+ {type_}"))).to_be_visible()
    expect(_metadata(page, "mz/lineage")).to_contain_text(re.compile(r"price\s+orders\.amount, orders\.parts"))


def test_lineage_leads_from_source_to_index(page: Page) -> None:
    page.goto("/assets/part_prices?view=lineage")
    for name in ("orders", "part_prices", "part_prices_by_customer"):
        expect(_node(page, name)).to_be_visible()


def test_ticks_are_partitions_that_tell_their_run(page: Page) -> None:
    page.goto("/assets/part_prices?view=partitions")
    for key in KEYS:
        expect(page.get_by_text(key).first).to_be_visible()
    page.get_by_text(KEYS[1]).first.click()
    expect(page.get_by_text("Materialized", exact=True)).to_be_visible()
    expect(_metadata(page, "mz/upper")).to_contain_text(str(TICKS[1] + 1))


def test_frontier_is_plotted(page: Page) -> None:
    page.goto("/assets/part_prices?view=overview")
    page.get_by_role("button", name="Plots").click()
    page.get_by_role("button", name="Events").click()
    for series in ("mz/since", "mz/upper"):
        plot = page.get_by_text(series, exact=True).locator("xpath=following::canvas[1]")
        page.wait_for_function(HAS_LINE, arg=plot.element_handle())


def test_range_run_succeeds(page: Page, range_run: str, project: Project) -> None:
    _wait_for_backfill(project, range_run.rpartition("/")[2])
    page.goto(f"{range_run}?tab=runs")
    expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=RUN_MS)
    with Engine(project) as engine:
        assert engine.unsealed_ticks("shop") == ()
    page.goto("/assets/part_prices?view=partitions")
    expect(page.get_by_text(f"Materialized ({len(TICKS)})")).to_be_visible()


def test_failed_check_says_why(page: Page) -> None:
    page.goto("/assets/part_prices?view=checks")
    page.get_by_text("no_errors", exact=True).locator("visible=true").click()
    failed = page.get_by_text("Failed", exact=True)
    # In the list, and as the result; no result is shown while a run is under way that will check again.
    expect(failed).to_have_count(2, timeout=RUN_MS)
    expect(page.get_by_text("division by zero")).to_be_visible()


def test_compaction_starts_from_its_launchpad(page: Page, project: Project) -> None:
    with Engine(project) as engine:
        view = engine.collection_of("part_prices")
        before, _ = engine.catalog.live_batch_counts()[view]
        page.goto("/locations/shop/jobs/mz_compaction/playground")
        page.get_by_role("button", name="Launch Run").click()
        expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=RUN_MS)
        after, _ = engine.catalog.live_batch_counts()[view]
    assert before >= STEPPED
    assert after == 1


def _wait_for_backfill(project: Project, backfill: str) -> None:
    """Waits until a backfill is over; a page that shows it meanwhile takes a processor."""
    until = SYSTEM_CLOCK.monotonic_ms() + RUN_MS
    with instance_of(project) as instance:
        while SYSTEM_CLOCK.monotonic_ms() < until:
            found = instance.get_backfill(backfill)
            if found is not None and found.status in BULK_ACTION_TERMINAL_STATUSES:
                return
            SYSTEM_CLOCK.sleep(0.5)


def _node(page: Page, name: str) -> Locator:
    """Returns the box of an asset in a graph."""
    return page.locator("foreignObject").filter(has=page.get_by_text(name, exact=True))


def _metadata(page: Page, key: str) -> Locator:
    """Returns the row of a metadata entry."""
    return page.get_by_role("row").filter(has=page.get_by_text(key, exact=True))
