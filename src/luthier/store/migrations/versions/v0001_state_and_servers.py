"""The first tables: state, server entries, the audit log, and the number that each transaction counts up."""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    import sqlalchemy as sa
    from alembic import op

    op.create_table(
        "state",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "mcp_servers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("added", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("segment", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("line", sa.Text, nullable=False),
    )
    numbers = op.create_table("revision", sa.Column("number", sa.BigInteger, nullable=False))
    op.bulk_insert(numbers, [{"number": 0}])
