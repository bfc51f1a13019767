"""The versions of the tables, oldest first; each has its script in `migrations/versions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier.errors import StoreError

if TYPE_CHECKING:
    from luthier.store.address import Address

VERSIONS = ("0001", "0002")


def is_current(version: str | None, address: Address) -> bool:
    """Whether the tables are those of this version. Raises StoreError for those of a later one."""
    if version is not None and version not in VERSIONS:
        known = f"version {version}, and this Luthier knows them up to {VERSIONS[-1]}"
        hint = "Bring it up to date: pip install --upgrade luthier"
        raise StoreError(f"The tables of {address.shown} are of {known}.", hint=hint)
    return version == VERSIONS[-1]
