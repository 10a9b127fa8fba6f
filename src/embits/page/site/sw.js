// Caches the page for offline use. `embits page` writes the version and the files here.
const PAGE = { version: "", files: [] };

// Pages in other folders of the same host have their own caches.
const PREFIX = `embits ${self.registration.scope} `;
const CACHE = PREFIX + PAGE.version;
const PATIENCE_MS = 3000;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  const requests = PAGE.files.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(requests)));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
      await Promise.all(old.map((name) => caches.delete(name)));
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(self.registration.scope)) return;
  // The names of the vectors and texts contain their checksums: a cached copy is always current.
  const isData = /-[0-9a-f]{12}\.(safetensors|json)$/.test(request.url);
  event.respondWith(isData ? keptFirst(request) : networkFirst(request));
});

async function keptFirst(request) {
  return (await kept(request)) ?? fetch(request);
}

// The other files are small: from the network if it responds, otherwise from the cache.
async function networkFirst(request) {
  const answer = fetch(request);
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
  try {
    return (await Promise.race([answer, late.then(() => kept(request))])) ?? (await answer);
  } catch {
    return (await kept(request)) ?? Response.error();
  }
}

async function kept(request) {
  const cache = await caches.open(CACHE);
  return cache.match(request, { ignoreSearch: true });
}
