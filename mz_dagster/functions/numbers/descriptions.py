"""What the functions and operators of numbers are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.function import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "%": Description("What a division leaves, with the sign of the dividend.", "-7 % 4", "-3"),
    "mod": Description("The same as `%`.", "mod(7, 4)", "3"),
    "^": Description("The first number to the power of the second.", "2.0 ^ 0.5", "1.4142135623730950"),
    "power": Description("The first number to the power of the second; also `pow`.", "power(2, 10)", "1024"),
    "pow": Description("The same as `power`.", "pow(9::float8, 0.5)", "3"),
    "@": Description("The absolute value.", "@ (-5)", "5"),
    "abs": Description("The absolute value.", "abs(-1.5)", "1.5"),
    "sign": Description("-1, 0 or 1, as a number is negative, zero or positive.", "sign(-8.4)", "-1"),
    "|/": Description("The square root, of a double.", "|/ 25.0", "5"),
    "||/": Description("The cube root, of a double.", "||/ 27.0", "3.0000000000000004"),
    "sqrt": Description("The square root.", "sqrt(2::float8)", "1.4142135623730951"),
    "cbrt": Description("The cube root.", "cbrt(27.0)", "3.0000000000000004"),
    "exp": Description("e to the power of a number.", "exp(1::float8)", "2.718281828459045"),
    "ln": Description("The natural logarithm.", "ln(2::float8)", "0.6931471805599453"),
    "log": Description("The logarithm to the base 10, or to the first argument.", "log(100::float8)", "2"),
    "log10": Description("The logarithm to the base 10.", "log10(1000)", "3"),
    "ceil": Description("The least whole number that is not less.", "ceil(-1.5)", "-1"),
    "ceiling": Description("The same as `ceil`.", "ceiling(1.2)", "2"),
    "floor": Description("The greatest whole number that is not greater.", "floor(-1.5)", "-2"),
    "round": Description(
        "The nearest number of so many digits behind the point: numerics half away from zero, doubles to even.",
        "round(2.345, 2)",
        "2.35",
    ),
    "trunc": Description(
        "The number without what is behind the point, or behind so many digits there.", "trunc(-2.789, 1)", "-2.7"
    ),
    "div": Description("The whole part of a quotient.", "div(9, 4)", "2"),
    "gcd": Description("The greatest common divisor.", "gcd(1071, 462)", "21"),
    "lcm": Description("The least common multiple.", "lcm(1071, 462)", "23562"),
    "factorial": Description("The product of the whole numbers up to one.", "factorial(5)", "120"),
    "scale": Description(
        "How many digits are behind the point.",
        "scale(8.4100)",
        "4",
    ),
    "min_scale": Description("How many digits behind the point are needed.", "min_scale(8.4100)", "2"),
    "trim_scale": Description(
        "The number without zeros at its end.",
        "trim_scale(8.4100)",
        "8.41",
    ),
    "width_bucket": Description(
        "In which of so many buckets of one width, between two bounds, a number lies.",
        "width_bucket(5.35, 0.024, 10.06, 5)",
        "3",
    ),
    "degrees": Description("Radians as degrees.", "degrees(0.5)", "28.64788975654116"),
    "radians": Description("Degrees as radians.", "radians(45.0)", "0.7853981633974483"),
    "pi": Description("The number pi.", "pi()", "3.141592653589793"),
    "sin": Description("The sine, of radians.", "sin(1)", "0.8414709848078965"),
    "cos": Description("The cosine, of radians.", "cos(0)", "1"),
    "tan": Description("The tangent, of radians.", "tan(1)", "1.5574077246549023"),
    "cot": Description("The cotangent, of radians.", "cot(0.5)", "1.830487721712452"),
    "asin": Description("The inverse sine, in radians.", "asin(1)", "1.5707963267948966"),
    "acos": Description("The inverse cosine, in radians.", "acos(1)", "0"),
    "atan": Description("The inverse tangent, in radians.", "atan(1)", "0.7853981633974483"),
    "atan2": Description(
        "The inverse tangent of a quotient, in radians, in its quadrant.", "atan2(1, 0)", "1.5707963267948966"
    ),
    "sinh": Description("The hyperbolic sine.", "sinh(1)", "1.1752011936438014"),
    "cosh": Description("The hyperbolic cosine.", "cosh(0)", "1"),
    "tanh": Description("The hyperbolic tangent.", "tanh(1)", "0.7615941559557649"),
    "asinh": Description("The inverse hyperbolic sine.", "asinh(1)", "0.881373587019543"),
    "acosh": Description("The inverse hyperbolic cosine.", "acosh(1)", "0"),
    "atanh": Description("The inverse hyperbolic tangent.", "atanh(0.25)", "0.25541281188299536"),
    "sind": Description("The sine, of degrees.", "sind(30)", "0.5"),
    "cosd": Description("The cosine, of degrees.", "cosd(60)", "0.5"),
    "tand": Description("The tangent, of degrees.", "tand(45)", "1"),
    "cotd": Description("The cotangent, of degrees.", "cotd(45)", "1"),
    "asind": Description("The inverse sine, in degrees.", "asind(0.5)", "30"),
    "acosd": Description("The inverse cosine, in degrees.", "acosd(0.5)", "60"),
    "atand": Description("The inverse tangent, in degrees.", "atand(1)", "45"),
    "atan2d": Description("The inverse tangent of a quotient, in degrees, in its quadrant.", "atan2d(1, 0)", "90"),
    "&": Description("The bits that both integers have.", "91 & 15", "11"),
    "|": Description("The bits that one of two integers has.", "32 | 3", "35"),
    "#": Description("The bits in which two integers differ.", "17 # 5", "20"),
    "~": Description(
        "The other bits of an integer; whether a regular expression matches a text.", "'abcd' ~ 'b.d'", "true"
    ),
    "<<": Description("Bits shifted to the left.", "1 << 4", "16"),
    ">>": Description("Bits shifted to the right.", "8 >> 2", "2"),
    "to_hex": Description("The hexadecimal digits of an integer.", "to_hex(2147483647)", "7fffffff"),
    "to_number": Description(
        "The number that a text spells by a template.", "to_number('12,454.8-', '99G999D9S')", "-12454.8"
    ),
}
