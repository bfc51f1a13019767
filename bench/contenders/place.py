"""Where the server is, by the first argument: a URL, or a script that is started and spoken to over pipes."""

import sys

URL = sys.argv[1] if sys.argv[1].startswith("http://") else None
COMMAND, ARGS = sys.executable, [sys.argv[1]]
