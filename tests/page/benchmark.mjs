// node benchmark.mjs FOLDER SMALL: times and memory of a page in Chromium, beside the page of a tiny
// file. Run by benchmarks/page.py.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { launch, ready } from "./browser.mjs";
import { serve } from "./server.mjs";

const [folder, small] = process.argv.slice(2);
const vectors = join(
  folder,
  readdirSync(folder).find((name) => name.endsWith(".safetensors")),
);
const megabytes = statSync(vectors).size / 1e6;
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const row = (name, value, unit) =>
  console.log(`${name.padEnd(36)}${value.toFixed(1).padStart(8)} ${unit}`);

/** Resident memory of the renderers, in MB, by the system's own account. */
async function memory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const resident = ({ id }) =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]) / 1000;
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, each) => sum + resident(each), 0);
}

async function measure(folder, search) {
  const server = await serve(folder);
  const browser = await launch();
  const page = await (await browser.newContext({ serviceWorkers: "block" })).newPage();
  await page.goto(server.address + search);
  await ready(page);
  const since = await page.evaluate(() => performance.measure("x", "embits-there", "embits-ready").duration);
  const words = await page.evaluate(() => embits.ask("suggest", { prefix: "", most: 60 }));
  const asked = await queries(page, words, "hamming");
  const decoded = await queries(page, words, "decoded");
  await page.waitForTimeout(1500);
  const resident = await memory(browser);
  const frames = await typing(page, words[40]);
  await browser.close();
  await server.stop();
  return {
    ready: since,
    query: median(asked.map(({ ms }) => ms)),
    all: median(asked.map(({ all }) => all)),
    decoded: median(decoded.map(({ ms }) => ms)),
    resident,
    frames,
  };
}

const queries = (page, words, metric) =>
  page.evaluate(
    async ([words, metric]) => {
      const found = [];
      for (const word of words) {
        const start = performance.now();
        const { ms } = await embits.ask("closest", { word, k: 10, metric });
        found.push({ ms, all: performance.now() - start });
      }
      return found;
    },
    [words, metric],
  );

/** Frames while somebody types: the gaps between them, and those that took over 50 ms of work. */
async function typing(page, word) {
  await page.getByRole("combobox").focus();
  await page.evaluate(() => {
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries())).observe({
      type: "long-animation-frame",
    });
    globalThis.gaps = [];
    let last = performance.now();
    const tick = (now) => {
      globalThis.gaps.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  for (let i = 0; i < 4; i++) await page.keyboard.type(word, { delay: 60 });
  return page.evaluate(() => ({ gaps: globalThis.gaps, long: globalThis.long.length }));
}

const bare = await measure(small, "");
const simd = await measure(folder, "");
const plain = await measure(folder, "?plain");
row("ready after the file is there", simd.ready, "ms");
row("query, WebAssembly SIMD", simd.query, "ms");
row("query, JavaScript", plain.query, "ms");
row("decoded query, WebAssembly SIMD", simd.decoded, "ms");
row("decoded query, JavaScript", plain.decoded, "ms");
row("query to the page and back, SIMD", simd.all, "ms");
row("memory beyond a tiny file's page", simd.resident - bare.resident, "MB");
row("size of the file", megabytes, "MB");
row("frame while typing, median", median(simd.frames.gaps), "ms");
row("frames over 50 ms while typing", simd.frames.long, "");
