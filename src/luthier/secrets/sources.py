"""Where references are looked up: the environment, the vault, the keyring of the machine, files.

It is a mapping of the environment's names and passes for one; only `expand` asks it for more, and only for
fields in which secrets may stand. Nothing is read before it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from luthier.errors import SecretError
from luthier.redaction import logger
from luthier.secrets.files import read_small
from luthier.secrets.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from luthier.secrets.references import Reference
    from luthier.secrets.vault import Vault

_log = logger("luthier.secrets")


class Sources(Mapping[str, str]):
    """The environment, and what is behind it. `strict`: files that others can read are refused."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        root: Path | None = None,
        vault: Callable[[], Vault] | None = None,
        strict: bool = False,
    ) -> None:
        self._environ = dict(environ)
        self._root = root or Path.cwd()
        self._vault = vault
        self._strict = strict
        self._warned: set[Path] = set()

    def __getitem__(self, name: str) -> str:
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)

    def __repr__(self) -> str:
        return f"Sources({len(self._environ)} names)"

    def secret(self, reference: Reference) -> Secret:
        """What a `secret`, `keyring` or `file` reference stands for. Raises SecretError and StoreError."""
        match reference.kind:
            case "secret":
                return self._of_vault(reference.name)
            case "keyring":
                return _of_keyring(reference.name)
            case _:
                return self._of_file(reference.name)

    def _of_vault(self, name: str) -> Secret:
        secret = self._vault().get(name) if self._vault is not None else None
        if secret is None:
            hint = f"Set it: luthier secrets set {name}"
            raise SecretError(f"there is no secret {name!r} in the store", hint=hint)
        return secret

    def _of_file(self, written: str) -> Secret:
        try:
            path = self._root / Path(written).expanduser()
            data, others = read_small(path)
            text = data.decode("utf-8")
        except OSError as error:
            raise SecretError(f"the file {written!r} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SecretError(f"the file {written!r} is not UTF-8 text") from None
        except (ValueError, RuntimeError):  # or of a file in the home of nobody
            raise SecretError(f"{written!r} is not the name of a file") from None
        if others:
            self._tell(path, f"the file {written!r} {others}", hint=f"Run: chmod 600 {written}")
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise SecretError(f"the file {written!r} is empty")
        return Secret(text)

    def _tell(self, path: Path, fault: str, *, hint: str) -> None:
        if self._strict:
            raise SecretError(f"{fault}, which is not allowed in production", hint=hint)
        if path not in self._warned:
            self._warned.add(path)
            _log.warning("%s. %s", fault, hint)


def _of_keyring(name: str) -> Secret:
    service, _, user = name.rpartition("/")
    if not service or not user:
        raise SecretError(f"{name!r} does not name a service and a user", hint="Write keyring:SERVICE/USER.")
    try:
        import keyring
        import keyring.errors
    except ImportError:
        hint = "Run: pip install 'luthier[keyring]'"
        raise SecretError("the package that reads keyrings is not installed", hint=hint) from None
    try:
        found = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise SecretError(f"the keyring of this machine cannot be read: {type(error).__name__}") from None
    if not found:
        hint = f"Set it: keyring set {service} {user}"
        raise SecretError(f"the keyring holds nothing for {user!r} of {service!r}", hint=hint)
    return Secret(found)
