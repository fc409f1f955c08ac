"""HTTP servers that run in a thread beside the scheduler: the site, or a small one that only answers the checks."""

from __future__ import annotations

import errno
import logging
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler, get_internal_wsgi_application

from config.demo.quickstart.refusal import Refused

HOST = "127.0.0.1"

logger = logging.getLogger(__name__)


class BackgroundServer:
    """A server whose port is taken from the beginning; until `start` its callers wait."""

    def __init__(self, server: ThreadedWSGIServer | ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=self._serve, name="quickstart-http", daemon=True)

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://{HOST}:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Safe twice, safe unstarted."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(5)
        self._server.server_close()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.1)


def site(port: int) -> BackgroundServer:
    """The project itself. Raises Refused when the port cannot be had."""
    try:
        server = _Site((HOST, port), _QuietSiteHandler)
    except OSError as error:
        other = port + 1 if 1024 <= port < 65535 else 8000
        what = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be had ({error.strerror})"
        raise Refused(f"port {port} {what}. Choose another: python manage.py quickstart --port {other}") from error
    server.set_app(get_internal_wsgi_application())
    return BackgroundServer(server)


def file_server(folder: Path) -> BackgroundServer:
    """A server of the files in a folder, on a port that is free."""
    handler = partial(_QuietFileHandler, directory=str(folder))
    return BackgroundServer(_Files((HOST, 0), handler))


class _Site(ThreadedWSGIServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        _note_error(client_address)


class _Files(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        _note_error(client_address)


def _note_error(client_address: Any) -> None:
    """The base class prints a traceback across the live line, also for a client that just left."""
    error = sys.exc_info()[1]
    level = logging.DEBUG if isinstance(error, ConnectionError) else logging.ERROR
    logger.log(level, "a request from %s failed", client_address, exc_info=error)


class _QuietSiteHandler(WSGIRequestHandler):
    """Requests are no news beside the live line; `-v 2` shows them."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        logger.debug(format, *args)


class _QuietFileHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        logger.debug(format, *args)
