"""What the text of a setting may say: a duration, an engine; and the error of one that says something else."""

from __future__ import annotations

from mz_dagster.budget import EngineSetting
from mz_dagster.errors import ProgrammingError

DURATION_UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class BadSettings(ProgrammingError):
    """`mz.toml` cannot be read or says something that is not understood."""

    sqlstate = "F0000"


def engine_setting_of(text: str) -> EngineSetting:
    """Returns the value of the setting `engine` that a text spells.

    Raises:
        BadSettings: It spells none.

    Example:
        >>> engine_setting_of("Local")
        <EngineSetting.LOCAL: 'local'>
    """
    try:
        return EngineSetting(text.lower())
    except ValueError:
        raise BadSettings(
            f'invalid value for setting "engine": "{text}"',
            hint="It is auto: this process computes what is little, Spark the rest; spark: Spark whatever it can; or "
            "local: this process whatever it can, and no Spark is started.",
        ) from None


def parse_duration_ms(text: str) -> int | None:
    """Returns the milliseconds of a duration: a whole number and a unit; None if it is not one.

    Example:
        >>> parse_duration_ms("30 min"), parse_duration_ms("soon")
        (1800000, None)
    """
    number, _, unit = text.partition(" ")
    if not (number.isascii() and number.isdigit() and unit in DURATION_UNITS_MS):
        return None
    return int(number) * DURATION_UNITS_MS[unit]
