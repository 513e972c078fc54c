"""Holds the lines of the design that no type checker holds: who imports whom, words, sizes, docstrings."""

from __future__ import annotations

import ast
import gc
import operator
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

from tests.architecture import sizes
from tests.architecture.chance_order import Known, taken_by_chance, within

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mz_dagster"

#: In import order: a package imports only packages before it.
LAYERS = (
    "formalism",
    "scalars",
    "functions",
    "plan",
    "sql",
    "catalog",
    "storage",
    "compute",
    "adapter",
    "wire",
    "operations",
    "orchestration",
    "cli",
)
#: Top-level modules below all layers.
GROUND = {
    "allocators",
    "budget",
    "errors",
    "notices",
    "clock",
    "disk",
    "fail_point",
    "finalizers",
    "process_exit",
    "liveness",
    "garbage",
    "object_cache",
    "process",
    "progress",
    "recursion",
    "version",
}

#: Each foreign package enters by these doors only.
DOORS = {
    "pyspark": ("mz_dagster/storage", "mz_dagster/compute"),
    "delta": ("mz_dagster/storage", "mz_dagster/compute"),
    "deltalake": ("mz_dagster/storage", "mz_dagster/compute", "examples"),
    "obstore": ("mz_dagster/storage",),
    "fastavro": ("mz_dagster/storage/source",),
    "dagster": ("mz_dagster/orchestration", "assets", "resources", "sensors", "examples"),
    "dagster_pyspark": ("mz_dagster/orchestration", "assets", "resources", "sensors", "examples"),
    "sqlglot": ("mz_dagster/sql",),
    "pygwire": ("mz_dagster/wire",),
    "scramp": ("mz_dagster/wire", "mz_dagster/adapter/passwords.py"),
    "xxhash": ("mz_dagster/catalog", "mz_dagster/storage"),
    "sqlalchemy": ("mz_dagster/catalog", "mz_dagster/storage/source/iceberg"),
    "pyiceberg": ("mz_dagster/storage/source/iceberg",),
    "pyroaring": ("mz_dagster/storage/source/iceberg",),
    "requests": ("mz_dagster/storage/source/iceberg",),
    "alembic": ("mz_dagster/catalog", "mz_dagster/orchestration/kept_event_log.py"),
    "time": ("mz_dagster/clock.py",),
}

#: The rooms of `compute/`, in import order: one imports only those before it. Between the engines neither is first.
ROOMS = ("algebra", "lookups", ("local", "spark"), "placement", "walk", "snapshot", "step")

BANNED_FILE_NAMES = {"utils", "helpers", "common", "manager", "base", "core"}
BANNED_WORDS = re.compile(r"\b(watermark|low_?water|high_?water|snapshot_time|dedupe)\b", re.IGNORECASE)


@cache
def modules() -> tuple[tuple[str, ast.Module, str], ...]:
    """Returns each product module's path below the root, its tree and its text."""
    folders = ("mz_dagster", "assets", "resources", "sensors", "examples")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    gc.disable()  # two thirds of the time goes into looking for garbage among a million nodes
    try:
        return tuple((path, ast.parse(text), text) for path, text in texts)
    finally:
        gc.enable()


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Returns all nodes of a module's tree, but those that hold nothing."""
    return tuple(within(tree))


