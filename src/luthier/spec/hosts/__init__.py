"""Files of other hosts and of the MCP registry, read as entries that wait for approval.

Nothing is started, resolved or fetched by reading them.
"""

from luthier.spec.hosts.exposure import Sent, Suspect, command_line, digest, sent, suspects
from luthier.spec.hosts.files import Import, Imported, import_file
from luthier.spec.hosts.merge import Change, merged

__all__ = [
    "Change",
    "Import",
    "Imported",
    "Sent",
    "Suspect",
    "command_line",
    "digest",
    "import_file",
    "merged",
    "sent",
    "suspects",
]
