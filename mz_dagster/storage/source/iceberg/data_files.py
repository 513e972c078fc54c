"""Reads single files of an Iceberg table, of data and of deletes: columns by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import parse_mapping_from_json
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType

from mz_dagster.storage.parquet_file import open_parquet
from mz_dagster.storage.source.iceberg.table_schema import Fields, constant, plain, plain_type
from mz_dagster.storage.source.local.cells import PORTION_ROWS
from mz_dagster.storage.source.parquet_schema import check_rows, named_if_damaged

#: The numbers of the columns of position deletes, and what these are called.
PATH_ID, POSITION_ID = 2147483546, 2147483545
_RESERVED = {PATH_ID: "file_path", POSITION_ID: "pos"}
_NAME_MAPPING = "schema.name-mapping.default"


class TableFiles:
    """Reads the files of one table.

    Attributes:
        fields: The table's columns.
        io: What opens its files.
    """

    def __init__(self, fields: Fields, metadata: TableMetadata, io: FileIO) -> None:
        self.fields = fields
        self.io = io
        self._specs = metadata.specs()
        mapping = metadata.properties.get(_NAME_MAPPING)
        named = () if mapping is None else parse_mapping_from_json(mapping).root
        #: The columns' numbers by names, of files that do not say them.
        self._mapped = {name: one.field_id for one in named for name in one.names if one.field_id is not None}

    def type_of(self, id: int) -> IcebergType:
        """Returns the type of a column; raises as `Fields`."""
        return self.fields[id].field_type

    def portions(self, file: DataFile, types: Mapping[int, IcebergType]) -> Iterator[pa.RecordBatch]:
        """Yields a file's rows in portions: columns by their numbers, as text, all of which it need not have.

        Raises:
            FileNotFoundError: It is gone.
            SourceUnreadable: It is damaged.
        """
        with self._opened(file.file_path) as found:
            names, rows = self._names(found.schema_arrow), 0
            constants = {id: self._constant(file, id, type_) for id, type_ in types.items() if id not in names}
            wanted = [names[id] for id in types if id in names]
            for batch in found.iter_batches(PORTION_ROWS, columns=wanted):
                values = {
                    str(id): plain(batch.column(names[id]), type_)
                    if id in names
                    else pa.repeat(constants[id], batch.num_rows)
                    for id, type_ in types.items()
                }
                # Of no columns Arrow does not know how many rows they have.
                yield pa.RecordBatch.from_pydict({**values, "": pa.nulls(batch.num_rows)})
                rows += batch.num_rows
            check_rows(found, rows)

    def rows(self, file: DataFile, types: Mapping[int, IcebergType]) -> pa.Table:
        """Returns a file's rows; see `portions`."""
        schema = pa.schema([(str(id), plain_type(type_)) for id, type_ in types.items()])
        portions = [pa.Table.from_batches([one]).select(schema.names) for one in self.portions(file, types)]
        return pa.concat_tables([schema.empty_table(), *portions])

    @contextmanager
    def _opened(self, path: str) -> Iterator[pq.ParquetFile]:
        with (
            self.io.new_input(path).open() as opened,
            named_if_damaged(path, is_of_table=True),
            open_parquet(opened) as file,
        ):
            yield file

    def _names(self, schema: pa.Schema) -> dict[int, str]:
        """Returns by which names a file has columns, by their numbers."""
        said = {one.name: (one.metadata or {}).get(b"PARQUET:field_id") for one in schema}
        found = {id: name for id, name in _RESERVED.items() if name in said}
        if any(one is not None for one in said.values()):
            return found | {int(id): name for name, id in said.items() if id is not None}
        return found | {self._mapped[name]: name for name in said if name in self._mapped}

    def _constant(self, file: DataFile, id: int, type_: IcebergType) -> pa.Scalar:
        """Returns what all rows of a file have in a column that is not in it."""
        for place, one in enumerate(self._specs[file.spec_id].fields):
            if one.source_id == id and isinstance(one.transform, IdentityTransform):
                return constant(file.partition[place], type_)
        return constant(self.fields[id].initial_default, type_)
