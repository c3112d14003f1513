for (const figure of document.querySelectorAll("figure")) {
  const axis = figure.dataset.axis, low = +figure.dataset.low, high = +figure.dataset.high;
  const number = value => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : +value.toPrecision(3);
  const where = x => axis == "time" ? new Date(1000 * x).toISOString().slice(11, 19)
    : axis == "nines" ? "p" + +(100 * (1 - 10 ** -x)).toPrecision(5) : axis == "names" ? "" : number(x);
  const plots = [...figure.querySelectorAll(".plot")].map(plot => ({ plot,
    cursor: plot.querySelector(".cursor"),
    outputs: plot.previousElementSibling.querySelectorAll(".key output"),
    lines: [...plot.querySelectorAll("path.line[data-name]")].map(path => {
      let x = 0, y = 0;  // every command of the path ends in a point
      return [...path.getAttribute("d").matchAll(/([MLHV])([-\d.e]+)(?: ([-\d.e]+))?/g)].map(([, how, a, b]) => {
        if (how == "V") y = +a; else { x = +a; if (b !== undefined) y = +b; }
        return [x, y];
      });
    }) }));
  const value = ({ plot: { dataset: of } }, y) => {
    const share = 1 - y / 1000, [a, b] = [+of.low, +of.high];
    const found = +of.log ? a * (b / a) ** share : a + (b - a) * share;
    return of.unit == " ms" && found >= 10000 ? number(found / 1000) + " s" : number(found) + of.unit;
  };
  figure.addEventListener("pointermove", event => {
    const box = plots[0].plot.getBoundingClientRect();
    const at = 1000 * Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    figure.querySelector(".where").textContent = where(low + (high - low) * at / 1000);
    for (const each of plots) {
      each.cursor.style.cssText = `display:block;left:${at / 10}%`;
      each.lines.forEach((points, number) => {
        const near = points.reduce((one, other) => Math.abs(other[0] - at) <= Math.abs(one[0] - at) ? other : one, [1e9, 0]);
        each.outputs[number].textContent = Math.abs(near[0] - at) < 30 ? value(each, near[1]) : "";
      });
    }
  });
  figure.addEventListener("pointerleave", () => {
    figure.querySelectorAll("output").forEach(each => { each.textContent = ""; });
    plots.forEach(each => { each.cursor.style.display = "none"; });
  });
}
