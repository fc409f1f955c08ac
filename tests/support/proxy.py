"""A TCP proxy between a process and PostgreSQL: it can be paused, cut, and told to do harm at one commit."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import psycopg

Harm = Literal["answer lost", "commit lost", "commit late", "backend terminated"]
COMMIT, ROLLBACK, BEGIN = b"COMMIT\0", b"ROLLBACK\0", b"BEGIN"
_KEY_DATA = re.compile(rb"K\x00\x00\x00\x0c(.{4})", re.DOTALL)


@dataclass
class Fault:
    """Harm to the first transaction whose statements contain `marker`, at its COMMIT; or to the first such statement
    that is a transaction by itself."""

    marker: bytes
    harm: Harm
    happened: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    """"commit late": the server commits when this is set, and holds the locks until then; the client was cut off long
    before."""


class Link:
    """One connection of a client, and ours to the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.pid = 0
        """Of the backend."""
        self.said = b""
        """By the client, since its transaction began."""
        self.in_transaction = False
        self.listens = False
        self.mute = False
        """Whether what the server says goes nowhere."""
        self.answered = threading.Event()

    def hang_up(self) -> None:
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Proxy:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        self._target = (parts.hostname, parts.port)
        self._direct = url
        self._links: list[Link] = []
        self._faults: list[Fault] = []
        self._flows, self._listeners_flow = threading.Event(), threading.Event()
        self._flows.set()
        self._listeners_flow.set()
        self._door: socket.socket | None = None
        self._entering = threading.Lock()
        self._port = 0
        self.mend()
        user, _, _ = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    @property
    def links(self) -> int:
        """Connections through it now."""
        return len(self._links)

    def pause(self, *, only_listeners: bool = False) -> None:
        """Nothing passes, and nobody is told: as when a route is lost."""
        (self._listeners_flow if only_listeners else self._flows).clear()

    def resume(self) -> None:
        self._flows.set()
        self._listeners_flow.set()

    def cut(self) -> None:
        """Hang up on everybody, and refuse whoever comes: as when the server is down."""
        with self._entering:
            door, self._door = self._door, None
            links = list(self._links)
        if door is not None:
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            door.close()
        for link in links:
            link.hang_up()

    def mend(self) -> None:
        if self._door is None:
            door = socket.socket()
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(("127.0.0.1", self._port))
            door.listen(100)
            self._door, self._port = door, door.getsockname()[1]
            threading.Thread(target=self._accept, args=(door,), daemon=True).start()

    def at_commit(self, marker: str, harm: Harm) -> Fault:
        fault = Fault(marker.encode(), harm)
        self._faults.append(fault)
        return fault

    def terminate_backends(self, *, only_listeners: bool = False) -> int:
        pids = [link.pid for link in list(self._links) if link.pid and (link.listens or not only_listeners)]
        for pid in pids:
            self._terminate(pid)
        return len(pids)

    def _terminate(self, pid: int) -> None:
        with psycopg.connect(self._direct, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                client, _ = door.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            link = Link(client, server)
            with self._entering:
                if self._door is not door:
                    # Who was half inside when the door was shut does not stay.
                    link.hang_up()
                    return
                self._links.append(link)
            for pump in (self._pump_up, self._pump_down):
                threading.Thread(target=self._serve, args=(pump, link), daemon=True).start()

    def _serve(self, pump: object, link: Link) -> None:
        assert callable(pump)
        with contextlib.suppress(OSError):
            pump(link)
        link.hang_up()
        with contextlib.suppress(ValueError):
            self._links.remove(link)

    def _wait_for_flow(self, link: Link) -> None:
        self._flows.wait()
        if link.listens:
            self._listeners_flow.wait()

    def _pump_down(self, link: Link) -> None:
        while data := link.server.recv(65536):
            self._wait_for_flow(link)
            if not link.pid and (key := _KEY_DATA.search(data)):
                (link.pid,) = struct.unpack("!i", key[1])
            if link.mute:
                link.answered.set()
            else:
                link.client.sendall(data)

    def _pump_up(self, link: Link) -> None:
        while data := link.client.recv(65536):
            self._wait_for_flow(link)
            if BEGIN in data:
                link.in_transaction, link.said = True, b""
            link.said = (link.said if link.in_transaction else b"") + data
            link.listens = link.listens or b"LISTEN" in data
            fault = self._fault_for(link, data)
            if fault is None:
                link.server.sendall(data)
            elif self._harm(fault, link, _whole(link.client, data)):
                return
            link.in_transaction = link.in_transaction and COMMIT not in data and ROLLBACK not in data

    def _fault_for(self, link: Link, data: bytes) -> Fault | None:
        if link.in_transaction and COMMIT not in data:
            return None
        for fault in self._faults:
            if fault.marker in link.said:
                self._faults.remove(fault)
                return fault
        return None

    def _harm(self, fault: Fault, link: Link, data: bytes) -> bool:
        """Whether the link is of no use any more."""
        match fault.harm:
            case "answer lost":
                link.mute = True
                link.server.sendall(data)
                link.answered.wait(10)
            case "commit lost":
                pass
            case "commit late":
                self._commit_late(fault, link, data)
            case "backend terminated":
                self._terminate(link.pid)
                with contextlib.suppress(OSError):
                    link.server.sendall(data)
                fault.happened.set()
                return False
        fault.happened.set()
        return True

    def _commit_late(self, fault: Fault, link: Link, data: bytes) -> None:
        link.mute = True
        if COMMIT not in data:
            for part in (_query(b"BEGIN"), data):
                link.answered.clear()
                link.server.sendall(part)
                link.answered.wait(10)
            data = _query(b"COMMIT")
        with contextlib.suppress(OSError):
            link.client.shutdown(socket.SHUT_RDWR)
        fault.happened.set()
        fault.released.wait(30)
        link.answered.clear()
        link.server.sendall(data)
        link.answered.wait(10)


def _query(sql: bytes) -> bytes:
    return b"Q" + struct.pack("!i", len(sql) + 5) + sql + b"\0"


def _whole(client: socket.socket, data: bytes) -> bytes:
    """All that the client sends before it waits for an answer: up to a query's or a sync's end."""
    at, kind = 0, b""
    while kind not in (b"Q", b"S"):
        while len(data) < at + 5 or len(data) < at + 1 + struct.unpack_from("!i", data, at + 1)[0]:
            data += client.recv(65536)
        kind = data[at : at + 1]
        at += 1 + struct.unpack_from("!i", data, at + 1)[0]
    return data


@contextmanager
def proxy_before(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.resume()
        proxy.cut()
