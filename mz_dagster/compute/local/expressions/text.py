r"""Kernels of text: parts, lengths, cases, LIKE. Arrow counts code points, and changes ASCII letters only if told so.

LIKE with a pattern that is a constant becomes a comparison of a beginning, an end or a part, if that is all it is, and
else a regular expression, which RE2 matches in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.registry import Computed, Operand, are_constant, lenient, strict
from mz_dagster.functions.text.characters import lower
from mz_dagster.functions.text.like_patterns import tokens
from mz_dagster.scalars.scalar import Call


@lenient("concat")
def _joined(_: Call, operands: Sequence[Operand]) -> Computed:
    # Arrow's own way to skip NULLs loses rows of which all are.
    return Computed(pc.binary_join_element_wise(*(pc.coalesce(one, "") for one in operands), ""))


@strict("label_of_enum")
def _label(_: Call, operands: Sequence[Operand]) -> Computed:
    (member,) = operands
    return Computed(pc.replace_substring_regex(member, "^[0-9]+ ", ""))


@strict("like_text", "not_like_text", "ilike_text", "not_ilike_text")
def _like(call: Call, operands: Sequence[Operand]) -> Computed | None:
    text, pattern = operands
    if isinstance(text, pa.Scalar) or not are_constant([pattern]):
        return None
    wanted = pattern.as_py()
    if "ilike" in call.function:
        text, wanted = pc.ascii_lower(text), lower(wanted)
    found = _matching(text, wanted)
    if found is None:
        return None
    return Computed(pc.invert(found) if call.function.startswith("not_") else found)


def _matching(text: pa.Array, pattern: str) -> pa.Array | None:
    parsed, has_lone_escape = tokens(pattern)
    if has_lone_escape:
        return None
    any_, one = (True, "%"), (True, "_")
    if one not in parsed:
        parts = "".join("\0" if token == any_ else token[1] for token in parsed).split("\0")
        if "\0" not in pattern:
            if len(parts) == 1:
                return pc.equal(text, parts[0])
            if len(parts) == 2 and not parts[1]:
                return pc.starts_with(text, parts[0])
            if len(parts) == 2 and not parts[0]:
                return pc.ends_with(text, parts[1])
            if len(parts) == 3 and not parts[0] and not parts[2]:
                return pc.match_substring(text, parts[1])
    pieces = [".*" if token == any_ else "." if token == one else _quoted(token[1]) for token in parsed]
    return pc.match_substring_regex(text, rf"(?s)\A(?:{''.join(pieces)})\z")


def _quoted(character: str) -> str:
    """Returns the regular expression of one character."""
    if character.isascii() and not character.isalnum():
        return f"\\x{ord(character):02x}"
    return character


@strict("lower_text", "upper_text")
def _cased(call: Call, operands: Sequence[Operand]) -> Computed:
    return Computed((pc.ascii_lower if call.function == "lower_text" else pc.ascii_upper)(operands[0]))


@strict("length_text")
def _length(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.utf8_length(operands[0]))


@strict("octet_length_text")
def _octet_length(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.binary_length(operands[0]))


@strict("substring_text_from", "substring_text_from_for")
def _substring(_: Call, operands: Sequence[Operand]) -> Computed | None:
    text, *bounds = operands
    if isinstance(text, pa.Scalar) or not are_constant(bounds):
        return None
    start, *counts = (one.as_py() for one in bounds)
    if any(count < 0 for count in counts):
        return None
    end = None if not counts else max(0, start + counts[0] - 1)
    return Computed(_slice(text, max(0, start - 1), end))


@strict("left_text", "right_text")
def _end(call: Call, operands: Sequence[Operand]) -> Computed | None:
    text, counts = operands
    if isinstance(text, pa.Scalar) or not are_constant([counts]):
        return None
    count = counts.as_py()
    if count < 0:
        return None
    if call.function == "left_text":
        return Computed(_slice(text, 0, count))
    return Computed(pc.utf8_slice_codeunits(text, -count, None) if count else _slice(text, 0, 0))


def _slice(text: pa.Array, start: int, end: int | None) -> pa.Array:
    if end is not None and end <= start:
        return pc.utf8_slice_codeunits(text, 0, 0)
    return pc.utf8_slice_codeunits(text, start, end)


@strict("btrim_text", "ltrim_text", "rtrim_text", "btrim_text_text", "ltrim_text_text", "rtrim_text_text")
def _trimmed(call: Call, operands: Sequence[Operand]) -> Computed | None:
    text, *characters = operands
    if isinstance(text, pa.Scalar) or not are_constant(characters):
        return None
    trim = {"btrim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[call.function.partition("_")[0]]
    return Computed(trim(text, characters[0].as_py() if characters else " "))


@strict("starts_with_text")
def _starts(_: Call, operands: Sequence[Operand]) -> Computed | None:
    text, prefix = operands
    if isinstance(text, pa.Scalar) or not are_constant([prefix]):
        return None
    return Computed(pc.starts_with(text, prefix.as_py()))


@strict("replace_text")
def _replaced(_: Call, operands: Sequence[Operand]) -> Computed | None:
    text, *others = operands
    if isinstance(text, pa.Scalar) or not are_constant(others):
        return None
    search, replacement = (one.as_py() for one in others)
    return Computed(pc.replace_substring(text, search, replacement)) if search else None


@strict("concat_text")
def _concatenated(_: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pc.binary_join_element_wise(*operands, "", null_handling="emit_null"))
