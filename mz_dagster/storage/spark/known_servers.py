"""Where this user's embedded servers keep their files: what `mz-dagster spark stop --all` goes by.

Owns one folder of this user, below `XDG_STATE_HOME`, with a file for each state folder that holds its path. It says
where to look, not what runs: that is `server_status`'s to say.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

_logger = logging.getLogger(__name__)


def remember(state_dir: Path) -> None:
    """Notes that a server was started for a state folder; only a log tells where that cannot be written."""
    name = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:32]
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_bytes(os.fsencode(state_dir))
    except OSError as error:
        _logger.warning("the Spark server of %s is not listed by `spark status --all`: %s", state_dir, error)


def known_state_dirs() -> list[Path]:
    """Returns the state folders for which servers were started, sorted; what has no folder any more is forgotten."""
    found = []
    folder = _folder()
    for entry in folder.iterdir() if folder.is_dir() else ():
        state_dir = Path(os.fsdecode(entry.read_bytes()))
        if state_dir.is_dir():
            found.append(state_dir)
        else:
            entry.unlink(missing_ok=True)
    return sorted(found)


def _folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "mz_dagster" / "servers"
