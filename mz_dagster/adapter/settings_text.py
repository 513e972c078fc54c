"""Edits of a `mz.toml` that keep all the rest of its text: what a backup leaves out, and what a restore puts in."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import tomlkit

_SECRET_NAME = re.compile(r"secret|password|token|credential|access[._-]?key|account[._-]?key", re.IGNORECASE)
_TOKEN = re.compile(r";\s*token=[^;\s\"']*", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^:/@\s\"']*):[^@\s\"']*@")
_PARAMETER = re.compile(r"([?&;][\w.-]*(?:pass(?:word|wd|phrase)|secret|token)=)[^&;\s\"']*", re.IGNORECASE)


def without_secrets(text: str) -> tuple[str, tuple[str, ...]]:
    r"""Returns the settings without what is secret or says where the catalog is, and the names of what was left out.

    The catalog's URL and the table `storage` go as a whole: a copy of a project must never open the catalog of the
    original, nor write its shards.

    Example:
        >>> without_secrets('[catalog]\nurl = "postgresql://u:p@h/d" # ours\n[spark]\nremote = "sc://h/;token=t"\n')
        ('[catalog]\n[spark]\nremote = "sc://h/"\n', ('catalog.url', 'spark.remote: token'))
    """
    document = tomlkit.parse(text)
    left_out = []
    catalog, spark = (_table(document, name) for name in ("catalog", "spark"))
    if catalog.pop("url", None) is not None:
        left_out.append("catalog.url")
    if document.pop("storage", None) is not None:
        left_out.append("storage")
    remote = spark.get("remote")
    if isinstance(remote, str) and _TOKEN.search(remote):
        spark["remote"] = _TOKEN.sub("", str(remote))
        left_out.append("spark.remote: token")
    conf = _table(spark, "conf")
    for name in [name for name in conf if _SECRET_NAME.search(name)]:
        del conf[name]
        left_out.append(f'spark.conf."{name}"')
    rest = _PASSWORD.sub(r"\1:***@", _TOKEN.sub("", tomlkit.dumps(document)))  # in comments, for example
    rest = _PARAMETER.sub(r"\1***", rest)
    return rest, tuple(left_out)


def with_catalog(text: str, url: str) -> str:
    r"""Returns the settings with the catalog at a URL.

    Example:
        >>> with_catalog('[project]\nname = "p"\n', "postgresql://h/d")
        '[project]\nname = "p"\n\n[catalog]\nurl = "postgresql://h/d"\n'
    """
    document = tomlkit.parse(text)
    if "catalog" not in document:
        document["catalog"] = tomlkit.table()
    _table(document, "catalog")["url"] = url
    return tomlkit.dumps(document)


def _table(parent: MutableMapping[str, Any], name: str) -> MutableMapping[str, Any]:
    """Returns a table, or an empty one that is of nothing if there is none."""
    found = parent.get(name)
    return found if isinstance(found, MutableMapping) else {}
