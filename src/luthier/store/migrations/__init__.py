"""How databases are brought up to date: scripts for alembic, run by `luthier.store` alone."""
