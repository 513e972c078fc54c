"""Counts, beside them, the names and each source's bound files; those that are there now are taken for all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the migration."""
    op.add_column("project", sa.Column("names", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("collection", sa.Column("bound_files", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE project SET names = (SELECT count(*) FROM name)")
    op.execute(
        "UPDATE collection SET bound_files = (SELECT count(*) FROM bound_file WHERE bound_file.source = collection.id)"
    )
