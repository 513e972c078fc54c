"""The summary beside a table's first commit, which spares Spark's first write a job.

A version of a Delta table may have a checksum file: how much there is, and the table's protocol and metadata. Spark
makes each from the one before it; where there is none, it reconstructs the snapshot by jobs, which takes four times as
long as a small append. This process commits without a summary, but for the first commit, whose table is empty.

Invariant: what a summary says is what the commit says. Nothing depends on it: without it, Spark reconstructs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4


def summarize_creation(log: Path) -> None:
    """Writes the summary of a table's first commit, unless that does more than create an empty table.

    Whoever races writes the same, from the same commit. A reader finds it whole or not at all.

    Args:
        log: The folder of the table's log.
    """
    name = f"{0:020d}"
    actions: dict[str, Any] = {}
    for line in (log / f"{name}.json").read_text(encoding="utf-8").splitlines():
        actions |= json.loads(line)
    if not actions.keys() <= {"commitInfo", "protocol", "metaData"}:
        return
    summary = {
        "tableSizeBytes": 0,
        "numFiles": 0,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": actions["metaData"],
        "protocol": actions["protocol"],
    }
    draft = log / f".{name}.crc.{uuid4().hex}"
    draft.write_text(json.dumps(summary), encoding="utf-8")
    draft.rename(log / f"{name}.crc")
