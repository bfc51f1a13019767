"""What alembic runs to bring a database up to date: the scripts, in the transaction that it was given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
