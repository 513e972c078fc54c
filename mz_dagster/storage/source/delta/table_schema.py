"""The columns of a Delta table, and what each is in SQL.

| Delta | SQL |
|---|---|
| byte, short | smallint |
| integer, long | integer, bigint |
| float, double | real, double precision |
| decimal(p,s) | numeric(p,s) |
| string, binary, boolean, date | text, bytea, boolean, date |
| timestamp | timestamptz |
| timestamp_ntz | timestamp |
| array of these, but of decimals wider than numeric's | array |

A source may declare a column otherwise, as far as its values can be read: an integer or a decimal as any other number,
whose values are checked one by one, and text as what it spells (uuid, jsonb, varchar(n), an enum, numeric). Structs,
maps and variants have no type in SQL: a source leaves them out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.storage.source.errors import UnknownFeature
from mz_dagster.storage.source.table_columns import TableColumn, TableColumns

#: Delta's primitive types by Spark's names of them.
_NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}

#: What a table may ask of its readers, as far as it is known here; delta-rs reads checkpoints and deletion vectors.
_FEATURES = {
    "timestampNtz",
    "columnMapping",
    "deletionVectors",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_READER = 3
_MAPPING = "delta.columnMapping.mode"
_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True)
class DeltaColumns(TableColumns):
    """The columns of a table at a version.

    Attributes:
        id: Of the table, which another one in its place does not have.
    """

    id: str = ""

    @classmethod
    def of(cls, table: str, id: str, schema: str, configuration: Mapping[str, str | None]) -> DeltaColumns:
        """Returns the columns that a `metaData` action of a log describes.

        Raises:
            UnknownFeature: Files have the columns by number.
        """
        mode = configuration.get(_MAPPING) or "none"
        if mode not in ("none", "name"):
            raise UnknownFeature(
                f'Delta table "{table}" maps its columns by "{mode}", which is not read',
                hint="Have it written with delta.columnMapping.mode = 'name'.",
            )
        fields: Sequence[dict[str, Any]] = json.loads(schema)["fields"]
        columns = {
            one["name"]: TableColumn.of(_named(one["type"]), one["metadata"].get(_PHYSICAL, one["name"]))
            for one in fields
        }
        return cls(f'Delta table "{table}"', columns, id)


def check_protocol(table: str, reader: int, features: Sequence[str]) -> None:
    """Raises if a table cannot be read here.

    Raises:
        UnknownFeature: It asks of its readers what this one does not know.
    """
    unknown = sorted(set(features) - _FEATURES)
    if "deletionVectors" in features and any(one.startswith("typeWidening") for one in features):
        unknown.append("deletionVectors with typeWidening")
    if reader > _READER or unknown:
        asked = f"features {', '.join(unknown)}" if unknown else f"version {reader} of the protocol"
        raise UnknownFeature(
            f'Delta table "{table}" asks its readers for {asked}, which this one does not know',
            hint="Have it written without, or drop the feature from the table; nothing was read.",
        )


def _named(type_: Any) -> str | None:
    """Returns Spark's name of a type of the log's, None if it is no scalar and no list of them, or of lists."""
    if isinstance(type_, str):
        return type_ if type_.startswith("decimal(") else _NAMES.get(type_)
    if isinstance(type_, dict) and type_.get("type") == "array":
        named = _named(type_["elementType"])
        return None if named is None else f"array<{named}>"
    return None
