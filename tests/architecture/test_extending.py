"""The page that says what an addition touches has, for each of its examples, the files that name it, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mz_dagster"
PAGE = (ROOT / "docs" / "extending.md").read_text()


def listed(heading: str) -> set[str]:
    """Returns the files and folders in the first columns of a section's tables."""
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    assert section, f"the page has no section {heading!r}"
    section, _, _ = section.partition("\n## ")
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {path for cell in cells for path in re.findall(r"`([^`]+)`", cell)}


def naming(word: str) -> set[str]:
    """Returns the files of the product that name something."""
    pattern = re.compile(word)
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    return {name for name, path in files.items() if pattern.search(path.read_text())}


def is_in(name: str, path: str) -> bool:
    """Returns whether a file is the one that is listed, or in the folder that is."""
    folder = re.escape(path).replace("<area>", "[a-z_]+")
    return re.fullmatch(folder + (".*" if path.endswith("/") else ""), name) is not None


@pytest.mark.parametrize(
    ("heading", "word"),
    [
        ("A scalar function", r'"reverse_text"'),
        ("An aggregate", r"\bBIT_AND\b"),
        ("An operator", r"(?<!exp\.)\bRepeat(Row)?\b"),
    ],
)
def test_files_that_name_the_example_are_listed(heading: str, word: str) -> None:
    missing = {name for name in naming(word) if not any(is_in(name, path) for path in listed(heading))}
    assert not missing


def test_what_an_operator_touches_is_no_more_than_what_is_listed() -> None:
    names = naming(r"(?<!exp\.)\bRepeat(Row)?\b")
    product = {path for path in listed("An operator") if not path.startswith("tests/")}
    assert product == names
    assert f"stands in these {len(names)} files of the product" in PAGE


@pytest.mark.parametrize("heading", ["A scalar function", "An aggregate", "An operator"])
def test_what_is_listed_is_there(heading: str) -> None:
    for path in listed(heading):
        root = ROOT if path.startswith("tests/") else PACKAGE
        assert list(root.glob(path.replace("<area>", "*"))), path