@cache
def imports(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    """Returns each imported module's dotted name with its line."""
    return tuple(_imports(tree))


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in nodes(tree):
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


#: In the docstring of a layer: its modules that others may import beside its front door.
OPEN = re.compile(r"Open to other layers beside this front door: ([^.]*(?:\.\w[^.]*)*)\.")


def test_layers_import_of_each_other_what_is_open_and_named_for_it() -> None:
    """What is no front door's is in a module that its layer declares open, defined there, and not private."""
    trees = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree for path, tree, _ in modules()}
    declared = {
        f"mz_dagster.{layer}.{module}"
        for layer in LAYERS
        if (found := OPEN.search(ast.get_docstring(trees[f"mz_dagster.{layer}"]) or "")) is not None
        for module in re.findall(r"`([\w.]+)`", found[1])
    }
    used, wrong = set(), []
    for name, tree in trees.items():
        for node in nodes(tree):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            parts = node.module.split(".")
            if (
                parts[0] != "mz_dagster"
                or parts[1:2] == name.split(".")[1:2]
                or parts[1:2] not in [[x] for x in LAYERS]
            ):
                continue
            for one in node.names:
                whole = f"{node.module}.{one.name}"
                module = whole if whole in trees else node.module
                place = f"{name}:{node.lineno} imports {whole}"
                if any(part.startswith("_") for part in whole.split(".")):
                    wrong.append(f"{place}, which is private")
                if module.count(".") == 1:
                    continue
                used.add(module)
                if module not in declared:
                    wrong.append(f"{place}; the docstring of {'.'.join(parts[:2])} does not say that it is open")
                elif module != whole and one.name not in defined_in(trees[module]) and not is_door(trees[module]):
                    wrong.append(f"{place}, which is defined elsewhere")
    wrong += [f"{one} is said to be open, and no other layer imports it" for one in sorted(declared - used)]
    assert not wrong, "\n".join(wrong)


