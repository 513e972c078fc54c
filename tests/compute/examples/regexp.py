"""Regular expressions: matching, what groups hold, replacing, splitting, SIMILAR TO."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import resolve_function, resolve_operator, resolve_table_function
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import TEXT, array_of
from tests.compute.examples.example import POOLS, Example, applied, columns_of, function, operator

POOLS |= {
    "subject": (TEXT, ["", "a", "abc", "foobarbequebaz", "a.b.c", "x=1, y=22", "line\nbreak", "ABC", "aaa", "Äh🐘 x",
        "abab", "100%", "2024-02-29"]),
    "regexp": (TEXT, [
        "", "a", "^a", "b$", ".", "a|ab", "(a|ab)(c|bcd)?", "o+", "(b..)(beque)?", r"\d+", r"(\w)=(\d+)", "[^a-z]",
        "(?i)b", "x*", "(a)(b)?", r"(.)\1", r"\mb", r"\y", "a{2}", "a{1,2}?", ".*?a", "(?=b)", "(?<=a)b",
        "[[:alpha:]]+",
        r"(\d{4})-(\d\d)", "(?n)^b", "***=a.b", "(?x)a b # c", r"[\s,]+", "()", "(a*)*", "(a|b)*", "(?:a|(b))+",
        # What is no pattern.
        "(", ")", "[", "*", "a**", "a{2,1}", "a{300}", r"\q", r"\9", "[z-a]", "[[:nope:]]", "(?z)a", "^*", "a{1", "\\",
    ]),
    "groups": (TEXT, ["[]", '["a", null]', '["\\"b\\"", "é,"]']),
    "replacement": (TEXT, ["", "<\\&>", "\\1", "[\\2-\\1]", "\\\\", "\\", "\\x", "é"]),
    "flags": (TEXT, ["", "i", "n", "x", "q", "ic", "g", "gi", "z", "w", "p", "s"]),
    "similar": (TEXT, ["%", "a_c", "(a|foo)%", "%bar%", "[a-c]+", "a.b.c", "a{3}", "100\\%", "", "%(", "_", "A%",
        "^a$"]),
    "marked": (TEXT, ['%#"o_b#"%', '#"%#"', 'a#"%', "abc", '#"a#"#"b', "%##%"]),
}  # fmt: skip


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    for symbol in ("~", "!~", "~*", "!~*"):
        yield operator(symbol, "subject", "regexp")
        yield operator(symbol, "char5", "regexp")
    for name in ("regexp_like", "regexp_match", "regexp_split_to_array"):
        yield function(name, "subject", "regexp")
        yield function(name, "subject", "regexp", "flags")
    for flags in ((), ("flags",)):
        called = f"regexp_matches({{0}}, {{1}}{', {2}' if flags else ''})"
        pools = ("subject", "regexp", *flags)
        resolved = resolve_table_function("regexp_matches", [TEXT] * len(pools), [None] * len(pools))
        found = (
            f"CASE WHEN {' AND '.join(f'{{{i}}} IS NOT NULL' for i in range(len(pools)))} THEN"
            f" ARRAY(SELECT array_to_json(m)::jsonb::text FROM {called} AS r(m)) END"
        )
        yield Example(found, applied(resolved, columns_of(pools)), pools)
    groups = Call("regexp_groups_text", tuple(columns_of(["groups"])), array_of(TEXT))
    sql = "CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text({0}::jsonb)) END"
    yield Example(sql, groups, ("groups",))
    yield function("substring", "subject", "regexp", sql="substring({0} from {1})")
    yield function("substring", "subject", "marked", "escape", sql="substring({0} from {1} for {2})")
    yield function("regexp_count", "subject", "regexp")
    yield function("regexp_count", "subject", "regexp", "small")
    yield function("regexp_count", "subject", "regexp", "small", "flags")
    for n in range(6):
        yield function("regexp_instr", "subject", "regexp", *("small", "small", "bit", "flags", "bit")[:n])
    for n in range(5):
        yield function("regexp_substr", "subject", "regexp", *("small", "small", "flags", "bit")[:n])
    yield function("regexp_replace", "subject", "regexp", "replacement")
    yield function("regexp_replace", "subject", "regexp", "replacement", "flags")
    for n in range(1, 4):
        yield function("regexp_replace", "subject", "regexp", "replacement", *("small", "small", "flags")[:n])
    yield from _similar()


def _similar() -> Iterator[Example]:
    subject, pattern, escape = columns_of(["subject", "similar", "escape"])
    matches = resolve_operator("~", [TEXT, TEXT])
    plain = applied(resolve_function("similar_to_escape", [TEXT]), [pattern])
    escaped = applied(resolve_function("similar_to_escape", [TEXT, TEXT]), [pattern, escape])
    pools = ("subject", "similar", "escape")
    yield Example("{0} SIMILAR TO {1}", applied(matches, [subject, plain]), pools[:2])
    yield Example("{0} SIMILAR TO {1} ESCAPE {2}", applied(matches, [subject, escaped]), pools)
