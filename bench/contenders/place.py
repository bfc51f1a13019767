"""Where the server is, by the first argument: a URL, or a script that is started and spoken to over pipes.

And what it is asked for: an echo or, where KILOBYTES is in the environment, a structured result of that size.
"""

import os
import sys

URL = sys.argv[1] if sys.argv[1].startswith("http://") else None
KILOBYTES = os.environ.get("KILOBYTES")
TOOL = "records" if KILOBYTES else "echo"
COMMAND, ARGS = sys.executable, [sys.argv[1]]


def arguments(number: int) -> dict[str, object]:
    return {"kilobytes": int(KILOBYTES)} if KILOBYTES else {"text": f"hello world {number}"}