@cache
def is_door(tree: ast.Module) -> bool:
    """Returns whether a module is one that hands out what others define: it says what."""
    return any(isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__" for one in tree.body)


@cache
def defined_in(tree: ast.Module) -> set[str]:
    """Returns the names that a module defines, rather than imports."""
    found = set()
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found


def room_of(module: str) -> str | None:
    """Returns the room of `compute/` that a module is in, by its dotted name."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["mz_dagster", "compute"] and len(parts) > 2 else None


def test_rooms_of_compute_import_only_those_before_them_and_no_engine_the_other() -> None:
    rank = {one: n for n, room in enumerate(ROOMS) for one in ((room,) if isinstance(room, str) else room)}
    graph = import_graph()
    rooms = {module: room for module in graph if (room := room_of(module)) is not None}
    assert set(rooms.values()) == set(rank)
    wrong = [
        f"{module} imports {other}"
        for module, room in rooms.items()
        for other in sorted(graph[module])
        if (there := rooms.get(other)) is not None and there != room and rank[there] >= rank[room]
    ]
    assert not wrong, "\n".join(wrong)


#: What makes a frame of a table, or a table of a frame.
HANDS = {"createDataFrame", "frame_of_rows", "toArrow", "collect", "toPandas"}
#: Who may: the walk, of updates, and counts; of what are no updates of a plan, the others.
HANDING = {
    "walk/handover.py": {"frame_of_rows", "toArrow"},
    # keys, and stored rows that several joins look up alike
    "lookups/lookup_keys.py": {"frame_of_rows", "toArrow"},
    "lookups/common_lookups.py": {"toArrow"},
    "spark/tournament/top_stages.py": {"frame_of_rows"},
    # constants, and nothing
    "spark/constant.py": {"createDataFrame"},
    "step/advance.py": {"createDataFrame"},
    # one number, and answers
    "step/due.py": {"collect"},
    "snapshot/discrepancy.py": {"collect"},
    "snapshot/peek.py": {"toArrow"},
    "snapshot/rows_frame.py": {"collect"},
}


def test_only_the_walk_hands_updates_from_one_engine_to_the_other() -> None:
    found: dict[str, set[str]] = {}
    for path, tree, _ in modules():
        if path.startswith("mz_dagster/compute/"):
            calls = [node.func for node in nodes(tree) if isinstance(node, ast.Call)]
            names = {one.attr for one in calls if isinstance(one, ast.Attribute)}
            names = (names | {one.id for one in calls if isinstance(one, ast.Name)}) & HANDS
            if names:
                found[path.removeprefix("mz_dagster/compute/")] = names
    assert found == HANDING


def test_the_engine_in_this_process_knows_no_spark() -> None:
    wrong = [
        f"{path}:{line} imports {name}"
        for path, tree, _ in modules()
        for name, line in imports(tree)
        if path.startswith("mz_dagster/compute/local/") and name.split(".")[0] == "pyspark"
    ]
    assert not wrong, "\n".join(wrong)


def test_ground_modules_import_nothing_of_any_layer() -> None:
    ground = {f"mz_dagster.{name}" for name in GROUND}
    for path, tree, _ in modules():
        if Path(path).stem in GROUND and Path(path).parent.as_posix() == "mz_dagster":
            ours = [name for name, _ in imports(tree) if name.startswith("mz_dagster")]
            assert not [name for name in ours if ".".join(name.split(".")[:2]) not in ground], path


def test_no_circle_of_imports() -> None:
    assert circles(import_graph()) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"e2"}, "e2": {"e"}, "f": {"a"}}
    assert sorted(map(sorted, circles(graph))) == [["a", "b", "c"], ["e", "e2"]]


def import_graph() -> dict[str, set[str]]:
    """Returns which of our modules each of them imports, in functions and for type checkers too.

    Who asks a package for a module in it imports that module; for anything else, the package with its front door.
    """
    names = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree for path, tree, _ in modules()}
    graph: dict[str, set[str]] = {}
    for name, tree in names.items():
        found = graph[name] = set()
        for node in nodes(tree):
            if isinstance(node, ast.Import):
                found |= {one.name for one in node.names if one.name in names}
            elif isinstance(node, ast.ImportFrom) and node.module in names:
                modules_in = {f"{node.module}.{one.name}" for one in node.names}
                found |= {one if one in names else node.module for one in modules_in}
    return graph


def circles(graph: Mapping[str, Set[str]]) -> list[set[str]]:
    """Returns the sets of modules each of which imports each other, directly or not (Tarjan's components)."""
    numbers: dict[str, int] = {}
    least: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(one: str) -> None:
        numbers[one] = least[one] = len(numbers)
        stack.append(one)
        for other in sorted(graph[one]):
            if other not in numbers:
                visit(other)
                least[one] = min(least[one], least[other])
            elif other in stack:
                least[one] = min(least[one], numbers[other])
        if least[one] == numbers[one]:
            place = stack.index(one)
            if len(stack) - place > 1:
                found.append(set(stack[place:]))
            del stack[place:]

    for one in sorted(graph):
        if one not in numbers:
            visit(one)
    return found


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
        path = PACKAGE / layer / "__init__.py"
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
        assert len(docstring.splitlines()) >= 5, f"{path} does not say what it owns"


def test_files_are_one_sitting_and_bear_telling_names() -> None:
    for path, _, text in modules():
        assert text.count("\n") <= 800, f"{path} has {text.count(chr(10))} lines"
        assert Path(path).stem not in BANNED_FILE_NAMES, path


@pytest.mark.parametrize("folder", ["mz_dagster", "assets", "resources", "sensors", "examples"])
def test_words_are_the_formalisms(folder: str) -> None:
    wrong = [
        f"{path}: {found.group()}"
        for path, _, text in modules()
        if path.startswith(folder) and (found := BANNED_WORDS.search(text))
    ]
    assert not wrong, wrong


def test_every_fail_point_is_passed_exactly_by_name() -> None:
    from mz_dagster.fail_point import BUCKET_FAIL_POINTS, FAIL_POINTS, LANDING_FAIL_POINTS, OUTPUT_FAIL_POINTS

    passed = {
        node.args[0].value
        for _, tree, _ in modules()
        for node in nodes(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "fail_point"
        and isinstance(node.args[0], ast.Constant)
    }
    assert passed == {*FAIL_POINTS, *OUTPUT_FAIL_POINTS, *LANDING_FAIL_POINTS, *BUCKET_FAIL_POINTS}


def test_the_lock_file_names_no_host_and_pins_every_hash() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(?m)^\s*(-i|-f|--(index|extra-index|find-links|trusted))", text)
    for block in re.split(r"\n(?=\S)", text):
        if block and not block.startswith(("#", " ")):
            assert "==" in block.splitlines()[0], block
            assert "--hash=sha256:" in block, block


#: Modules as they must not be: each takes what is in a set in chance's order.
BY_CHANCE = {
    "a generator over a set of predicates": """
        def split(predicates):
            known = {part for one in predicates for part in conjuncts(one)}
            implied = (one for predicate in known for one in _implied(predicate))
            return tuple(dict.fromkeys(implied))
    """,
    "a loop over a parameter": "def f(names: frozenset[str]):\n    for one in names:\n        print(one)",
    "a tuple of an attribute": "class A:\n    names: frozenset[str]\ndef f(a: A):\n    return tuple(a.names)",
    "the first of what a function returns": "def g() -> set[str]: ...\ndef f():\n    return next(iter(g()))",
    "a least by a key that ties": "def f(names: set[str]):\n    return min(names, key=len)",
    "the keys that two mappings share": "def f(a, b):\n    return [one for one in a.keys() & b.keys()]",
    "a set among several": "def f(many: list[set[str]]):\n    return [list(one) for one in many]",
    "any element": "def f(names: set[str]):\n    return names.pop()",
    "a display": "def f(names: set[str]):\n    return [*names]",
}
#: The same, without a fault.
IN_ORDER = {
    "sorted": "def f(names: frozenset[str]):\n    for one in sorted(names):\n        print(one)",
    "a set of a set": "def f(names: frozenset[str]):\n    return {one.lower() for one in names}",
    "a question about all": "def f(names: frozenset[str]):\n    return any(one.islower() for one in names)",
    "a mapping": "def f(names: dict[str, int]):\n    return [one for one in names]",
}


@pytest.mark.parametrize("text", BY_CHANCE.values(), ids=BY_CHANCE)
def test_chance_order_is_seen(text: str) -> None:
    known, tree = Known(), ast.parse(textwrap.dedent(text))
    known.read(tree)
    assert list(taken_by_chance(tree, known))


@pytest.mark.parametrize("text", IN_ORDER.values(), ids=IN_ORDER)
def test_order_is_not_seen_as_chance(text: str) -> None:
    known, tree = Known(), ast.parse(textwrap.dedent(text))
    known.read(tree)
    assert not list(taken_by_chance(tree, known))


def test_planning_takes_nothing_in_chance_order() -> None:
    layers = (
        "mz_dagster/formalism/",
        "mz_dagster/scalars/",
        "mz_dagster/functions/",
        "mz_dagster/plan/",
        "mz_dagster/sql/",
    )
    trees = {path: tree for path, tree, _ in modules() if path.startswith(layers)}
    known = Known()
    for tree in trees.values():
        known.read(tree)
    wrong = [
        f"{path}:{line}"
        for path, tree in trees.items()
        if not path.startswith(layers[0])
        for line in sorted(set(taken_by_chance(tree, known)))
    ]
    assert not wrong, "elements of a set one by one; sort them, or use dict.fromkeys:\n" + "\n".join(wrong)


def test_what_is_little_is_said_in_the_budget() -> None:
    """A size by which the engine chooses is in the budget; any other is in a list, with a reason, and no longer."""
    found = {
        one
        for path, tree, _ in modules()
        if path.startswith("mz_dagster/")
        for one in _sizes(path.removeprefix("mz_dagster/"), tree)
    }
    listed = {name for names in sizes.OTHERS.values() for name in names}
    assert sorted(found - listed) == [], "put it into `Budget`, or into tests/architecture/sizes.py, with the reason"
    assert sorted(listed - found) == []


def _sizes(name: str, tree: ast.Module) -> Iterator[str]:
    """Yields the constants of a module, in upper case, that are whole numbers of 100 and more."""
    if name == "budget.py" or name.startswith(tuple(f"{folder}/" for folder in sizes.OF_SQL)):
        return
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for one, is_now in pairs:
            if (
                not isinstance(one, ast.Name)
                or not one.id.isupper()
                or one.id.endswith(("_MS", "_S", "_NS", "_SECONDS"))
            ):
                continue
            number = _whole_number(is_now)
            if number is not None and abs(number) >= 100:
                yield f"{name}:{one.id}"


def _whole_number(node: object) -> int | None:
    """Returns what an expression of whole numbers is; None if it is another."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = _whole_number(operand)
            return None if found is None else -found
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = _whole_number(left), _whole_number(right)
            return None if one is None or other is None else _ARITHMETIC[type(op)](one, other)
        case _:
            return None


_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
