// The page of examples/site_search in headless Chromium, with a small file in place of the model. Run by
// tests/page/test_site_search.py.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { assertFits, launch, visit as visitPage } from "./browser.mjs";
import { serve } from "./server.mjs";

const { sites, query, closest } = JSON.parse(process.env.SITE_SEARCH);
const MODEL = "models/vectors.json";
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const READY = /^Ready\.$/;
const status = (page, text) => page.getByRole("status").filter({ hasText: text }).waitFor();
const results = (page) =>
  page.getByRole("listitem").evaluateAll((items) =>
    items.map((item) => {
      const link = item.querySelector("a");
      return { title: link.textContent, url: link.getAttribute("href"), text: item.querySelector("p").textContent };
    }),
  );
async function ask(page, words) {
  await page.getByRole("searchbox").fill(words);
  await page.getByRole("searchbox").press("Enter");
}

/** A site on a server of its own, which notes what it was `asked`; `changed` is that of the server. */
async function open(t, changed = (_, bytes) => bytes) {
  const site = { folder: sites[0], asked: [] };
  const server = await serve(
    () => site.folder,
    (name, bytes) => (site.asked.push(name), changed(name, bytes)),
  );
  t.after(server.stop);
  const visited = await visitPage(browser, server.address);
  t.after(() => visited.context.close());
  return Object.assign(site, { server, ...visited });
}

/** Leave the page without a network. */
async function goOffline({ server, context }) {
  await server.stop();
  await context.setOffline(true);
}

test("a query that is typed before the model is loaded waits for it, and is then answered", async (t) => {
  let release;
  const released = new Promise((done) => (release = done));
  t.after(() => release());
  const held = async (name, bytes) => (name === MODEL ? released.then(() => bytes) : bytes);
  const { page, complaints } = await open(t, held);
  await status(page, "You can type already");
  await ask(page, "another query");
  await ask(page, query);
  await status(page, "Your query is answered as soon as it is there");
  assert.deepEqual(await results(page), []);
  release();
  await status(page, `The ${closest.length} closest of`);
  assert.deepEqual(await results(page), closest);
  assert.deepEqual(complaints, []);
});

test("results have titles, links and texts; an empty query says so", async (t) => {
  const site = await open(t);
  const { page, complaints } = site;
  await status(page, READY);
  await ask(page, query);
  await status(page, "closest of");
  assert.deepEqual(await results(page), closest);
  await ask(page, "   ");
  await status(page, "The query is empty");
  assert.deepEqual(await results(page), []);
  await page.goto(`${site.server.address}?${new URLSearchParams({ query })}`); // a form sent before the script ran
  await status(page, "closest of");
  assert.deepEqual(await results(page), closest);
  assert.deepEqual(complaints, []);
});

test("after the first visit the page answers without a network, and each large file was loaded once", async (t) => {
  const site = await open(t);
  const { page } = site;
  await status(page, READY);
  for (const name of [MODEL, "runtime/ort-wasm-simd.wasm", "runtime/transformers.min.js"])
    assert.equal(site.asked.filter((each) => each === name).length, 1, name);
  await goOffline(site);
  await page.reload();
  await status(page, READY);
  await ask(page, query);
  await status(page, "closest of");
  assert.deepEqual(await results(page), closest);
});

test("a new build is shown at the next visit and stored, without the model being loaded again", async (t) => {
  const site = await open(t);
  const { page } = site;
  await status(page, READY);
  site.folder = sites[1];
  const stored = () =>
    page.evaluate(async () => {
      const [name] = await caches.keys();
      return (await (await caches.open(name)).keys()).map(({ url }) => url).sort();
    });
  const before = await stored();
  await page.reload();
  await ask(page, query);
  await status(page, "closest of");
  const changed = { ...closest[0], title: "Changed" };
  assert.deepEqual((await results(page))[0], changed);
  while (String(await stored()) === String(before)) await page.waitForTimeout(20);
  await page.waitForFunction(async () => (await navigator.serviceWorker.getRegistration()).active?.state === "activated");
  while ((await stored()).length !== before.length) await page.waitForTimeout(20); // those of the old build are deleted
  assert.equal(site.asked.filter((name) => name === MODEL).length, 1);
  await goOffline(site);
  await page.reload();
  await ask(page, query);
  await status(page, "closest of");
  assert.deepEqual((await results(page))[0], changed);
});

test("a file that cannot be loaded is named", async (t) => {
  const { page } = await open(t, (name, bytes) => {
    if (name.endsWith("codes.safetensors")) throw new Error();
    return bytes;
  });
  await status(page, /could not be loaded: data-\w+\/codes\.safetensors: 404/);
  await ask(page, query);
  await status(page, /could not be answered: data-\w+\/codes\.safetensors: 404/);
});

test("the page fits a phone and a desktop, in light and dark, and axe finds nothing", async (t) => {
  const site = await open(t);
  const { page } = site;
  await status(page, READY);
  await ask(page, query);
  await status(page, "closest of");
  for (const size of ["phone", "desktop"])
    for (const scheme of ["light", "dark"]) await assertFits(page, axe, size, scheme, "the results");
  const { height } = await page.getByRole("button").boundingBox();
  assert.ok(height >= 44, `the button is ${height} pixels high`);
});
