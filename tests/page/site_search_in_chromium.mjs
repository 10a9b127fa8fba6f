// node site_search_in_chromium.mjs FOLDER QUERY [SCREENSHOTS]: the titles that the example's page finds in Chromium with the
// real model, and those it finds without a server, as JSON.
import { launch, SIZES } from "./browser.mjs";
import { serve } from "./server.mjs";

const [folder, query, screenshots] = process.argv.slice(2);
const server = await serve(folder);
const browser = await launch();

async function found(page) {
  await page.getByRole("searchbox").fill(query);
  await page.getByRole("button").click();
  await page.getByRole("status").filter({ hasText: "closest of" }).waitFor({ timeout: 120_000 });
  return page.getByRole("link").allTextContents();
}

try {
  const page = await browser.newPage();
  await page.goto(server.address);
  const online = await found(page); // before the model is loaded
  for (const [size, viewport] of Object.entries(screenshots ? SIZES : {})) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${screenshots}/site-search-${size}-${colorScheme}.png` });
    }
  }
  await server.stop();
  await page.reload();
  console.log(JSON.stringify([online, await found(page)]));
} finally {
  await browser.close();
  await server.stop().catch(() => {});
}
