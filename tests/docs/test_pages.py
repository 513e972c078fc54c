"""The documentation: every command and every SQL and Python block on its pages runs, and prints what the page says.

Each page begins in an empty folder. A block with a title is a file that a reader writes; a whole one of Python can be
loaded. A block of `console` holds commands after `$`, and below each what it prints, if the page says so; one of `sql`
runs in the shell, in the page's folder as an embedded project, and `sql error` has to fail; what follows as `text` is
what it prints. A line `...` stands for any number of lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path

import pytest

from mz_dagster.adapter.system_catalogs import SYSTEM_RELATIONS
from mz_dagster.adapter.system_catalogs.filled import FILLED
from mz_dagster.adapter.system_catalogs.information import INFORMATION
from tests.command_line import mz_dagster, python

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)
_TITLE = re.compile(r'title="([^"]+)"')
#: Blocks that are read, not run.
_READ = {"", "text", "toml", "yaml"}
#: Pages whose commands take ten seconds and more.
_LONG = {"checks.md", "clients/index.md", "testing.md"}
#: Pages are about little data: what would start Spark fails.
_LITTLE = {"MZ_ENGINE": "local"}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its words after the fence, its text, and the text that follows as `text`, if any."""

    info: str
    text: str
    printed: str | None

    @property
    def title(self) -> str | None:
        """The file that the block is, if it is one."""
        found = _TITLE.search(self.info)
        return found and found[1]


def blocks(page: Path) -> Iterator[Block]:
    """Yields a page's blocks in their order."""
    text = page.read_text()
    found = list(_FENCE.finditer(text))
    for one, after in zip_longest(found, found[1:]):
        follows = after is not None and after[1] == "text" and not text[one.end() : after.start()].strip()
        yield Block(one[1], one[2], after[2] if follows and after is not None else None)


def is_run(page: Path) -> bool:
    """Returns whether a page has blocks to run; what the README shows of a project is for reading."""
    of_client = page.parent.name == "clients" and page.name != "index.md"  # see test_client_pages
    return page.parent != ROOT and not of_client and any(one.title or one.info not in _READ for one in blocks(page))


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=pytest.mark.deep if str(p.relative_to(ROOT / "docs")) in _LONG else ())
        for p in PAGES
        if is_run(p)
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_a_page_says_works(page: Path, tmp_path: Path) -> None:
    folder = tmp_path
    for block in blocks(page):
        language = block.info.split(" ")[0]
        if block.title is not None:
            target = folder / block.title
            assert target.parent.is_dir(), f"{page.name}: there is no folder for {block.title}"
            target.write_text(block.text)
            if language == "python" and block.text.startswith(("import ", "from ")):  # else it is a part of a file
                check_loads(block.text, target, folder)
        elif language == "console":
            for command, printed in commands(block.text):
                if (found := run_own_commands(command, folder)) is None:
                    found, folder = run(f"{command}\n", folder)
                check(printed, found, command)
        elif language == "sql":
            fails = block.info.split(" ")[1:] == ["error"]
            found = run_own(["sql"], folder, text=block.text, fails=fails)
            check(block.printed, found, block.text)
        elif language == "python":
            ran = python(block.text, folder, environment=_LITTLE)
            assert ran.returncode == 0, f"{block.text}\n{ran.stdout}{ran.stderr}"
        else:
            assert block.info in _READ, f"{page.name}: nobody runs a block of {block.info!r}"


def check_loads(text: str, target: Path, folder: Path) -> None:
    """Checks that what a file of Python defines can be made; what it does when it is used is not tried."""
    ran = python(text, folder, environment=_LITTLE)
    assert ran.returncode == 0, f"{target.name}\n{ran.stdout}{ran.stderr}"


def commands(text: str) -> Iterator[tuple[str, str | None]]:
    """Yields each command of a block, and what it prints, if the page says so."""
    command: str | None = None
    printed: list[str] = []
    for line in [*text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(printed) if printed else None
            command, printed = line[2:], []
        else:
            printed.append(line)


def own_commands(command: str) -> list[tuple[list[str], bool]] | None:
    """Returns the arguments of each `mz-dagster`, and whether it fails, if a command is nothing else.

    Several are joined by `&&`; one with `|| true` behind it fails.
    """
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[tuple[list[str], bool]] = []
    for joined, those in groupby(words, lambda word: word == "&&"):
        first, *arguments = those
        if joined:
            continue
        fails = arguments[-2:] == ["||", "true"]
        arguments = arguments[:-2] if fails else arguments
        if first != "mz-dagster" or any(set(one) <= set("&|<>;()") for one in arguments):
            return None
        found.append((arguments, fails))
    return found


def run_own_commands(command: str, folder: Path) -> str | None:
    """Runs a command that is `mz-dagster` and nothing else; returns what it printed, None for any other command."""
    several = own_commands(command)
    if several is None:
        return None
    return "".join(run_own(arguments, folder, fails=fails) for arguments, fails in several)


def run_own(arguments: Sequence[str], folder: Path, *, text: str = "", fails: bool = False) -> str:
    """Runs `mz-dagster` in a folder; returns what it printed, errors last."""
    done = mz_dagster(arguments, folder, stdin=text, environment=_LITTLE)
    printed = done.stdout + done.stderr
    assert (done.returncode != 0) == fails, f"{arguments}\n{printed}"
    return printed


def run(script: str, folder: Path, *, fails: bool = False) -> tuple[str, Path]:
    """Runs a script in a folder; returns what it printed, and the folder in which it ended."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        **_LITTLE,
    }
    at = folder / ".at"
    whole = f"set -e\ntrap 'pwd > {shlex.quote(str(at))}' EXIT\n{script}"
    done = subprocess.run(
        ["bash", "-c", whole], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode != 0) == fails, f"{script}\n{done.stdout}{done.stderr}"
    ended = Path(at.read_text().strip())
    at.unlink()
    return done.stdout + (done.stderr if fails else ""), ended


def check(printed: str | None, found: str, of: str) -> None:
    """Compares what a page says is printed with what is; trailing blanks and empty lines aside."""
    if printed is None:
        return
    said, seen = ([line.rstrip() for line in text.splitlines() if line.strip()] for text in (printed, found))
    assert matches(said, seen), f"{of}\nprints\n{found}\nand not\n{printed}"


def matches(said: Sequence[str], seen: Sequence[str]) -> bool:
    """Returns whether lines are those that were said, of which `...` is any number."""
    pattern = "".join(r"(?:[^\n]*\n)*" if one == "..." else f"{re.escape(one)}\n" for one in said)
    return re.fullmatch(pattern, "".join(f"{one}\n" for one in seen)) is not None


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "start.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(_FENCE, "", page.read_text()))
    lost = [one for one in targets if "://" not in one and not (page.parent / one).exists()]
    assert not lost, f"{page.name} links to {lost}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/extending.md"])
def test_the_code_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`([\w./<>*-]+(?:/|\.py))`", (ROOT / page).read_text())
    roots = (ROOT, ROOT / "mz_dagster", ROOT / "tests" / "compute", ROOT / "tests" / "plan", ROOT / "mz_dagster/plan")
    lost = [one for one in named if not any(any(root.glob(re.sub("<.*?>", "*", one))) for root in roots)]
    assert not lost, f"{page} names {lost}"


def test_the_page_lists_the_relations_of_the_system_catalogs() -> None:
    page = (ROOT / "docs" / "clients" / "index.md").read_text()
    lost = [one.name for one in SYSTEM_RELATIONS if one.name in {*FILLED, *INFORMATION} and f"`{one.name}`" not in page]
    assert not lost, lost
