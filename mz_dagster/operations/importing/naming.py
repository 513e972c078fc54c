"""What relations that are named in other places are called here, where a name has one part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Path = tuple[str, ...]


def named(own: Mapping[Path, str], reads: Mapping[str, Sequence[Path]]) -> Mapping[Path, str]:
    """Returns what each relation that is read is called here.

    A name that is less qualified than another may be the same, unless a query would then read itself.

    Args:
        own: By what others call it, the name of each object that is imported.
        reads: By the name of such an object, the relations it reads, with what qualifies them.

    Example:
        >>> named({("orders",): "orders"}, {"orders": [("raw", "orders")], "cities": [("orders",), ("raw", "items")]})
        {('raw', 'orders'): 'raw_orders', ('orders',): 'orders', ('raw', 'items'): 'items'}
    """
    found: dict[Path, str] = {}
    taken = {name: path for path, name in own.items()}
    others = {
        path
        for name, paths in reads.items()
        for path in paths
        if name in taken and is_same(taken[name], path) and len(path) > len(taken[name])
    }
    for path in dict.fromkeys(path for paths in reads.values() for path in paths):
        same = next((name for other, name in own.items() if is_same(path, other)), None)
        if same is not None and path not in others:
            found[path] = same
            continue
        name = path[-1]
        if len(path) > 1 and name in taken and (path in others or not is_same(taken[name], path)):
            name = "_".join(path[-2:])
        taken.setdefault(name, path)
        found[path] = name
    return found


def is_same(one: Path, other: Path) -> bool:
    """Returns whether two names may be of one relation: as far as both say, they say the same."""
    parts = min(len(one), len(other))
    return one[-parts:] == other[-parts:]
