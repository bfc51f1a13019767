"""Runs: a row for each, and the entries of their records."""

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    import sqlalchemy as sa
    from alembic import op

    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("ensemble", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("durable", sa.Boolean, nullable=False),
        sa.Column("waiting", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("beat_at", sa.Double, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("stop", sa.Boolean, nullable=False),
    )
    op.create_index("runs_by_age", "runs", ["started_at", "id"])
    op.create_index("runs_by_root", "runs", ["root"])
    op.create_table(
        "run_entries",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("entry", sa.Text, nullable=False),
    )
