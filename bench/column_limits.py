"""What a join takes of memory, with and without a limit, and what an engine adds to a start: each in a new process.

`python -m bench.column_limits join|start ENGINE FEW MANY MEGABYTES FOLDER` is such a process, which prints
JSON. A limit is one on what the process may allocate besides what it holds as the join begins, and the engine's own, if
it has one; 0 is none.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.column_operators import ENGINES, Run, Tables
from bench.harness import REPOSITORY

#: Besides the engine's own limit, for what it does not count.
_SPARE_MEGABYTES = 8
_SECONDS = 120
_LOOK_SECONDS = 0.002
_OPERATOR = "join by integers"
#: What an engine loads when it is first used; ours is what the process has loaded anyway.
_MODULES = {"Arrow": "pyarrow.acero", "Polars": "polars", "DuckDB": "duckdb", "DataFusion": "datafusion"}


def joined(engine: str, few: int, many: int, megabytes: int, folder: Path) -> dict[str, Any]:
    """Returns what becomes of a join: how it ends, what it takes, and what it writes to disk.

    Args:
        engine: By name.
        few: How many rows the one side has.
        many: And the other.
        megabytes: The limit; 0 for none.
        folder: Where the engine may write.
    """
    return _of_process("join", engine, few, many, megabytes, folder)


def started(engine: str, folder: Path, times: int) -> float:
    """Returns how many milliseconds of a processor an engine's import and first little join take, as a median."""
    found = (_of_process("start", engine, 100, 10_000, 0, folder) for _ in range(times))
    return float(statistics.median(one["milliseconds"] for one in found))


def _of_process(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.column_limits", *map(str, arguments)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=REPOSITORY, env=environment, timeout=_SECONDS, check=False
    )
    if ended.returncode:
        return {"ends": f"the process ends: {ended.returncode}"}
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _join(engine: str, given: Tables, megabytes: int, folder: Path) -> dict[str, Any]:
    prepared = ENGINES[engine](_OPERATOR, Tables.of(10, 10))
    assert prepared is not None, "all engines join"
    prepared()
    run = (
        ENGINES[engine](_OPERATOR, given) if engine != "DuckDB" or not megabytes else _duckdb(given, megabytes, folder)
    )
    assert run is not None, "all engines join"
    pa.default_memory_pool().release_unused()
    before = _held("VmRSS")
    if megabytes and engine != "DuckDB":  # which has a limit of its own, and waits for ever at this one
        limit = (_held("VmData") + megabytes + _SPARE_MEGABYTES) * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with _Watch(folder) as watch:
        try:
            ends = f"{len(run())} rows"
        except (Exception, MemoryError) as error:  # each has errors of its own
            ends = f"fails: {type(error).__name__}"
    return {"ends": ends, "megabytes": watch.most - before, "megabytes_on_disk": watch.on_disk}


def _duckdb(given: Tables, megabytes: int, folder: Path) -> Run:
    options = {"threads": 1, "memory_limit": f"{megabytes}MB", "temp_directory": str(folder)}
    connection = importlib.import_module("duckdb").connect(config=options)
    connection.register("few", given.few)
    connection.register("many", given.many)
    return lambda: connection.execute("SELECT i, j FROM few JOIN many ON few.k = many.k").to_arrow_table()


def _start(engine: str, given: Tables) -> dict[str, Any]:
    begin = time.process_time()
    if engine in _MODULES:
        importlib.import_module(_MODULES[engine])
    run = ENGINES[engine](_OPERATOR, given)
    assert run is not None, "all engines join"
    run()
    return {"milliseconds": (time.process_time() - begin) * 1000}


class _Watch:
    """Looks again and again at what the process holds and what is in a folder, in megabytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.most = self.on_disk = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self.most = max(self.most, _held("VmRSS"))

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            self.most = max(self.most, _held("VmRSS"))
            sizes = [_size(path) for path in self._folder.rglob("*")]
            self.on_disk = max(self.on_disk, sum(sizes) >> 20)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _held(what: str) -> int:
    """Returns how many megabytes the system says that this process holds."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) >> 10


if __name__ == "__main__":
    _what, _engine, _few, _many, _megabytes, _folder = sys.argv[1:]
    _given = Tables.of(int(_few), int(_many))
    if _what == "join":
        print(json.dumps(_join(_engine, _given, int(_megabytes), Path(_folder))))
    else:
        print(json.dumps(_start(_engine, _given)))
