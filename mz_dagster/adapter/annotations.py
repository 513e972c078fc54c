"""Annotations: what the comment above a statement tells about its object beyond a description.

    -- Departures with their airlines' names.
    -- @owner team:flights
    -- @group airlines
    -- @tag domain=ops
    -- @kind kafka
    -- @freshness warn 30 min, fail 2 h
    -- @dep lake/raw_flights
    -- @renamed_from flights_out
    -- @check unique(flight_id), blocking
    CREATE MATERIALIZED VIEW departures AS ...

Owns their grammar and their rules, which are Dagster's: what is accepted here, Dagster accepts. It does not know
Dagster; the translator makes assets of it. A plain view may have them too, though it is no asset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.setting_values import DURATION_UNITS_MS, parse_duration_ms
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.sql.check_statement import CheckRule, parse_check_rule
from mz_dagster.sql.errors import suggestion

#: Dagster takes ten kinds for an asset, and the translator gives three itself.
MAX_KINDS = 7
_LEAST_FRESHNESS_MS = 60_000
_GREATEST_FRESHNESS_MS = 36_500 * 86_400_000

_LINE = re.compile(r"@(\w+)\s*(.*)")
_EMAIL = re.compile(r"\w[A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}", re.ASCII)
_TEAM = re.compile(r"team:\S+")
_GROUP = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")
_TAG = re.compile(r"(?P<key>([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63})(=(?P<value>[A-Za-z0-9_.-]{0,63}))?")
_DEP = re.compile(r"[^\s/]+(/[^\s/]+)*")
_KIND = re.compile(r"[a-z0-9_.-]{1,63}")
_FRESHNESS = re.compile(r"(?:warn (?P<warn>[^,]+), fail |fail )?(?P<fail>[^,]+)")
_FRESHNESS_HINT = (
    f"Write @freshness 2 h, or @freshness warn 30 min, fail 2 h; the units are {', '.join(DURATION_UNITS_MS)}."
)


class BadAnnotation(ProgrammingError):
    """A line that is no annotation, or not a valid one.

    Attributes:
        number: Which of the comment's lines, counted from 0.
    """

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.number = 0


@dataclass(frozen=True, slots=True)
class Freshness:
    """Says how old, by the wall clock, the latest materialization may become.

    Attributes:
        fail_ms: From this age on it is a failure.
        warn_ms: From this age on it is a warning; None for none.
    """

    fail_ms: int
    warn_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a statement's annotations say.

    Attributes:
        owners: E-mail addresses, and teams as `team:name`.
        group: The group of assets it belongs to; None for the default one.
        tags: Keys with values, `""` for none, in order.
        kinds: Shown beside those that every object of its sort has.
        freshness: None if nothing is promised.
        deps: The keys of assets outside of the project that it depends on, each with its parts.
        renamed_from: The name that it had before, whose contents it goes on with; None for none.
        checks: What is checked of its rows.
    """

    owners: tuple[str, ...] = ()
    group: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ()
    freshness: Freshness | None = None
    deps: tuple[tuple[str, ...], ...] = ()
    renamed_from: str | None = None
    checks: tuple[CheckRule, ...] = ()


def parse_annotations(lines: Sequence[str]) -> tuple[Annotations, str | None]:
    """Returns the annotations in a comment, and its other lines as the description; None if there are none.

    Args:
        lines: The comment's lines, without `--`.

    Raises:
        BadAnnotation: An annotation is unknown, not valid or said twice.

    Example:
        >>> annotations, description = parse_annotations(["All flights.", "@owner team:ops", "@freshness 1 h"])
        >>> annotations.owners, annotations.freshness, description
        (('team:ops',), Freshness(fail_ms=3600000, warn_ms=None), 'All flights.')
    """
    found = Annotations()
    others: list[str] = []
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            others.append(line)
            continue
        try:
            found = _annotated(found, match.group(1), match.group(2).strip())
        except BadAnnotation as error:
            error.number = number
            raise
    return found, "\n".join(others).strip("\n") or None


def _annotated(found: Annotations, name: str, value: str) -> Annotations:
    read = _READERS.get(name)
    if read is None:
        allowed = ", ".join(f"@{one}" for one in _READERS)
        near = suggestion(name, _READERS)
        hint = f"{near} " if near else ""
        raise BadAnnotation(
            f'unknown annotation "@{name}"',
            hint=f"{hint}The annotations are {allowed}; for other comments, leave a blank line above the statement.",
        )
    return read(found, value)


