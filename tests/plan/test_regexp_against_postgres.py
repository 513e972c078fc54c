"""Random regular expressions match, divide and replace as PostgreSQL's do.

Patterns are of all kinds: groups, greedy and non-greedy repetitions, alternations, references, lookaround, classes,
options. What is compared: the groups of the first match, all matches as replacing finds them, whether there is any.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from mz_dagster.functions.regexps import regexp
from mz_dagster.functions.registry import SqlFailure
from tests.postgres_server import Postgres

_SINGLE = [".", "[ab]", "[^a]", r"\w", r"\d", r"\s", "[[:alpha:]]", r"\W", "[a-c]", "[]a]", "[a-]", r"[b\d]", "A"]
_CONSTRAINTS = ["^", "$", r"\A", r"\Z", r"\y", r"\m", r"\M", r"\Y"]
_LOOKS = ["(?=", "(?!", "(?<=", "(?<!"]
_QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}", "{1}"]
#: (text, pattern, flags)
Case = tuple[str, str, str]


def alternation(pick: random.Random, depth: int, groups: int) -> str:
    return "|".join(branch(pick, depth, groups) for _ in range(pick.choice([1, 1, 1, 2, 3])))


def branch(pick: random.Random, depth: int, groups: int) -> str:
    found = ""
    for _ in range(pick.choice([0, 1, 1, 2, 2, 3, 3])):
        atom = piece(pick, depth, groups)
        found += atom
        if atom not in _CONSTRAINTS and not atom.startswith(tuple(_LOOKS)) and pick.random() < 0.55:
            found += pick.choice(_QUANTIFIERS) + pick.choice(["", "", "", "?"])
        groups += atom.count("(") - atom.count("(?")
    return found


def piece(pick: random.Random, depth: int, groups: int) -> str:
    chance = pick.random()
    if chance < 0.5 or depth == 0:
        return pick.choice("aabbc")
    if chance < 0.58:
        return pick.choice(_SINGLE)
    if chance < 0.62:
        return pick.choice(_CONSTRAINTS)
    if chance < 0.65 and groups:
        return f"\\{pick.randint(1, groups)}"
    if chance < 0.7:
        return f"{pick.choice(_LOOKS)}{alternation(pick, 0, 0)})"
    return f"{pick.choice(['(', '(?:'])}{alternation(pick, depth - 1, groups)})"


def cases(seed: int, patterns: int) -> Iterator[Case]:
    pick = random.Random(seed)
    for _ in range(patterns):
        pattern = pick.choice([""] * 20 + ["(?i)", "(?n)", "(?x)", "***:", "***="]) + alternation(pick, 2, 0)
        flags = pick.choice(["", "", "", "i", "n", "x", "p", "w"])
        for _ in range(3):
            yield "".join(pick.choice("aaabbbcccdA 1\n") for _ in range(pick.randint(0, 9))), pattern, flags


def ours(case: Case) -> str:
    text, pattern, flags = case
    try:
        groups = regexp.match(text, pattern, flags)
        shown = "-" if groups is None else json.dumps(groups, separators=(",", ":"))
        replaced = regexp.replace_flags(text, pattern, "<\\&>", f"g{flags}")
        return f"={shown}|{replaced}|{str(regexp.like(text, pattern, flags)).lower()}"
    except SqlFailure as failure:
        return f"!{failure}"


def asked(case: Case) -> str:
    text, pattern, flags = ("'" + one.replace("'", "''") + "'" for one in case)
    match = f"coalesce(array_to_json(regexp_match({text}, {pattern}, {flags}))::text, '-')"
    replaced = f"regexp_replace({text}, {pattern}, '<\\&>', 'g' || {flags})"
    return f"{match} || '|' || {replaced} || '|' || regexp_like({text}, {pattern}, {flags})"


def check(postgres: Postgres, seed: int, patterns: int) -> None:
    all_cases = list(cases(seed, patterns))
    answers = postgres.attempt([asked(case) for case in all_cases])
    wrong = [
        f"{case}: {mine!r}, PostgreSQL {theirs!r}"
        for case, mine, theirs in zip(all_cases, map(ours, all_cases), answers, strict=True)
        if mine != theirs and not mine.startswith("!0A000")
    ]
    matched = sum(answer is not None and answer.endswith("|true") for answer in answers)
    assert matched > patterns
    assert not wrong, f"seed {seed}: {len(wrong)} of {len(all_cases)} differ:\n" + "\n".join(wrong[:20])


def test_random_patterns_match_as_postgres_matches(postgres: Postgres) -> None:
    check(postgres, 1, 300)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_patterns_match_as_postgres_matches(postgres: Postgres, seed: int) -> None:
    check(postgres, seed, 2000)


def test_no_text_takes_exponential_time() -> None:
    assert not regexp.matches("a" * 60, "^(a+)+$b|^(a|aa)+b$|(a*)*c")
    assert regexp.match("a" * 60, "(a|aa)+?(a*)$") == ["a", "a" * 59]
    for pattern in ("^(a|a)*$", "(a?a?)*b", "(a?){25}a{25}b", "((a|b)?){20}c", "(?=(a|aa)+$)b", "a?" * 30 + "b"):
        assert not regexp.matches("a" * 60 + "c" * (pattern[-1] == "$"), pattern)
