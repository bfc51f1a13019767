"""The project file as a frozen value: the servers, what may start them, and names that ensembles may see.

Times are seconds; the files write milliseconds. Strings keep their `${env.X}` unexpanded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from luthier.errors import Fault, SpecError
from luthier.spec.budget import Budget
from luthier.spec.origin import NOWHERE, Origin
from luthier.spec.policy import Policies
from luthier.spec.profile import LaunchProfile, Sandbox, SandboxMode
from luthier.spec.provider import Provider
from luthier.spec.serve import Serve
from luthier.taint import UNTRUSTED, Integrity, Label

if TYPE_CHECKING:
    from collections.abc import Mapping

Transport = Literal["stdio", "http", "sse", "rest", "auto"]
AuthType = Literal["none", "bearer", "oauth"]
Environment = Literal["development", "production"]

ALLOWED_COMMANDS = ("npx", "node", "python3", "python", "uvx")
STORE = "sqlite:///.luthier/luthier.db"
"""Where state is kept, relative to the project."""

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    """Who the server is told we are. Bearer: `token`. OAuth: client credentials, or `interactive`.

    With `id_token` the credentials speak for the employee that a company's identity provider knows by it.
    """

    type: AuthType = "none"
    token: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    token_url: str | None = None
    scope: str | None = None
    issuer: str | None = None
    id_token: str | None = None
    idp_token_url: str | None = None
    idp_client_id: str | None = None
    interactive: bool = False

    def __repr__(self) -> str:
        return f"Auth({self.type!r})"


class ToolFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools of a server exist for us (None: all), and the operator's own word on what they do.

    Each call of a tool that `ask` names needs an approval.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    idempotent: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS; `verify` False accepts any certificate."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """After `failures` in a row a server rests for `cooldown` seconds; `successes` in a row heal it."""

    enabled: bool = True
    failures: int = 5
    cooldown: float = 30.0
    successes: int = 2
    count_tool_errors: bool = False


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The launch profile that starts a server, and what this server puts into its holes."""

    profile: str = ""
    values: dict[str, str] = {}


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server as registered. `tool_timeout`, `tool_timeout_max`, `cache_ttl` None: the manager's."""

    id: str
    transport: Transport = "stdio"
    name: str = ""
    description: str = ""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] = ()
    cwd: str | None = None
    launch: Launch | None = None  # in place of command, args, cwd and sandbox
    url: str | None = None
    headers: dict[str, str] = {}
    auth: Auth = Auth()
    secret: str | None = None
    timeout: float = 30.0  # connect and handshake
    tool_timeout: float | None = None  # one call
    tool_timeout_max: float | None = None  # with what progress adds; None: ten times as long
    max_retries: int = 2
    max_concurrent_calls: int | None = None
    cache_ttl: float | None = None  # 0: no manifest cache
    allowed_agents: tuple[str, ...] | None = None  # None: everyone; (): nobody
    tools: ToolFilter = ToolFilter()
    disabled: bool = False
    approved: bool = True  # False: imported, and nobody has looked at it yet
    tls: Tls | None = None
    proxy: str | None = None
    breaker: Breaker = Breaker()
    max_message_bytes: int = 10 * 1024 * 1024
    allow_private: bool = False
    share: bool = True
    required: bool = False
    sandbox: Sandbox = Sandbox()
    trust: Label = UNTRUSTED  # of what it returns, before the source is added
    protocol: str | None = None  # a pinned revision
    origin: Origin = NOWHERE

    def __repr__(self) -> str:
        return f"ServerEntry({self.id!r}, {self.transport!r})"  # the rest may be secret

    def place(self, *keys: str | int) -> str:
        """`luthier.yaml:12:5 (mcpServers.git.env.TOKEN)` for `place("env", "TOKEN")`, as far as known."""
        return self.origin.place(*keys)

    def facts(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as JSON values; `id` and `transport` always."""
        plain = ServerEntry(id=self.id)
        told: dict[str, Any] = {"id": self.id, "transport": self.transport}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "origin" and value != getattr(plain, name):
                told[name] = value.to_json() if isinstance(value, Label) else _changed(value)
        return told

    @property
    def trusted(self) -> bool:
        """Whether its hints about its own tools are believed."""
        return self.trust.integrity is Integrity.trusted


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The audit log: the key as a reference or in a file, where its checkpoints go. None: the default place.

    `fsync`: a record is on the disk before the call goes on. `sink`: files of lines, or the project's store.
    `record`: what of a call is kept beside its facts, redacted.
    """

    key: str | None = None
    key_file: str | None = None
    checkpoints: str | None = None
    fsync: bool = False
    sink: Literal["files", "store"] = "files"
    record: tuple[Literal["arguments", "results"], ...] = ()


class EnvFile:
    """Names and values of the project's env file; the values are kept out of sight."""

    __slots__ = ("_values", "path")

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self.path = path
        self._values = dict(values)

    def under(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment with these names added; what it has itself wins."""
        return {**self._values, **environ}

    def __repr__(self) -> str:
        return f"EnvFile({str(self.path)!r})"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What luthier.yaml says, or Python in its place (`file` None). `unused`: keys of later versions.

    `custom_tools` are Python files below `scripts/` whose tools are the project's.
    """

    root: Path
    file: Path | None = None
    environment: Environment = "development"
    servers: dict[str, ServerEntry] = {}
    allowed_commands: tuple[str, ...] = ALLOWED_COMMANDS
    launch_profiles: dict[str, LaunchProfile] = {}
    expose_env: tuple[str, ...] = ()
    custom_tools: tuple[str, ...] = ()
    env_file: EnvFile | None = None
    audit: AuditSettings = AuditSettings()
    policies: Policies = Policies()
    budgets: tuple[Budget, ...] = ()
    providers: dict[str, Provider] = {}
    serve: Serve = Serve()
    approval_timeout: float | None = None  # seconds that a call waits for an approval
    store: str = ""  # the URL of a database, references unexpanded; "": in memory
    files: str = ""  # the folder of `storage` files, relative to the project; "": .luthier/files
    broken: dict[str, SpecError] = {}  # servers of a registry in a database that cannot be used, and why
    unused: dict[str, Any] = {}  # agents, providers, …: plain data
    warnings: tuple[Fault, ...] = ()
    origin: Origin = NOWHERE

    def sandbox_of(self, entry: ServerEntry) -> Sandbox:
        """What an entry, or the launch profile that it names, says of its sandbox; the mode is never None."""
        profile = self.launch_profiles.get(entry.launch.profile) if entry.launch else None
        said = entry.sandbox if profile is None else profile.sandbox
        usual: SandboxMode = "required" if self.environment == "production" else "off"
        return said if said.mode else msgspec.structs.replace(said, mode=usual)

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What references are read from: the given environment over the names of `env_file`."""
        return self.env_file.under(environ) if self.env_file else dict(environ)


def _changed(value: Any) -> Any:
    """A value as JSON; of a part of an entry, what differs from its defaults."""
    if isinstance(value, msgspec.Struct):
        plain = type(value)()
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        value = {name: item for name, item in fields.items() if item != getattr(plain, name)}
    return msgspec.json.decode(msgspec.json.encode(value))
