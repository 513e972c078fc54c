"""Sums up in each collection's row what live batches it has; those that are there now are taken for all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mz_dagster.catalog.contents import contents_of

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    for name in ("live_batches", "live_rows", "live_digest"):
        op.add_column("collection", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    connection = op.get_bind()
    live: dict[str, list[sa.Row[tuple[object, ...]]]] = {}
    for row in connection.execute(sa.text("SELECT * FROM batch WHERE state = 'live'")):
        live.setdefault(row.collection, []).append(row)
    for id, rows in live.items():
        found = contents_of(rows)
        connection.execute(
            sa.text("UPDATE collection SET live_batches = :b, live_rows = :r, live_digest = :d WHERE id = :id"),
            {"b": found.batches, "r": found.rows, "d": found.digest, "id": id},
        )
