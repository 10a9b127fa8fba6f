// node screenshots.mjs ADDRESS FOLDER: the pictures of the README, from a page that is served.
import { launch, ready } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const SHOTS = [
  { name: "page-desktop-light", hash: "#word=queen", size: [1280, 860], scheme: "light" },
  { name: "page-desktop-dark", hash: "#word=guitar", size: [1280, 860], scheme: "dark" },
  { name: "page-compare", hash: "#compare=car&with=automobile", size: [1280, 860], scheme: "light" },
  { name: "page-compare-dark", hash: "#compare=car&with=automobile", size: [1280, 860], scheme: "dark" },
  { name: "page-analogy", hash: "#a=france&b=paris&c=japan", size: [1280, 860], scheme: "light" },
  { name: "page-picture", hash: "#picture=queen", size: [1280, 1000], scheme: "light" },
  { name: "page-picture-dark", hash: "#picture=queen", size: [1280, 1000], scheme: "dark" },
  { name: "page-size", hash: "#size=1", size: [1280, 1100], scheme: "light" },
  { name: "page-phone-light", hash: "#word=jupiter", size: [390, 844], scheme: "light" },
  { name: "page-phone-dark", hash: "#compare=coffee&with=tea", size: [390, 844], scheme: "dark" },
  { name: "page-phone-size", hash: "#size=1", size: [390, 844], scheme: "dark" },
  { name: "page-phone-analogy", hash: "#a=brother&b=sister&c=uncle", size: [390, 844], scheme: "light" },
  { name: "page-phone-picture", hash: "#picture=jupiter", size: [390, 844], scheme: "light" },
];

const only = process.argv.slice(4);
const browser = await launch();
for (const { name, hash, size, scheme } of SHOTS.filter((shot) => !only.length || only.includes(shot.name))) {
  const context = await browser.newContext({
    viewport: { width: size[0], height: size[1] }, colorScheme: scheme, deviceScaleFactor: size[0] < 500 ? 2 : 1,
  });
  const page = await context.newPage();
  page.on("console", (message) => console.log(name, message.text()));
  page.on("pageerror", (error) => console.log(name, String(error)));
  await page.goto(address + hash);
  await ready(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}
await browser.close();
