"""Holds the lines of the design that no type checker holds: who imports whom, words, sizes, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mz_dagster"

#: In import order: a package imports only packages before it.
LAYERS = ("formalism", "plan", "sql", "catalog", "storage", "compute", "adapter", "orchestration", "cli")
#: Top-level modules below all layers.
GROUND = {"errors", "clock", "fail_point", "version"}

#: Each foreign package enters by these doors only.
DOORS = {
    "pyspark": ("mz_dagster/storage", "mz_dagster/compute"),
    "delta": ("mz_dagster/storage", "mz_dagster/compute"),
    "deltalake": ("mz_dagster/storage", "mz_dagster/compute"),
    "dagster": ("mz_dagster/orchestration", "assets", "resources", "sensors"),
    "dagster_pyspark": ("mz_dagster/orchestration", "assets", "resources", "sensors"),
    "sqlglot": ("mz_dagster/sql",),
    "xxhash": ("mz_dagster/storage",),
    "sqlalchemy": ("mz_dagster/catalog",),
    "alembic": ("mz_dagster/catalog",),
    "time": ("mz_dagster/clock.py",),
}

BANNED_FILE_NAMES = {"utils", "helpers", "common", "manager", "base", "core"}
BANNED_WORDS = re.compile(r"\b(watermark|low_?water|high_?water|snapshot_time|dedupe)\b", re.IGNORECASE)


@cache
def modules() -> tuple[tuple[str, ast.Module, str], ...]:
    """Returns each product module's path below the root, its tree and its text."""
    folders = ("mz_dagster", "assets", "resources", "sensors")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    return tuple((path, ast.parse(text), text) for path, text in texts)


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields each imported module's dotted name with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"relative import in line {node.lineno}"
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def layer_of(path: str) -> int | None:
    """Returns the rank of the layer that a module belongs to, or None for the ground and the front door."""
    parts = Path(path).with_suffix("").parts
    return LAYERS.index(parts[1]) if parts[0] == "mz_dagster" and len(parts) > 1 and parts[1] in LAYERS else None


def test_packages_import_only_upward() -> None:
    wrong = []
    for path, tree, _ in modules():
        rank = layer_of(path)
        for name, line in imports(tree):
            parts = name.split(".")
            if rank is None or parts[0] != "mz_dagster" or len(parts) < 2:
                continue
            if parts[1] in LAYERS:
                if LAYERS.index(parts[1]) > rank:
                    wrong.append(f"{path}:{line} imports {name}")
            else:
                assert parts[1] in GROUND, f"{path}:{line} imports {name}, which is no layer"
    assert not wrong, "\n".join(wrong)


def test_ground_modules_import_nothing_of_ours() -> None:
    for path, tree, _ in modules():
        if Path(path).stem in GROUND and Path(path).parent.as_posix() == "mz_dagster":
            assert not [name for name, _ in imports(tree) if name.startswith("mz_dagster")], path


def test_foreign_packages_enter_by_their_doors() -> None:
    wrong = [
        f"{path}:{line} imports {name}"
        for path, tree, _ in modules()
        for name, line in imports(tree)
        if (doors := DOORS.get(name.split(".")[0])) is not None
        and not any(path == door or path.startswith(f"{door}/") for door in doors)
    ]
    assert not wrong, "\n".join(wrong)


def test_wall_clock_time_is_in_one_file() -> None:
    wall_clock = re.compile(r"\b(datetime\.(now|utcnow|today)|date\.today)\(")
    wrong = [path for path, _, text in modules() if path != "mz_dagster/clock.py" and wall_clock.search(text)]
    assert not wrong, wrong


def test_spark_code_uses_only_what_classic_and_connect_share() -> None:
    classic_only = re.compile(r"\.(sparkContext|rdd|_jdf|_jvm|_jsparkSession|_sc)\b")
    wrong = [f"{path}: {found.group()}" for path, _, text in modules() if (found := classic_only.search(text))]
    assert not wrong, wrong


def test_every_layer_exists_and_opens_with_what_it_owns() -> None:
    for layer in LAYERS:
        path = PACKAGE / layer / "__init__.py" if layer != "cli" else PACKAGE / "cli.py"
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
        assert len(docstring.splitlines()) >= 5, f"{path} does not say what it owns"


def test_files_are_one_sitting_and_bear_telling_names() -> None:
    for path, _, text in modules():
        assert text.count("\n") <= 800, f"{path} has {text.count(chr(10))} lines"
        assert Path(path).stem not in BANNED_FILE_NAMES, path


@pytest.mark.parametrize("folder", ["mz_dagster", "assets", "resources", "sensors"])
def test_words_are_the_formalisms(folder: str) -> None:
    wrong = [
        f"{path}: {found.group()}"
        for path, _, text in modules()
        if path.startswith(folder) and (found := BANNED_WORDS.search(text))
    ]
    assert not wrong, wrong


def test_every_fail_point_is_passed_exactly_by_name() -> None:
    from mz_dagster.fail_point import FAIL_POINTS

    passed = {
        node.args[0].value
        for _, tree, _ in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "fail_point"
        and isinstance(node.args[0], ast.Constant)
    }
    assert passed == set(FAIL_POINTS)


def test_the_lock_file_names_no_host_and_pins_every_hash() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(?m)^\s*(-i|-f|--(index|extra-index|find-links|trusted))", text)
    for block in re.split(r"\n(?=\S)", text):
        if block and not block.startswith(("#", " ")):
            assert "==" in block.splitlines()[0], block
            assert "--hash=sha256:" in block, block
