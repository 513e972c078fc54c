"""What became of an import, as JSON has it, and as a person reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mz_dagster.operations.importing.proposal import Imported, Proposal


def report(proposal: Proposal) -> Mapping[str, Any]:
    """Returns what became of everything, as JSON has it."""
    return {
        "queries": [
            {
                "name": one.name,
                "place": one.place,
                "outcome": one.outcome,
                "file": one.file,
                "reason": one.reason,
                "remarks": [asdict(each) for each in one.remarks],
                "compared": one.compared,
            }
            for one in proposal.imported
        ],
        "sources": list(proposal.sources),
        "missing": {name: list(readers) for name, readers in proposal.missing.items()},
    }


def summary(proposal: Proposal) -> tuple[Sequence[str], Sequence[Sequence[str | None]]]:
    """Returns a table with a row for each query: the names of its columns, and the rows."""
    names = ["query", "outcome", "written otherwise", "to check"]
    rows = [[one.name, one.outcome, _topics(one, exact=True), _topics(one, exact=False)] for one in proposal.imported]
    if any(one.compared is not None for one in proposal.imported):
        return [*names, "compared"], [[*row, one.compared] for row, one in zip(rows, proposal.imported, strict=True)]
    return names, rows


def _topics(one: Imported, *, exact: bool) -> str:
    """Returns what the remarks are about, each with how often it is said."""
    counts = Counter(remark.topic for remark in one.remarks if remark.is_exact is exact)
    return ", ".join(topic if count == 1 else f"{topic} ({count})" for topic, count in counts.items())


def notes(proposal: Proposal) -> Iterator[str]:
    """Yields why each query that was left out was, and what is left to do."""
    for one in proposal.imported:
        if one.reason is not None:
            yield f"left out: {one.name} ({one.place})\n    {one.reason}"
    for name, readers in proposal.missing.items():
        yield f"must exist first: {name}, which {', '.join(readers)} {'reads' if len(readers) == 1 else 'read'}"
    if proposal.sources:
        yield f"sources to complete: {', '.join(proposal.sources)}"
