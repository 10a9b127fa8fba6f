// The page that tests/page/test_page.py writes, in headless Chromium, for the tests that import this.
import { readdirSync, readFileSync } from "node:fs";
import { after, before } from "node:test";
import { launch, ready, visit as visitPage } from "./browser.mjs";
import { serve } from "./server.mjs";

export const folder = process.env.PAGE_FOLDER;
export const expected = JSON.parse(readFileSync(process.env.PAGE_EXPECTED, "utf8")); // Python's answers
export const vectors = readdirSync(folder).find((name) => name.endsWith(".safetensors"));

export let browser, server;
before(async () => {
  browser = await launch();
  server = await serve(folder);
});
after(async () => {
  await browser.close();
  await server.stop();
});

export const visit = (hash, options = {}, address = server.address) =>
  visitPage(browser, address, hash, options);
export async function visitReady(...details) {
  const visited = await visit(...details);
  await ready(visited.page);
  return visited;
}
export const shown = (page) => page.locator(".neighbors tbody .word").allTextContents();
export const showing = (page, first) =>
  page
    .locator(".neighbors tbody tr", { has: page.locator(".word", { hasText: new RegExp(`^${first}$`) }) })
    .first()
    .waitFor();
export const alert = (page, said) => page.getByRole("alert").filter({ hasText: said });
export const text = (page, selector) => page.locator(selector).textContent();
