"""A web server for one folder on this machine alone, for looking at a page."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# The page says so itself for its document; a header says it for its workers too.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageHandler(SimpleHTTPRequestHandler):
    """Files with the types browsers insist on, whatever this system's registry says."""

    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012 - the base class has it as an instance would
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".css": "text/css",
        ".html": "text/html; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
        ".safetensors": "application/octet-stream",
    }

    def end_headers(self) -> None:
        """Add what a careful server says."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet."""


def serve(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of `folder` on 127.0.0.1; port 0 takes a free one. The caller runs and closes it."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(PageHandler, directory=str(folder)))
