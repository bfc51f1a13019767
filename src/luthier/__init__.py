"""Luthier looks after the tools that agents and workflows play."""
