"""Splits SQL text into tokens and statements, as PostgreSQL's lexer does.

Owns the only place that knows quotes, comments and dollar quotes; everything in the front end works on
its tokens, so that a keyword within a literal is never taken for one. Invariant: tokens and the gaps
between them cover the text, and a token's `start` and `end` are offsets into the text given.
It does not know what any word means, with one exception: of a long list of plain literals behind `IN (`, `ARRAY[`, or
`(VALUES` behind `IN`, `ANY` or `ALL`, it makes one token, since each that it makes costs as much as to look ten
constants up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple

from mz_dagster.budget import budget
from mz_dagster.sql.errors import BadCharacter, InvalidSyntax, UnsupportedForm


class TokenKind(Enum):
    """Says what a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    CONSTANTS = "constants"
    END = "end"


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: What it is.
        value: A word folded to lower case, a quoted identifier or a string without its quotes, the
            constants of a list with nothing but commas between them, else as written.
        start: 0-based offset of its first character.
        end: Offset behind its last character.
    """

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Returns whether this is one of the unquoted `words`, which are given in lower case."""
        return self.kind is TokenKind.WORD and self.value in words

    def is_symbol(self, *symbols: str) -> bool:
        """Returns whether this is one of the `symbols`."""
        return self.kind is TokenKind.SYMBOL and self.value in symbols


@dataclass(frozen=True, slots=True)
class Fragment:
    """The text of one statement within a longer text: `text[start:end]`, without its semicolon."""

    start: int
    end: int
    tokens: tuple[Token, ...]


#: Kinds of tokens that may end a statement, or open and close what it does not end in.
_SPLITTING = frozenset({TokenKind.SYMBOL, TokenKind.END})
#: What stands just before a list of constants.
_OPENING_LISTS = ("(", "[", "values")
#: What no text holds: U+0000 and halves of surrogate pairs.
_UNTEXTUAL = re.compile("[\0\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\r\n\f\v]+|--[^\r\n]*")
_WORD = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$")
_NUMBERED = re.compile(r"\$[0-9]+")
_SYMBOL = re.compile(r"::|:=|=>(?![-+*/<>=~!@#%^&|`])|.", re.DOTALL)
#: What is a symbol wherever it stands outside quotes and comments, and begins no list of constants.
_ALONE = frozenset(",);]")
#: Characters of operators; `?` is apart, because it is a parameter, too.
_OPERATOR = re.compile(r"(?:(?!--|/\*)[-+*/<>=~!@#%^&|`])+")
_QUESTION = re.compile(r"@?\?[|&]?(?!\|)")
#: After so many errors within statements the rest of a text is given up.
_MOST_UNREADABLE = 20
#: An operator ends in + or - only if it has one of these.
_UNUSUAL = re.compile(r"[~!@#%^&|`]")
#: Words that an operand follows: a `?` behind them is a parameter.
_OPENING = frozenset((
    "all", "and", "any", "between", "both", "by", "case", "distinct", "else", "escape", "fetch", "first", "for", "from",
    "groups", "having", "ilike", "in", "interval", "is", "leading", "least", "like", "limit", "next", "not", "of",
    "offset", "on", "or", "overlaps", "placing", "range", "returning", "rows", "select", "set", "some", "symmetric",
    "then", "to", "trailing", "using", "values", "when", "where", "with", "zone",
))  # fmt: skip
#: A number, a string or NULL, and a list of them.
CONSTANT = rf"(?:-?{_NUMBER.pattern}|'(?:[^']++|'')*+'|(?i:null))"
_EACH_CONSTANT = re.compile(CONSTANT)
_BLANK = r"[ \t\r\n\f\v]*+"
_IN_PARENTHESES = rf"\({_BLANK}{CONSTANT}{_BLANK}\)"


def _listed(item: str, end: str) -> re.Pattern[str]:
    """Returns what matches a list of items right before what ends it."""
    return re.compile(rf"{item}(?:{_BLANK},{_BLANK}{item})*+(?={_BLANK}{end})")


_CONSTANTS, _ELEMENTS, _ROWS = _listed(CONSTANT, r"\)"), _listed(CONSTANT, r"\]"), _listed(_IN_PARENTHESES, r"\)")
_ASCII_FOLD = {ordinal: ordinal + 32 for ordinal in range(ord("A"), ord("Z") + 1)}


def fold(word: str) -> str:
    """Returns an unquoted identifier as PostgreSQL folds it: ASCII letters to lower case, nothing else.

    Example:
        >>> fold("Straße_ÄB")
        'straße_Äb'
    """
    return word.translate(_ASCII_FOLD)


