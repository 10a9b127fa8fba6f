// node encode_in_chromium.mjs FOLDER: the vectors of texts.json by encoder.safetensors, in Chromium.
import { launch } from "./browser.mjs";
import { serve } from "./server.mjs";

const server = await serve(process.argv[2]);
const browser = await launch();
try {
  const page = await browser.newPage();
  await page.goto(server.address);
  const vectors = await page.evaluate(async () => {
    const { openTextEncoder } = await import("./site/embits.js");
    const textEncoder = await openTextEncoder(await fetch("encoder.safetensors"));
    const texts = await (await fetch("texts.json")).json();
    return textEncoder.encode(texts).map((vector) => [...vector]);
  });
  console.log(JSON.stringify(vectors));
} finally {
  await browser.close();
  await server.stop();
}
