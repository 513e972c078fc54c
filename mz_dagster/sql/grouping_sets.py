"""The GROUP BY clause: its keys, and the sets of them by which the rows are grouped.

Owns ROLLUP, CUBE, GROUPING SETS and their product: `GROUP BY a, ROLLUP (b, c)` groups by (a, b, c), by (a, b) and by
(a). A plain clause is one set of all keys. All sets are one reduce; see `grouping`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from mz_dagster.scalars.scalar import Scalar
from mz_dagster.sql.binding import only_parts
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import StatementTooComplex, TooMany, UnsupportedForm

#: PostgreSQL's own limits.
_CUBE_ELEMENTS = 12
_SETS = 4096

_Set = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupBy:
    """A GROUP BY clause.

    Attributes:
        keys: All its keys, each once, over what the query reads.
        sets: The positions in `keys` of each grouping. The same set twice means that its groups are there twice.
    """

    keys: tuple[Scalar, ...] = ()
    sets: tuple[_Set, ...] = ((),)


def group_by(body: Body, group: exp.Expr, key: Callable[[exp.Expr], Scalar]) -> GroupBy:
    """Returns what a GROUP BY clause means.

    Args:
        body: The text.
        group: The clause.
        key: Binds one of its expressions.

    Raises:
        StatementTooComplex: There are too many groupings.
    """
    only_parts(body, group, "expressions", "all", what="this form of GROUP BY")
    clause = _Clause(body, key)
    factors: list[Sequence[_Set]] = []
    count = 1
    for node in group.expressions:
        factors.append(clause.sets(node))
        count *= len(factors[-1])
        if count > _SETS:
            raise StatementTooComplex(
                f"too many grouping sets present (maximum {_SETS})",
                hint="Write out in GROUPING SETS those that are needed.",
                position=body.position(node),
            )
    sets = [tuple(sorted({one for part in parts for one in part})) for parts in product(*factors)]
    if group.args.get("all") is False:  # GROUP BY DISTINCT
        sets = list(dict.fromkeys(sets))
    return GroupBy(tuple(clause.keys), tuple(sets))


@dataclass(slots=True)
class _Clause:
    body: Body
    key: Callable[[exp.Expr], Scalar]
    keys: list[Scalar] = field(default_factory=list)

    def sets(self, node: exp.Expr) -> list[_Set]:
        """Returns the sets that one element of the clause stands for."""
        match node:
            case exp.Paren():
                return self.sets(node.this)
            case exp.Rollup():
                elements = self._elements(node)
                return [_joined(elements[:size]) for size in range(len(elements), -1, -1)]
            case exp.Cube():
                elements = self._elements(node)
                if len(elements) > _CUBE_ELEMENTS:
                    raise TooMany(
                        f"CUBE is limited to {_CUBE_ELEMENTS} elements",
                        hint="Write out in GROUPING SETS those that are needed.",
                        position=self.body.position(node),
                    )
                sizes = range(len(elements), -1, -1)
                return [_joined(chosen) for size in sizes for chosen in combinations(elements, size)]
            case exp.GroupingSets():
                only_parts(self.body, node, "expressions", what="this form of GROUPING SETS")
                return [one for element in node.expressions for one in self.sets(element)]
            case _:
                return [self._positions(node)]

    def _elements(self, node: exp.Expr) -> list[_Set]:
        only_parts(self.body, node, "expressions", what="this form of GROUP BY")
        if not node.expressions:  # WITH ROLLUP, which is not PostgreSQL's
            raise UnsupportedForm(
                "this form of GROUP BY is not supported",
                hint="Write ROLLUP (...) or CUBE (...).",
                position=self.body.position(node),
            )
        return [self._positions(element) for element in node.expressions]

    def _positions(self, node: exp.Expr) -> _Set:
        """Returns the keys of an expression, or of a list of them in parentheses."""
        return tuple(self._position(one) for one in _listed(node))

    def _position(self, node: exp.Expr) -> int:
        key = self.key(node)
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def _joined(elements: Sequence[_Set]) -> _Set:
    return tuple(one for element in elements for one in element)


def _listed(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _listed(node.this)
    elif isinstance(node, exp.Tuple):
        for one in node.expressions:
            yield from _listed(one)
    else:
        yield node
