"""The dialects that can be translated, and what is known of each."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, Dialects, NormalizationStrategy

from mz_dagster.errors import ProgrammingError
from mz_dagster.sql.cursor import RESERVED
from mz_dagster.sql.errors import suggestion

#: PostgreSQL, whose SQL this project's is, and those that say the same of what both have.
_SAME = frozenset(("postgres", "materialize", "risingwave"))
#: Spark and those whose SQL it shares.
_HIVE = frozenset(("hive", "spark2", "spark", "databricks"))


class UnknownDialect(ProgrammingError):
    """A dialect that nobody can translate."""

    sqlstate = "22023"


@dataclass(frozen=True, slots=True)
class SourceDialect:
    """A dialect that is translated.

    Attributes:
        name: As sqlglot calls it.
        of: What sqlglot knows of it.
    """

    name: str
    of: Dialect

    @classmethod
    def named(cls, name: str) -> SourceDialect:
        """Returns the dialect of a name.

        Raises:
            UnknownDialect: There is none.
        """
        known = sorted(one.value for one in Dialects if one.value)
        if name not in known:
            near = suggestion(name, known)
            raise UnknownDialect(
                f'unknown dialect "{name}"', hint=f"{near + ' ' if near else ''}The dialects are {', '.join(known)}."
            )
        return cls(name, Dialect.get_or_raise(name))

    @property
    def is_postgres(self) -> bool:
        """Whether what it says means the same here."""
        return self.name in _SAME

    @property
    def is_spark(self) -> bool:
        """Whether it is Spark's, or shares its rules."""
        return self.name in _HIVE

    def folded(self, name: exp.Identifier) -> tuple[str, bool]:
        """Returns what a name is called here, and whether in quotes: names that were one stay one."""
        text: str = name.name
        match self.of.normalization_strategy:
            case NormalizationStrategy.CASE_INSENSITIVE:
                text = text.lower()
            case NormalizationStrategy.UPPERCASE if not name.quoted or text == text.upper():
                text = text.lower()
            case NormalizationStrategy.LOWERCASE | NormalizationStrategy.CASE_INSENSITIVE_UPPERCASE if not name.quoted:
                text = text.lower()
        plain = text.isidentifier() and text.isascii() and text == text.lower() and text not in RESERVED
        return text, not plain

    def column(self, name: str) -> str:
        """Returns what a column is called here, from its name as the dialect's own catalog has it."""
        return self.folded(exp.to_identifier(name, quoted=True))[0]

    def shown(self, node: exp.Expr) -> str:
        """Returns a part of a query as the dialect writes it, without comments."""
        text: str = node.sql(self.name, comments=False)
        return text
