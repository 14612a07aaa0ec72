// A thread of the page for programs, so that the page goes on while they run. Pyodide and a wheel stand beside it.
const place = new URL("pyodide/", import.meta.url);
let started = null;

async function start() {
  const answer = await fetch(new URL("ptcore.whl", place));
  if (!answer.ok) throw new Error("these pages were made without Pyodide and a wheel for it");
  const { loadPyodide } = await import(new URL("pyodide.mjs", place));
  const print = (line) => postMessage({ line });
  const pyodide = await loadPyodide({ indexURL: place.href, stdout: print, stderr: print });
  pyodide.unpackArchive(await answer.arrayBuffer(), "wheel");
  return pyodide;
}

self.onmessage = async ({ data }) => {
  started ??= start();
  try {
    const pyodide = await started;
    postMessage({ state: "running" });
    await pyodide.runPythonAsync(data, { filename: "program" });
    postMessage({ state: "done" });
  } catch (error) {
    postMessage({ line: error.message });
    postMessage({ state: "failed" });
  }
};
