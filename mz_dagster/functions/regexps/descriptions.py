"""What the functions and operators of regular expressions are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.function import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "!~": Description("Whether a regular expression does not match.", "'abc' !~ 'd'", "true"),
    "~*": Description(
        "Whether a regular expression matches, upper and lower case being the same.", "'ABC' ~* 'b'", "true"
    ),
    "!~*": Description("The opposite of `~*`.", "'ABC' !~* 'b'", "false"),
    "regexp_like": Description(
        "Whether a regular expression matches, with flags.", "regexp_like('Hello World', 'world$', 'i')", "true"
    ),
    "regexp_match": Description(
        "What the groups of the first match hold, or all of it.",
        "regexp_match('foobarbequebaz', '(bar)(beque)')",
        "{bar,beque}",
    ),
    "regexp_replace": Description(
        "A text with the first match, or with `g` all, replaced; `\\1` is what a group holds.",
        "regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')",
        "fooXarYXazY",
    ),
    "regexp_count": Description(
        "How many times a regular expression matches.", "regexp_count('123456789012', '\\d\\d\\d', 2)", "3"
    ),
    "regexp_instr": Description(
        "Where a match begins or ends.", "regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i')", "3"
    ),
    "regexp_substr": Description(
        "What a match, or one of its groups, holds.", "regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2)", "EF"
    ),
    "regexp_split_to_array": Description(
        "The parts between matches.", "regexp_split_to_array('hello world', '\\s+')", "{hello,world}"
    ),
    "similar_to_escape": Description(
        "The regular expression that a pattern of `SIMILAR TO` is.", "'abc' SIMILAR TO '%(b|d)%'", "true"
    ),
}
