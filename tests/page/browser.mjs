// Headless Chromium for the tests, the screenshots and the benchmark.
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
