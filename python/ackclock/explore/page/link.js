// The permalink: both settings, compressed, in the address's fragment, which never leaves the browser.

const LONGEST = 512 * 1024;

export async function fragment(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `s=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// The state of a fragment; null for one that is none.
export async function state(fragment) {
  const match = /^#s=([\w-]+)$/.exec(fragment);
  if (!match) return null;
  try {
    const bytes = Uint8Array.from(atob(match[1].replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const found = JSON.parse(await limited(stream.pipeThrough(new TextDecoderStream())));
    return typeof found?.a === "string" ? found : null;
  } catch {
    return null;
  }
}

async function limited(stream) {
  let text = "";
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += value;
    if (text.length > LONGEST) throw new Error("too long");
  }
}