def tokens_of(text: str) -> tuple[Token, ...]:
    """Returns the tokens of `text`, ended by one of kind `END`.

    Raises:
        InvalidSyntax: A quote or comment does not end, or a form of literal is not known.
        BadCharacter: A character is none that a text can hold.

    Example:
        >>> [token.value for token in tokens_of("SELECT 'it''s' -- why")]
        ['select', "it's", '']
    """
    check_characters(text)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at] in _ALONE:
            tokens.append(Token(TokenKind.SYMBOL, text[at], at, at + 1))
            at += 1
        elif match := _SPACE.match(text, at):
            at = match.end()
        elif text.startswith("/*", at):
            at = _end_of_comment(text, at)
        else:
            token = _constants_at(text, at, tokens) or _question_at(text, at, tokens) or _token_at(text, at)
            tokens.append(token)
            at = token.end
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tuple(tokens)


def check_characters(text: str, position: int | None = None) -> None:
    """Checks that UTF-8, and so PostgreSQL and every store, has each character of `text`.

    Args:
        text: A statement, or a value.
        position: Where a value stands in its statement; in a statement the character's own place is told.

    Raises:
        BadCharacter: One is U+0000 or half of a surrogate pair.
    """
    if match := _UNTEXTUAL.search(text):
        found = " ".join(f"0x{byte:02x}" for byte in match.group().encode("utf-8", "surrogatepass"))
        raise BadCharacter(
            f'invalid byte sequence for encoding "UTF8": {found}', position=position or match.start() + 1
        )


def same_tokens(text: str, other: str) -> bool:
    """Returns whether two texts differ in white space, comments and the case of unquoted words only.

    Raises:
        InvalidSyntax: A quote or comment does not end, or a form of literal is not known.

    Example:
        >>> same_tokens("SELECT a -- why", "select  A"), same_tokens("SELECT 'a'", "SELECT 'A'")
        (True, False)
    """
    one, two = ([(token.kind, token.value) for token in tokens_of(each)] for each in (text, other))
    return one == two


def split(text: str) -> tuple[Fragment, ...]:
    """Returns the statements of `text`, in order, empty ones included.

    Semicolons within quotes, comments or parentheses do not split. The fragments' texts joined by `;` are `text`.

    Example:
        >>> text = "SELECT ';' /* ; */; SELECT 2"
        >>> [text[one.start:one.end] for one in split(text)]
        ["SELECT ';' /* ; */", ' SELECT 2']
    """
    fragments: list[Fragment] = []
    start, depth = 0, 0
    pending: list[Token] = []
    for token in tokens_of(text):
        if token.kind not in _SPLITTING:
            pending.append(token)
            continue
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth = max(0, depth - 1)
        if token.kind is TokenKind.END or (token.is_symbol(";") and depth == 0):
            fragments.append(Fragment(start, token.start, tuple(pending)))
            start, pending = token.end, []
        else:
            pending.append(token)
    return tuple(fragments)


def split_around_errors(text: str) -> tuple[tuple[Fragment, ...], bool]:
    """Returns the statements of `text`, in order, as far as they can be told apart, and whether that is all of them.

    A literal of no known form belongs to its statement, which is one all the same. What is behind a quote or a comment
    that does not end is not known: the statement that it is in, and those behind.

    Example:
        >>> fragments, is_whole = split_around_errors("SELECT 1a; SELECT 2; SELECT 'x; SELECT 3")
        >>> [(one.start, one.end) for one in fragments], is_whole
        ([(0, 9), (10, 19)], False)
    """
    readable = text
    for _ in range(_MOST_UNREADABLE):
        try:
            return split(readable), True
        except (BadCharacter, InvalidSyntax, UnsupportedForm) as error:
            at = (error.position or 1) - 1
            if error.message.startswith("unterminated") or readable[at] in "eEuU":  # whose escapes may hide its end
                return split(readable[:at])[:-1], False
            readable = f"{readable[:at]} {readable[at + 1 :]}"
    return (), False


def _end_of_comment(text: str, start: int) -> int:
    depth, at = 0, start
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    raise InvalidSyntax("unterminated /* comment", position=start + 1)


def constants_of(text: str) -> list[str]:
    """Returns the constants that a text of kind `CONSTANTS` spells, each as it is written.

    Example:
        >>> constants_of("1, -2.5, 'a, b' ,NULL")
        ['1', '-2.5', "'a, b'", 'NULL']
    """
    return _EACH_CONSTANT.findall(text)


def constant_spans(text: str) -> list[tuple[int, int]]:
    """Returns where each of the constants begins and ends."""
    return [match.span() for match in _EACH_CONSTANT.finditer(text)]


