// node screenshots.mjs PAGE FOLDER [NAME...]: the screenshots of docs/page.md, from a written page:
//     embits page embits-demo/glove.256.safetensors -o /tmp/site
//     node tests/page/screenshots.mjs /tmp/site docs/images page-closest
// page-texts needs a page of texts.
import { launch, ready } from "./browser.mjs";
import { serve } from "./server.mjs";

const [written, folder, ...only] = process.argv.slice(2);
const DESKTOP = [1280, 860];
const LAKE = "Artemise Lake is a lake in Victoria County which is located in north-eastern Nova Scotia Canada .";
const SHOTS = [
  { name: "page-closest", hash: "#word=queen", size: DESKTOP, scheme: "light" },
  { name: "page-texts", hash: `#${new URLSearchParams({ word: LAKE, metric: "decoded" })}`, size: [1280, 696], scheme: "light" },
];

const server = await serve(written);
const browser = await launch();
for (const { name, hash, size, scheme } of SHOTS.filter((shot) => !only.length || only.includes(shot.name))) {
  const context = await browser.newContext({
    viewport: { width: size[0], height: size[1] },
    colorScheme: scheme,
    deviceScaleFactor: size[0] < 500 ? 2 : 1,
  });
  const page = await context.newPage();
  page.on("console", (message) => console.log(name, message.text()));
  page.on("pageerror", (error) => console.log(name, String(error)));
  await page.goto(server.address + hash);
  await ready(page);
  // The time shown is that of compiled code.
  for (const state of Array(10).fill(["#size=1", hash]).flat()) {
    await page.evaluate((state) => (location.hash = state), state);
    await page.waitForTimeout(50);
  }
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}
await browser.close();
await server.stop();
