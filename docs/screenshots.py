"""Makes the README's pictures of Dagster's UI: `.venv/bin/python -m docs.screenshots`, in the repository's root.

Replays some days in a copy of the demo project, opens Dagster's UI on it, and writes `docs/*.png`:

- `checks.png`: what is checked of a view, after an audit;
- `lineage.png`: the view between what it reads and what reads it;
- `frontier.png`: its frontiers over time, and what its steps did;
- `ticks.png`: ticks as its partitions, and what one of them changed.

Needs Chromium (`make chromium`), and a few minutes for the replay.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.dagster_dev import chromium, dagster_dev

REPOSITORY = Path(__file__).resolve().parents[1]
PARTS = ("assets", "resources", "sensors", "definitions.py", "mz.toml", "workspace.yaml")
VIEW = "departures"
#: How many days to replay, and the one whose tick is looked at.
TICKS, TICK = 5, "2013-01-04T00:00:00.000Z"


def main() -> None:
    """Makes all of them."""
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder) / "nycflights")
        try:
            mz_dagster(project, "run", "--ticks", str(TICKS))
            with dagster_dev(project, project / ".mz" / "dagster") as url:
                shoot(url)
        finally:
            mz_dagster(project, "spark", "stop")


def copy_project(root: Path) -> Path:
    """Copies the demo, with a feed that drops nothing by itself, so that nothing moves while the pictures are taken."""
    for name in PARTS:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / name, root / name)
    sensors = root / "sensors" / "__init__.py"
    sensors.write_text(sensors.read_text().replace("DefaultSensorStatus.RUNNING", "DefaultSensorStatus.STOPPED"))
    return root


def mz_dagster(project: Path, *arguments: str) -> None:
    """Runs the command line on a project."""
    subprocess.run([sys.executable, "-m", "mz_dagster.cli", "--project", str(project), *arguments], check=True)


def shoot(url: str) -> None:
    """Takes the pictures."""
    with chromium() as browser:
        page = browser.new_context(base_url=url, viewport={"width": 1400, "height": 900}).new_page()
        page.set_default_timeout(60_000)
        page.goto("/runs")
        page.get_by_role("button", name="Hide navigation").click()

        for check in ("no_negative_multiplicity", "audit"):
            page.goto(f"/assets/{VIEW}?view=checks&checkDetail={check}")
            page.get_by_role("button", name=re.compile("Execute$")).click()
            page.get_by_text("mz/tick").locator("visible=true").first.wait_for(timeout=300_000)
        save(page, "checks")

        page.goto(f"/assets/{VIEW}?view=lineage")
        page.get_by_text("Asset checks").first.wait_for()
        save(page, "lineage")

        page.goto(f"/assets/{VIEW}?view=overview")
        page.get_by_role("button", name="Plots").click()
        page.get_by_role("button", name="Events").click()
        page.get_by_text("mz/upper", exact=True).scroll_into_view_if_needed()
        save(page, "frontier")

        page.goto(f"/assets/{VIEW}?view=partitions")
        page.get_by_text(TICK).locator("visible=true").first.click()
        page.get_by_text("mz/upper", exact=True).wait_for()
        save(page, "ticks")


def save(page: Page, name: str) -> None:
    """Saves what the page shows, once its graphs and plots have stopped moving."""
    page.wait_for_timeout(3000)
    page.screenshot(path=REPOSITORY / "docs" / f"{name}.png")


if __name__ == "__main__":
    main()
