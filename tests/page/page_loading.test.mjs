// How the page loads its vectors: progress, damage, a visitor's own file, without a server. Run by
// tests/page/test_page.py.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ready } from "./browser.mjs";
import { serve } from "./server.mjs";
import {
  alert,
  browser,
  expected,
  folder,
  server,
  showing,
  shown,
  text,
  vectors,
  visit,
  visitReady,
} from "./written_page.mjs";

test("a visitor's own file is opened from the button and by dropping it; a damaged one is refused", async () => {
  const { page, context } = await visitReady("");
  const whole = readFileSync(new URL("../golden/lsh-100-bits.safetensors", import.meta.url));
  const damaged = Buffer.from(whole);
  damaged[whole.indexOf("golden")] ^= 1;
  await page
    .locator("#file")
    .setInputFiles({ name: "<i>bad</i>.safetensors", mimeType: "", buffer: damaged });
  await alert(page, "<i>bad</i>.safetensors: damaged: the header does not match its checksum").waitFor();
  assert.equal((await shown(page)).length, 10); // what was open still is
  await page.locator("#file").setInputFiles({ name: "own.safetensors", mimeType: "", buffer: whole });
  await page.getByText("224 words × 100 bits").waitFor();
  const other = readFileSync(new URL("../golden/lsh-256-bits-rows.safetensors", import.meta.url));
  await page.evaluate(
    (bytes) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(bytes)], "dropped.safetensors"));
      dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
    },
    [...other],
  );
  await page.getByText("60 rows × 256 bits").waitFor();
  await page.getByRole("button", { name: "Check every byte" }).click();
  await page.getByText("All checksums match").waitFor();
  await context.close();
});

test("a page whose vectors are damaged, cut or gone says so, and offers to open others", async () => {
  const flip = (bytes) => Buffer.from(bytes.map((byte, i) => (i === 300 ? byte ^ 1 : byte)));
  const kinds = {
    checksum: flip,
    "cut short": (bytes) => bytes.subarray(0, -1),
    "longer than": (bytes) => Buffer.concat([bytes, bytes]),
    404: () => {
      throw new Error();
    },
  };
  for (const [said, change] of Object.entries(kinds)) {
    const other = await serve(folder, (name, bytes) => (name === vectors ? change(bytes) : bytes));
    const { page, context } = await visit("", { serviceWorkers: "block" }, other.address);
    await alert(page, said).waitFor();
    await page.getByRole("button", { name: "Drop an embits file here" }).waitFor();
    await context.close();
    await other.stop();
  }
});

test("the server of --open serves it whole, under its policy for workers too", async () => {
  const { page, context, complaints } = await visitReady("#word=queen", {}, process.env.PAGE_OPENED);
  await showing(page, expected.closest.queen[0][0]);
  assert.match(await text(page, "#status"), /WebAssembly SIMD/);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("while the vectors are on their way there is progress", async () => {
  const context = await browser.newContext({ serviceWorkers: "block" });
  const page = await context.newPage();
  let arrive;
  const arrived = new Promise((done) => (arrive = done));
  await page.route("**/*.safetensors", async (route) => (await arrived, route.continue()));
  await page.goto(server.address);
  await page.getByRole("heading", { name: "Opening the vectors" }).waitFor();
  await page.getByRole("progressbar", { name: "Opening the vectors" }).waitFor();
  arrive();
  await ready(page);
  assert.equal(await page.getByRole("progressbar").count(), 0);
  await context.close();
});

test("it works with the server gone, once it was there; it can be installed", async () => {
  const passing = await serve(folder);
  const { page, context } = await visitReady("#word=queen", {}, passing.address);
  await page.getByText("works offline").waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready);
  const session = await context.newCDPSession(page);
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  assert.deepEqual(
    installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito"),
    [],
  );
  await passing.stop();
  await page.reload();
  await ready(page);
  await page.evaluate(() => (location.hash = "#word=king"));
  await showing(page, expected.closest.king[0][0]);
  assert.match(await text(page, "#status"), /WebAssembly SIMD/);
  await context.close();
});
