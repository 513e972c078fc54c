"""`to_char` of numbers: PostgreSQL 15's template patterns, in the C locale.

Not supported, and refused: Roman numerals (`RN`), scientific notation (`EEEE`) and moved points (`V`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

_EXACT = Context(prec=200)
_DOUBLE_DIGITS = 15
_SINGLE_DIGITS = 6
#: The patterns, the longer of those that begin alike first. The case of `TH` decides that of what it shows.
_PATTERNS = (
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V",
    "b", "c", "d", "eeee", "fm", "g", "l", "mi", "pl", "pr", "rn", "sg", "sp", "s", "th", "v",
)  # fmt: skip


@dataclass(slots=True)
class Template:
    """A template as read.

    Attributes:
        items: Patterns, in upper case but for `th`, and plain text; the second says which.
        before: How many digits before the point.
        after: How many digits behind it.
        zero_start: The place of the first `0` before the point, counted from 0; None if there is none.
        zero_end: The place of the last `0`.
        sign: `before` or `after` the number, for `S`.
        digits_before_sign: How many digits stand before `S`.
        flags: Those of the patterns that change others: `FM`, `S`, `MI`, `PL`, `PR`, `.`.
    """

    items: list[tuple[str, bool]]
    before: int = 0
    after: int = 0
    zero_start: int | None = None
    zero_end: int = 0
    sign: str = ""
    digits_before_sign: int = 0
    flags: frozenset[str] = frozenset()


def template_of(text: str) -> Template:
    """Returns the template that a text spells."""
    template = Template(_items(text))
    flags: set[str] = set()
    for pattern, is_pattern in template.items:
        if is_pattern:
            _noted(template, flags, pattern)
    template.flags = frozenset(flags)
    return template


def _items(text: str) -> list[tuple[str, bool]]:
    items: list[tuple[str, bool]] = []
    place = 0
    while place < len(text):
        pattern = next((one for one in _PATTERNS if text.startswith(one, place)), None)
        if pattern is not None:
            items.append((pattern if pattern == "th" else pattern.upper(), True))
            place += len(pattern)
        elif text[place] == '"':
            place += 1
            while place < len(text) and text[place] != '"':
                place += text[place] == "\\" and place + 1 < len(text)
                items.append((text[place], False))
                place += 1
            place += 1
        else:
            place += text.startswith('\\"', place)
            items.append((text[place], False))
            place += 1
    return items


def _syntax(message: str) -> SqlFailure:
    return SqlFailure("42601", message)


def _noted(template: Template, flags: set[str], pattern: str) -> None:
    """Takes one pattern into account; PostgreSQL's errors for those that exclude each other."""
    match pattern:
        case "9" | "0":
            _digit(template, flags, pattern)
        case "D" | ".":
            if "." in flags:
                raise _syntax("multiple decimal points")
            flags.add(".")
        case "FM":
            flags.add("FM")
        case "S" | "MI" | "PL" | "SG" | "PR":
            _sign(template, flags, pattern)
        case "RN" | "EEEE" | "V":
            raise SqlFailure("0A000", f'"{pattern}" in a template of numbers is not supported')


def _digit(template: Template, flags: set[str], pattern: str) -> None:
    if "PR" in flags:
        raise _syntax(f'"{pattern}" must be ahead of "PR"')
    if pattern == "0" and "." not in flags and template.zero_start is None:
        template.zero_start = template.before
    if "." in flags:
        template.after += 1
    else:
        template.before += 1
    if pattern == "0":
        template.zero_end = template.before + template.after


