// A static server that the tests can stop, to see what works without it.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/** Serve a folder, or that which a function names; `changed(name, bytes)` may put other bytes, or a promise of them, in a file's place. */
export async function serve(folder, changed = (_, bytes) => bytes) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    const name = path.endsWith("/") ? "index.html" : path.slice(1);
    try {
      const bytes = await changed(name, await readFile(join(typeof folder === "function" ? folder() : folder, name)));
      response
        .writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "application/octet-stream" })
        .end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: `http://127.0.0.1:${server.address().port}/`,
    stop: () => new Promise((done) => (server.closeAllConnections(), server.close(done))),
  };
}
