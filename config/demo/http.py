"""A minimal HTTP GET on asyncio streams."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from urllib.parse import urlsplit


class BadAnswer(Exception):
    """Something answered, but not with what was hoped for."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    size: int
    """Bytes of the body."""


async def get(url: str) -> Answer:
    """Raises OSError when nothing answers, BadAnswer when it does not speak HTTP, ValueError for another scheme."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{url}: only http:// addresses can be fetched")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(None, 2)[1])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, ValueError) as error:
            raise BadAnswer(f"{url} did not answer in HTTP") from error
        return Answer(status, len(await reader.read()))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
