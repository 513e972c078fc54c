"""SQL/JSON paths find what PostgreSQL finds, to the error: hundreds that are written out, and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import pytest

from mz_dagster.functions.jsonb import path as paths
from mz_dagster.functions.jsonb.jsonb import parsed
from mz_dagster.functions.registry import SqlFailure
from tests.postgres_server import Postgres

VARIABLES = '{"low": 2, "key": "a", "list": [1, {"b": 1}], "nothing": null, "o": {"x": {"y": {}}}}'


def listed(text: str, separator: str) -> list[str]:
    return [one for line in text.strip().split("\n") for one in line.split(separator)]


DOCUMENTS = listed(
    r"""
null ;; true ;; 1 ;; -1.50 ;; "abc" ;; "" ;; [] ;; {} ;; [1, 2, 3] ;; [[1, 2], [3], []] ;; [null]
12345678901234567890.5 ;; {"a": 1} ;; {"a": [1, 2, {"a": 3}], "b": {"a": null, "c": "x"}}
[{"a": 1, "b": 2}, {"a": 3}, {"b": [4]}]
{"a": "2", "b": "1e400", "c": " 1.5 ", "d": "0x1F", "e": "nan", "f": "1e-400"}
["b", "a", "abc", "ABC", "a\nb", "abdacb", 1]
{"a": {"b": {"c": [{"d": 1}, {"d": 2}]}}, "longer": "text", "n": 1.25, "z": [[[5]]]}
[1, "1", null, true, [1], {"a": 1}] ;; {"é": "ü", "a b": 1, "\"": 2, "": 3, "$": 4}
[0, -0.0, 1e2, 0.00001, 1e20, -7.5] ;; [{"key": "k", "value": {"x": [1, {}]}}]
""",
    " ;; ",
)
#: Paths, well and ill spelled.
PATHS = ["", " "]
PATHS += listed(
    r"""
