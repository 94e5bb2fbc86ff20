// Asks again when something happens: follows /events as lines.
import { ask } from "./account.js";

const TYPES = "state,acknowledgement,downtime,comment,flapping,site,config";
const BESIDE = new Set(["heartbeat", "snapshot"]);
const AGAIN = 3000;
const TOGETHER = 300;

const pause = (time, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, time);
  signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
});

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n");
    rest = whole.pop();
    yield* whole.filter(Boolean);
  }
}

// Calls `happened` after events, once for those that come together, until the signal says stop. A stream
// that is lost is made again behind its last event. Gives what the daemon refused, if it did.
export async function follow(sites, happened, signal) {
  let cursor = "";
  let waiting = 0;
  while (!signal.aborted) {
    try {
      const query = new URLSearchParams({ format: "ndjson", types: TYPES });
      if (sites) query.set("backends", sites);
      if (cursor) query.set("since", cursor);
      const answer = await ask(`/events?${query}`, { signal });
      if (answer.status < 500 && !answer.ok) return `${answer.status} · ${(await answer.json()).message}`;
      if (answer.ok) {
        for await (const line of lines(answer.body)) {
          const event = JSON.parse(line);
          // What happened before the stream began, which its first heartbeat says, shows now.
          if (!cursor && event.cursor) happened();
          cursor = event.cursor ?? cursor;
          if (event.type === "end") return event.data.message;
          if (BESIDE.has(event.type)) continue;
          clearTimeout(waiting);
          waiting = setTimeout(() => { if (!signal.aborted) happened(); }, TOGETHER);
        }
      }
    } catch (error) {
      if (signal.aborted) break;
    }
    await pause(AGAIN, signal);
  }
  clearTimeout(waiting);
  return "";
}
