r"""LIKE and ILIKE.

A pattern is turned into a regular expression in which every character is quoted: here, if it is a literal, or by Spark
itself, row by row. A literal pattern without a wildcard but at its ends becomes a comparison, by which scans can prune.
The escape character is the backslash; `ESCAPE e` goes through `like_escape`, as in PostgreSQL.

A pattern that ends with a lone escape character fails only if matching gets that far: if what precedes it matches a
part of the text from its start, with something left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, all_present, call, strict
from mz_dagster.compute.spark.expressions.text import lower
from mz_dagster.functions.text.characters import lower as lower_text
from mz_dagster.functions.text.like_patterns import ENDS_WITH_ESCAPE, INVALID_ESCAPE, Token, like_escape, tokens
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_ENDS_WITH_ESCAPE = f"22025 {ENDS_WITH_ESCAPE}"
_INVALID_ESCAPE = f"22025 {INVALID_ESCAPE}"


def _regex(wanted: Sequence[Token]) -> str:
    parts = {"%": "(?s:.*)", "_": "(?s:.)"}
    return "".join(parts[character] if wild else f"\\Q{character}\\E" for wild, character in wanted)


def _matches_literal(value: Column, pattern: str) -> tuple[Column, Column | None]:
    wanted, escape_left = tokens(pattern)
    if escape_left:
        # It can never match.
        failing = sf.rlike(value, sf.lit(rf"\A{_regex(wanted)}(?s:.)"))
        return sf.when(~failing, sf.lit(False)), sf.when(failing, sf.lit(_ENDS_WITH_ESCAPE))
    inner = "".join(character for wild, character in wanted if not wild)
    wilds = [(position, character) for position, (wild, character) in enumerate(wanted) if wild]
    last = len(wanted) - 1
    if not wilds:
        return value == sf.lit(inner), None
    if inner and wilds == [(last, "%")]:
        return sf.startswith(value, sf.lit(inner)), None
    if inner and wilds == [(0, "%")]:
        return sf.endswith(value, sf.lit(inner)), None
    if inner and wilds == [(0, "%"), (last, "%")]:
        return sf.contains(value, sf.lit(inner)), None
    return sf.rlike(value, sf.lit(rf"\A{_regex(wanted)}\z")), None


def _matches(value: Column, pattern: Column) -> tuple[Column, Column | None]:
    # Each literal character c, escaped or not, becomes \Qc\E; what then is not preceded by \Q is a wildcard.
    body = call("regexp_replace", pattern, sf.lit(r"(?s)\\(.)|([^%_\\])"), sf.lit(r"\\Q$1$2\\E"))
    lone = sf.endswith(body, sf.lit("\\"))
    body = sf.when(lone, call("regexp_replace", body, sf.lit(r"\\\z"), sf.lit(""))).otherwise(body)
    body = call("regexp_replace", body, sf.lit(r"(?<!\\Q)%"), sf.lit("(?s:.*)"))
    body = call("regexp_replace", body, sf.lit(r"(?<!\\Q)_"), sf.lit("(?s:.)"))
    failing = lone & sf.rlike(value, sf.concat(sf.lit(r"\A"), body, sf.lit("(?s:.)")))
    matching = ~lone & sf.rlike(value, sf.concat(sf.lit(r"\A"), body, sf.lit(r"\z")))
    return sf.when(~failing, matching), sf.when(failing, sf.lit(_ENDS_WITH_ESCAPE))


def _constant(pattern: Scalar) -> str | None:
    """Returns the pattern if it is known: a literal, with a literal escape character or without one."""
    if isinstance(pattern, Literal):
        return pattern.value if isinstance(pattern.value, str) else None
    if not isinstance(pattern, Call) or pattern.function != "like_escape_text":
        return None
    text, escape = (_constant(argument) for argument in pattern.arguments)
    if text is None or escape is None or len(escape) > 1:
        return None
    return like_escape(text, escape)


@strict("like_text", "not_like_text", "ilike_text", "not_ilike_text", heavy=True)
def _like(invocation: Invocation) -> Outcome:
    value, pattern = invocation.values
    scalar = invocation.scalars[1]
    folds = "ilike" in invocation.function
    if folds:
        value = lower(value)
    text = _constant(scalar)
    if text is not None:
        found, error = _matches_literal(value, lower_text(text) if folds else text)
    else:
        found, error = _matches(value, lower(pattern) if folds else pattern)
    return (~found if invocation.function.startswith("not_") else found), error


@strict("like_escape_text", heavy=True)
def _like_escape(invocation: Invocation) -> Outcome:
    pattern, escape = invocation.values
    quoted = sf.concat(sf.lit(r"(?s)\Q"), escape, sf.lit(r"\E(.?)|(\\)"))
    rewritten = call("regexp_replace", pattern, quoted, sf.lit(r"\\$1$2"))
    doubled = call("regexp_replace", pattern, sf.lit(r"\\"), sf.lit(r"\\\\"))
    value = (
        sf.when(escape == sf.lit(""), doubled)
        .when(escape == sf.lit("\\"), pattern)
        .when(sf.length(escape) == 1, rewritten)
    )
    value = sf.when(all_present([pattern, escape]), value)
    error = sf.when((sf.length(escape) > 1) & pattern.isNotNull(), sf.lit(_INVALID_ESCAPE))
    return value, error