$  ;  lax $  ;  strict $  ;  $.a  ;  strict $.a  ;  $.a.b  ;  strict $.a.b  ;  $.*  ;  strict $.*  ;  $.*.*
$[*]  ;  strict $[*]  ;  $[0]  ;  strict $[0]  ;  $[1]  ;  $[last]  ;  strict $[last]  ;  $[last - 1]
$[0 to 1]  ;  $[1 to last]  ;  $[0, 2, 1]  ;  $[-1]  ;  strict $[1 to 0]  ;  $[1.9]  ;  $[$.a]  ;  $["a"]
$[0 to $low]  ;  $[3000000000]  ;  $[*][*]  ;  $[*].a  ;  strict $[*].a  ;  $[0][0]  ;  $.**  ;  strict $.**
$.**{0}  ;  $.**{1}  ;  $.**{2}  ;  $.**{1 to 2}  ;  $.**{2 to last}  ;  $.**{last}  ;  $.**.a  ;  strict $.**.a
$.**{2 to 1}  ;  $.**{last to 1}  ;  $.**.d  ;  $.**[*]  ;  strict $.**[0]  ;  $.** ? (@ == 1)  ;  $.**.size()
$.**.type()  ;  $.a + 1  ;  $.a - 1.5  ;  $.a * 3  ;  $.a / 3  ;  $.a % 2  ;  -$.a  ;  +$.a  ;  -$  ;  +$[*]
- $[*]  ;  1 + 2 * 3  ;  (1 + 2) * 3  ;  -(1 + 2)  ;  1 / 0  ;  1 % 0  ;  7 % -3  ;  -7 % 3  ;  10 / 3  ;  1e2
1.  ;  .5  ;  1.50  ;  2 - -2  ;  - -2  ;  $[0] + $[1]  ;  $ + $  ;  $ * 2  ;  1.5 * 1.50  ;  $.type()
$.*.type()  ;  $[*].type()  ;  $.size()  ;  strict $.size()  ;  $.*.size()  ;  $.abs()  ;  strict $.abs()
$.floor()  ;  $.ceiling()  ;  $.double()  ;  $.*.double()  ;  $.a.double()  ;  $.b.double()  ;  $.c.double()
$.d.double()  ;  $.e.double()  ;  $.f.double()  ;  strict $.double()  ;  $.keyvalue()  ;  strict $.keyvalue()
$[*].keyvalue()  ;  $.*.keyvalue()  ;  $.**.keyvalue()  ;  $.keyvalue().key  ;  $.keyvalue().value.keyvalue()
$o.keyvalue()  ;  $o.x.keyvalue()  ;  $list.keyvalue()  ;  $.keyvalue().keyvalue()  ;  (1).type()
("a").type()  ;  (null).type()  ;  (true).type()  ;  ($.a > 1).type()  ;  (1 == 1).type()  ;  ($ == 1)
$ == 1  ;  1 == 1 && 2 == 2  ;  !(1 == 1)  ;  $ ? (@ == 1)  ;  $[*] ? (@ > 1)  ;  strict $[*] ? (@ > 1)
$[*] ? (@ >= $low)  ;  $.a ? (@ > 1)  ;  $.a[*] ? (@ > 1).a  ;  $[*] ? (@.a == 1)  ;  $[*] ? (@.a > 1).b
$[*] ? (exists(@.b))  ;  strict $[*] ? (exists(@.b))  ;  $[*] ? (!exists(@.b))  ;  $[*] ? (@.a == 1 || @.b == 2)
$[*] ? (@.a == 1 && @.b == 2)  ;  $[*] ? ((@.a == "x") is unknown)  ;  $[*] ? ((@ > 1) is unknown)
$[*] ? (@ starts with "a")  ;  $[*] ? (@ starts with $key)  ;  $[*] ? (@ like_regex "^a")
$[*] ? (@ like_regex "^ab" flag "i")  ;  $[*] ? (@ like_regex "a.b")  ;  $[*] ? (@ like_regex "a.b" flag "s")
$[*] ? (@ like_regex "^b" flag "m")  ;  $[*] ? (@ like_regex "a.b" flag "q")
$[*] ? (@ like_regex "ABC" flag "iq")  ;  $[*] ? (@ like_regex "a" flag "x")
$[*] ? (@ like_regex "a" flag "z")  ;  $ ? (@ like_regex "(")  ;  $[*] ? (@ == null)  ;  $[*] ? (@ != null)
$[*] ? (@ == "1")  ;  $[*] ? (@ != 1)  ;  $[*] ? (@ == true)  ;  $[*] ? (@ < true)  ;  $[*] ? (@ < "b")
$[*] ? (@ == [1])  ;  $ ? (@ == $)  ;  $ ? (@[*] == 1)  ;  strict $ ? (@[*] == 1)  ;  strict $ ? (@[*] == $.x)
$ ? (@[*] > @[*])  ;  $[*] ? (@.a + 1 == 2)  ;  $[*] ? (@.a / 0 == 2)  ;  $[*] ? ((@.a / 0 == 2) is unknown)
$.a[*] ? (@ == $.a[0])  ;  $low  ;  $nothing  ;  $missing  ;  $ ? (@ == $missing)  ;  $list[*]  ;  $list
$"low"  ;  $."a"  ;  $."a b"  ;  $."\""  ;  $.é  ;  $."\u00e9"  ;  $.\u00e9  ;  $."$"  ;  $.""  ;  $.\x61
"a\tb"  ;  "\u{1F600}"  ;  "\ud83d\ude00"  ;  "\ud83d"  ;  "\u00"  ;  "\x1"  ;  "\q"  ;  $ /* c */ .a  ;  $ /* c
"abc  ;  $.  ;  $$  ;  @  ;  last  ;  $[last  ;  $.a.  ;  $..a  ;  $[]  ;  $ ? ()  ;  $ ? (1)  ;  $ ? (@)
$ ? @ == 1  ;  1 2  ;  $.1  ;  01  ;  1a  ;  1e  ;  $.a.type  ;  $.size  ;  $.strict  ;  $.null  ;  $.last
$.to.is  ;  $.TYPE()  ;  $.Type()  ;  STRICT $  ;  $[LAST]  ;  TRUE  ;  true  ;  null  ;  NULL  ;  $ == 1 == 1
1 < 2 < 3  ;  ($ == 1) + 1  ;  !$  ;  !exists($.a)  ;  exists($.a)  ;  exists($.a) && 1 == 1  ;  $ && 1 == 1
(1 == 1) == (1 == 1)  ;  $.**{  ;  $.**{1.5}  ;  $.**{-1}  ;  $.**{a}  ;  $.**{3000000000}
"a" starts with "a"  ;  $ starts with 1  ;  "a" like_regex 1  ;  $.foo()  ;  $.a.foo()  ;  $.type(1)  ;  $ # 1
$ = 1  ;  1 <> 2  ;  1 != 2  ;  $[*] ? (@ <> 1)  ;  ($.a)  ;  ($.a).b  ;  ($).a[0]  ;  ((1))  ;  ($[*]).size()
($[*] + 1)  ;  $[0 to 1] + 1  ;  $[*] * 2  ;  $[(1)]  ;  $[1 + 1]  ;  $[$[0]]  ;  $[last ? (@ < 5)]  ;  $[$[*]]
$[0 to last to 1]  ;  $.a[$.a[0] to last]  ;  $.** ? (exists(@.a))  ;  strict $.** ? (exists(@.a))
strict $.** ? (@.a == 1)  ;  $[*] ? (@ ? (@ > 1) > 2)  ;  $ ? (@.a[*] ? (@ > 1) > 2)
$[*] ? (exists(@ ? (@ > 1)))  ;  $.a[*] ? (exists(@.a ? (@ > 1)))  ;  exists(1 / 0)  ;  exists($[*] / 0)
exists($missing)  ;  exists(-$)  ;  $[0 to 5] ? (@ > $[0])  ;  $.z[0][0][0]  ;  $.z.z  ;  $.z[*]  ;  $.z[*][*]
$.a.b.c[*].d  ;  $.a.b.c.d  ;  strict $.a.b.c.d  ;  strict $.a.b.c[*].d  ;  $.longer starts with "te"  ;  $.*[*]
$.a[*].*  ;  $.n.ceiling() - $.n.floor()  ;  $.n.abs().double()  ;  $[*].abs()  ;  $[*].floor().type()
"""
    """$.a\f.b  ;  $ ? (@.a == 1 && (@.b == 2 || @.c == 3))  ;  $.**{0 to last}.a  ;  lax $.a[*] ? (@ > 1) + 1
""",
    "  ;  ",
)
FUNCTIONS: dict[str, Callable[..., object]] = {
    "jsonb_path_query_array": paths.query_array,
    "jsonb_path_query_first": paths.query_first,
    "jsonb_path_exists": paths.exists,
    "jsonb_path_match": paths.match,
}
ZONED = {f"{name}_tz": partial(function, in_zone=True) for name, function in FUNCTIONS.items()}
ATTEMPT = """
CREATE FUNCTION attempted(f text, doc text, path text, vars text, silent bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text; state text;
BEGIN
  CASE f WHEN '@?' THEN found := doc::jsonb @? path::jsonpath; WHEN '@@' THEN found := doc::jsonb @@ path::jsonpath;
  ELSE EXECUTE format('SELECT %I($1::jsonb, $2::jsonpath, $3::jsonb, $4)::text', f)
    INTO found USING doc, path, vars, silent;
  END CASE;
  RETURN coalesce(found, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE;
  RETURN state || ' ' || SQLERRM;
END $$"""

Case = tuple[str, str, str, bool]


def ours(case: Case) -> str:
    name, document, path, silent = case
    try:
        if name in ("@?", "@@"):
            found: object = (paths.finds if name == "@?" else paths.holds)(parsed(document), path)
        else:
            found = (FUNCTIONS | ZONED)[name](parsed(document), path, parsed(VARIABLES), silent)
    except SqlFailure as failure:
        return str(failure)
    return "NULL" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


def compare(postgres: Postgres, cases: Sequence[Case]) -> list[str]:
    """Returns what is otherwise in PostgreSQL; of errors in a path's spelling the code counts, of others the words."""
    with postgres.new_database().connect() as connection:
        connection.execute(ATTEMPT.encode())
        columns = [list(column) for column in zip(*cases, strict=True)]
        told = connection.execute(
            "SELECT attempted(f, d, p, %s, s)"
            " FROM unnest(%s::text[], %s::text[], %s::text[], %s::bool[]) AS c(f, d, p, s)",
            [VARIABLES, *columns],
        ).fetchall()
    different = []
    for case, (wanted,) in zip(cases, told, strict=True):
        found = ours(case)
        spelling = wanted[:5] in ("42601", "22P02", "22P05", "2201B")
        if found != wanted and not (spelling and found[:5] == wanted[:5]):
            different.append(f"{case}: {found}, in PostgreSQL {wanted}")
    return different


@pytest.mark.parametrize("documents", [3, pytest.param(len(DOCUMENTS), marks=pytest.mark.deep)])
def test_each_path_finds_what_it_finds_in_postgres(postgres: Postgres, documents: int) -> None:
    chance = random.Random(documents)
    calls = [*product(FUNCTIONS, (False, True)), ("@?", True), ("@@", True)]
    cases = [
        (name, document, path, silent)
        for path in PATHS
        for document in chance.sample(DOCUMENTS, documents)
        for name, silent in (chance.sample(calls, 3) if documents < len(DOCUMENTS) else calls)
    ]
    different = compare(postgres, cases)
    assert not different, f"{len(different)} of {len(cases)}\n" + "\n".join(different[:40])


MOMENTS = [
    *("2024-02-29", "12:30:00", "12:30:00.5", "12:30:00+02", "12:30:00.123456-03:30", "2024-02-29 12:30:00"),
    *("2024-02-29T12:30:00.250", "2024-02-29 12:30:00+02", "2024-02-29T12:30:00.1-05:30", "2024-02-29T00:00:00"),
    *("10:30:00+00", "2024-02-29T10:30:00+00", "2024-02-28", "0044-03-15", "9999-12-31T23:59:59.999999"),
    *("2024-02-30", "24:00:00", "12:60:00", "2024-02-29 ", " 2024-02-29", "2024-2-9", "2024-02-29  12:30:00", ""),
    *("12:30:00 +02", "12:30:00+16", "12:30", "x", "2024-02-29t12:30:00", "29.02.2024", "2024-02-29 12:30:00+2:5"),
    *("12:30:00.1234567", "294277-01-01", "12:30:00.9999", "pm 1:05", "Feb 3, 24", "24-01 BC", "12345678"),
]
TEMPLATES = [
    *("yyyy-mm-dd", "HH24:MI:SS", "HH24:MI", "HH24:MI:SS.US", "HH24:MI:SSTZH", "HH24:MI:SS TZH:TZM", "dd.mm.yyyy"),
    *('yyyy-mm-dd\\"T\\"HH24:MI:SS', "yyyy-mm-dd HH24:MI:SS.FF3", "HH24:MI:SS.FF1", "yyyy-mm-ddTHH24", "am HH:MI"),
    *("", "TZH", "yyyy TZH", "yyyy-mm-dd HH24:MI:SS TZ", "Mon DD, YY", "YY-MM BC", "YYYYMMDD", "HH24MISSFF2", "FX"),
    *("yyyy-mm-dd HH24:MI:SS.FF1TZH", "FMHH24:FMMI", "J", "IYYY-IW-ID", "yyyy_mm", "HH24:MI OF", "DDDth yyyy", "CC"),
]


@pytest.mark.parametrize("count", [600, pytest.param(40_000, marks=pytest.mark.deep)])
def test_moments_of_paths_are_those_of_postgres(postgres: Postgres, count: int) -> None:
    chance = random.Random(count)
    document = "[" + ", ".join([f'"{one}"' for one in MOMENTS] + ["1", "null", '{"a": 1}', "true"]) + "]"
    methods = [".datetime()", *(f'.datetime("{one}")' for one in TEMPLATES)]
    asked = (
        "$[{i}]{m}", "strict $[{i}]{m}", "$[{i}]{m}.type()", "$[{i}]{m}.size()", "$[{i}]{m}.keyvalue()", "$.datetime()",
        "$[{i}]{m} ? (@ == @)", "$[*] ? (@{m} {o} $[{j}].datetime())", "$[{i}].datetime() {o} $[{j}].datetime()",
        "$[{i}].datetime() {o} $[{j}]", "$[{i}]{m} starts with \"2\"", "$[{i}]{m}.a", "$[{i}]{m}.**", "-$[{i}]{m}",
        "($[{i}].datetime() {o} $[{j}].datetime()) is unknown", "$[{i}].datetime() {o} null", "$[{i}]{m}.double()",
        "$[{i}].datetime(1)", "$[{i}].datetime.a", "$[{i}]{m}.datetime()",
    )  # fmt: skip
    cases: list[Case] = []
    for _ in range(count):
        i, j = (chance.randrange(len(MOMENTS) + 4 if chance.random() < 0.3 else 15) for _ in range(2))
        o = chance.choice(["==", "!=", "<", "<=", ">", ">="])
        path = chance.choice(asked).format(i=i, j=j, o=o, m=chance.choice(methods))
        cases.append((chance.choice([*FUNCTIONS, *ZONED, "@?", "@@"]), document, path, chance.random() < 0.3))
    cases += [
        ("jsonb_path_query_array", f'"{text}"', f"$.datetime({template})", False)
        for template in ("", *(f'"{one}"' for one in TEMPLATES))
        for text in (chance.sample(MOMENTS, 8) if count < 1000 else MOMENTS)
    ]
    different = compare(postgres, cases)
    assert not different, f"{len(different)} of {len(cases)}\n" + "\n".join(different[:40])


def random_document(chance: random.Random, depth: int = 3) -> str:
    kind = chance.randrange(8 if depth else 5)
    if kind == 5 or kind == 7:
        keys = chance.sample(["a", "b", "cc", "d"], chance.randrange(4))
        return "{" + ", ".join(f'"{key}": {random_document(chance, depth - 1)}' for key in keys) + "}"
    if kind == 6:
        return "[" + ", ".join(random_document(chance, depth - 1) for _ in range(chance.randrange(4))) + "]"
    return chance.choice(["null", "true", "false", "0", "1", "2.50", "-3", "1e30", '"a"', '"1"', '"ab c"'])


def random_expression(chance: random.Random, depth: int, *, inside: bool) -> str:
    if not depth or chance.random() < 0.15:
        outside = ["$", "$", "$", "$", "1", '"a"', "null", "$low", "$o"]
        start = chance.choice(["$", "$", "@", "@", "@"] if inside else outside)
        return start if chance.random() < 0.3 else start + random_accessors(chance, depth)
    kind = chance.randrange(7)
    if kind == 0:
        left, right = (random_expression(chance, depth - 1, inside=inside) for _ in range(2))
        return f"({left} {chance.choice('+-*/%')} {right})"
    if kind == 1:
        return f"{chance.choice('+-')}{random_expression(chance, depth - 1, inside=inside)}"
    if kind == 2:
        return f"({random_predicate(chance, depth - 1, inside=inside)}).type()"
    return chance.choice(["@", "$"] if inside else ["$"]) + random_accessors(chance, depth)