def _constants_at(text: str, at: int, before: list[Token]) -> Token | None:
    """Returns the list of constants at `at`, if it is a long one in one of the places where it is one token."""
    listed = _list_behind(before)
    match = None if listed is None else listed.match(text, at)
    if match is None or match.group().count(",") < budget().compared_constants:
        return None
    constants = constants_of(match.group())
    if len(constants) <= budget().compared_constants:
        return None
    value = ",".join(one.lower() if one[0] in "nN" else one for one in constants)
    return Token(TokenKind.CONSTANTS, value, at, match.end())


def _list_behind(before: list[Token]) -> re.Pattern[str] | None:
    """Returns what a list of constants that is one token looks like behind other tokens; None if there is none."""
    if len(before) < 2 or before[-1].value not in _OPENING_LISTS:
        return None
    opening, last = before[-2:]
    if last.is_symbol("("):
        return _CONSTANTS if opening.is_word("in") else None
    if last.is_symbol("["):
        return _ELEMENTS if opening.is_word("array") else None
    if last.is_word("values") and opening.is_symbol("(") and len(before) > 2:
        return _ROWS if before[-3].is_word("in", "any", "some", "all") else None
    return None


@cache
def _ordinary(quote: str, escapes: bool) -> re.Pattern[str]:
    """Returns what may stand between quotes without another one, and without a backslash if that escapes."""
    return re.compile(rf"[^{quote}\\]*" if escapes else f"[^{quote}]*")


def _quoted_end(text: str, start: int, quote: str, what: str, *, escapes: bool = False) -> int:
    ordinary = _ordinary(quote, escapes)
    at = start + 1
    while (match := ordinary.match(text, at)) is not None and match.end() < len(text):
        at = match.end()
        if text[at] == "\\" or text.startswith(quote * 2, at):
            at += 2
        else:
            return at + 1
    raise InvalidSyntax(f"unterminated {what}", position=start + 1)


def _question_at(text: str, at: int, before: list[Token]) -> Token | None:
    """Returns the operator `?`, `?|`, `?&` or `@?`, if one stands at `at`: an operand is before it."""
    match = _QUESTION.match(text, at)
    if match is None or not before or not _ends_operand(before[-1]):
        return None
    return Token(TokenKind.SYMBOL, match.group(), at, match.end())


def _ends_operand(token: Token) -> bool:
    match token.kind:
        case TokenKind.WORD:
            return token.value not in _OPENING
        case TokenKind.SYMBOL:
            return token.value in (")", "]")
        case _:
            return True


def _operator_at(text: str, at: int) -> Token | None:
    """Returns the operator at `at`: as many characters as PostgreSQL takes."""
    match = _OPERATOR.match(text, at)
    if match is None:
        return None
    symbol = match.group()
    while len(symbol) > 1 and symbol[-1] in "+-" and not _UNUSUAL.search(symbol):
        symbol = symbol[:-1]
    return Token(TokenKind.SYMBOL, symbol, at, at + len(symbol))


_ESCAPE = re.compile(
    r"''|\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([uU])|(.))", re.DOTALL
)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescaped(text: str, position: int) -> str:
    """Returns what the inside of `E'...'` stands for; bytes that are given as numbers are parts of UTF-8 characters."""
    pieces, at = b"", 0
    try:
        for match in _ESCAPE.finditer(text):
            pieces += text[at : match.start()].encode() + _escaped_bytes(*match.groups())
            at = match.end()
        found = (pieces + text[at:].encode()).decode()
    except ValueError as error:
        raise InvalidSyntax(f"invalid escape in a string literal: {error}", position=position) from None
    check_characters(found, position)
    return found


def _escaped_bytes(octal: str, hexadecimal: str, short: str, long: str, bad: str, other: str) -> bytes:
    if octal:
        return bytes([int(octal, 8) % 256])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        return chr(int(short or long, 16)).encode()
    if bad:
        raise ValueError("a character is \\uXXXX or \\UXXXXXXXX")
    return b"'" if other is None else _CONTROLS.get(other, other).encode()


#: Possessive: a dash of a comment begins no other one, or a long row of them would be read in ever so many ways.
_GAP = r"(?:[ \t\r\n\f\v]|--[^\r\n]*+)*+"
#: What may follow `U&'...'`: its escape character.
_UESCAPE = re.compile(rf"{_GAP}uescape{_GAP}'((?:[^']|'')*)'", re.IGNORECASE)
_NO_ESCAPE = frozenset("0123456789abcdefABCDEF+'\"")


