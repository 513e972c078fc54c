"""The lexer agrees with PostgreSQL's on what is a literal, and splitting loses nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mz_dagster.sql import SqlText, split
from mz_dagster.sql.body_parser import parse_body
from mz_dagster.sql.errors import BadCharacter, InvalidSyntax, UnsupportedForm
from mz_dagster.sql.lexer import TokenKind, fold, tokens_of
from mz_dagster.sql.parameters import literal_of_value

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
    ("text", "value"),
    [
        (r"E'a\n\t\'\\''\z'", "a\n\t'\\'z"),
        (r"e'\101\x42\u0043\U0001F600'", "ABC\U0001f600"),
        (r"E'\xc3\xa9'", "\u00e9"),
        ("E'it''s'", "it's"),
        ("$$it's$$", "it's"),
        (r"U&'d\0061t\+000061\\'", "data\\"),
        (r"u&'\D83D\DE00'''", "\U0001f600'"),
        ("U&'d!0061t!!' -- its own\n UESCAPE '!'", "dat!"),
    ],
)
def test_a_literal_is_what_it_stands_for_also_within_a_query(text: str, value: str) -> None:
    (token, _) = tokens_of(text)
    assert (token.kind, token.value, token.end) == (TokenKind.STRING, value, len(text))
    body = parse_body(SqlText(f"SELECT {text}, b"))
    first, second = body.root.expressions
    assert first.this == value
    assert body.position(second) == len(text) + 10


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("SELECT 'a", 8, "unterminated quoted string"),
        ('SELECT "a', 8, "unterminated quoted identifier"),
        ("SELECT /* a", 8, "unterminated /* comment"),
        ("SELECT $x$ a", 8, "unterminated dollar-quoted string"),
        ("SELECT N'1'", 8, "string literals of the form"),
        (r"SELECT U&'\00'", 8, "invalid Unicode escape"),
        (r"SELECT U&'\0000'", 8, "invalid Unicode escape value"),
        (r"SELECT U&'\D800 '", 8, "invalid Unicode surrogate pair"),
        ("SELECT U&'a' UESCAPE '+'", 22, "invalid Unicode escape character"),
        ("SELECT U&'a", 10, "unterminated quoted string"),
        ("SELECT E'a\\'", 9, "unterminated quoted string"),
        (r"SELECT E'\u12'", 8, "a character is"),
        (r"SELECT E'\377'", 8, "invalid escape"),
        ("SELECT 1a", 8, "trailing junk"),
        ('SELECT ""', 8, "zero-length delimited identifier"),
    ],
)
def test_what_does_not_end_is_an_error_at_its_start(text: str, position: int, message: str) -> None:
    with pytest.raises(InvalidSyntax) as caught:
        tokens_of(text)
    assert caught.value.position == position
    assert message in caught.value.message


def test_a_ruler_of_dashes_is_one_comment() -> None:
    text = "SELECT U&'a' " + "-" * 100
    *_, token, _ = tokens_of(text)
    assert (token.value, token.end) == ("a", 12)
    assert tokens_of(f"{text}\nUESCAPE '!'")[1].end == len(text) + 12


def test_a_name_may_be_written_by_code_points() -> None:
    text = r'SELECT U&"d\0061t""\0022" AS U&"x!0079" UESCAPE ' + "'!', b"
    body = parse_body(SqlText(text))
    first, second = body.root.expressions
    assert (first.this.name, first.alias, body.position(second)) == ('dat""', "xy", len(text))


@pytest.mark.parametrize("text", ["SELECT B'1'", "SELECT x'1F'"])
def test_bit_strings_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedForm, match="bit strings") as caught:
        tokens_of(text)
    assert (caught.value.position, caught.value.sqlstate) == (8, "0A000")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (r"SELECT E'a\000'", 8),
        ("SELECT 'a\0'", 10),
        ("SELECT $$\0$$", 10),
        ('SELECT 1 AS "\0"', 14),
        ("SELECT 1 -- \0", 13),
        ("SELECT '\ud800'", 9),
    ],
)
def test_a_text_holds_no_zero_byte_and_no_half_of_a_character(text: str, position: int) -> None:
    with pytest.raises(BadCharacter, match="invalid byte sequence") as caught:
        tokens_of(text)
    assert (caught.value.position, caught.value.sqlstate) == (position, "22021")


@pytest.mark.parametrize("value", ["a\0", "\udfff", ["x", "\0"], {"a": "\ud800"}])
def test_nor_does_a_parameter(value: object) -> None:
    with pytest.raises(BadCharacter):
        literal_of_value(value, 8)


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("a->>-1", ["->>", "-"]),
        ("a#>>b #- c", ["#>>", "#-"]),
        ("a||-b", ["||-"]),
        ("2*-1+-3", ["*", "-", "+", "-"]),
        ("a=-1", ["=", "-"]),
        ("a!~*b", ["!~*"]),
        ("a <@/* b */c", ["<@"]),
        ("a<--b", ["<"]),
        ("f(a=>1)", ["(", "=>", ")"]),
        ("a == b", ["=="]),
    ],
)
def test_operators_are_as_long_as_those_of_postgres(text: str, symbols: list[str]) -> None:
    assert [token.value for token in tokens_of(text) if token.kind is TokenKind.SYMBOL] == symbols


@pytest.mark.parametrize(
    ("text", "operators", "parameters"),
    [
        ("j ? 'a' AND b = ?", ["?"], 1),
        ("j ? ?", ["?"], 1),
        ("f(j) ?| x OR y[1] ?& ?", ["?|", "?&"], 1),
        ("j @? 'p'", ["@?"], 0),
        ("a IN (?, ?) AND b BETWEEN ? AND ?", [], 4),
        ("SELECT ? LIMIT ? OFFSET ?", [], 3),
        ("a=?||?", [], 2),
        ("OVER (GROUPS ? PRECEDING) AT TIME ZONE ?", [], 2),
        ("CASE ? WHEN ? THEN ? ELSE ? END ? 'k'", ["?"], 4),
    ],
)
def test_a_question_mark_behind_an_operand_is_an_operator(text: str, operators: list[str], parameters: int) -> None:
    tokens = tokens_of(text)
    assert [one.value for one in tokens if one.kind is TokenKind.SYMBOL and "?" in one.value] == operators
    assert sum(one.kind is TokenKind.PARAMETER for one in tokens) == parameters
