// Requests to the server. The page's own address has the token, so all paths are relative.

// A name of this page, so that two pages do not end each other's runs.
const page = crypto.randomUUID();

// Sends a run, and calls `onPart` with each part of the answer as soon as it arrives.
export async function run(request, signal, onPart) {
  const response = await post("run", { ...request, page }, signal);
  if (!response.ok) {
    onPart({ part: "problems", ...(await response.json()) });
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) onPart(JSON.parse(line));
  }
}

export function post(path, body, signal) {
  return fetch(path, { method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

export async function opening() {
  return (await fetch("start")).json();
}

// A run without a picture after this time is given up for the next one.
const PATIENCE_MS = 500;

// Runs of one setting, one at a time: what is asked for meanwhile follows as soon as a first picture is there, and of
// several requests only the latest.
export class Runner {
  constructor(setting, onPart, onFailure, onBusy) {
    Object.assign(this, { setting, onPart, onFailure, onBusy, waiting: null, running: null });
  }

  get isBusy() {
    return this.running !== null;
  }

  ask(request) {
    this.waiting = request;
    if (!this.running) this.#next();
    else if (this.running.isDrawn || performance.now() > this.running.patientUntil) this.running.abort.abort();
  }

  // Gives up what is running and waiting: no part of it is taken any more.
  stop() {
    this.waiting = null;
    this.running?.abort.abort();
  }

  async #next() {
    while (this.waiting) {
      const request = this.waiting;
      const running = { abort: new AbortController(), isDrawn: false, patientUntil: performance.now() + PATIENCE_MS };
      this.waiting = null;
      this.running = running;
      this.onBusy();
      await this.#run(request, running).catch((error) => running.abort.signal.aborted || this.onFailure(error));
    }
    this.running = null;
    this.onBusy();
  }

  #run(request, running) {
    const { signal } = running.abort;
    return run({ ...request, setting: this.setting }, signal, (part) => {
      if (signal.aborted) return;
      this.onPart(part, request);
      running.isDrawn ||= part.part !== "scenario";
      if (this.waiting && running.isDrawn) running.abort.abort();
    });
  }
}
