"""Translation of other engines' SQL into this project's: by sqlglot, every place named that may mean another thing.

Owns what is known of how other dialects differ from PostgreSQL. Its invariant: a query is translated whole or not at
all, and a place whose meaning is not known to be the same has a remark. It reads no files and knows no catalog: whether
a translation binds is for its caller to find out.

- `dialect`: which dialects there are, and how each folds the case of names;
- `originals`: the statements of a text, and the relations that they read;
- `rewriting`: what sqlglot would write with another meaning, written so that the meaning stays;
- `differences`: the places at which a dialect means something else, one rule for each topic;
- `translate`: all of these in turn, down to the text.
"""

from mz_dagster.sql.translation.dialect import SourceDialect, UnknownDialect
from mz_dagster.sql.translation.differences import Remark
from mz_dagster.sql.translation.originals import Original, Untranslatable, originals, relation_path
from mz_dagster.sql.translation.translate import Translation, column_type, translate

__all__ = [
    "Original",
    "Remark",
    "SourceDialect",
    "Translation",
    "UnknownDialect",
    "Untranslatable",
    "column_type",
    "originals",
    "relation_path",
    "translate",
]
