"""The lexer agrees with PostgreSQL's on what is a literal, and splitting loses nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mz_dagster.sql import split
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.lexer import TokenKind, fold, tokens_of

PIECES = st.sampled_from(
    [
        "SELECT", " ", "\n", ";", "';'", "'it''s'", '"a;b"', '"a""b"', "-- c;\n", "/* ; /* ; */ */", "$$;'$$",
        "$x$;$$;$x$", "(", ")", ",", "1.5e3", ".5", "::", "->>", "?", "a.b", "é", "=", "<>", "'\n'",
    ]
)  # fmt: skip


@given(st.lists(PIECES).map(" ".join))
@example("SELECT 1;;SELECT 2;")
@example(";")
@example("")
def test_splitting_never_loses_text(text: str) -> None:
    fragments = split(text)
    assert ";".join(text[one.start : one.end] for one in fragments) == text


@given(st.lists(PIECES).map(" ".join))
def test_tokens_are_in_order_and_where_they_say(text: str) -> None:
    at = 0
    for token in tokens_of(text):
        assert at <= token.start <= token.end <= len(text)
        at = token.end
        if token.kind is TokenKind.WORD:
            assert fold(text[token.start : token.end]) == token.value


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT ';'; SELECT 2", 2),
        ("SELECT $a$;$$;$a$", 1),
        ("SELECT 1 /* ; /* ; */ ; */; SELECT 2", 2),
        ("SELECT 1 -- ; \n; SELECT 2", 2),
        ('SELECT ";"', 1),
        ("SELECT (1; 2)", 1),
    ],
)
def test_semicolons_split_only_outside_quotes_comments_and_parentheses(text: str, count: int) -> None:
    assert len(split(text)) == count


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("SELECT 'a", 8, "unterminated quoted string"),
        ('SELECT "a', 8, "unterminated quoted identifier"),
        ("SELECT /* a", 8, "unterminated /* comment"),
        ("SELECT $x$ a", 8, "unterminated dollar-quoted string"),
        ("SELECT E'a'", 8, "string literals of the form"),
        ("SELECT 1a", 8, "trailing junk"),
        ('SELECT ""', 8, "zero-length delimited identifier"),
    ],
)
def test_what_does_not_end_is_an_error_at_its_start(text: str, position: int, message: str) -> None:
    with pytest.raises(InvalidSyntax) as caught:
        tokens_of(text)
    assert caught.value.position == position
    assert message in caught.value.message
