"""PostgreSQL's keywords, as `pg_get_keywords` tells drivers and tools which names they have to quote.

They are those of PostgreSQL 15.
"""

from __future__ import annotations

from mz_dagster.functions.function import list_of
from mz_dagster.functions.registry import function
from mz_dagster.scalars.types import BOOL, TEXT, Kind, record_of

_UNRESERVED = (
    "abort", "absolute", "access", "action", "add", "admin", "after", "aggregate", "also", "alter", "always",
    "asensitive", "assertion", "assignment", "at", "atomic", "attach", "attribute", "backward", "before", "begin",
    "breadth", "by", "cache", "call", "called", "cascade", "cascaded", "catalog", "chain", "characteristics",
    "checkpoint", "class", "close", "cluster", "columns", "comment", "comments", "commit", "committed", "compression",
    "configuration", "conflict", "connection", "constraints", "content", "continue", "conversion", "copy", "cost",
    "csv", "cube", "current", "cursor", "cycle", "data", "database", "day", "deallocate", "declare", "defaults",
    "deferred", "definer", "delete", "delimiter", "delimiters", "depends", "depth", "detach", "dictionary", "disable",
    "discard", "document", "domain", "double", "drop", "each", "enable", "encoding", "encrypted", "enum", "escape",
    "event", "exclude", "excluding", "exclusive", "execute", "explain", "expression", "extension", "external",
    "family", "filter", "finalize", "first", "following", "force", "forward", "function", "functions", "generated",
    "global", "granted", "groups", "handler", "header", "hold", "hour", "identity", "if", "immediate", "immutable",
    "implicit", "import", "include", "including", "increment", "index", "indexes", "inherit", "inherits", "inline",
    "input", "insensitive", "insert", "instead", "invoker", "isolation", "key", "label", "language", "large", "last",
    "leakproof", "level", "listen", "load", "local", "location", "lock", "locked", "logged", "mapping", "match",
    "matched", "materialized", "maxvalue", "merge", "method", "minute", "minvalue", "mode", "month", "move", "name",
    "names", "new", "next", "nfc", "nfd", "nfkc", "nfkd", "no", "normalized", "nothing", "notify", "nowait", "nulls",
    "object", "of", "off", "oids", "old", "operator", "option", "options", "ordinality", "others", "over",
    "overriding", "owned", "owner", "parallel", "parameter", "parser", "partial", "partition", "passing", "password",
    "plans", "policy", "preceding", "prepare", "prepared", "preserve", "prior", "privileges", "procedural",
    "procedure", "procedures", "program", "publication", "quote", "range", "read", "reassign", "recheck", "recursive",
    "ref", "referencing", "refresh", "reindex", "relative", "release", "rename", "repeatable", "replace", "replica",
    "reset", "restart", "restrict", "return", "returns", "revoke", "role", "rollback", "rollup", "routine",
    "routines", "rows", "rule", "savepoint", "schema", "schemas", "scroll", "search", "second", "security",
    "sequence", "sequences", "serializable", "server", "session", "set", "sets", "share", "show", "simple", "skip",
    "snapshot", "sql", "stable", "standalone", "start", "statement", "statistics", "stdin", "stdout", "storage",
    "stored", "strict", "strip", "subscription", "support", "sysid", "system", "tables", "tablespace", "temp",
    "template", "temporary", "text", "ties", "transaction", "transform", "trigger", "truncate", "trusted", "type",
    "types", "uescape", "unbounded", "uncommitted", "unencrypted", "unknown", "unlisten", "unlogged", "until",
    "update", "vacuum", "valid", "validate", "validator", "value", "varying", "version", "view", "views", "volatile",
    "whitespace", "within", "without", "work", "wrapper", "write", "xml", "year", "yes", "zone",
)  # fmt: skip
_NO_FUNCTIONS = (
    "between", "bigint", "bit", "boolean", "char", "character", "coalesce", "dec", "decimal", "exists", "extract",
    "float", "greatest", "grouping", "inout", "int", "integer", "interval", "least", "national", "nchar", "none",
    "normalize", "nullif", "numeric", "out", "overlay", "position", "precision", "real", "row", "setof", "smallint",
    "substring", "time", "timestamp", "treat", "trim", "values", "varchar", "xmlattributes", "xmlconcat",
    "xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi", "xmlroot", "xmlserialize",
    "xmltable",
)  # fmt: skip
_FUNCTIONS_OR_TYPES = (
    "authorization", "binary", "collation", "concurrently", "cross", "current_schema", "freeze", "full", "ilike",
    "inner", "is", "isnull", "join", "left", "like", "natural", "notnull", "outer", "overlaps", "right", "similar",
    "tablesample", "verbose",
)  # fmt: skip
#: What names nothing unless it is quoted.
RESERVED = (
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both", "case", "cast", "check",
    "collate", "column", "constraint", "create", "current_catalog", "current_date", "current_role", "current_time",
    "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except",
    "false", "fetch", "for", "foreign", "from", "grant", "group", "having", "in", "initially", "intersect", "into",
    "lateral", "leading", "limit", "localtime", "localtimestamp", "not", "null", "offset", "on", "only", "or",
    "order", "placing", "primary", "references", "returning", "select", "session_user", "some", "symmetric", "table",
    "then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic", "when", "where", "window",
    "with",
)  # fmt: skip
#: What names a column only behind AS.
_BEHIND_AS = (
    "array", "as", "char", "character", "create", "day", "except", "fetch", "filter", "for", "from", "grant", "group",
    "having", "hour", "intersect", "into", "isnull", "limit", "minute", "month", "notnull", "offset", "on", "order",
    "over", "overlaps", "precision", "returning", "second", "to", "union", "varying", "where", "window", "with",
    "within", "without", "year",
)  # fmt: skip
#: By what PostgreSQL calls a category: its letter, and its words.
_CATEGORIES = {
    "unreserved": ("U", _UNRESERVED),
    "unreserved (cannot be function or type name)": ("C", _NO_FUNCTIONS),
    "reserved (can be function or type name)": ("T", _FUNCTIONS_OR_TYPES),
    "reserved": ("R", RESERVED),
}


@function(
    "pg_get_keywords",
    (),
    Kind.ARRAY,
    rows="pg_get_keywords",
    says="PostgreSQL's keywords, with what each may name.",
    example="(SELECT catdesc FROM pg_get_keywords() WHERE word = 'select')",
    gives="reserved",
    type=list_of(
        record_of((("word", TEXT), ("catcode", TEXT), ("barelabel", BOOL), ("catdesc", TEXT), ("baredesc", TEXT)))
    ),
)
def keywords() -> list[tuple[str, str, bool, str, str]]:
    """Returns the keywords, in the order of the alphabet."""
    return sorted(
        (word, code, is_bare := word not in _BEHIND_AS, said, "can be bare label" if is_bare else "requires AS")
        for said, (code, words) in _CATEGORIES.items()
        for word in words
    )
