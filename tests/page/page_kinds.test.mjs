// Pages of texts, ids, rows, slim files and collections in headless Chromium, and bad files. Run by
// tests/page/test_page_kinds.py, which writes the pages and what Python answers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { askAll, assertFits, assertSameScores, launch, ready, visit } from "./browser.mjs";
import { serve } from "./server.mjs";

const { expected, bad } = JSON.parse(readFileSync(process.env.PAGE_EXPECTED, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const texts = Object.keys(expected.texts.hamming);

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Run a test in the page of a file; a complaint or a request to another host fails it. */
async function inPage(name, hash, act) {
  const server = await serve(join(process.env.PAGE_FOLDERS, name));
  const { page, context, complaints } = await visit(browser, server.address, hash);
  try {
    await ready(page);
    await act(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
    await server.stop();
  }
}
const linkTo = (state) => `#${new URLSearchParams(state)}`;
const shown = (page) => page.locator(".neighbors tbody .word").allTextContents();

for (const [name, metrics] of Object.entries(expected)) {
  test(`${name}: answers are Python's with ${Object.keys(metrics).join(" and ")}`, () =>
    inPage(name, "", async (page) => {
      for (const [metric, wanted] of Object.entries(metrics)) {
        const words = Object.keys(wanted);
        const all = words.map((word) => ({ word, k: 10, metric }));
        const answers = await askAll(page, "closest", all);
        assert.ok(answers.length >= 300);
        answers.forEach((found, i) => {
          if (metric === "hamming") assert.deepEqual(found, wanted[words[i]]);
          else assertSameScores(found, wanted[words[i]]);
        });
      }
    }));
}

test("texts are shown whole, and read as text", () =>
  inPage("texts", linkTo({ word: texts[7] }), async (page) => {
    await page.getByText("400 texts × 96 bits").waitFor();
    await page.locator("thead .word").waitFor();
    assert.deepEqual(
      await shown(page),
      expected.texts.hamming[texts[7]].map(([text]) => text),
    );
    assert.equal(await page.locator("thead .word").textContent(), texts[7]);
    const cut = await page
      .locator(".neighbors .word")
      .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth));
    assert.equal(cut.length, 0);
    assert.equal(await page.getByRole("combobox", { name: "Closest texts to" }).inputValue(), texts[7]);
    assert.equal(await page.locator("main b").count(), 0);
    assert.equal(await page.getByRole("link", { name: "Analogy" }).count(), 0);
    assert.match(await page.locator("#status").textContent(), /^10 closest to .{1,28}: [\d.]+ m?s/u);
  }));

test("texts are found by what they contain, in any letter case", () =>
  inPage("texts", "", async (page) => {
    const field = page.getByRole("combobox");
    await field.fill("");
    await field.pressSequentially("ZÜRICH hosts");
    await page.getByRole("option").first().waitFor();
    const offered = await page.getByRole("option").allTextContents();
    assert.equal(offered.length, 8);
    assert.ok(offered.every((text) => text.includes("Zürich hosts")));
    await field.press("ArrowDown");
    await field.press("Enter");
    await page.waitForFunction((text) => document.title.startsWith(text), offered[0]);
    assert.equal(await page.locator("thead .word").textContent(), offered[0]);
    await page.evaluate(() => (location.hash = "#word=striker"));
    const alert = page.getByRole("alert").filter({ hasText: "striker is not a text of this file." });
    await alert.getByRole("link").first().click();
    await page.locator("thead .word").filter({ hasText: "striker" }).waitFor();
    await page.evaluate(() => (location.hash = "#word=nowhere"));
    await page.getByText("nowhere is not a text of this file.", { exact: true }).waitFor();
  }));

test("texts with line breaks, which a field drops, are chosen and compared", () =>
  inPage("texts", linkTo({ compare: texts[0], with: texts[1] }), async (page) => {
    const field = page.getByRole("combobox", { name: "with" });
    await field.fill("");
    await field.pressSequentially("A headline");
    await page.getByRole("option").first().click();
    const chosen = (text) => new URLSearchParams(location.hash.slice(1)).get("with") === text;
    await page.waitForFunction(chosen, texts[8]);
    await page.evaluate((hash) => (location.hash = hash), linkTo({ word: texts[8] }));
    await page.locator("thead .word").filter({ hasText: "A headline" }).waitFor();
    await page.getByRole("combobox", { name: "Closest texts to" }).press("Enter");
    await page.getByRole("combobox", { name: "Closest texts to" }).press("Enter");
    assert.equal(await page.getByRole("alert").filter({ hasText: "headline" }).count(), 0);
    assert.equal(await page.locator("thead .word").textContent(), texts[8]);
  }));

test("numbers, UUIDs and rows are shown plainly and named so", async () => {
  for (const [name, noun, article] of [
    ["numbers", "id", "an id"],
    ["uuids", "id", "an id"],
    ["rows", "row", "a row"],
  ]) {
    await inPage(name, "", async (page) => {
      await page.getByText(`400 ${noun}s × 96 bits`).waitFor();
      await page.getByRole("combobox", { name: `Closest ${noun}s to` }).waitFor();
      const [first, wanted] = Object.entries(expected[name].hamming)[0];
      await page.locator("thead .word").filter({ hasText: first }).waitFor();
      assert.deepEqual(
        await shown(page),
        wanted.map(([id]) => id),
      );
      await page.evaluate(() => (location.hash = "#word=99999"));
      await page.getByRole("alert").getByText(`99999 is not ${article} of this file.`).waitFor();
    });
  }
});

test("a file that cannot be decoded has no choice of metric, and a link to decoded says why", async () => {
  for (const [name, why] of [
    ["slim", "The file was written without its coder: it can be searched by codes only."],
    ["sparse", "JavaScript has no coder 'sparse': the file can be searched by codes only."],
  ]) {
    await inPage(name, linkTo({ word: texts[0], metric: "decoded" }), async (page) => {
      await page.getByRole("alert").getByText(why).waitFor();
      assert.equal(await page.getByRole("group", { name: "Compare by" }).count(), 0);
      await page.getByRole("link", { name: "Search by bits" }).click();
      await page.getByRole("columnheader", { name: "bits that agree" }).waitFor();
      await page.evaluate((hash) => (location.hash = hash), linkTo({ compare: texts[0], with: texts[1] }));
      await page.locator(".verdict").waitFor();
      assert.equal(await page.locator(".verdict").count(), 1);
    });
  }
});

test("bad files get one line, and the open file stays in use", () =>
  inPage("texts", "", async (page) => {
    for (const [said, path] of Object.entries(bad)) {
      await page.locator("#file").setInputFiles(path);
      const alert = page.getByRole("alert").filter({ hasText: said });
      await alert.waitFor();
      const text = await alert.textContent();
      assert.ok(text.length < 200 && !text.includes("\n"), text);
      assert.match(text, /^bad-\d\.safetensors: .*\.$/);
      await page.getByRole("heading", { name: "The file could not be opened" }).waitFor();
      await page.evaluate((hash) => (location.hash = hash), linkTo({ word: texts[1], said }));
      await page.getByRole("heading", { name: "The file could not be opened" }).waitFor({ state: "hidden" });
      assert.equal((await shown(page)).length, 10);
    }
    const none = new URL("../golden/lsh-8-bits-empty.safetensors", import.meta.url);
    await page.locator("#file").setInputFiles({ name: "none", mimeType: "", buffer: readFileSync(none) });
    await page.getByText("This file contains no words.").waitFor();
  }));

test("a metric that does not exist is named", () =>
  inPage("texts", linkTo({ word: texts[0], metric: "cosine" }), async (page) => {
    await page.getByRole("alert").getByText("Metric is 'cosine', expected 'hamming' or 'decoded'.").waitFor();
  }));

test("long texts fit phone and desktop, and axe finds nothing", () =>
  inPage("texts", "", async (page) => {
    const [one, other] = [...texts].sort((a, b) => b.length - a.length);
    for (const state of [{ word: one, metric: "decoded" }, { compare: one, with: other }, { picture: one }]) {
      await page.evaluate((hash) => (location.hash = hash), linkTo(state));
      await page.waitForFunction((start) => document.title.startsWith(start), one);
      await page.locator(".neighbors, .grid, .picture").first().waitFor();
      await assertFits(page, axe, "phone", "dark", JSON.stringify(state));
      await assertFits(page, axe, "desktop", "light", JSON.stringify(state));
    }
  }));
