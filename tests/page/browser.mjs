// Headless Chromium for the tests, the screenshots and the benchmark, and what tests of pages share.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const launch = (extra = []) =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...FLAGS, ...extra],
  });

export const ready = (page) =>
  page.waitForFunction(() => performance.getEntriesByName("embits-ready").length > 0);

export const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } };

/** Open a page; what it complains about, or asks of another host, is in `complaints`. */
export async function visit(browser, address, hash = "", options = {}) {
  const context = await browser.newContext({ viewport: SIZES.desktop, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on(
    "request",
    (request) => request.url().startsWith(address) || complaints.push(`asked ${request.url()}`),
  );
  await page.goto(address + hash);
  return { page, context, complaints };
}

/** Ask the page of the console, as `embits.ask(question, details)`, for each of the details. */
export const askAll = (page, question, all) =>
  page.evaluate(
    async ([question, all]) => {
      const found = await Promise.all(all.map((details) => embits.ask(question, details)));
      return found.map(({ neighbors }) => neighbors.map(({ word, similarity }) => [word, similarity]));
    },
    [question, all],
  );

const TOLERANCE = 4e-6; // scores are float32 sums in another order than Python's

/** The same scores in each place, and the same words where scores are not tied up to rounding. */
export function assertSameScores(found, expected) {
  assert.equal(found.length, expected.length);
  const apart = (i) => Math.abs(expected[i][1] - expected[i + 1][1]) > 2 * TOLERANCE;
  found.forEach(([word, score], i) => {
    assert.ok(Math.abs(score - expected[i][1]) <= TOLERANCE, `${score}, expected ${expected[i][1]}`);
    // The last may be tied with the next row.
    if ((i === 0 || apart(i - 1)) && i + 1 < expected.length && apart(i)) assert.equal(word, expected[i][0]);
  });
}

/** Fails if the page is wider than the window, or if axe finds a violation. */
export async function assertFits(page, axe, size, colorScheme, name) {
  await page.setViewportSize(SIZES[size]);
  await page.emulateMedia({ colorScheme });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} pixels too wide on a ${size}`);
  if ((size === "phone") !== (colorScheme === "dark")) return; // axe: dark phone, light desktop
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, nodes[0].html]),
    [],
    `${name} on a ${size}`,
  );
}
