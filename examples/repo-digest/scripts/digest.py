"""Shapes what the tools said into one digest."""

import re

COMMIT = re.compile(
    r"^Commit: (?P<id>\w+)\nAuthor: (?P<author>.*)\nDate: (?P<date>.*)\nMessage: (?P<message>.*)",
    re.MULTILINE,
)


def run(context):
    given = context.input
    commits = [match.groupdict() for match in COMMIT.finditer(given["log"].content)]
    status = given["status"].content.splitlines()
    return {
        "branch": next(
            (line.removeprefix("On branch ") for line in status if line.startswith("On branch ")), None
        ),
        "clean": any("working tree clean" in line for line in status),
        "commits": [{**commit, "id": commit["id"][:10]} for commit in commits],
        "authors": sorted({commit["author"] for commit in commits}),
    }
