"""A person with a browser: opens the address, is asked nothing, and comes back."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import aiohttp


class Browser:
    """`await browser(address)` is what `show` expects; it follows the way back to the callback."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.absent = False  # nobody is there
        self.pages: list[str] = []

    async def __call__(self, address: str) -> None:
        self.opened.append(address)
        if self.absent:
            return
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            self.pages.append(await answer.text())

    def query(self, number: int = -1) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.opened[number]).query).items()}
