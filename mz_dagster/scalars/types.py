"""Scalar types, columns and the type of a relation.

The types are PostgreSQL's. How Spark stores each is `compute/`'s business, except that the
choice must be exact: a type whose values Spark cannot hold exactly is refused when bound.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache


class Kind(Enum):
    """Names a family of scalar types; the value is the SQL name."""

    BOOL = "boolean"
    INT2 = "smallint"
    INT4 = "integer"
    INT8 = "bigint"
    FLOAT4 = "real"
    FLOAT8 = "double precision"
    NUMERIC = "numeric"
    UNCONSTRAINED = "unconstrained numeric"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    MZ_TIMESTAMP = "mz_timestamp"
    TIME = "time"
    TIMETZ = "timetz"
    INTERVAL = "interval"
    UUID = "uuid"
    BYTEA = "bytea"
    JSON = "json"
    JSONB = "jsonb"
    VARCHAR = "character varying"
    CHAR = "character"
    ARRAY = "array"
    RECORD = "record"
    DIMENSIONED = "array of dimensions"
    ENUM = "enum"

    # That of `Enum` is of the name, and written in Python: types, and so plans, are hashed and looked up all the time.
    __hash__ = object.__hash__


#: The kinds that may have a modifier.
_MODIFIED = frozenset({Kind.NUMERIC, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.TIMETZ, Kind.INTERVAL})


@dataclass(frozen=True, slots=True)
class Modifier:
    """What a type with parentheses makes of the values that are cast or assigned to it.

    Attributes:
        precision: Digits of a numeric, fewer than 38; digits of the seconds of a moment or interval, fewer than 6. None
            if it does not say.
        fields: Of an interval: `year`, `day to second` and so on; empty if all are kept.
    """

    precision: int | None = None
    fields: str = ""

    def __str__(self) -> str:
        fields = f" {self.fields}" if self.fields else ""
        return fields if self.precision is None else f"{fields}({self.precision})"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The values of a type that `CREATE TYPE ... AS ENUM` made.

    A value is stored as its member: digits that have the order of the values, a blank, and its label. So members are
    compared, joined and grouped as texts are, and between two of them there is place for any number of others. Types
    are equal if name and members are: what a changed file makes of a type is another one than a table keeps that was
    created before.

    Attributes:
        name: What the catalog calls the type.
        members: In order; None of a type that is named and not looked up yet.
        renamed: Members whose label is another by now than they say, each with that.
    """

    name: str
    members: tuple[str, ...] | None = field(default=None, repr=False)  # digests of plans are of what is shown
    renamed: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, name: str, labels: Sequence[str]) -> Enumeration:
        """Returns the type of values with these labels, in order.

        Example:
            >>> Enumeration.of("mood", ["sad", "happy"]).members
            ('1 sad', '2 happy')
        """
        digits = len(str(len(labels)))
        return cls(name, tuple(f"{f'{i:0{digits}}'.rstrip('0')} {label}" for i, label in enumerate(labels, 1)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in order."""
        return tuple(map(self.label, self.members or ()))

    def label(self, member: str) -> str:
        """Returns the label of a member.

        Example:
            >>> Enumeration.of("mood", ["sad", "very happy"]).label("2 very happy")
            'very happy'
        """
        return dict(self.renamed).get(member, member.partition(" ")[2])

    def member(self, label: str) -> str:
        """Returns the member with a label.

        Raises:
            KeyError: There is none.
        """
        return _members_by_label(self)[label]

    def with_value(self, label: str, at: int) -> Enumeration:
        """Returns the enumeration with one more value, which has `at` others before it; those keep their members.

        Example:
            >>> Enumeration.of("mood", ["sad", "happy"]).with_value("ok", 1).members
            ('1 sad', '15 ok', '2 happy')
        """
        members = self.members or ()
        below, above = (
            None if one is None else one.partition(" ")[0]
            for one in (members[at - 1] if at else None, members[at] if at < len(members) else None)
        )
        return replace(self, members=(*members[:at], f"{_digits_between(below, above)} {label}", *members[at:]))

    def with_label(self, label: str, new: str) -> Enumeration:
        """Returns the enumeration with another label of one of its values, which stays the member that it is.

        Example:
            >>> Enumeration.of("mood", ["sad", "happy"]).with_label("sad", "low").labels
            ('low', 'happy')
        """
        return replace(self, renamed=tuple({**dict(self.renamed), self.member(label): new}.items()))


def _digits_between(below: str | None, above: str | None) -> str:
    """Returns the fewest digits that texts order between others; None is before, or behind, all.

    Digits are those of a number between 0 and 1, behind its point, without a zero at the end.
    """
    length = 1
    while True:
        least = int((below or "").ljust(length, "0")[:length]) + 1
        ceiling = (
            10**length if above is None else -(-int(above.ljust(length, "0")) // 10 ** max(0, len(above) - length))
        )
        if least < ceiling:
            number = least if above is None else ceiling - 1 if below is None else (least + ceiling) // 2
            return f"{number:0{length}}"
        length += 1


@lru_cache(maxsize=256)
def _members_by_label(enumeration: Enumeration) -> Mapping[str, str]:
    return {enumeration.label(one): one for one in enumeration.members or ()}


@dataclass(frozen=True, slots=True)
class ScalarType:
    """The type of a cell.

    Attributes:
        kind: The family.
        scale: Digits after the decimal point of a `NUMERIC`, 0 to 38, fixed when bound; precision is
            always 38. 0 for every other kind.
        element: The type of an `ARRAY`'s elements, which is no array itself and any of which may be NULL; None for
            every other kind. `array_element` is that of a `DIMENSIONED` one, too.
        length: How many characters a `VARCHAR` has at most, and a `CHAR` exactly, at least 1; 0 for every other kind,
            and for what a literal becomes that is compared with a `CHAR`.
        fields: Names and types of a `RECORD`'s fields; `f1`, `f2`, ... if nobody named them. Of a `DIMENSIONED`
            array the list of its elements, row by row, its lengths and its lower bounds, one for each dimension.
            Empty for every other kind.
        enumeration: Of an `ENUM`, its values; None for every other kind.
        modifier: What a cast to the type, or an assignment, makes of a value; None if nothing. It is no part of what
            the type is: types are equal whatever their modifiers, and nothing but such casts looks at it.

    Example:
        >>> str(ScalarType(Kind.NUMERIC, 2)), str(array_of(INT4)), str(ScalarType(Kind.VARCHAR, length=10))
        ('numeric(38,2)', 'integer[]', 'character varying(10)')
    """

    kind: Kind
    scale: int = 0
    element: ScalarType | None = None
    length: int = 0
    fields: tuple[tuple[str, ScalarType], ...] = ()
    enumeration: Enumeration | None = field(default=None, repr=False)  # digests of plans are of what is shown
    modifier: Modifier | None = field(default=None, compare=False, repr=False)
    label: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.scale and self.kind is not Kind.NUMERIC:
            raise ValueError(f"{self.kind.value} has no scale")
        if not 0 <= self.scale <= 38:
            raise ValueError(f"scale {self.scale} is not in 0..38")
        if (self.element is not None) != (self.kind is Kind.ARRAY):
            raise ValueError("an array has an element type, and nothing else has")
        if self.element is not None and self.element.kind is Kind.ARRAY:
            raise ValueError("an array's elements are no arrays")
        if self.kind is Kind.VARCHAR and not self.length:
            raise ValueError("varchar has a length; without one it is text")
        if self.length and self.kind not in (Kind.VARCHAR, Kind.CHAR):
            raise ValueError(f"{self.kind.value} has no length")
        if self.fields and not self.is_composite:
            raise ValueError("a record has fields, and nothing else has")
        if self.kind is Kind.DIMENSIONED and len(self.fields) != 3:
            raise ValueError("an array of dimensions has elements, lengths and lower bounds")
        if (self.enumeration is not None) != (self.kind is Kind.ENUM):
            raise ValueError("an enum has values of its own, and nothing else has")
        if self.modifier is not None and self.kind not in _MODIFIED:
            raise ValueError(f"{self.kind.value} has no modifier")

    @property
    def unmodified(self) -> ScalarType:
        """The type of values that nothing was made of."""
        if self.value_modifier is None:
            return self
        if self.kind is Kind.DIMENSIONED:
            (name, elements), *shape = self.fields
            return replace(self, fields=((name, elements.unmodified), *shape))
        if self.element is not None:
            return replace(self, element=self.element.unmodified)
        return replace(self, modifier=None)

    @property
    def value_modifier(self) -> Modifier | None:
        """What a cast to the type makes of a value, of an array of each of its elements."""
        return (self.array_element or self).modifier

    @property
    def parts(self) -> tuple[ScalarType, ...]:
        """The types of an array's elements, or of a record's fields in order; none for all other kinds."""
        return tuple(one for _, one in self.fields) if self.element is None else (self.element,)

    @property
    def is_composite(self) -> bool:
        """Whether values have fields: those of a record, and of an array of any dimensions, do."""
        return self.kind in (Kind.RECORD, Kind.DIMENSIONED)

    @property
    def array_element(self) -> ScalarType | None:
        """The type of the elements of an array, whichever dimensions it has; None of what is no array."""
        return self.fields[0][1].element if self.kind is Kind.DIMENSIONED else self.element

    def with_values(self, before: Enumeration, after: Enumeration) -> ScalarType:
        """Returns the type in which an enumeration has the values of another in the place of its own."""
        if self.enumeration == before:
            return replace(self, enumeration=after)
        if self.element is not None:
            element = self.element.with_values(before, after)
            return self if element is self.element else replace(self, element=element)
        fields = tuple((name, one.with_values(before, after)) for name, one in self.fields)
        return self if fields == self.fields else replace(self, fields=fields)

    def holds(self, kinds: Container[Kind]) -> bool:
        """Returns whether an array or record has values of one of `kinds` in it, at whatever depth."""
        return any(one.kind in kinds or one.holds(kinds) for one in self.parts)

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.element}[]"
        if self.kind is Kind.DIMENSIONED:
            return f"{self.array_element}[][]"
        if self.length:
            return f"{self.kind.value}({self.length})"
        if self.enumeration is not None:
            return self.enumeration.name
        if self.kind is Kind.UNCONSTRAINED:
            return Kind.NUMERIC.value
        if self.kind is Kind.NUMERIC:
            precision = None if self.modifier is None else self.modifier.precision
            return f"numeric({precision or 38},{self.scale})"
        return self.kind.value if self.modifier is None else f"{self.kind.value}{self.modifier}"


BOOL = ScalarType(Kind.BOOL)
INT2 = ScalarType(Kind.INT2)
INT4 = ScalarType(Kind.INT4)
INT8 = ScalarType(Kind.INT8)
FLOAT4 = ScalarType(Kind.FLOAT4)
FLOAT8 = ScalarType(Kind.FLOAT8)
TEXT = ScalarType(Kind.TEXT)
DATE = ScalarType(Kind.DATE)
TIMESTAMP = ScalarType(Kind.TIMESTAMP)
TIMESTAMPTZ = ScalarType(Kind.TIMESTAMPTZ)
MZ_TIMESTAMP = ScalarType(Kind.MZ_TIMESTAMP)
TIME = ScalarType(Kind.TIME)
TIMETZ = ScalarType(Kind.TIMETZ)
INTERVAL = ScalarType(Kind.INTERVAL)
UUID = ScalarType(Kind.UUID)
BYTEA = ScalarType(Kind.BYTEA)
JSON = ScalarType(Kind.JSON)
JSONB = ScalarType(Kind.JSONB)
#: A numeric without a scale: see `functions/numbers/unconstrained.py`.
UNCONSTRAINED = ScalarType(Kind.UNCONSTRAINED)


def labelled(type_: ScalarType, label: str) -> ScalarType:
    """Returns a type under another name."""
    return replace(type_, label=label)


def numeric(scale: int) -> ScalarType:
    """Returns `numeric(38, scale)`."""
    return ScalarType(Kind.NUMERIC, scale)


def high_part_type(scale: int) -> ScalarType:
    """Returns the type of the high parts of numerics of `scale`; see `compute/spark/expressions/accumulation.py`."""
    return numeric(max(0, scale - 19))


def array_of(element: ScalarType) -> ScalarType:
    """Returns the type of one-dimensional arrays: what `array_agg` returns."""
    return ScalarType(Kind.ARRAY, element=element)


def dimensioned(element: ScalarType) -> ScalarType:
    """Returns the type of arrays of any number of dimensions, each with a lower bound of its own.

    Example:
        >>> str(dimensioned(INT4)), dimensioned(INT4).array_element == INT4
        ('integer[][]', True)
    """
    numbers = array_of(INT4)
    fields = (("elements", array_of(element)), ("lengths", numbers), ("lowers", numbers))
    return ScalarType(Kind.DIMENSIONED, fields=fields)


def enum_of(enumeration: Enumeration) -> ScalarType:
    """Returns the type of an enumeration's values."""
    return ScalarType(Kind.ENUM, enumeration=enumeration)


def record_of(fields: Iterable[tuple[str, ScalarType]]) -> ScalarType:
    """Returns the type of records with these fields: what `ROW(...)` returns."""
    return ScalarType(Kind.RECORD, fields=tuple(fields))


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed column; `nullable=False` is a promise that every row keeps."""

    name: str
    type: ScalarType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class RelationType:
    """What is known of a relation without its data.

    Attributes:
        columns: In order. Names need not be unique: a plan refers to columns by position.
        keys: Sets of column positions, each unique among the rows at every time, as long as no
            multiplicity is negative. The empty set says: at most one row.
        monotonic: True only if proven that no update ever retracts.
    """

    columns: tuple[Column, ...]
    keys: frozenset[frozenset[int]] = frozenset()
    monotonic: bool = False

    def __post_init__(self) -> None:
        for key in sorted(self.keys, key=sorted):
            if any(not 0 <= position < len(self.columns) for position in key):
                raise ValueError(f"key {sorted(key)} names a column that is not there")

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(column.name for column in self.columns)

    def with_values(self, before: Enumeration, after: Enumeration) -> RelationType:
        """Returns a copy in whose types an enumeration has the values of another in the place of its own."""
        columns = tuple(replace(one, type=one.type.with_values(before, after)) for one in self.columns)
        return replace(self, columns=columns)

    def with_names(self, names: tuple[str, ...]) -> RelationType:
        """Returns a copy whose columns bear `names`, one for each."""
        if len(names) != self.arity:
            raise ValueError(f"{len(names)} names for {self.arity} columns")
        return replace(self, columns=tuple(replace(c, name=n) for c, n in zip(self.columns, names, strict=True)))


def smallest_key(keys: Iterable[frozenset[int]]) -> tuple[int, ...]:
    """Returns the positions of the smallest unique key; none if there is none.

    Example:
        >>> smallest_key(frozenset({frozenset({0, 1}), frozenset({2})})), smallest_key(frozenset())
        ((2,), ())
    """
    found = sorted((sorted(key) for key in keys if key), key=lambda key: (len(key), key))
    return tuple(found[0]) if found else ()
