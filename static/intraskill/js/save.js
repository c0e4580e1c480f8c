// Saves a chart as it stands, with its title and legend, as SVG or PNG: <button data-save="svg"> in a card.
// Text, fills and inline drawings of the card are copied with their computed looks into one SVG document.
const NS = "http://www.w3.org/2000/svg";
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "vector-effect", "paint-order"];
const LEFT_OUT = "footer, button, form, .q, .i, script, [hidden], .sr-only";
const EDGE = 12;

const make = (name, attributes, text) => {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

// A drawing with every look written out, at its place; percentages in it keep their meaning.
const drawing = (svg, origin) => {
  const box = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true);
  const pairs = [[svg, copy], ...[...svg.querySelectorAll("*")].map((e, i) => [e, copy.querySelectorAll("*")[i]])];
  for (const [from, to] of pairs) {
    const looks = getComputedStyle(from);
    for (const key of LOOKS) {
      if (!(key === "fill" && from.getAttribute("fill")?.startsWith("url("))) to.setAttribute(key, looks.getPropertyValue(key));
    }
    for (const name of ["class", "href", "style"]) to.removeAttribute(name);
    if (to.localName === "svg") to.setAttribute("overflow", "visible");
  }
  const place = { x: box.x - origin.x, y: box.y - origin.y, width: box.width, height: box.height };
  for (const [key, value] of Object.entries(place)) copy.setAttribute(key, value);
  return copy;
};

// The words of a text node, joined to one <text> a line.
const lines = (node, origin) => {
  const looks = getComputedStyle(node.parentElement);
  const found = [];
  for (const match of node.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].length);
    for (const box of range.getClientRects()) {
      const last = found.at(-1);
      if (last && Math.abs(last.y - box.y) < 2) last.text += last.word === match.index ? "" : ` ${match[0]}`;
      else found.push({ x: box.x, y: box.y, height: box.height, text: match[0] });
      found.at(-1).word = match.index;
    }
  }
  return found.map((line) => make("text", {
    x: line.x - origin.x,
    y: line.y - origin.y + line.height * 0.78,
    fill: looks.color,
    "font-family": looks.fontFamily,
    "font-size": looks.fontSize,
    "font-weight": looks.fontWeight,
  }, line.text));
};

const copyOf = (card) => {
  const origin = card.getBoundingClientRect();
  const parts = [];
  let width = origin.width;
  let bottom = 0;
  const walk = (element) => {
    if (element.matches(LEFT_OUT) || !element.checkVisibility()) return;
    const box = element.getBoundingClientRect();
    width = Math.max(width, box.right - origin.x);
    bottom = Math.max(bottom, box.bottom - origin.y);
    if (element.localName === "svg") {
      parts.push(drawing(element, origin));
      return;
    }
    const ground = getComputedStyle(element).backgroundColor;
    if (element !== card && !/^rgba\(.*, 0\)$|transparent/.test(ground)) {
      parts.push(make("rect", {
        x: box.x - origin.x, y: box.y - origin.y, width: box.width, height: box.height, rx: 2, fill: ground,
      }));
    }
    for (const child of element.childNodes) {
      if (child.nodeType === Node.ELEMENT_NODE) walk(child);
      else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) parts.push(...lines(child, origin));
    }
  };
  walk(card);
  const [w, h] = [Math.ceil(width + EDGE), Math.ceil(bottom + EDGE)];
  const root = make("svg", { xmlns: NS, width: w, height: h, viewBox: `0 0 ${w} ${h}` });
  root.append(make("rect", { width: w, height: h, fill: getComputedStyle(card).backgroundColor }), ...parts);
  return { text: new XMLSerializer().serializeToString(root), w, h };
};

const download = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const raster = ({ text, w, h }) => new Promise((done, failed) => {
  const image = new Image();
  image.onerror = failed;
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [w * 2, h * 2];
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0, w, h);
    canvas.toBlob(done, "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-save]");
  const card = button?.closest(".card");
  if (!card) return;
  const copy = copyOf(card);
  const page = location.pathname.replace(/^\/|\/$/g, "").replace(/[^\w-]+/g, "-");
  const name = [page, card.getAttribute("aria-labelledby") ?? "chart"].join("-");
  if (button.dataset.save === "png") download(await raster(copy), `${name}.png`);
  else download(new Blob([copy.text], { type: "image/svg+xml" }), `${name}.svg`);
});
