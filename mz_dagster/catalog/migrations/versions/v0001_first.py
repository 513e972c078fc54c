"""Makes the tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.create_table(
        "counter",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counter")),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease")),
    )
    op.create_table(
        "project", sa.Column("id", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("id", name=op.f("pk_project"))
    )
    op.create_table(
        "timeline",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("lattice", sa.Text(), nullable=False),
        sa.Column("read_ts", sa.BigInteger(), nullable=False),
        sa.Column("write_ts", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_timeline")),
    )
    op.create_table(
        "writer",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_writer")),
    )
    op.create_table(
        "leased_batch",
        sa.Column("lease", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["lease"], ["lease.id"], name=op.f("fk_leased_batch_lease_lease")),
        sa.PrimaryKeyConstraint("lease", "batch", name=op.f("pk_leased_batch")),
    )
    op.create_index("ix_leased_batch_batch", "leased_batch", ["batch"], unique=False)
    op.create_table(
        "object",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("created_as", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sql", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Text(), nullable=True),
        sa.Column("column_types", sa.Text(), nullable=False),
        sa.Column("unique_keys", sa.Text(), nullable=False),
        sa.Column("monotonic", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("has_collection", sa.Boolean(), nullable=False),
        sa.Column("dropped", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["object.id"], name=op.f("fk_object_owner_object")),
        sa.ForeignKeyConstraint(["timeline"], ["timeline.name"], name=op.f("fk_object_timeline_timeline")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object")),
        sa.UniqueConstraint("sequence", name=op.f("uq_object_sequence")),
    )
    op.create_index("ix_object_owner", "object", ["owner"], unique=False)
    op.create_table(
        "tick",
        sa.Column("timeline", sa.Text(), nullable=False),
        sa.Column("tick", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["timeline"], ["timeline.name"], name=op.f("fk_tick_timeline_timeline")),
        sa.PrimaryKeyConstraint("timeline", "tick", name=op.f("pk_tick")),
    )
    op.create_table(
        "bound_file",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("tick", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["source"], ["object.id"], name=op.f("fk_bound_file_source_object")),
        sa.PrimaryKeyConstraint("source", "path", name=op.f("pk_bound_file")),
    )
    op.create_index("ix_bound_file_source_tick", "bound_file", ["source", "tick", "position"], unique=False)
    op.create_table(
        "collection",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Text(), nullable=True),
        sa.Column("since", sa.Text(), nullable=False),
        sa.Column("upper", sa.Text(), nullable=False),
        sa.Column("shard", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("retention_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["id"], ["object.id"], name=op.f("fk_collection_id_object")),
        sa.ForeignKeyConstraint(["timeline"], ["timeline.name"], name=op.f("fk_collection_timeline_timeline")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collection")),
        sa.UniqueConstraint("shard", name=op.f("uq_collection_shard")),
    )
    op.create_table(
        "dependency",
        sa.Column("dependant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dependency", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["dependant"], ["object.id"], name=op.f("fk_dependency_dependant_object")),
        sa.ForeignKeyConstraint(["dependency"], ["object.id"], name=op.f("fk_dependency_dependency_object")),
        sa.PrimaryKeyConstraint("dependant", "name", name=op.f("pk_dependency")),
    )
    op.create_index("ix_dependency_dependency", "dependency", ["dependency"], unique=False)
    op.create_table(
        "name",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["object"], ["object.id"], name=op.f("fk_name_object_object")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_name")),
        sa.UniqueConstraint("object", name=op.f("uq_name_object")),
    )
    op.create_table(
        "batch",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("lower", sa.Text(), nullable=False),
        sa.Column("upper", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("writer", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["collection"], ["collection.id"], name=op.f("fk_batch_collection_collection")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch")),
    )
    op.create_index("ix_batch_collection_state", "batch", ["collection", "state"], unique=False)
    op.create_index("ix_batch_state", "batch", ["state"], unique=False)
    op.create_index("ix_batch_writer", "batch", ["writer"], unique=False)
    op.create_table(
        "capability",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("frontier", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["collection"], ["collection.id"], name=op.f("fk_capability_collection_collection")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_capability")),
    )
    op.create_index("ix_capability_collection", "capability", ["collection"], unique=False)
    op.create_table(
        "hold",
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["input"], ["collection.id"], name=op.f("fk_hold_input_collection")),
        sa.ForeignKeyConstraint(["output"], ["collection.id"], name=op.f("fk_hold_output_collection")),
        sa.PrimaryKeyConstraint("output", "input", name=op.f("pk_hold")),
    )
    op.create_index("ix_hold_input", "hold", ["input"], unique=False)
