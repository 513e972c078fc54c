"""What the functions and operators of text, uuid and bytea are for, each with an example."""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.functions.description import Description

DESCRIPTIONS: Mapping[str, Description] = {
    "length": Description("How many characters a text has, or bytes a bytea.", "length('jösé')", "4"),
    "char_length": Description("How many characters a text has.", "char_length('jösé')", "4"),
    "character_length": Description("The same as `char_length`.", "character_length('jösé')", "4"),
    "octet_length": Description("How many bytes a text or bytea has.", "octet_length('jösé')", "6"),
    "bit_length": Description("Eight times `octet_length`.", "bit_length('jösé')", "48"),
    "lower": Description("A text in lower case.", "lower('TOM')", "tom"),
    "upper": Description("A text in upper case.", "upper('tom')", "TOM"),
    "initcap": Description(
        "A text with each word's first letter in upper case, the others in lower.", "initcap('hi THOMAS')", "Hi Thomas"
    ),
    "substring": Description(
        "Characters or bytes from a place on, or so many of them; what a regular expression matches.",
        "substring('Thomas' FROM 2 FOR 3)",
        "hom",
    ),
    "substr": Description("Characters or bytes from a place on, or so many of them.", "substr('alphabet', 3, 2)", "ph"),
    "left": Description("So many first characters, or all but so many last ones.", "left('abcde', -2)", "abc"),
    "right": Description("So many last characters, or all but so many first ones.", "right('abcde', 2)", "de"),
    "btrim": Description(
        "A text or bytea without blanks, or certain characters, at both ends.", "btrim('xyxtrimyyx', 'xyz')", "trim"
    ),
    "ltrim": Description("Likewise at the beginning.", "ltrim('zzzytest', 'xyz')", "test"),
    "rtrim": Description("Likewise at the end.", "rtrim('testxxzx', 'xyz')", "test"),
    "replace": Description(
        "A text with each occurrence of a second one replaced by a third.",
        "replace('abcdefabcdef', 'cd', 'XX')",
        "abXXefabXXef",
    ),
    "translate": Description(
        "A text with each character of a second one replaced by that of a third at its place, or gone.",
        "translate('12345', '143', 'ax')",
        "a2x5",
    ),
    "strpos": Description(
        "Where a text first occurs in another, from 1 on; 0 if it does not.", "strpos('high', 'ig')", "2"
    ),
    "position": Description("The same: `position(a IN b)`.", "position('om' IN 'Thomas')", "3"),
    "starts_with": Description("Whether a text begins with another.", "starts_with('alphabet', 'alph')", "true"),
    "^@": Description("The same as `starts_with`.", "'alphabet' ^@ 'alph'", "true"),
    "like": Description(
        "Whether a pattern matches a whole text: `%` is any characters, `_` is one.", "'abc' LIKE 'a%'", "true"
    ),
    "not like": Description("The opposite of `LIKE`.", "'abc' NOT LIKE '_b_'", "false"),
    "ilike": Description("`LIKE`, upper and lower case being the same.", "'ABC' ILIKE 'a%'", "true"),
    "not ilike": Description("The opposite of `ILIKE`.", "'ABC' NOT ILIKE 'b%'", "true"),
    "~~": Description("The same as `LIKE`.", "'abc' ~~ '_b%'", "true"),
    "!~~": Description("The same as `NOT LIKE`.", "'abc' !~~ 'c%'", "true"),
    "~~*": Description("The same as `ILIKE`.", "'abc' ~~* 'A%'", "true"),
    "!~~*": Description("The same as `NOT ILIKE`.", "'abc' !~~* 'A%'", "false"),
    "like_escape": Description(
        "A pattern of `LIKE` with another escape character: what `ESCAPE` calls.", "'a%' LIKE 'a!%' ESCAPE '!'", "true"
    ),
    "lpad": Description(
        "A text brought to a length by blanks, or a text, before it, or cut.", "lpad('hi', 5, 'xy')", "xyxhi"
    ),
    "rpad": Description("Likewise behind it.", "rpad('hi', 5, 'xy')", "hixyx"),
    "repeat": Description("A text so many times.", "repeat('Pg', 4)", "PgPgPgPg"),
    "reverse": Description("The characters from the last to the first.", "reverse('abcde')", "edcba"),
    "md5": Description("The MD5 hash, in hexadecimal.", "md5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
    "sha224": Description(
        "The SHA-224 hash of a bytea.",
        "sha224('abc'::bytea)",
        "\\x23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
    ),
    "sha256": Description(
        "The SHA-256 hash of a bytea.",
        "sha256('abc'::bytea)",
        "\\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    "sha384": Description(
        "The SHA-384 hash of a bytea.",
        "sha384('abc'::bytea)",
        "\\xcb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    ),
    "sha512": Description(
        "The SHA-512 hash of a bytea.",
        "sha512('abc'::bytea)",
        "\\xddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ),
    "ascii": Description("The number of the first character.", "ascii('x')", "120"),
    "chr": Description("The character of a number.", "chr(65)", "A"),
    "split_part": Description(
        "One of the parts between separators, from 1 on, or from the end.", "split_part('a~@~b~@~c', '~@~', 2)", "b"
    ),
    "overlay": Description(
        "A text or bytea with another in the place of some of it.",
        "overlay('Txxxxas' PLACING 'hom' FROM 2 FOR 4)",
        "Thomas",
    ),
    "quote_ident": Description(
        "A name as SQL spells it, quoted where it must be.", "quote_ident('Foo bar')", '"Foo bar"'
    ),
    "quote_literal": Description("A text as a literal of SQL.", "quote_literal(E'O\\'Reilly')", "'O''Reilly'"),
    "get_byte": Description("A byte of a bytea, from 0 on.", "get_byte('\\x1234567890'::bytea, 4)", "144"),
    "set_byte": Description(
        "A bytea with another byte at a place.", "set_byte('\\x1234567890'::bytea, 4, 64)", "\\x1234567840"
    ),
    "get_bit": Description("A bit of a bytea, from 0 on.", "get_bit('\\x1234567890'::bytea, 30)", "1"),
    "set_bit": Description(
        "A bytea with another bit at a place.", "set_bit('\\x1234567890'::bytea, 30, 0)", "\\x1234563890"
    ),
    "bit_count": Description("How many bits of a bytea are set.", "bit_count('\\x1234567890'::bytea)", "15"),
    "encode": Description("A bytea as text: `base64`, `hex` or `escape`.", "encode('123'::bytea, 'base64')", "MTIz"),
    "decode": Description("The bytea that such a text is.", "decode('MTIz', 'base64')", "\\x313233"),
    "convert_from": Description(
        "The text whose bytes, in an encoding, a bytea has.", "convert_from('\\x74c3a9'::bytea, 'UTF8')", "té"
    ),
    "convert_to": Description("A text's bytes in an encoding.", "convert_to('té', 'UTF8')", "\\x74c3a9"),
}
