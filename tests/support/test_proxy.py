"""The proxy does all the harm it promises: who came in just before a cut is cut off too."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from tests.support.proxy import proxy_before
from tests.support.schedulers import url_of

pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


def test_a_connection_that_is_being_made_does_not_survive_a_cut(
    live_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would outlive the outage: one agent of many would see a healthy database, and everybody else's leases end."""
    connect, asked, may_go_on = socket.create_connection, threading.Event(), threading.Event()

    def slow(address: Any) -> socket.socket:
        asked.set()
        may_go_on.wait(10)
        return connect(address)

    with proxy_before(url_of(live_database)) as proxy:
        monkeypatch.setattr(socket, "create_connection", slow)
        port = int(proxy.url.rpartition(":")[2].partition("/")[0])
        with connect(("127.0.0.1", port), timeout=10) as client:
            assert asked.wait(10)
            proxy.cut()
            may_go_on.set()
            assert client.recv(1) == b""
