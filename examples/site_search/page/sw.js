// Stores the site for use offline. build.py writes its files and their checksums here.
const FILES = {};

// A file that has not changed since an earlier build is not downloaded again.
const CACHE = `site-search ${self.registration.scope}`;
const keyOf = (name) => new URL(`${name}?${FILES[name]}`, self.registration.scope).href;
const LARGE = /^(data-|models\/|runtime\/)/; // from the cache; the others from the network if there is one

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(Promise.all(Object.keys(FILES).map(store)));
});

async function store(name) {
  const cache = await caches.open(CACHE);
  const key = keyOf(name);
  if (await cache.match(key)) return;
  const address = name === "index.html" ? "./" : name; // some servers redirect index.html, which cannot be stored
  const response = await fetch(address, { cache: "no-cache" });
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  await cache.put(key, response);
}

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(CACHE);
      const ours = new Set(Object.keys(FILES).map(keyOf));
      const old = (await cache.keys()).filter(({ url }) => !ours.has(url));
      await Promise.all(old.map((request) => cache.delete(request)));
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith(self.registration.scope)) return;
  const path = url.slice(self.registration.scope.length).replace(/[?#].*/, "");
  const name = decodeURI(path) || "index.html";
  if (name in FILES) event.respondWith((LARGE.test(name) ? storedFirst : networkFirst)(event.request, name));
});

const stored = async (name) => (await caches.open(CACHE)).match(keyOf(name));
const storedFirst = async (request, name) => (await stored(name)) ?? fetch(request);

async function networkFirst(request, name) {
  try {
    return await fetch(request);
  } catch {
    return (await stored(name)) ?? Response.error();
  }
}
