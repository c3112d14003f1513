// Faults of a page's layout, as sentences. Runs in the page of a browser, as large as a phone or a desk.
() => {
  const faults = new Set();
  const shown = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const ancestors = element => { const all = []; for (let at = element; at; at = at.parentElement) all.push(at); return all; };
  const short = text => text.trim().replace(/\s+/g, " ").slice(0, 50);
  const scrolled = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (scrolled > 0) faults.add(`the page scrolls sideways by ${scrolled} px`);

  // What is left of a box inside everything that clips it; nothing where it is scrolled out of sight.
  const clipped = (box, element) => {
    let { left, right, top, bottom } = box;
    for (const at of ancestors(element)) {
      const style = getComputedStyle(at), edge = at.getBoundingClientRect();
      if (style.position == "fixed") break;
      if (style.overflowX != "visible" && at != document.body && at != document.documentElement) {
        left = Math.max(left, edge.left); right = Math.min(right, edge.right);
        top = Math.max(top, edge.top); bottom = Math.min(bottom, edge.bottom);
      }
    }
    return { left, right, top, bottom };
  };
  // Ink is lower than the line box: accents and descenders of two lines may touch, letters may not.
  const ink = ({ left, right, top, bottom }) => {
    const inset = 0.22 * (bottom - top);
    return { left: left + 1, right: right - 1, top: top + inset, bottom: bottom - inset };
  };
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!/[\p{L}\p{N}]/u.test(node.data) || element.closest("script, style, noscript, svg") || !shown(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = ink(clipped(rect, element));
      const aside = box.right < 0 || box.left > document.documentElement.clientWidth;  // a closed drawer
      if (!aside && box.right - box.left > 1 && box.bottom - box.top > 1) texts.push({ node, element, box, text: short(node.data) });
    }
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  texts.forEach((one, number) => {
    for (let next = number + 1; next < texts.length && texts[next].box.top < one.box.bottom; next++) {
      if (texts[next].node != one.node && overlap(one.box, texts[next].box))
        faults.add(`"${one.text}" and "${texts[next].text}" stand on each other`);
    }
  });

  // A button on a text, and a picture's line through a word beside it.
  for (const button of document.querySelectorAll("button, [role=button], .md-clipboard")) {
    const box = button.getBoundingClientRect();
    if (!box.width || !shown(button)) continue;
    for (const { element, box: text, text: words } of texts)
      if (!button.contains(element) && !element.contains(button) && overlap(box, text))
        faults.add(`the button "${short(button.title || button.textContent)}" lies on "${words}"`);
  }
  for (const path of document.querySelectorAll(".plot path.line[data-name]")) {
    if (getComputedStyle(path).stroke == "none") continue;
    const words = texts.filter(({ element }) => path.closest(".plot").contains(element));
    const matrix = path.getScreenCTM(), length = path.getTotalLength();
    for (let at = 0; at <= 400 && words.length; at++) {
      const { x, y } = path.getPointAtLength(length * at / 400).matrixTransform(matrix);
      for (const { box, text } of words)
        if (box.left < x && x < box.right && box.top < y && y < box.bottom)
          faults.add(`the line "${path.dataset.name}" goes through "${text}"`);
    }
  }

  // Text that a box cuts off: for good where it hides what is over, to be scrolled to where it is code.
  for (const element of document.querySelectorAll("body *")) {
    const style = getComputedStyle(element);
    const wide = element.scrollWidth - element.clientWidth > 1;
    const hidden = (style.overflowX == "hidden" || style.overflowX == "clip") && !element.closest(".md-header");
    const scrolls = element.matches("pre") && !element.closest(".md-typeset");
    if (!wide || !(hidden || scrolls) || !shown(element) || element.clientWidth < 2) continue;
    const edge = element.getBoundingClientRect();
    for (const { node, element: of } of texts) {
      if (!element.contains(of)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const cut = [...range.getClientRects()].some(({ left, right, width }) => width && (right > edge.right + 1 || left < edge.left - 1));
      if (cut) faults.add(`"${short(node.data)}" is cut at the edge of its box`);
    }
  }

  // A table that one has to scroll hides what one came for. The theme of the site lets its tables scroll.
  for (const cell of document.querySelectorAll(".scroll :is(td, th)")) {
    const { left, right } = cell.getBoundingClientRect(), seen = clipped({ left, right, top: 0, bottom: 1e9 }, cell);
    if (cell.textContent.trim() && shown(cell) && seen.right < right - 1) faults.add(`"${short(cell.textContent)}" is out of sight in its table`);
  }
  return [...faults];
}
