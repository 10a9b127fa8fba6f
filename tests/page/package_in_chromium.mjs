// node package_in_chromium.mjs FOLDER: what the npm package installed in FOLDER answers in Chromium.
import { launch } from "./browser.mjs";
import { serve } from "./server.mjs";

const server = await serve(process.argv[2]);
const browser = await launch();
try {
  const page = await browser.newPage();
  await page.goto(server.address);
  const answers = await page.evaluate(async () => {
    const { open } = await import("embits");
    const { simdRoom } = await import("embits/simd.js");
    const bytes = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());
    const file = await bytes("words.safetensors");
    const room = await simdRoom(await bytes("node_modules/embits/dist/kernel.wasm"), file.length);
    room.bytes.set(file);
    const bits = [open(file), open(room.bytes, room.countDifferences)];
    const collection = await open((name) => fetch(`collection/${name}`));
    return { answers: bits.map((each) => each.mostSimilar("queen")), rows: collection.length };
  });
  console.log(JSON.stringify(answers));
} finally {
  await browser.close();
  await server.stop();
}
