"""The life of the embedded Spark Connect server: one for each state folder, shared by all processes.

Owns the state folder (mode 0700): `server.json` (mode 0600: address, token, identity of the process),
`server.lock`, the logs and Spark's own temporary files. Invariants: whatever processes race, at most one
server runs for a folder; a process is signalled only if it is the very one that was started; `server.json`
names only servers that have answered a query. A server outlives its starter until `stop_server`, or until nobody has
used it for `SparkConfig.idle_seconds`: users touch `server.used`, before they look for it and with each call.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.process import IdleStop, ProcessIdentity, rotate, start_detached
from mz_dagster.storage.spark.config import SparkConfig, server_conf
from mz_dagster.storage.spark.connecting import check_answer
from mz_dagster.storage.spark.ending import WatchedServer, why_not_started
from mz_dagster.storage.spark.known_servers import remember
from mz_dagster.storage.spark.launch import (
    check_java,
    endings_file,
    free_port,
    has_ui,
    log_file,
    output_file,
    server_environment,
    write_private,
    write_server_files,
)
from mz_dagster.storage.spark.prepared import with_prepared_start

_STATE = "server.json"
_STARTING = "starting.json"
_LOCK = "server.lock"
_USED = "server.used"
_HIDDEN = f"{_STATE}.idle"  # by a watcher that was about to end the server; see `mz_dagster.process`
_STOP_SECONDS = 15.0
_ATTEMPTS = 3
_OLD_OUTPUTS = 4
"""How many servers' output is kept beside that of the newest."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Describes a running server.

    Attributes:
        url: `sc://localhost:PORT`. Not 127.0.0.1: with a token and any other host Spark's client speaks TLS.
        token: What a client must present; not in the `repr`.
        pid: The server's process.
        ui_url: Spark's user interface, on the loopback interface; empty if it has none.
        log: The server's log.
        started: The identity of the process beyond its pid.
        memory: The heap that it was given.
    """

    url: str
    token: str = field(repr=False)
    pid: int
    ui_url: str
    log: Path
    started: str
    memory: str = ""

    @property
    def port(self) -> int:
        """The port of the gRPC service."""
        return int(self.url.rpartition(":")[2])

    @property
    def process(self) -> ProcessIdentity:
        """The identity of the server's process."""
        return ProcessIdentity(self.pid, self.started)

    @property
    def is_alive(self) -> bool:
        """True while the server's process runs, whether or not it answers; costs no network."""
        return self.process.is_alive

    @property
    def watched(self) -> WatchedServer:
        """What is needed to tell how it ended."""
        return WatchedServer(self.process, self.log.parent, self.memory)

    def note_use(self) -> None:
        """Notes that it is used, so that it does not end as idle; costs some microseconds."""
        note_use(self.log.parent)


def ensure_server(config: SparkConfig) -> ServerInfo:
    """Returns the running server of `config.state_dir`, started if there is none.

    A server that runs already is taken as it is: `config` decides only how a new one is started. Costs about a
    millisecond if it runs, 8 to 15 s if not, plus a download the first time ever.

    Raises:
        ProgrammingError: `config` is for another kind of Spark.
        OperationalError: Java is missing or too old, the server did not come up within
            `config.start_seconds`, or another process has been starting it for longer than that.
    """
    if not config.embedded:
        raise ProgrammingError("only an embedded Spark has a server to start")
    state_dir = _private_folder(config.state_dir)
    note_use(state_dir)
    running = server_status(state_dir)
    if running is not None and _listens(running.port):
        return running
    with _locked(state_dir, seconds=config.start_seconds):
        running = server_status(state_dir)
        if running is not None and _listens(running.port, patience=5.0):
            return running
        _clear(state_dir)
        return _start(config, state_dir)


def note_use(state_dir: Path) -> None:
    """Notes that the server of `state_dir` is used now, so that it does not end as idle."""
    with suppress(FileNotFoundError):  # the folder was removed, and the server ends by itself
        (state_dir / _USED).touch(mode=0o600)


def server_status(state_dir: Path) -> ServerInfo | None:
    """Returns the server of `state_dir` if its process runs, else None; takes no lock and changes nothing."""
    info = _read(state_dir / _STATE)
    return info if info is not None and info.is_alive else None


def stop_server(state_dir: Path, *, seconds: float = 60.0) -> bool:
    """Stops the server of `state_dir` and clears what it left; returns False if none ran.

    Sessions on it fail from then on with `OperationalError`.

    Raises:
        OperationalError: Another process has been starting it for longer than `seconds`.
    """
    if not state_dir.is_dir():
        return False
    with _locked(_private_folder(state_dir), seconds=seconds):
        return _clear(state_dir)


def _start(config: SparkConfig, state_dir: Path) -> ServerInfo:
    """Starts a server and publishes it once it has answered; the caller holds the lock."""
    check_java()
    deadline = SYSTEM_CLOCK.monotonic_ms() + config.start_seconds * 1000
    for attempt in range(1, _ATTEMPTS + 1):
        info = _launch(config, state_dir)
        try:
            if _await_listening(info, deadline):
                _await_answer(info, deadline)
                note_use(state_dir)
                write_private(state_dir / _STATE, _dump(info))
                remember(state_dir)
                for leftover in (_STARTING, "server.properties"):  # the settings may hold the user's secrets
                    (state_dir / leftover).unlink(missing_ok=True)
                return info
        except BaseException:
            _clear(state_dir)
            raise
        # Another program took the port between our look at it and the server's.
        taken = "BindException" in _tail(state_dir) or "Address already in use" in _tail(state_dir)
        tail = _tail(state_dir)
        _clear(state_dir)
        if not taken or attempt == _ATTEMPTS:
            break
    what, hint = why_not_started(tail)
    raise OperationalError(
        what,
        detail=f"It last said: {tail}",
        hint=f"{hint} See {output_file(state_dir)} and {log_file(state_dir)}.".strip(),
    )


