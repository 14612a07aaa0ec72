// Runs the program of the page by Pyodide, which stands beside the pages with a wheel of ptcore.
const place = new URL("pyodide/", import.meta.url);
const [source, button, output] = ["program", "run", "output"].map((id) => document.getElementById(id));
let started = null;

function print(text) {
  output.textContent += text + "\n";
}

async function start() {
  const answer = await fetch(new URL("ptcore.whl", place));
  if (!answer.ok) throw new Error("these pages were made without Pyodide and a wheel for it");
  const { loadPyodide } = await import(new URL("pyodide.mjs", place));
  const pyodide = await loadPyodide({ indexURL: place.href, stdout: print, stderr: print });
  pyodide.unpackArchive(await answer.arrayBuffer(), "wheel");
  return pyodide;
}

button.addEventListener("click", async () => {
  button.disabled = true;
  output.dataset.state = "running";
  output.textContent = started ? "" : "Loading Python and ptcore ...\n";
  started ??= start();
  try {
    const pyodide = await started;
    output.textContent = "";
    await pyodide.runPythonAsync(source.value, { filename: "program" });
    output.dataset.state = "done";
  } catch (error) {
    print(error.message);
    output.dataset.state = "failed";
  }
  button.disabled = false;
});
