"""What a change of a project's files comes to, as the command line prints it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from mz_dagster.cli.tables import print_table

if TYPE_CHECKING:
    from mz_dagster.adapter import Change, ChangePlan, Fault, Hydration, ReferenceChange


def print_faults(faults: Sequence[Fault]) -> None:
    """Prints what in the project's files cannot be used, each with all that waits for it."""
    from mz_dagster.adapter import by_cause

    for one, waiting in by_cause(faults):
        called = "" if one.waits_for is None else f'"{one.name}" '
        print(f"ERROR: {called}{one.error}", file=sys.stderr)
        if waiting:
            waits = "waits" if len(waiting) == 1 else "wait"
            print(f"{', '.join(map(shown_name, waiting))} {waits} for {_whom(one)}", file=sys.stderr)


def _whom(fault: Fault) -> str:
    return str(fault.path) if fault.name is None else f'"{shown_name(fault.name)}"'


def print_changes(plan: ChangePlan) -> None:
    """Prints what becomes of each object; what was renamed, altered or is gone before who misses it."""
    from mz_dagster.adapter import Action

    why = "no file defines it any more"
    first = (Action.RENAME, Action.ALTER)  # what others are missed for comes before who misses it
    changes = [one for one in plan.changes if one.action is not Action.KEEP]
    rows = [_key_row(one) for one in plan.references if one.is_first]
    rows += [_row(one) for one in changes if one.action in first]
    for row, readers in plan.missed:
        still = (
            f"{', '.join(map(shown_name, readers))} cannot do without" if readers else "what it checks is wrong there"
        )
        rows.append(("leave", row.kind, shown_name(str(row.name)), f"{why}, and {still}", "readable"))
    for row in plan.orphans:
        goes = row in plan.going
        readable = "" if goes or row.kind == "schema" else "readable"
        rows.append(("drop" if goes else "leave", row.kind, shown_name(str(row.name)), why, readable))
    rows += [_row(one) for one in changes if one.action not in first]
    replaced = {*plan.created, *plan.replaced, *plan.dropped}
    for each in plan.replanned:
        if each.name not in replaced:
            verb = "rehydrate" if each.row.has_collection else "replace"
            until = "not readable" if each.row.has_collection else ""
            rows.append((verb, each.row.kind, each.name, each.reason, until))
    rows += [_key_row(one) for one in plan.references if not one.is_first]
    anew = {each.name for each in plan.replanned}
    if rows:
        print_table(("action", "kind", "name", "because", "until hydrated"), rows)
    if not plan.changed and not plan.faults:
        print("nothing to change")
    kept, outside = ([name for name in names if name not in anew] for names in (plan.kept, plan.outside))
    if kept:
        print(f"kept: {', '.join(map(shown_name, kept))}")
    if outside:
        print(f"made in sessions, left alone: {', '.join(outside)}")
    if plan.orphaned:
        print(f"with --drop would go: {', '.join(map(shown_name, plan.orphaned))}")


def shown_name(name: str) -> str:
    """Returns a name as people read it; that of a schema has a dot for the catalog only."""
    return name.removesuffix(".")


def _row(change: Change) -> tuple[str, str, str, str, str]:
    return (
        _verb(change),
        change.object.definition.kind,
        shown_name(change.name),
        _reason(change),
        _readers_meanwhile(change),
    )


def _key_row(change: ReferenceChange) -> tuple[str, str, str, str, str]:
    """Returns what becomes of a foreign key, with the statement that does it."""
    why = "no file declares it any more" if change.is_first else "its file declares it"
    return (change.action.value, "foreign key", change.name, f"{why}: {change.statement.text}", "")


def _reason(change: Change) -> str:
    """Returns why it is done, with the columns that are decided thereby."""
    columns = change.object.decided_columns
    return change.reason if columns is None else f"{change.reason}; its table's columns are {columns}"


def print_queries(plan: ChangePlan) -> None:
    """Prints the old text of each definition that changes beside the new one."""
    for one in plan.changes:
        if one.stays or one.old is None or one.old.sql == one.object.definition.text:
            continue
        before, after = one.old.sql.splitlines(), one.object.definition.text.splitlines()
        width = max(map(len, ["before", *before]))
        print(f"\n{one.name}")
        print(f"  {'before'.ljust(width)}    after")
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for kind, start, end, other_start, other_end in matcher.get_opcodes():
            sign = " " if kind == "equal" else "|"
            for left, right in zip_longest(before[start:end], after[other_start:other_end], fillvalue=""):
                print(f"  {left.ljust(width)}  {sign} {right}".rstrip())


def _verb(change: Change) -> str:
    """Returns what happens to an object: one with contents that is replaced is made anew, from all of its inputs."""
    from mz_dagster.adapter import Action

    return "rehydrate" if change.action is Action.REPLACE and change.has_collection else change.action.value


def _readers_meanwhile(change: Change) -> str:
    """Returns who can read an object's old contents between the change and its hydration."""
    if change.old is None or not change.has_collection or change.stays:
        return ""
    return f"old one for {', '.join(change.held_by)}" if change.held_by else "not readable"


def hydration(one: Hydration) -> tuple[object, ...]:
    """Returns what a hydration costs, as cells."""
    known = (one.size.updates, one.size.bytes) if set(one.reads) - set(one.waits_for) else (None, None)
    reads, after, states = (", ".join(names) for names in (one.reads, one.waits_for, one.states))
    return (one.name, reads, *known, after, states, one.freed.updates, one.freed.bytes)