def _launch(config: SparkConfig, state_dir: Path) -> ServerInfo:
    token = secrets.token_urlsafe(32)
    port, ui_port = free_port(), free_port()
    settings = with_prepared_start(server_conf(config))
    command = write_server_files(state_dir, settings, port=port, ui_port=ui_port)
    for folder in ("warehouse", "local"):
        (state_dir / folder).mkdir(mode=0o700, exist_ok=True)
    rotate(output_file(state_dir), generations=_OLD_OUTPUTS)
    process = start_detached(
        command,
        environment=server_environment(token),
        directory=state_dir,
        output=output_file(state_dir),
        endings=endings_file(state_dir),
        idle=None
        if config.idle_seconds is None
        else IdleStop(state_dir / _USED, config.idle_seconds, state_dir / _LOCK, state_dir / _STATE),
    )
    info = ServerInfo(
        url=f"sc://localhost:{port}",
        token=token,
        pid=process.pid,
        ui_url=f"http://127.0.0.1:{ui_port}" if has_ui(settings) else "",
        log=log_file(state_dir),
        started=process.started,
        memory=settings["spark.driver.memory"],
    )
    # If we die now, the next starter must find this process to end it.
    write_private(state_dir / _STARTING, _dump(info))
    return info


def _await_listening(info: ServerInfo, deadline: float) -> bool:
    """Waits until the server accepts connections; returns False if its process ended instead."""
    while not _listens(info.port):
        if not info.is_alive:
            return False
        if SYSTEM_CLOCK.monotonic_ms() > deadline:
            raise OperationalError(
                "the Spark server did not listen in time",
                detail=f"It last said: {_tail(info.log.parent)}",
                hint="Delta's jars are fetched at the first start: is the Maven repository reachable?",
            )
        SYSTEM_CLOCK.sleep(0.05)
    return True


def _await_answer(info: ServerInfo, deadline: float) -> None:
    """Waits until the server has answered a real query."""
    remaining = max(10.0, (deadline - SYSTEM_CLOCK.monotonic_ms()) / 1000)
    check_answer(info, seconds=min(remaining, 120.0))


def _clear(state_dir: Path) -> bool:
    """Ends whatever server the folder names and removes what it left; the caller holds the lock."""
    ended = False
    (state_dir / "server.properties").unlink(missing_ok=True)
    for name in (_STATE, _STARTING, _HIDDEN):
        info = _read(state_dir / name)
        if info is not None:
            ended = info.process.end(seconds=_STOP_SECONDS) or ended
        (state_dir / name).unlink(missing_ok=True)
    for leftover in ("local", "artifacts", "spark-warehouse", "warehouse"):
        shutil.rmtree(state_dir / leftover, ignore_errors=True)
    return ended


@contextmanager
def _locked(state_dir: Path, *, seconds: float) -> Iterator[None]:
    try:
        with FileLock(state_dir / _LOCK, timeout=seconds, mode=0o600):
            yield
    except Timeout as error:
        raise OperationalError(
            "another process is starting or stopping the Spark server",
            detail=f"It has held {error.lock_file} for {seconds:.0f} s.",
            hint="Wait, or look for a process that hangs.",
        ) from error


def _private_folder(state_dir: Path) -> Path:
    """Returns `state_dir` as an absolute path, existing and closed to other users."""
    state_dir = state_dir.absolute()
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = state_dir.stat()
    if status.st_uid != os.getuid():
        raise OperationalError(
            f'the state folder "{state_dir}" belongs to another user', hint="Choose a folder of your own."
        )
    if status.st_mode & 0o077:
        state_dir.chmod(0o700)
    return state_dir


def _listens(port: int, *, patience: float = 1.0) -> bool:
    """Returns whether something accepts TCP connections on the loopback port `port`."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience):
            return True
    except OSError:
        return False


def _dump(info: ServerInfo) -> str:
    return json.dumps(
        {
            "url": info.url,
            "token": info.token,
            "pid": info.pid,
            "ui_url": info.ui_url,
            "started": info.started,
            "memory": info.memory,
        }
    )


def _read(path: Path) -> ServerInfo | None:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return ServerInfo(
            url=str(row["url"]),
            token=str(row["token"]),
            pid=int(row["pid"]),
            ui_url=str(row["ui_url"]),
            log=log_file(path.parent),
            started=str(row["started"]),
            memory=str(row.get("memory", "")),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return None  # written by another release, or by hand: as good as stale


def _tail(state_dir: Path, lines: int = 40) -> str:
    """Returns the last lines a server wrote, for an error's detail."""
    texts = []
    for path in (output_file(state_dir), log_file(state_dir)):
        if path.exists():
            texts += path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    return "\n".join(texts) or "nothing"
