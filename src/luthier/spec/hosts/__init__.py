"""Files of other hosts and of the MCP registry, read as entries that wait for approval.

Nothing is started, resolved or fetched by reading them.
"""

from luthier.spec.hosts.exposure import Sent, Suspect, command_line, sent, suspects
from luthier.spec.hosts.files import Import, Imported, import_file

__all__ = ["Import", "Imported", "Sent", "Suspect", "command_line", "import_file", "sent", "suspects"]
