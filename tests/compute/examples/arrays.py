"""Functions over arrays and records, and series of numbers, which here are arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mz_dagster.functions import Cast, CastContext, Failure, cast, resolve_table_function
from mz_dagster.functions.arrays.dimensioned import accumulated, part_between, stacked, subscript
from mz_dagster.functions.jsonb.as_json import as_json
from mz_dagster.functions.jsonb.as_jsonb import as_jsonb
from mz_dagster.functions.membership import among
from mz_dagster.scalars.record import field, record
from mz_dagster.scalars.scalar import Call, Literal
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNCONSTRAINED,
    UUID,
    Kind,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
)
from tests.compute.examples.example import POOLS, Example, applied, casting, columns_of, function, operator

_INTS = ["{}", "{1}", "{1,2,3}", "{3,2,1}", "{NULL}", "{1,NULL,3}", "{1,1}", "{-2147483648,2147483647}", "{2,NULL}"]
_TEXTS = ["{}", "{a}", '{a,"b c",""}', '{NULL,"NULL"}', r'{"\"","\\","{}",","}', "{é,🐘}", "{a,a,b}", '{" a "}']
_FLOATS = ["{}", "{0.1,-0}", "{0,NaN}", "{NULL,1e300}", "{NaN,NaN}", "{Infinity,-Infinity,1.5}"]
POOLS["ints"] = (array_of(INT4), _INTS)
POOLS["bigints"] = (array_of(INT8), ["{}", "{1,2}", "{9223372036854775807,NULL}"])
POOLS["texts"] = (array_of(TEXT), _TEXTS)
POOLS["floats"] = (array_of(FLOAT8), _FLOATS)
POOLS["sizes"] = (array_of(INT4), ["{}", "{0}", "{3}", "{-1}", "{NULL}", "{2,0}", "{0,-1}", "{134217728}"])
POOLS["bools"] = (array_of(BOOL), ["{}", "{t,f}", "{NULL,t}"])
POOLS["dates"] = (array_of(DATE), ["{}", "{2020-02-29,NULL}", "{0001-01-01,9999-12-31}"])
POOLS["moments"] = (array_of(TIMESTAMP), ['{"2020-02-29 12:34:56.789",NULL}', "{0001-01-01}"])
POOLS["prices"] = (array_of(numeric(2)), ["{}", "{1.50,-0.01}", "{NULL,7}"])
POOLS["intervals"] = (
    array_of(INTERVAL),
    ['{"1 mon 2 days",NULL,-00:00:01.5}', '{"30 days","24:00:00"}', '{"1 mon","1 day"}', "{}", '{"1 mon"}'],
)
POOLS["amounts"] = (array_of(UNCONSTRAINED), ["{}", "{1.0,2}", "{1,2.00}", "{NULL,1e40}", "{NaN,1.00}", "{-0.5,1}"])
POOLS["amount"] = (UNCONSTRAINED, ["1.000", "2", "NaN", "-0.50", "1e40"])
POOLS["uuids"] = (array_of(UUID), ["{00000000-0000-4000-8000-00000000000a,NULL}"])
POOLS["byteas"] = (array_of(BYTEA), [r'{"\\x00ff",""}'])
POOLS["jsonbs"] = (
    array_of(JSONB),
    [r'{"{\"b\": 1.50, \"a\": null}",1,NULL}', r'{"{\"b\": 1.5, \"a\": null}"}', "{1.0}", "{1,2}", "{}"],
)
POOLS["zoned"] = (array_of(TIMESTAMPTZ), ['{"2020-02-29 12:34:56+02",NULL}'])
POOLS["clocks"] = (array_of(TIME), ["{12:34:56.7,NULL}"])
POOLS["chars"] = (array_of(ScalarType(Kind.CHAR, length=3)), ["{a,abc,NULL}"])
POOLS["reals"] = (array_of(FLOAT4), ["{0.1,1e10,NaN}"])
_GRIDS = ["{}", "{1}", "{{1,2},{3,NULL}}", "[0:1]={1,2}", "[0:1][5:5]={{1},{2}}", "{{{1},{2}}}", "{{1,2,3,NULL}}"]
POOLS["grids"] = (dimensioned(INT4), _GRIDS)
POOLS["bigint_grids"] = (dimensioned(INT8), ["{{1,2},{3,9223372036854775807}}", "{}", "[2:3]={1,NULL}"])
POOLS["text_grids"] = (dimensioned(TEXT), ["{}", '{{a,"b c"},{"",NULL}}', '[0:0]={"\\"{}"}', "{a,b}", "{{a,a}}"])
POOLS["float_grids"] = (dimensioned(FLOAT8), ["{{0.1,-0}}", "{{0.1,0}}", "{{NaN},{NULL}}", "[0:1]={NaN,1}"])
POOLS["day_grids"] = (dimensioned(DATE), ["{{2020-02-29,NULL}}", "{{0001-01-01},{9999-12-31}}"])
POOLS["moment_grids"] = (dimensioned(TIMESTAMPTZ), ['{{"2020-02-29 12:34:56+02",NULL}}', "{}"])
POOLS["span_grids"] = (dimensioned(INTERVAL), ['{{"1 mon",NULL}}', '{{"30 days",NULL}}', '{"1 mon"}'])
POOLS["jsonb_grids"] = (dimensioned(JSONB), [r'{{"{\"b\": 1.50}",1},{NULL,2}}', "{{1.0}}", "{1}"])
POOLS["price_grids"] = (dimensioned(numeric(2)), ["{{1.50},{-0.01}}", "{}"])
POOLS["amount_grids"] = (dimensioned(UNCONSTRAINED), ["{{1.0,2}}", "{{1,2.00}}", "{{NULL,1e40}}"])
POOLS["grid_text"] = (
    TEXT,
    ["{}", "{{1,2},{3,4}}", "{{1},{2,3}}", "[0:1]={1,2}", "[1:1][2:2]={{7}}", "{{1,2}", "{{x}}", "[2:1]={}", "{{1}}x"],
)
POOLS["separator_text"] = (TEXT, ["", ",", "a", ", ", "\\E", "\\", ".", "é"])
POOLS["few_int4"] = (INT4, ["-1", "0", "1", "2", "3", "2147483647", "-2147483648"])
POOLS["split_text"] = (TEXT, ["", "a,b,,c", ",", "a, b", "é🐘,x", "a\\Eb", "a.b", "\\", "aaa", "a,b\\Ec"])
POOLS["array_text"] = (
    TEXT,
    ["{}", " { } ", "{1,2}", "{ 1 , 2 }", "{1,}", "{,1}", "{", "}", "", "1,2", "{1}x", "{1} ", "{a}", "{NULL,null}",
     '{"1"}', '{"1', "{1 2}", '{"NULL"}', "{\\1}", "{1\\", '{1"2"}', '{"a"b}', "{99999999999}"],
)  # fmt: skip
POOLS["step_int4"] = (INT4, ["1", "2", "-1", "-3", "0"])
POOLS["near_int4"] = (INT4, ["-3", "0", "1", "4", "2147483647"])
POOLS["end_int4"] = (INT4, ["-3", "0", "1", "4"])
POOLS["far_int8"] = (INT8, ["9223372036854775805", "9223372036854775807", "-9223372036854775808"])
POOLS["leap_int8"] = (INT8, ["9223372036854775807", "-9223372036854775807", "4611686018427387904", "0"])
POOLS["n2near"] = (numeric(2), ["-1.50", "0", "2.25", "99999999999999999999999999999999999.99"])
POOLS["n2step"] = (numeric(2), ["0.75", "-0.75", "99999999999999999999999999999999.00", "0"])
_MOMENTS = ["2020-01-31 12:00:00", "2020-02-29 00:00:00", "2021-01-01 00:00:00"]
POOLS["from_ts"] = (TIMESTAMP, _MOMENTS)
POOLS["from_tz"] = (TIMESTAMPTZ, [f"{one}+00" for one in _MOMENTS])
POOLS["step_interval"] = (
    INTERVAL,
    ["1 month", "-1 month", "30 days", "0", "1 day -24 hours", "1 year", "11 days 11:11:11.5"],
)


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    yield from _operators()
    yield from _functions()
    yield from _quantified()
    yield from _among()
    yield from _casts()
    yield from _records()
    yield from _series()
    yield from _grids()


def _grids() -> Iterator[Example]:
    """Yields the examples of arrays of any dimensions."""
    for pool in ("grids", "text_grids", "float_grids", "span_grids", "jsonb_grids", "amount_grids"):
        for symbol in ("=", "<", ">="):
            yield operator(symbol, pool, pool)
        yield operator("IS NOT DISTINCT FROM", pool, pool, name="is not distinct from")
    for symbol in ("<>", "<=", ">", "@>", "<@", "&&", "||"):
        yield operator(symbol, "grids", "grids")
    yield operator("||", "grids", "int4")
    yield operator("||", "int4", "grids")
    yield operator("||", "grids", "ints")
    yield operator("||", "text_grids", "text_grids")
    yield function("greatest", "grids", "grids")
    yield function("least", "float_grids", "float_grids")
    for name in ("cardinality", "array_ndims", "array_dims"):
        yield function(name, "grids")
    for name in ("array_length", "array_upper", "array_lower"):
        yield function(name, "grids", "few_int4")
    yield function("array_position", "grids", "few_int4")
    yield function("array_position", "grids", "few_int4", "few_int4")
    yield function("array_positions", "grids", "few_int4")
    yield function("array_remove", "grids", "few_int4")
    yield function("array_replace", "grids", "few_int4", "few_int4")
    yield function("array_replace", "amount_grids", "amount", "amount")
    yield function("trim_array", "grids", "few_int4")
    yield function("array_to_string", "text_grids", "separator_text", "needle")
    yield function("array_to_string", "float_grids", "separator_text")
    yield function("width_bucket", "few_int4", "grids")
    yield function("array_fill", "few_int4", "grids")
    yield function("array_fill", "text", "grids", "grids")
    (grid,) = columns_of(("grids",))
    twice = Call("array", (grid, grid), array_of(grid.type), False)
    for sql, call in (
        ("({0})[1][2]", subscript(grid, [Literal(1, INT4), Literal(2, INT4)])),
        ("({0})[0:1]", part_between(grid, [Literal(0, INT4)], [Literal(1, INT4)])),
        ("({0})[:][2:NULL]", part_between(grid, [None, Literal(2, INT4)], [None, Literal(None, INT4)])),
        ("ARRAY[{0}, {0}]", stacked([grid, grid], INT4)),
        ("(SELECT array_agg(x) FROM (VALUES ({0}), ({0})) AS v(x))", accumulated(twice, INT4)),
    ):
        yield Example(sql, call, ("grids",))
    lists = casting("grids", array_of(INT4))
    yield replace(lists, tolerates=lambda ours, theirs, row: ours is not None and ours.startswith("!0A000 a value of"))
    yield from _subscripts("grids")
    for pool in ("grids", "text_grids", "float_grids", "moment_grids", "amount_grids", "jsonb_grids"):
        (column,) = columns_of((pool,))
        for name, made in (("to_json", as_json(column)), ("to_jsonb", as_jsonb(column))):
            assert not isinstance(made, Failure)
            yield Example(f"{name}({{0}})", made, (pool,))
    for pool in POOLS:
        if pool.endswith("_grids") or pool == "grids":
            yield casting(pool, TEXT)
    for pool, type_ in (("grids", INT8), ("bigint_grids", INT4), ("text_grids", FLOAT8), ("price_grids", INT4)):
        yield casting(pool, dimensioned(type_))
    yield casting("ints", dimensioned(INT8))
    yield casting("grid_text", dimensioned(INT4))
    yield casting("grid_text", dimensioned(TEXT))


def _operators() -> Iterator[Example]:
    for pool in ("ints", "texts", "floats", "prices", "dates", "amounts", "intervals", "jsonbs"):
        for symbol in ("=", "<>", "<", "<=", ">", ">="):
            yield operator(symbol, pool, pool)
        for symbol in ("@>", "<@", "&&"):
            yield operator(symbol, pool, pool)
    for pool in ("floats", "amounts", "intervals", "jsonbs"):
        yield operator("IS NOT DISTINCT FROM", pool, pool, name="is not distinct from")
    yield function("greatest", "ints", "ints")
    yield function("least", "floats", "floats")
    yield operator("||", "ints", "ints")
    yield operator("||", "ints", "int4")
    yield operator("||", "text", "texts")
    yield operator("||", "ints", "bigints")


def _functions() -> Iterator[Example]:
    for name in ("array_length", "array_upper", "array_lower"):
        yield function(name, "ints", "few_int4")
    for name in ("cardinality", "array_ndims", "array_dims"):
        yield function(name, "ints")
    yield function("array_append", "texts", "needle")
    yield function("array_prepend", "needle", "texts")
    yield function("array_cat", "texts", "texts")
    for name in ("array_position", "array_positions", "array_remove"):
        yield function(name, "texts", "needle")
        yield function(name, "floats", "float8")
        yield function(name, "amounts", "amount")
    yield function("array_position", "ints", "few_int4", "few_int4")
    yield function("array_replace", "ints", "few_int4", "few_int4")
    yield function("array_replace", "amounts", "amount", "amount")
    yield function("trim_array", "ints", "few_int4")
    yield function("array_fill", "few_int4", "sizes")
    yield function("width_bucket", "few_int4", "ints")
    yield function("width_bucket", "float8", "floats")
    yield function("array_to_string", "texts", "separator_text")
    yield function("array_to_string", "bools", "separator_text", "needle")
    yield function("array_to_string", "floats", "separator_text")
    yield function("string_to_array", "split_text", "separator_text")
    yield function("string_to_array", "split_text", "separator_text", "needle")
    words = applied(resolve_table_function("pg_get_keywords", []), [])
    yield Example("(SELECT count(*) FROM pg_get_keywords())", Call("cardinality", (words,), INT4), ())
    (texts,) = columns_of(("texts",))
    listed = applied(resolve_table_function("pg_options_to_table", [texts.type]), [texts])
    counted = "CASE WHEN {0} IS NOT NULL THEN (SELECT count(*) FROM pg_options_to_table({0})) END"
    yield Example(counted, Call("cardinality", (listed,), INT4), ("texts",))
    none = applied(resolve_table_function("pg_partition_tree", [INT8]), [Literal(0, INT8)])
    yield Example("(SELECT count(*) FROM pg_partition_tree(0))", Call("cardinality", (none,), INT4), ())
    yield function("array_subscript", "ints", "few_int4", sql="({0})[{1}]")
    yield function("array_slice", "ints", "few_int4", "few_int4", sql="({0})[{1}:{2}]")
    for pool in ("ints", "amounts", "intervals"):
        (column,) = columns_of((pool,))
        neighbours = "SELECT x, n, lag(x) OVER (ORDER BY n) AS y FROM unnest({0}) WITH ORDINALITY AS u (x, n)"
        firsts = f"ARRAY(SELECT x FROM ({neighbours}) AS s WHERE n = 1 OR x IS DISTINCT FROM y ORDER BY n)"
        call = Call("distinct_elements", (column,), column.type)
        yield Example(f"CASE WHEN {{0}} IS NOT NULL THEN {firsts} END", call, (pool,))
    (column,) = columns_of(("amounts",))
    yield Example(
        "(SELECT sum(x) FROM unnest({0}) AS x)", Call("sum_list_unconstrained", (column,), UNCONSTRAINED), ("amounts",)
    )
    for pools in (("few_int4", "few_int4"), ("float8",)):
        columns = columns_of(pools)
        made = Call("array", tuple(columns), array_of(columns[0].type), False)
        yield Example(f"ARRAY[{', '.join(f'{{{i}}}' for i in range(len(pools)))}]", made, pools)


def _quantified() -> Iterator[Example]:
    for pools, symbol, name in (
        (("few_int4", "ints"), "=", "eq_int4"),
        (("few_int4", "ints"), "<", "lt_int4"),
        (("few_int4", "ints"), "<>", "ne_int4"),
        (("text", "texts"), "LIKE", "like_text"),
        (("iv", "intervals"), "=", "eq_interval"),
        (("iv", "intervals"), "<", "lt_interval"),
    ):
        for word, quantifier in (("ANY", "any_element"), ("ALL", "all_elements")):
            call = Call(quantifier, (*columns_of(pools), Literal(name, TEXT)), BOOL)
            yield Example(f"{{0}} {symbol} {word} ({{1}})", call, pools)


def _among() -> Iterator[Example]:
    for pool, type_, constants in (
        ("few_int4", INT4, (1, 2, -1)),
        ("few_int4", INT4, (1, None)),
        ("text", TEXT, ("a", "", "é")),
    ):
        call = among(columns_of((pool,))[0], constants, like=Literal(None, type_))
        shown = ", ".join("NULL" if one is None else repr(one) for one in constants)
        yield Example(f"{{0}} IN ({shown})", call, (pool,))


def _casts() -> Iterator[Example]:
    for pool in ("ints", "texts", "floats", "bools", "dates", "moments", "prices"):
        yield casting(pool, TEXT)
    for pool in ("intervals", "uuids", "byteas", "jsonbs", "zoned", "clocks", "chars", "reals"):
        yield casting(pool, TEXT)
    yield casting("reals", array_of(FLOAT8))
    yield casting("texts", array_of(FLOAT8))
    yield casting("ints", array_of(INT8))
    yield casting("bigints", array_of(INT4))
    yield casting("ints", array_of(TEXT))
    yield casting("bools", array_of(TEXT))
    yield casting("texts", array_of(INT4))
    yield casting("prices", array_of(INT4))
    yield casting("floats", array_of(TEXT))
    yield casting("array_text", array_of(INT4))
    yield casting("array_text", array_of(TEXT))
    yield from _assigned()


def _assigned() -> Iterator[Example]:
    """Yields what assigns arrays to elements of a length, as the columns of a record do."""
    for name, kind in (("varchar", Kind.VARCHAR), ("char", Kind.CHAR)):
        (column,) = columns_of(["texts"])
        target = array_of(ScalarType(kind, length=3))
        found, shown = cast(column.type, target, CastContext.ASSIGNMENT), cast(target, TEXT)
        assert isinstance(found, Cast)
        assert isinstance(shown, Cast)
        sql = f"(SELECT v FROM json_to_record(json_build_object('v', {{0}})) AS r (v {name}(3)[]))::text"
        yield Example(sql, shown.apply(found.apply(column)), ("texts",))


def _records() -> Iterator[Example]:
    for pools in (("few_int4", "text", "bool"), ("float8", "texts"), ("date", "n2")):
        columns = columns_of(pools)
        text = f"ROW({', '.join(f'{{{i}}}' for i in range(len(pools)))})"
        shown = cast(record(columns).type, TEXT)
        assert isinstance(shown, Cast)
        yield Example(f"{text}::text", shown.apply(record(columns)), pools)
    columns = columns_of(("few_int4", "text"))
    pair = Call("array", (record(columns), record(columns)), array_of(record(columns).type), False)
    nested = Call("array_subscript", (pair, Literal(2, INT4)), record(columns).type)
    yield Example("(ARRAY[ROW({0}, {1}), ROW({0}, {1})])[2]", nested, ("few_int4", "text"))
    yield Example("{1}", field(nested, 1), ("few_int4", "text"))


def _series() -> Iterator[Example]:
    yield from _counted("near_int4", "end_int4", "step_int4")
    yield from _counted("end_int4", "near_int4")
    yield from _counted("far_int8", "far_int8")
    yield from _counted("far_int8", "far_int8", "leap_int8")
    yield from _counted("n2near", "n2near", "n2step")
    yield from _counted("n2step", "n2near")
    for pool in ("from_ts", "from_tz"):
        columns = columns_of((pool, pool, "step_interval"))
        resolved = resolve_table_function("generate_series", [column.type for column in columns])
        rows = "ARRAY(SELECT * FROM generate_series({0}, {1}, {2}))"
        some = "{0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL"
        yield Example(f"CASE WHEN {some} THEN {rows} END", applied(resolved, columns), (pool, pool, "step_interval"))
    yield from _subscripts("texts")


def _subscripts(arrays: str) -> Iterator[Example]:
    """Yields `generate_subscripts` of a pool of arrays, with and without its direction."""
    for pools in ((arrays, "few_int4"), (arrays, "few_int4", "bool")):
        columns = columns_of(pools)
        resolved = resolve_table_function("generate_subscripts", [column.type for column in columns])
        given = [f"{{{i}}}" for i in range(len(pools))]
        rows = f"ARRAY(SELECT generate_subscripts({', '.join(given)}))"
        some = " AND ".join(f"{one} IS NOT NULL" for one in given)
        yield Example(f"CASE WHEN {some} THEN {rows} END", applied(resolved, columns), pools)


def _counted(*pools: str) -> Iterator[Example]:
    """Yields the example of a series; of one that is too long for us only that it is so."""
    columns = columns_of(pools)
    resolved = resolve_table_function("generate_series", [column.type for column in columns])
    arguments = [f"{{{i}}}" for i in range(len(pools))]
    step = "nullif({2}, 0)" if len(pools) == 3 else "1"
    refused = "error('54000', 'generate_series makes more than 10000000 rows')::text"
    some = " AND ".join(f"{one} IS NOT NULL" for one in arguments)
    rows = f"CASE WHEN {some} THEN ARRAY(SELECT * FROM generate_series({', '.join(arguments)}))::text END"
    guarded = f"CASE WHEN ({{1}}::numeric - {{0}}::numeric) / {step} >= 10000000 THEN {refused} ELSE {rows} END"
    yield Example(guarded, applied(resolved, columns), pools)
