// node site_search_in_chromium.mjs FOLDER QUERY: the texts that the example's page finds in Chromium, as JSON.
import { launch } from "./browser.mjs";
import { serve } from "./server.mjs";

const [folder, query] = process.argv.slice(2);
const server = await serve(folder);
const browser = await launch();
try {
  const page = await browser.newPage();
  await page.goto(server.address);
  const status = page.getByRole("status");
  await status.filter({ hasText: "Ready." }).waitFor({ timeout: 120_000 });
  await page.getByRole("searchbox").fill(query);
  await page.getByRole("button").click();
  await status.filter({ hasText: "searched" }).waitFor({ timeout: 120_000 });
  console.log(JSON.stringify(await page.getByRole("listitem").allTextContents()));
} finally {
  await browser.close();
  await server.stop();
}
