"""The few addresses of the Hugging Face Hub that its real client asks for, on this machine."""

import base64
import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Hub:
    """Models as commits of files; `main` and other branches point at one each."""

    def __init__(self):
        self.branches = {}  # model -> branch -> commit
        self.commits = {}  # commit -> {file: bytes}
        self.asked = []  # (verb, path) of every request

    def commit(self, model, branch, files):
        """A new commit with these files over those that were there."""
        branches = self.branches.setdefault(model, {})
        whole = self.commits.get(branches.get(branch), {}) | files
        name = hashlib.sha1(repr((model, branch, sorted(whole.items()))).encode()).hexdigest()
        self.commits[name] = whole
        branches[branch] = name
        return name

    def files(self, model, branch="main"):
        return self.commits[self.branches[model][branch]]


@contextlib.contextmanager
def running():
    """A Hub and its address."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._answer("GET")

    def do_HEAD(self):
        self._answer("HEAD")

    def do_POST(self):
        self._answer("POST")

    def _answer(self, verb):
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        self.hub.asked.append((verb, path))
        for pattern, respond in self.ADDRESSES:
            found = re.fullmatch(pattern, path)
            if found:
                return respond(self, body, *found.groups())
        return self._error(404, "EntryNotFound")

    def _chunk(self):
        chunk = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return chunk

    # -- what it answers ---------------------------------------------------------------------------

    def _info(self, _, model, revision="main"):
        commit = self._resolve(model, revision)
        if commit is None:
            return self._missing(model)
        siblings = [{"rfilename": name} for name in self.hub.commits[commit]]
        return self._json({"id": model, "sha": commit, "siblings": siblings, "private": False})

    def _tree(self, _, model, revision):
        commit = self._resolve(model, revision)
        if commit is None:
            return self._missing(model)
        return self._json([
            {"type": "file", "path": name, "size": len(data), "oid": _oid(data)}
            for name, data in self.hub.commits[commit].items()
        ])  # fmt: skip

    def _file(self, _, model, revision, name):
        commit = self._resolve(model, revision)
        if commit is None:
            return self._missing(model)
        data = self.hub.commits[commit].get(name)
        if data is None:
            return self._error(404, "EntryNotFound")
        return self._send(200, data, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": commit})

    def _create(self, body):
        asked = json.loads(body)
        model = "/".join(filter(None, (asked.get("organization"), asked["name"])))
        answer = {"url": f"http://{self.headers['Host']}/{model}", "name": model}
        if model in self.hub.branches:
            return self._json(answer, 409)
        self.hub.commit(model, "main", {".gitattributes": b""})
        return self._json(answer)

    def _branch(self, _, model, branch):
        self.hub.branches[model].setdefault(branch, self.hub.branches[model]["main"])
        return self._json({})

    def _preupload(self, body, *_):
        return self._json({"files": [
            {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
            for file in json.loads(body)["files"]
        ]})  # fmt: skip

    def _commit(self, body, model, branch):
        lines = [json.loads(line) for line in body.splitlines()]
        files = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"])
            for line in lines
            if line["key"] == "file"
        }
        commit = self.hub.commit(model, branch, files)
        url = f"http://{self.headers['Host']}/{model}/commit/{commit}"
        return self._json({"success": True, "commitOid": commit, "commitUrl": url})

    def _yaml(self, _):
        return self._json({"errors": [], "warnings": []})

    ADDRESSES = (
        (r"/api/models/([^/]+/[^/]+)", _info),
        (r"/api/models/([^/]+/[^/]+)/revision/(.+)", _info),
        (r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", _tree),
        (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", _file),
        (r"/api/repos/create", _create),
        (r"/api/models/([^/]+/[^/]+)/branch/(.+)", _branch),
        (r"/api/models/([^/]+/[^/]+)/preupload/(.+)", _preupload),
        (r"/api/models/([^/]+/[^/]+)/commit/(.+)", _commit),
        (r"/api/validate-yaml", _yaml),
    )

    def _resolve(self, model, revision):
        branches = self.hub.branches.get(model, {})
        commit = branches.get(revision, revision)
        return commit if branches and commit in self.hub.commits else None

    def _missing(self, model):
        known = model in self.hub.branches
        return self._error(404, "RevisionNotFound" if known else "RepoNotFound")

    def _json(self, value, status=200):
        return self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status, code):
        return self._send(status, b'{"error": "no"}', {"X-Error-Code": code})

    def _send(self, status, data, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _oid(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
