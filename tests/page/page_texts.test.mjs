// The page of a collection of texts in headless Chromium. Run by tests/page/test_page_texts.py, which writes the page and
// what Python answers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { assertFits, launch, ready, SIZES, visit } from "./browser.mjs";
import { serve } from "./server.mjs";

const { site, expected, nonsense } = JSON.parse(readFileSync(process.env.PAGE_FACTS, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [question] = Object.keys(expected);

let browser, server;
before(async () => {
  browser = await launch();
  server = await serve(site);
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Run a test in the page; a complaint or a request to another host fails it. */
async function inPage(hash, act, options) {
  const { page, context, complaints } = await visit(browser, server.address, hash, options);
  try {
    await ready(page);
    await act(page, context);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}
const linkTo = (state) => `#${new URLSearchParams(state)}`;
const field = (page) => page.getByRole("searchbox", { name: "Search 120 texts" });
const shown = (page) => page.locator(".answers li");

test("answers and scores are Python's", () =>
  inPage("", async (page) => {
    for (const [asked, wanted] of Object.entries(expected)) {
      const { answers } = await page.evaluate((q) => embits.ask("ask", { question: q, k: 10 }), asked);
      assert.deepEqual(
        answers.map(({ id }) => id),
        wanted.map(([id]) => id),
      );
      answers.forEach(({ score }, i) => assert.ok(Math.abs(score - wanted[i][1]) < 1e-5));
    }
  }));

test("a visitor types a question and sees texts with their titles and links", () =>
  inPage("", async (page) => {
    assert.equal(await page.title(), "Search · My notes");
    assert.deepEqual(await page.locator("#tabs a").allTextContents(), ["Search", "Size"]);
    await field(page).pressSequentially(question);
    await shown(page).first().waitFor();
    await page.waitForFunction((q) => location.hash === q, linkTo({ q: question }));
    assert.equal(await shown(page).count(), expected[question].length);
    assert.equal(await page.locator(".answers b").count(), 0);
    const links = await page.locator(".answers a").evaluateAll((all) => all.map((each) => each.getAttribute("href")));
    assert.ok(links.length > 0 && links.every((link) => /^pages\/\w+\.html$/.test(link)), links.join());
  }));

test("nonsense and an empty question have no answer", () =>
  inPage("", async (page) => {
    for (const text of nonsense) {
      await field(page).fill(text);
      if (text.trim()) await page.getByText("No text is similar enough.").waitFor();
      assert.equal(await shown(page).count(), 0);
    }
  }));

test("an address holds a question, and the button back leads to the one before", () =>
  inPage(linkTo({ q: question }), async (page) => {
    await shown(page).first().waitFor();
    assert.equal(await field(page).inputValue(), question);
    await page.getByRole("link", { name: "Size" }).click();
    await page.getByText("in one file").or(page.getByText("One file")).first().waitFor();
    await page.goBack();
    await shown(page).first().waitFor();
  }));

test("the page fits a phone and a desktop", () =>
  inPage(linkTo({ q: question }), async (page) => {
    await shown(page).first().waitFor();
    for (const size of Object.keys(SIZES)) {
      for (const scheme of ["light", "dark"]) await assertFits(page, axe, size, scheme, "texts");
    }
  }));

test("after the first visit, questions are answered without a server", async () => {
  const own = await serve(site);
  const context = await browser.newContext({ viewport: SIZES.phone });
  const page = await context.newPage();
  await page.goto(own.address);
  await ready(page);
  await page.getByText("Stored on this device").waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await own.stop();
  const later = await context.newPage();
  await later.goto(own.address + linkTo({ q: question }));
  await shown(later).first().waitFor();
  assert.equal(await shown(later).count(), expected[question].length);
  await context.close();
});