def random_accessors(chance: random.Random, depth: int) -> str:
    found = ""
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(9)
        if kind < 3:
            found += chance.choice([".a", ".b", ".cc", ".*", '."d"'])
        elif kind < 5:
            first = random_expression(chance, depth - 1, inside=False) if depth and chance.random() < 0.2 else "0"
            found += chance.choice(["[*]", "[0]", "[last]", "[0 to 1]", "[1, 0]", f"[{first}]", "[0 to last]"])
        elif kind == 5:
            found += chance.choice([".**", ".**{1}", ".**{1 to 2}", ".**{last}", ".**{0 to 1}"])
        elif kind == 6:
            found += chance.choice(
                [".type()", ".size()", ".abs()", ".floor()", ".ceiling()", ".double()", ".keyvalue()"]
            )
        elif depth:
            found += f" ? ({random_predicate(chance, depth - 1, inside=True)})"
    return found


def random_predicate(chance: random.Random, depth: int, *, inside: bool) -> str:
    kind = chance.randrange(8) if depth > 0 else 0
    if kind == 5:
        left, right = (random_predicate(chance, depth - 1, inside=inside) for _ in range(2))
        return f"{left} {chance.choice(['&&', '||'])} {right}"
    if kind == 6:
        return f"!({random_predicate(chance, depth - 1, inside=inside)})"
    if kind == 7:
        return f"({random_predicate(chance, depth - 1, inside=inside)}) is unknown"
    one, other = (random_expression(chance, max(depth - 1, 0), inside=inside) for _ in range(2))
    if kind == 4:
        return f"exists ({one})"
    if kind == 3:
        return f'{one} {chance.choice(["starts with", "like_regex"])} "a"'
    return f"{one} {chance.choice(['==', '!=', '<', '<=', '>', '>='])} {other}"


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 1000), *(pytest.param(seed, 5000, marks=pytest.mark.deep) for seed in range(2, 12))]
)
def test_random_paths_find_what_they_find_in_postgres(postgres: Postgres, seed: int, count: int) -> None:
    chance = random.Random(seed)
    cases: list[Case] = []
    for _ in range(count):
        whole = random_expression if chance.random() < 0.7 else random_predicate
        path = chance.choice(["", "", "lax ", "strict "]) + whole(chance, 3, inside=False)
        name = chance.choice([*FUNCTIONS, "jsonb_path_query_array", "@?", "@@"])
        cases.append((name, random_document(chance), path, name in ("@?", "@@") or chance.random() < 0.3))
    different = compare(postgres, cases)
    assert not different, f"{len(different)} of {len(cases)}\n" + "\n".join(different[:40])
    found = [one for one in map(ours, cases) if not one[:5].strip().isalnum() or len(one) < 6]
    assert len(found) > len(cases) // 3, "most find something, or nothing"
