"""Dagster's webserver and daemon on a project, and a browser; both end with the process that opened them.

Shared by the browser tests and by `docs/screenshots.py`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium-headless-shell"
_START_SECONDS = 90.0

# Runs a command, and kills it with all that it started when its own standard input ends: by our hand, or because this
# process died of whatever. Kills, since `dagster dev` ignores the interrupts that a background shell ignores.
_KEEPER = """
import os, signal, subprocess, sys, threading

def kill_when_let_go():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=kill_when_let_go, daemon=True).start()
subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
os.killpg(0, signal.SIGKILL)
"""


@contextmanager
def dagster_dev(project: Path, home: Path) -> Iterator[str]:
    """Serves the project of a folder with a `workspace.yaml`, on loopback; yields the URL once it is ready.

    Args:
        project: The project's root.
        home: The folder of its Dagster instance; the log is `dev.log` there.

    Raises:
        TimeoutError: It ended, or was not ready in time; the message has the end of its log.
    """
    port = _free_port()
    log = home / "dev.log"
    command = [str(Path(sys.executable).with_name("dagster")), "dev", "-w", str(project / "workspace.yaml")]
    command += ["-h", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-c", _KEEPER, *command],
            cwd=project,
            env={**os.environ, "DAGSTER_HOME": str(home), "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/server_info", keeper, log)
        yield url
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait(30)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Opens Debian's Chromium, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    story = log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise TimeoutError(f"Dagster did not answer at {url} within {_START_SECONDS:.0f} s:\n{story}")
