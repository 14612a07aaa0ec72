// Runs the program of the page in browser_worker.js, and shows what it prints.
const [source, button, output] = ["program", "run", "output"].map((id) => document.getElementById(id));
let worker = null;

function tell({ data }) {
  if (data.line !== undefined) {
    output.textContent += data.line + "\n";
    return;
  }
  output.dataset.state = data.state;
  if (data.state == "running") output.textContent = "";
  else button.disabled = false;
}

button.addEventListener("click", () => {
  button.disabled = true;
  if (!worker) {
    worker = new Worker(new URL("browser_worker.js", import.meta.url), { type: "module" });
    worker.onmessage = tell;
    worker.onerror = (event) => {
      tell({ data: { line: event.message || "the program's thread could not be started" } });
      tell({ data: { state: "failed" } });
      worker = null;
    };
    output.textContent = "Loading Python and ptcore ...\n";
  }
  output.dataset.state = "loading";
  worker.postMessage(source.value);
});