def _owner(found: Annotations, value: str) -> Annotations:
    if not (_EMAIL.fullmatch(value) or _TEAM.fullmatch(value)):
        raise _invalid("owner", value, "Write an e-mail address or a team: @owner team:flights")
    return replace(found, owners=_added("owner", value, found.owners))


def _group(found: Annotations, value: str) -> Annotations:
    if not _GROUP.fullmatch(value):
        raise _invalid("group", value, "A group is made of letters, digits and _, with / between levels: ops/flights")
    if found.group is not None:
        raise _twice("group", f'"{found.group}" and "{value}"')
    return replace(found, group=value)


def _tag(found: Annotations, value: str) -> Annotations:
    match = _TAG.fullmatch(value)
    if match is None:
        raise _invalid(
            "tag",
            value,
            "Write key=value, each of up to 63 letters, digits, _, - and .; the key may have a namespace: ops/tier=1",
        )
    key = match["key"]
    if key.startswith("dagster/"):
        raise _invalid("tag", value, "Keys in the namespace dagster/ are Dagster's own; kinds are said with @kind.")
    if key in dict(found.tags):
        raise _twice("tag", f'"{key}"')
    return replace(found, tags=(*found.tags, (key, match["value"] or "")))


def _kind(found: Annotations, value: str) -> Annotations:
    if not _KIND.fullmatch(value):
        raise _invalid("kind", value, "A kind is up to 63 lower case letters, digits, _, - and .: @kind kafka")
    kinds = _added("kind", value, found.kinds)
    if len(kinds) > MAX_KINDS:
        raise BadAnnotation(f"more than {MAX_KINDS} kinds", hint="Keep those that matter most.")
    return replace(found, kinds=kinds)


def _dep(found: Annotations, value: str) -> Annotations:
    if not _DEP.fullmatch(value):
        raise _invalid("dep", value, "Write the key of an asset, with / between its parts: @dep lake/raw_flights")
    key = tuple(value.split("/"))
    if key in found.deps:
        raise _twice("dep", f'"{value}"')
    return replace(found, deps=(*found.deps, key))


def _renamed_from(found: Annotations, value: str) -> Annotations:
    if not value:
        raise _invalid("renamed_from", value, "Write the name that it had: @renamed_from old_name")
    if found.renamed_from is not None:
        raise _twice("renamed_from", f'"{found.renamed_from}" and "{value}"')
    return replace(found, renamed_from=value)


def _check(found: Annotations, value: str) -> Annotations:
    try:
        rule = parse_check_rule(value)
    except Error as error:
        raise BadAnnotation(
            f'invalid @check "{value}": {error.message}',
            hint=error.hint or "Write @check unique(order_id), or another rule; docs/checks.md has them all.",
        ) from error
    return replace(found, checks=(*found.checks, rule))


def _freshness(found: Annotations, value: str) -> Annotations:
    match = _FRESHNESS.fullmatch(" ".join(value.split()))
    if match is None:
        raise _invalid("freshness", value, _FRESHNESS_HINT)
    fail = _age(value, match["fail"])
    warn = None if match["warn"] is None else _age(value, match["warn"])
    if warn is not None and warn >= fail:
        raise _invalid("freshness", value, "Warn earlier than you fail.")
    if found.freshness is not None:
        raise _twice("freshness", f'the second is "{value}"')
    return replace(found, freshness=Freshness(fail, warn))


def _age(value: str, text: str) -> int:
    milliseconds = parse_duration_ms(text)
    if milliseconds is None:
        raise _invalid("freshness", value, _FRESHNESS_HINT)
    if not _LEAST_FRESHNESS_MS <= milliseconds <= _GREATEST_FRESHNESS_MS:
        raise _invalid("freshness", value, "Ages are measured by the minute: 1 min at least, 36500 d at most.")
    return milliseconds


_READERS: dict[str, Callable[[Annotations, str], Annotations]] = {
    "owner": _owner,
    "group": _group,
    "tag": _tag,
    "kind": _kind,
    "freshness": _freshness,
    "dep": _dep,
    "renamed_from": _renamed_from,
    "check": _check,
}


def _added(name: str, value: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if value in known:
        raise _twice(name, f'"{value}"')
    return (*known, value)


def _invalid(name: str, value: str, hint: str) -> BadAnnotation:
    return BadAnnotation(f'invalid @{name} "{value}"' if value else f"@{name} says nothing", hint=hint)


def _twice(name: str, what: str) -> BadAnnotation:
    return BadAnnotation(f"@{name} is said twice: {what}", hint="Keep one of them.")
