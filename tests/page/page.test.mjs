// The views of the page and their answers, in headless Chromium. Run by tests/page/test_page.py.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { askAll, assertFits, assertSameScores } from "./browser.mjs";
import { alert, expected, showing, shown, text, visitReady } from "./written_page.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = [
  "#word=queen",
  "#word=king&metric=decoded",
  "#compare=queen&with=king",
  "#a=man&b=king&c=woman",
  "#picture=queen",
  "#size=1",
];

test("closest words come as one types, with suggestions, and are Python's", async () => {
  const { page, context, complaints } = await visitReady("");
  const field = page.getByRole("combobox", { name: "Closest words to" });
  await field.fill("");
  await field.pressSequentially("kin");
  await page.getByRole("option", { name: "king", exact: true }).waitFor();
  await field.press("ArrowDown");
  await field.press("Enter");
  await showing(page, expected.closest.king[0][0]);
  assert.deepEqual(
    await shown(page),
    expected.closest.king.map(([word]) => word),
  );
  assert.deepEqual(
    await page.locator("tbody .number").allTextContents(),
    expected.closest.king.map(([, share]) => `${(100 * share).toFixed(1)} %`),
  );
  assert.match(page.url(), /#word=king$/);
  assert.match(
    await text(page, "#status"),
    /10 closest to king: [\d.]+ m?s, 96\.0 kB of bits, WebAssembly SIMD/,
  );
  assert.deepEqual(complaints, []);
  await context.close();
});

test("an unknown word is a quiet hint while one types, and a problem after Enter", async () => {
  const { page, context, complaints } = await visitReady("#word=king");
  const field = page.getByRole("combobox", { name: "Closest words to" });
  await field.fill("");
  await field.pressSequentially("qeen");
  await page.getByText("qeen is not in the vocabulary. Did you mean queen").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await field.press("Enter");
  await alert(page, "qeen is not in the vocabulary").waitFor();
  await page.getByRole("link", { name: "queen", exact: true }).click();
  await showing(page, expected.closest.queen[0][0]);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("spaces around a word do not count, and a field is cleared by its button", async () => {
  const { page, context } = await visitReady("#word=king");
  const field = page.getByRole("combobox", { name: "Closest words to" });
  await field.fill(" Queen ");
  await showing(page, expected.closest.queen[0][0]);
  assert.equal(await page.locator(".answer .problem, .answer .hint").count(), 0);
  await page.getByRole("button", { name: "Clear: Closest words to" }).click();
  assert.equal(await field.inputValue(), "");
  assert.equal(await field.getAttribute("placeholder"), "Type a word");
  assert.equal(await page.evaluate(() => document.activeElement.role), "combobox");
  assert.equal(await page.getByRole("button", { name: "Clear: Closest words to" }).isVisible(), false);
  await showing(page, expected.closest.queen[0][0]); // the answer stays until there is another
  await context.close();
});

test("bars begin at chance: half of the bits, or a cosine of 0", async () => {
  for (const [metric, chance] of [
    ["hamming", 0.5],
    ["decoded", 0],
  ]) {
    const { page, context } = await visitReady(`#word=queen&metric=${metric}`);
    const [, similarity] = (metric === "hamming" ? expected.closest : expected.decoded).queen[0];
    const width = await page.locator(".bar").first().evaluate((bar) => parseFloat(bar.style.inlineSize));
    assert.ok(Math.abs(width - (100 * (similarity - chance)) / (1 - chance)) < 0.01);
    await context.close();
  }
});

test("on a phone the field is at the top, and facts and times are below the answer", async () => {
  const { page, context } = await visitReady("#word=queen", { viewport: { width: 390, height: 844 } });
  const top = async (selector) => (await page.locator(selector).boundingBox()).y;
  const field = await top("input[role=combobox]");
  assert.ok(field < 180, `the field begins at ${field}`);
  for (const below of ["#facts", "#status"]) assert.ok((await top(below)) > field);
  await context.close();
});

test("both kernels answer as Python does for 1,000 words", async () => {
  for (const [search, kernel] of [
    ["", "WebAssembly SIMD"],
    ["?plain", "JavaScript"],
  ]) {
    const { page, context } = await visitReady(search);
    const words = Object.keys(expected.thousand);
    const answers = await askAll(
      page,
      "closest",
      words.map((word) => ({ word, k: 10 })),
    );
    assert.equal(answers.length, 1000);
    assert.deepEqual(answers, Object.values(expected.thousand));
    assert.match(await text(page, "#status"), new RegExp(kernel));
    await context.close();
  }
});

test("with the metric decoded, both kernels answer as Python does for 500 words", async () => {
  const words = Object.keys(expected.decoded);
  assert.equal(words.length, 500);
  for (const search of ["", "?plain"]) {
    const { page, context } = await visitReady(search);
    const all = words.map((word) => ({ word, k: 10, metric: "decoded" }));
    const answers = await askAll(page, "closest", all);
    answers.forEach((found, i) => assertSameScores(found, expected.decoded[words[i]]));
    await context.close();
  }
});

test("300 analogies are Python's with either metric", async () => {
  const { page, context } = await visitReady("");
  for (const metric of ["hamming", "decoded"]) {
    const asked = expected.analogies.map(({ a, b, c }) => ({ a, b, c, k: 10, metric }));
    const answers = await askAll(page, "analogy", asked);
    assert.equal(answers.length, 300);
    answers.forEach((found, i) => {
      const wanted = expected.analogies[i][metric];
      if (metric === "hamming") assert.deepEqual(found, wanted);
      else assertSameScores(found, wanted);
    });
  }
  await context.close();
});

test("the metric is chosen with the keyboard, is in the link, and stays while one goes on", async () => {
  const { page, context, complaints } = await visitReady("#word=queen");
  const group = page.getByRole("group", { name: "Compare by" });
  assert.deepEqual(await group.getByRole("radio").evaluateAll((all) => all.map(({ value }) => value)), [
    "hamming",
    "decoded",
  ]);
  await group.getByRole("radio", { name: "bits", checked: true }).focus();
  await page.keyboard.press("ArrowRight");
  const header = page.getByRole("columnheader", { name: "estimated cosine" });
  await header.waitFor();
  assert.match(page.url(), /#word=queen&metric=decoded$/);
  assert.equal(await page.evaluate(() => document.activeElement.value), "decoded");
  const [first] = expected.decoded.queen;
  assert.deepEqual((await shown(page))[0], first[0]);
  assert.equal(await page.locator("tbody .number").first().textContent(), first[1].toFixed(3));
  await page.locator(".neighbors tbody a").first().click();
  await page.waitForFunction((word) => document.title.startsWith(word), first[0]);
  assert.match(page.url(), /&metric=decoded$/);
  await page.getByRole("link", { name: "Picture" }).click();
  await page.locator("canvas.picture").waitFor();
  await page.getByRole("link", { name: "Closest" }).click();
  await header.waitFor();
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await page.getByRole("columnheader", { name: "bits that agree" }).waitFor();
  assert.equal(await page.getByRole("radio", { name: "bits" }).isChecked(), true);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the tab of analogies starts with the metric decoded, as the command line does", async () => {
  const { page, context } = await visitReady("#word=queen");
  await page.getByRole("link", { name: "Analogy" }).click();
  await page.getByRole("radio", { name: "rebuilt vectors", checked: true }).waitFor();
  await page.evaluate(() => (location.hash = "#a=man&b=king&c=woman&metric=decoded"));
  await page.getByText("king − man + woman").waitFor();
  assertSameScores(
    (await shown(page)).slice(0, 1).map((word) => [word, expected.king[0][1]]),
    expected.king.slice(0, 1),
  );
  await page.getByRole("radio", { name: "bits" }).check({ force: true });
  await page.getByText("(king and not man) or woman").waitFor();
  assert.match(page.url(), /metric=hamming$/);
  await context.close();
});

test("the analogy is (b and not a) or c, as in Python", async () => {
  const { page, context, complaints } = await visitReady("#a=man&b=king&c=woman");
  await showing(page, expected.analogy[0][0]);
  assert.deepEqual(
    await shown(page),
    expected.analogy.map(([word]) => word),
  );
  assert.equal(await text(page, ".formula"), "(king and not man) or woman");
  assert.equal(await text(page, ".to-what"), expected.analogy[0][0]); // "is to" is filled in
  assert.deepEqual(complaints, []);
  await context.close();
});

test("two words are compared, and their bits drawn", async () => {
  const { page, context, complaints } = await visitReady("#compare=queen&with=king");
  const agree = Math.round(expected.similarity * expected.bits);
  await page.getByRole("img", { name: `${agree} of ${expected.bits} bits agree` }).waitFor();
  assert.deepEqual(await page.locator(".verdict strong").allTextContents(), [
    `${(100 * expected.similarity).toFixed(1)} %`,
    expected.cosine.toFixed(3),
  ]);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the picture zooms with keys, buttons and the wheel", async () => {
  const { page, context, complaints } = await visitReady("#picture=queen");
  const picture = page.locator("canvas.picture");
  const pixels = async () => {
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    return picture.evaluate((canvas) => canvas.toDataURL());
  };
  await picture.waitFor();
  const seen = new Set([await pixels()]);
  for (const act of [
    () => picture.press("+"),
    () => picture.press("ArrowRight"),
    () => page.getByRole("button", { name: "Zoom in" }).click(),
    () => picture.dispatchEvent("wheel", { deltaY: -300, clientX: 300, clientY: 500 }),
  ]) {
    await act();
    seen.add(await pixels());
  }
  assert.equal(seen.size, 5);
  await page.getByRole("button", { name: "Fit the whole picture" }).click();
  assert.ok(seen.has(await pixels()));
  assert.equal(await page.locator(".two-lists li").count(), 100);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("every state is a link; back and forward work", async () => {
  const { page, context } = await visitReady("#word=queen");
  await showing(page, expected.closest.queen[0][0]);
  await page.locator(".neighbors tbody a").first().click();
  const next = expected.closest.queen[0][0];
  await page.waitForFunction((word) => document.title.startsWith(word), next);
  await page.getByRole("link", { name: "Size" }).click();
  await page.getByText("Contents of the file").waitFor();
  await page.goBack();
  await page.waitForFunction((word) => document.title.startsWith(word), next);
  assert.equal(await page.getByRole("combobox").inputValue(), next);
  await page.goBack();
  await showing(page, expected.closest.queen[0][0]);
  assert.equal(await page.getByRole("combobox").inputValue(), "queen");
  await page.goForward();
  await page.waitForFunction((word) => document.title.startsWith(word), next);
  // What somebody types is one step, however they pause.
  const field = page.getByRole("combobox");
  await field.fill("wo");
  await page.waitForTimeout(400);
  await field.fill("word77");
  await page.waitForTimeout(400);
  await field.fill("king");
  await field.press("Enter");
  await showing(page, expected.closest.king[0][0]);
  assert.match(page.url(), /#word=king$/);
  await page.goBack();
  await page.waitForFunction((word) => document.title.startsWith(word), next);
  await context.close();
});

test("words are data: nothing in them runs, in any script they read as they are", async () => {
  const { page, context, complaints } = await visitReady("");
  for (const [i, word] of expected.strange.entries()) {
    for (const key of i < 3 ? ["word", "picture"] : ["word"]) {
      await page.evaluate((hash) => (location.hash = hash), `#${new URLSearchParams({ [key]: word })}`);
      await page.waitForFunction((title) => document.title.startsWith(title), word.trim() || "·");
      assert.equal(await page.getByRole("combobox").inputValue(), word);
    }
    await page.evaluate((hash) => (location.hash = hash), `#${new URLSearchParams({ word })}`);
    await page.locator("thead .word").waitFor();
  }
  await page.evaluate(() => (location.hash = "#word=" + encodeURIComponent("<b>nowhere</b>")));
  await alert(page, "<b>nowhere</b> is not in the vocabulary").waitFor();
  assert.equal(await page.locator("main img, main script, main b").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(complaints, []);
  // And if code ever tried: the browser itself refuses to make elements of text.
  const refused = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<img>";
      return "not refused";
    } catch (error) {
      return error.name;
    }
  });
  assert.equal(refused, "TypeError");
  await context.close();
});

test("an unknown word gets near spellings, as links", async () => {
  const { page, context } = await visitReady("#word=qeen");
  await page.getByRole("alert").getByRole("link", { name: "queen" }).click();
  await showing(page, expected.closest.queen[0][0]);
  await context.close();
});

test("phone and desktop, light and dark: nothing sticks out, and axe finds nothing", async () => {
  const { page, context, complaints } = await visitReady(VIEWS[0]);
  const hashes = [...VIEWS, `#${new URLSearchParams({ word: expected.longest })}`, "#word=nowhere-at-all"];
  for (const hash of hashes) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.locator(".neighbors, .grid, .picture, .parts, .answer .problem").first().waitFor();
    for (const [size, colorScheme] of [
      ["phone", "light"],
      ["phone", "dark"],
      ["desktop", "light"],
      ["desktop", "dark"],
    ]) {
      await assertFits(page, axe, size, colorScheme, hash);
    }
  }
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the keyboard reaches everything: skip link, tabs, field, answers", async () => {
  const { page, context } = await visitReady("#word=queen");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  assert.match(page.url(), /#word=queen$/);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "combobox");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.type), "radio");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.closest("tbody") !== null), true);
  await context.close();
});