def _sign(template: Template, flags: set[str], pattern: str) -> None:
    match pattern:
        case "S":
            if "S" in flags:
                raise _syntax('cannot use "S" twice')
            if flags & {"PL", "MI", "PR"}:
                raise _syntax('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            if "." in flags:
                template.sign = "after"
            else:
                template.sign, template.digits_before_sign = "before", template.before
            flags.add("S")
        case "PR":
            if flags & {"S", "PL", "MI"}:
                raise _syntax('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            flags.add("PR")
        case _:
            if "S" in flags:
                raise _syntax(f'cannot use "S" and "{pattern}" together')
            if "PR" in flags:
                raise SqlFailure("0A000", f'"{pattern}" behind "PR" is not supported')
            flags |= {"MI", "PL"} if pattern == "SG" else {pattern}


@function("to_char_int4", (Kind.INT4, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
@function("to_char_int8", (Kind.INT8, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
def integer_text(value: int, template: str) -> str:
    """Returns an integer as the template says.

    Example:
        >>> integer_text(-1485, "9,999"), integer_text(485, "FM0000th")
        ('-1,485', '0485th')
    """
    form = template_of(template)
    digits = str(abs(value)) + ("." + "0" * form.after if form.after else "")
    return _shown(form, "-" if value < 0 else "+", digits)


@function("to_char_numeric", (Kind.NUMERIC, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
def numeric_text(value: Decimal, template: str) -> str:
    """Returns a numeric as the template says.

    Example:
        >>> numeric_text(Decimal("-1234.567"), "FM9,999.99"), numeric_text(Decimal("0.1"), "9.90")
        ('-1,234.57', '  .10')
    """
    form = template_of(template)
    rounded = value.quantize(Decimal(1).scaleb(-form.after), ROUND_HALF_UP, _EXACT)
    return _shown(form, "-" if rounded < 0 else "+", f"{abs(rounded):f}")


@function("to_char_float8", (Kind.FLOAT8, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
def float8_text(value: float, template: str) -> str:
    """Returns a double as the template says, with its first 15 digits at most."""
    return _float_text(value, template, _DOUBLE_DIGITS)


@function("to_char_float4", (Kind.FLOAT4, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
def float4_text(value: float, template: str) -> str:
    """Returns a single-precision number as the template says, with its first 6 digits at most."""
    return _float_text(value, template, _SINGLE_DIGITS)


def _float_text(value: float, template: str, digits: int) -> str:
    if value != value or abs(value) == float("inf"):
        raise SqlFailure("0A000", "to_char of NaN and infinity is not supported")
    form = template_of(template)
    whole = len(f"{abs(value):.0f}")
    form.after = max(0, min(form.after, digits - whole))
    text = f"{value:.{form.after}f}"
    return _shown(form, "-" if text.startswith("-") else "+", text.lstrip("-"))


def _shown(form: Template, sign: str, number: str) -> str:
    if not form.items:
        return ""
    whole = len(number.partition(".")[0])
    if whole > form.before:
        number = "#" * form.before + "." + "#" * form.after
    return "".join(_Writer(form, sign, number, max(0, form.before - whole)).written())


class _Writer:
    """Writes one number, pattern by pattern."""

    def __init__(self, form: Template, sign: str, number: str, spaces: int) -> None:
        self.form = form
        self.sign = sign
        self.number = number
        #: How many places before the point have no digit.
        self.spaces = spaces
        self.fills = "FM" in form.flags
        self.brackets = "PR" in form.flags and not (self.fills and sign != "-")
        self.place = 0
        #: The place in the number's text.
        self.at = 0
        self.inside = False
        self.out: list[str] = []
        #: How many pieces are shown, if not all.
        self.shown: int | None = None
        self.sign_side = form.sign
        own = form.flags & {"MI", "PL"}
        if own:
            self.signed = own != {"PL"}
        else:
            self.signed = sign == "+" and self.fills and "S" not in form.flags
            if form.sign == "before" and form.before == form.digits_before_sign:
                self.sign_side = "after"
        self.last = self._last()
        self.end = form.after + form.before - 1 + (not self.signed and spaces == 0) + (spaces > 0) + ("." in form.flags)

    def _last(self) -> int | None:
        """Returns where the last digit that matters stands, if digits behind it are left out."""
        if not self.fills or "." not in self.form.flags or "." not in self.number:
            return None
        last = len(self.number.rstrip("0")) - 1
        if self.form.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.form.zero_end - self.spaces))
        return last

    def written(self) -> Sequence[str]:
        for pattern, is_pattern in self.form.items:
            if not is_pattern:
                self.out.append(pattern)
                continue
            match pattern:
                case "9" | "0" | "." | "D":
                    self._digit(pattern)
                case "," | "G":
                    if self.inside:
                        self.out.append(",")
                    elif not self.fills:
                        self.out.append(" ")
                case "L":
                    self.out.append(" ")
                case "TH" | "th":
                    self.out.append(self._ordinal(pattern))
                case "MI" | "PL":
                    wanted = "-" if pattern == "MI" else "+"
                    self.out.append(wanted if self.sign == wanted else "" if self.fills else " ")
                case "SG":
                    self.out.append(self.sign)
        return self.out[: self.shown]

    def _ordinal(self, pattern: str) -> str:
        if self.number.startswith("#") or self.sign == "-" or "." in self.form.flags:
            return ""
        if not self.number[-1].isdigit():
            raise SqlFailure("22P02", f'"{self.number}" is not a number')
        teen = len(self.number) > 1 and self.number[-2] == "1"
        ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(self.number[-1], "th")
        return ending.upper() if pattern == "TH" else ending

    @property
    def _bare_zero(self) -> bool:
        """True at a zero before the point that is not shown."""
        return self.form.zero_start is None and self.at == 0 and self.number.startswith("0") and self.form.after > 0

    @property
    def _ends_at_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def _digit(self, pattern: str) -> None:
        form = self.form
        self.inside = False
        begins = self.place >= self.spaces or form.zero_start == self.place
        if not self.signed and begins and (not self._bare_zero or self._ends_at_point):
            self._write_sign()
        blank = self.place < self.spaces
        if blank and (form.zero_start is None or form.zero_start > self.place):
            self.out.append("" if self.fills else " ")
        elif blank:
            self.out.append("0")
            self.inside = True
        else:
            self._write_digit(pattern)
        end = self.place if self.last is not None and self.last == self.at else self.end
        if self.place + 1 == end:
            if self.signed and self.brackets:
                self.out.append(" " if self.sign == "+" else ">")
            elif "S" in form.flags and self.sign_side == "after":
                self.out.append(self.sign)
        self.place += 1

    def _write_sign(self) -> None:
        if "S" in self.form.flags:
            if self.sign_side != "before":
                return
            self.out.append(self.sign)
        elif self.brackets:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-":
            self.out.append("-")
        elif not self.fills:
            self.out.append(" ")
        self.signed = True

    def _write_digit(self, pattern: str) -> None:
        current = self.number[self.at : self.at + 1]
        if current == ".":
            self.out.append(".")
        elif self.last is not None and self.at > self.last and pattern != "0":
            pass
        elif self._bare_zero:
            if not self.fills:
                self.out.append(" ")
            elif self._ends_at_point:
                self.out.append("0")
        elif current:
            self.out.append(current)
            self.inside = True
        else:
            # More places than digits: PostgreSQL shows nothing that comes after.
            self.shown = len(self.out) if self.shown is None else self.shown
        self.at += bool(current)
