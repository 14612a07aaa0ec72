"""``python tools/screenshots.py SITE FOLDER``: screenshots of the built pages by headless Chromium, and what is wrong.

Wrong is: two texts that overlap, a page that scrolls sideways, a picture that is empty or of one colour. With
``--click PAGE`` it runs the program of one page by its button, and prints what the page says.
"""
import argparse
import contextlib
import functools
import http.server
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGES = ["index.html", "install.html", "getting_started/*.html", "guide/tensors.html", "reference/generated/optim.html",
         "guide/browser.html", "gallery/index.html", "gallery/generated/*.html", "versions.html"]
LOOKS = {"light": (1280, 900, "light"), "dark": (1280, 900, "dark"), "narrow": (390, 844, "light")}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]

# What is seen of each piece of text: its boxes, cut by the ancestors that hide what overflows. Of a box the middle
# half counts, as lines of large letters touch.
LOOK = r"""
() => {
  const wrong = [], boxes = [];
  const sideways = document.documentElement.scrollWidth - window.innerWidth;
  if (sideways > 0) wrong.push(`scrolls sideways by ${sideways}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    if (parent.closest("dialog:not([open]), .visually-hidden, math, svg, .skip-link")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      let {left, right, top, bottom} = rect;
      for (let e = parent; e; e = e.parentElement) {
        const style = getComputedStyle(e), outer = e.getBoundingClientRect();
        if (style.overflowX != "visible") { left = Math.max(left, outer.left); right = Math.min(right, outer.right); }
        if (style.overflowY != "visible" && e !== document.body && e !== document.documentElement) {
          top = Math.max(top, outer.top); bottom = Math.min(bottom, outer.bottom);
        }
        if (style.position == "fixed") break;
      }
      const height = bottom - top;
      if (right - left > 2 && height > 2)
        boxes.push({left: left + 1, right: right - 1, top: top + height / 4, bottom: bottom - height / 4, node,
                    text: node.data.trim().slice(0, 40)});
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; j++) {
      const b = boxes[j];
      if (a.node !== b.node && a.left < b.right && b.left < a.right && wrong.length < 10)
        wrong.push(`"${a.text}" overlaps "${b.text}"`);
    }
  });
  let pictures = 0;
  for (const img of document.images) {
    if (!img.checkVisibility()) continue;
    pictures++;
    if (!img.naturalWidth) { wrong.push(`empty: ${img.src}`); continue; }
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.naturalWidth, img.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(img, 0, 0);
    const colours = new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
    if (colours.size < 2) wrong.push(`of one colour: ${img.src}`);
  }
  return {wrong, texts: boxes.length, pictures};
}
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def chromium(site):
    """A tab of Chromium, and the address at which it finds a folder. What stands elsewhere is not asked for."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as p:
        browser = p.chromium.launch_persistent_context(
            profile, executable_path="/usr/bin/chromium", args=FLAGS, viewport={"width": 1280, "height": 900})
        print(browser.browser.version if browser.browser else "chromium")
        browser.route(lambda url: not url.startswith(address), lambda route: route.abort())
        yield browser.pages[0], address
        browser.close()
    server.shutdown()


def click(site, folder, page):
    """Runs the program of a page: the exit status."""
    with chromium(site) as (tab, address):
        tab.goto(address + page, wait_until="load")
        tab.click("#run")
        tab.wait_for_selector("#output[data-state=done], #output[data-state=failed]", timeout=180_000)
        output = tab.locator("#output")
        print(output.inner_text())
        tab.screenshot(path=folder / "clicked.png", full_page=True)
        return 0 if output.get_attribute("data-state") == "done" else 1


def photograph(site, folder):
    """Screenshots of all pages of PAGES: the exit status."""
    pages = [path.relative_to(site).as_posix() for pattern in PAGES for path in sorted(site.glob(pattern))]
    bad, texts, pictures = [], 0, 0
    with chromium(site) as (tab, address):
        for look, (width, height, scheme) in LOOKS.items():
            tab.set_viewport_size({"width": width, "height": height})
            tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for page in pages:
                tab.goto(address + page, wait_until="load")
                tab.evaluate("Promise.all([document.fonts.ready, ...[...document.images].map(i => "
                             "(i.loading = 'eager', i.decode().catch(() => 0)))])")
                found = tab.evaluate(LOOK)
                texts, pictures = texts + found["texts"], pictures + found["pictures"]
                name = page.removesuffix(".html").replace("/", "-")
                tab.screenshot(path=folder / f"{name}-{look}.png")
                bad += [f"{page}, {look}: {what}" for what in found["wrong"]]
    print("\n".join(bad))
    print(f"{len(pages) * len(LOOKS)} screenshots, {texts} texts, {pictures} pictures: {len(bad)} wrong")
    return 1 if bad else 0


def main(argv=None):
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--click", metavar="PAGE", help="run the program of this page")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.click:
        return click(options.site, options.folder, options.click)
    return photograph(options.site, options.folder)


if __name__ == "__main__":
    sys.exit(main())