def _unicode_at(text: str, at: int) -> Token:
    """Returns `U&'...'` or `U&"..."`, with the `UESCAPE` behind it."""
    quote = text[at + 2]
    end = _quoted_end(text, at + 2, quote, "quoted string" if quote == "'" else "quoted identifier")
    inside = text[at + 3 : end - 1].replace(quote * 2, quote)
    escape = "\\"
    if match := _UESCAPE.match(text, end):
        escape, end = match[1], match.end()
        if len(escape) != 1 or escape in _NO_ESCAPE or escape.isspace():
            raise InvalidSyntax("invalid Unicode escape character", position=match.start(1))
    value = _from_unicode(inside, escape, at + 1)
    if quote == "'":
        return Token(TokenKind.STRING, value, at, end)
    if not value:
        raise InvalidSyntax('zero-length delimited identifier at or near """"', position=at + 1)
    return Token(TokenKind.QUOTED, value, at, end)


def _from_unicode(inside: str, escape: str, position: int) -> str:
    """Returns what the inside of `U&'...'` stands for; surrogates come in pairs."""
    mark = re.escape(escape)
    units = re.compile(f"{mark}(?:({mark})|([0-9A-Fa-f]{{4}})|\\+([0-9A-Fa-f]{{6}})|)")

    def unescaped(match: re.Match[str]) -> str:
        if match[1]:
            return escape
        if not (digits := match[2] or match[3]):
            raise InvalidSyntax(
                "invalid Unicode escape",
                hint=f"Unicode escapes must be {escape}XXXX or {escape}+XXXXXX.",
                position=position,
            )
        if not 0 < (code := int(digits, 16)) <= 0x10FFFF:
            raise InvalidSyntax("invalid Unicode escape value", position=position)
        return chr(code)

    try:
        return units.sub(unescaped, inside).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise InvalidSyntax("invalid Unicode surrogate pair", position=position) from None


def _token_at(text: str, at: int) -> Token:
    character = text[at]
    if character == "'":
        end = _quoted_end(text, at, "'", "quoted string")
        return Token(TokenKind.STRING, text[at + 1 : end - 1].replace("''", "'"), at, end)
    if character == '"':
        end = _quoted_end(text, at, '"', "quoted identifier")
        if end - at == 2:
            raise InvalidSyntax('zero-length delimited identifier at or near """"', position=at + 1)
        return Token(TokenKind.QUOTED, text[at + 1 : end - 1].replace('""', '"'), at, end)
    if match := _DOLLAR.match(text, at):
        end = text.find(match.group(), match.end())
        if end < 0:
            raise InvalidSyntax("unterminated dollar-quoted string", position=at + 1)
        return Token(TokenKind.STRING, text[match.end() : end], at, end + len(match.group()))
    if match := _NUMBERED.match(text, at):
        return Token(TokenKind.PARAMETER, match.group(), at, match.end())
    if character == "?":
        return Token(TokenKind.PARAMETER, "?", at, at + 1)
    if match := _WORD.match(text, at):
        word = match.group()
        behind = text[match.end() : match.end() + 2]
        if word.lower() == "e" and behind[:1] == "'":
            end = _quoted_end(text, at + 1, "'", "quoted string", escapes=True)
            return Token(TokenKind.STRING, _unescaped(text[at + 2 : end - 1], at + 1), at, end)
        if word.lower() in ("b", "x") and behind[:1] == "'":
            raise UnsupportedForm(
                f"bit strings are not supported: {word}'...'",
                position=at + 1,
                hint="Write an integer, on which & | # ~ << >> work on bits, or bytes as '\\x1f'::bytea.",
            )
        if word.lower() == "n" and behind[:1] == "'":
            raise InvalidSyntax(
                f"string literals of the form {word}'...' are not known",
                position=at + 1,
                hint="Write a plain literal; characters may stand in it as they are.",
            )
        if word.lower() == "u" and behind in ("&'", '&"'):
            return _unicode_at(text, at)
        return Token(TokenKind.WORD, fold(word), at, match.end())
    if match := _NUMBER.match(text, at):
        following = _WORD.match(text, match.end())
        if following:
            raise InvalidSyntax(
                f'trailing junk after numeric literal at or near "{match.group()}{following.group()}"', position=at + 1
            )
        return Token(TokenKind.NUMBER, match.group(), at, match.end())
    symbol = _SYMBOL.match(text, at)
    assert symbol is not None
    if symbol.group() != "=>" and (operator := _operator_at(text, at)):
        return operator
    return Token(TokenKind.SYMBOL, symbol.group(), at, symbol.end())
