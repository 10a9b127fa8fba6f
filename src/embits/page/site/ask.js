/** The page's side of worker.js: sends requests and returns promises. */

// Trusted Types: code may start only these two scripts.
const policy = globalThis.trustedTypes?.createPolicy("embits", {
  createScriptURL(name) {
    if (name !== "worker.js" && name !== "sw.js") throw new TypeError(`no script ${name}`);
    return name;
  },
});
export const scriptURL = (name) => policy?.createScriptURL(name) ?? name;

/** An error of the worker; `word` is the unknown word, if any. */
export class Refusal extends Error {
  constructor({ name, message, word }) {
    super(message);
    Object.assign(this, { name, word });
  }
}

/** Start the worker; returns `ask(question, details)`. */
export function startWorker({ onProgress, onKept }) {
  const worker = new Worker(scriptURL("worker.js"), { type: "module" });
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    if (data.progress) return onProgress(data.progress);
    if ("kept" in data) return onKept(data.kept);
    const asker = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) asker?.reject(new Refusal(data.error));
    else asker?.resolve(data.answer);
  };
  worker.onerror = (event) => {
    const refusal = new Refusal({
      name: "WorkerError",
      message: event.message || "the search could not start",
    });
    for (const { reject } of waiting.values()) reject(refusal);
    waiting.clear();
  };
  return (question, details = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, question, details });
    });
}
