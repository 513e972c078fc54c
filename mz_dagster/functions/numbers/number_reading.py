"""`to_number`: texts read by PostgreSQL 15's template patterns of numbers, in the C locale.

Each pattern of a digit takes one digit if there is one, so that a text may have fewer; what is no pattern passes one
character, whichever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import Nullability
from mz_dagster.functions.numbers.number_templates import Template, template_of
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind, ScalarType

_EXACT = Context(prec=200)
#: What separators and currency symbols do not stand for.
_DATA = "0123456789.,+-"


def scale_of_template(template: str) -> int:
    """Returns how many digits a template has behind the point."""
    return template_of(template).after


def scale_of_literal(_: Sequence[ScalarType], values: Sequence[object]) -> int | Failure:
    """Returns the scale of the number that a template makes, which is a literal; or why there is none."""
    template = values[1] if len(values) > 1 else None
    if not isinstance(template, str):
        return Failure(
            "0A000",
            "a template of to_number that is not a literal is not supported",
            "Quote it: how many digits it has behind the point is the scale of the result.",
        )
    try:
        return scale_of_template(template)
    except SqlFailure as failure:
        sqlstate, message = str(failure).split(" ", 1)
        return Failure(sqlstate, message)


@function(
    "to_number_text_text",
    (Kind.TEXT, Kind.TEXT),
    Kind.NUMERIC,
    sql="to_number",
    says="The number that a text spells by a template.",
    example="to_number('12,454.8-', '99G999D9S')",
    gives="-12454.8",
    fallible=True,
    nullability=Nullability.ALWAYS,
    scale=scale_of_literal,
    scaled=True,
)
def number_by_template(text: str, template: str, scale: int) -> Decimal | None:
    """Returns the number that `text` spells by a template; NULL for an empty one.

    Example:
        >>> number_by_template("-1,234.5", "9,999.99", 2), number_by_template("12.34-", "99.99S", 2)
        (Decimal('-1234.50'), Decimal('-12.34'))
    """
    if not template:
        return None
    form = template_of(template)
    shown = _Reading(text, form).number()
    if not any(one.isdigit() for one in shown):
        raise SqlFailure("22P02", f'invalid input syntax for type numeric: "{shown}"')
    found = Decimal(shown.strip()).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    if abs(found) >= Decimal(10) ** min(form.before, 38 - scale):
        raise SqlFailure("22003", "numeric field overflow")
    return found if found else abs(found)


class _Reading:
    """Reads one text, pattern by pattern."""

    def __init__(self, text: str, form: Template) -> None:
        self._text, self._at, self._form = text, 0, form
        self._sign, self._digits = " ", ""
        self._is_localized = "S" in form.flags

    def number(self) -> str:
        """Returns sign and digits as read."""
        for pattern, is_pattern in self._form.items:
            if self._at >= len(self._text):
                break
            if not is_pattern:
                self._at += 1
            else:
                self._take(pattern)
        return self._sign + (self._digits[:-1] if self._digits.endswith(".") else self._digits)

    def _take(self, pattern: str) -> None:
        here = self._text[self._at]
        match pattern:
            case "9" | "0" | "." | "D":
                self._digit(pattern)
            case "," | "G":
                if here == "," and "FM" not in self._form.flags:
                    self._at += 1
            case "L":
                self._pass(1)
            case "TH" | "th":
                if "." not in self._form.flags and self._sign != "-":
                    self._pass(2)
            case "MI" | "PL" | "SG":
                if here in {"MI": "-", "PL": "+", "SG": "+-"}[pattern]:
                    self._sign = here
                    self._at += 1
                else:
                    self._pass(1)

    def _pass(self, characters: int) -> None:
        """Moves past what is no part of a number."""
        end = min(self._at + characters, len(self._text))
        while self._at < end and self._text[self._at] not in _DATA:
            self._at += 1

    def _digit(self, pattern: str) -> None:
        self._at += self._text[self._at] == " "
        if self._at >= len(self._text):
            return
        if self._sign == " " and pattern in "90" and not self._digits.strip("."):
            self._leading_sign()
        if self._at >= len(self._text):
            return
        here, has_point, found = self._text[self._at], "." in self._digits, False
        if here in "0123456789":
            if has_point and len(self._digits.partition(".")[2]) == self._form.after:
                self._at += 1
                return
            self._digits, found = self._digits + here, True
        elif "." in self._form.flags and not has_point and here == ".":
            self._digits, found = self._digits + here, True
        if self._sign == " " and self._digits.strip("."):
            self._trailing_sign(found)
        self._at += 1

    def _leading_sign(self) -> None:
        here = self._text[self._at]
        if here in "+-" or (here == "<" and "PR" in self._form.flags):
            self._sign = "+" if here == "+" else "-"
            self._at += 1

    def _trailing_sign(self, found: bool) -> None:
        follower = self._text[self._at + 1 : self._at + 2]
        if self._is_localized and found:
            if follower and follower in "+-":
                self._sign = follower
                self._at += 1
        elif not found and not self._is_localized and self._form.flags & {"PL", "MI"} and self._text[self._at] in "+-":
            self._sign = self._text[self._at]
