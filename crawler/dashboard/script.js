"use strict";
/* What was crawled is anybody's: it is set as text, never as markup, and no link leads to it. */

const $ = (id) => document.getElementById(id);
const unfit = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const fit = (value) => String(value ?? "").replace(unfit, "\ufffd");

/** An element with children, texts among them; `attributes` of ours only. */
const el = (tag, attributes, ...children) => {
  const svg = ["svg", "rect", "line", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child != null).map((child) => (child instanceof Node ? child : fit(child))));
  return node;
};
const fill = (id, ...children) => $(id).replaceChildren(...children.filter((child) => child != null));

const count = (n) => n.toLocaleString("en");
const size = (octets) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (octets >= 999.5 && unit < units.length - 1) [octets, unit] = [octets / 1000, unit + 1];
  return `${octets.toFixed(unit && octets < 99.5 ? 1 : 0)} ${units[unit]}`;
};
const span = (seconds) => {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  for (const [unit, name, part, small] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    if (seconds < unit) continue;
    const rest = Math.floor((seconds % unit) / part);
    return `${Math.floor(seconds / unit)} ${name}${rest ? ` ${rest} ${small}` : ""}`;
  }
};
const clock = (at, now) => {
  if (!(at < 8e12)) return "the end of time"; // JavaScript has no later dates
  const then = new Date(at * 1000);
  const time = then.toLocaleTimeString("en-GB");
  return then.toDateString() === new Date(now * 1000).toDateString() ? time : `${then.toLocaleDateString("sv-SE")} ${time.slice(0, 5)}`;
};

/* --- orders ------------------------------------------------------------------------------------- */

const notice = (text, bad) => {
  $("notice").hidden = !text;
  $("notice").textContent = fit(text);
  $("notice").classList.toggle("bad", Boolean(bad));
};
const ask = async (path, options) => {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  const text = await answer.text();
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    said = { error: text.trim() || `the dashboard answered ${answer.status}` };
  }
  if (!answer.ok) throw new Error(said.error ?? `the dashboard answered ${answer.status}`);
  return said;
};
let noticeUntil = 0; // the time until which the answer to an order is shown, in milliseconds
const command = async (name, site) => {
  try {
    const body = JSON.stringify({ command: name, site });
    const said = await ask("/control", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    noticeUntil = 0;
    return said;
  } catch (error) {
    noticeUntil = Date.now() + 8000;
    notice(error.message, true);
    return null;
  }
};
$("pause").addEventListener("click", () => command("pause"));
$("resume").addEventListener("click", () => command("resume"));
$("stop").addEventListener("click", () => {
  if (confirm("End this run? Everything is kept; the same command continues it.")) command("stop");
});
const block = (site) => {
  if (confirm(`Block ${fit(site)}? Its queued URLs are excluded until it is unblocked.`)) return command("block", site);
};
$("block").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await block($("site").value)) $("block").reset();
});

/* --- the live stream ------------------------------------------------------------------------------ */

const STATES = {
  running: ["running", "good"], pausing: ["pausing …", "mild"], paused: ["paused", "mild"], stopping: ["stopping …", "mild"],
  silent: ["no sign of life", "bad"], ended: ["ended", ""],
};
const show = (seen) => {
  if (seen.error) return notice(seen.error, true);
  const run = seen.run;
  document.title = `${STATES[run?.state]?.[0] ?? "no run"}: ${fit(seen.db)}`;
  $("db").textContent = fit(seen.db);
  const [state, look] = STATES[run?.state] ?? ["not begun", ""];
  $("state").textContent = state;
  $("state").className = `badge ${look}`;
  about(seen, run);
  const live = ["running", "pausing", "paused", "stopping"].includes(run?.state);
  $("pause").hidden = seen.paused_since != null;
  $("resume").hidden = seen.paused_since == null;
  $("stop").hidden = !live;
  $("stop").disabled = run?.state === "stopping";
  if (Date.now() > noticeUntil) notice(remark(seen, run));
  tiles(seen, run, live);
  $("time-left").hidden = seen.time_left == null;
  $("time-left").textContent = fit(seen.time_left?.text ?? "");
  chart(seen);
  bars("states", [["pages", seen.pages, "c2"], ["queued", seen.urls.queued, "c5"], ["redirected", seen.urls.redirected, "c1"], ["excluded", seen.urls.excluded, "c6"], ["failed", seen.urls.failed, "c4"]]);
  const colour = (status) => ({ 2: "c2", 3: "c1", 4: "c3", 5: "c4" })[status[0]] ?? "c6";
  bars("answers", seen.answers.slice(0, 8).map(([status, n]) => [status, n, colour(status)]));
  bars("excluded", seen.excluded_for.slice(0, 8).map(([why, n]) => [why.replaceAll("_", " "), n, "c6"]));
  bars("failed", seen.failed_for.slice(0, 8).map(([why, n]) => [why.replaceAll("_", " "), n, "c4"]));
  blocked(seen);
  sites(seen);
  workers(seen);
};
const about = (seen, run) => {
  if (!run) return void ($("about").textContent = "No run has begun on this store yet.");
  const who = [run.agent, run.contact && `(${run.contact})`].filter(Boolean).join(" ");
  const when = run.finished_at == null ? `since ${clock(run.started_at, seen.at)}, for ${span(seen.at - run.started_at)}` : `${clock(run.started_at, seen.at)} to ${clock(run.finished_at, seen.at)}: ${run.ended_by}`;
  $("about").textContent = fit(`${who} · run ${run.id}, ${when}`);
};
const remark = (seen, run) => {
  if (run?.state === "silent") return `No sign of life from the crawl since ${clock(run.seen_at, seen.at)}: it was killed (the same command continues it), or it is stuck.`;
  if (seen.paused_since != null) return `Paused by the operator since ${clock(seen.paused_since, seen.at)}: nothing new is sent, and nothing is lost${run?.state === "ended" ? "; the next run begins paused" : ""}.`;
  if (run?.low_disk != null) return `Paused: ${run.low_disk}. Make room, and the crawl goes on by itself.`;
  if (!seen.log_read) return "The dashboard is still reading the request log: the sums are not complete yet.";
  return "";
};
const tiles = (seen, run, live) => {
  const last = seen.recent.slice(-11, -1);
  const rate = last.reduce((sum, n) => sum + n, 0) / last.length;
  const tile = (value, what, warn) => el("div", { class: warn ? "tile warn" : "tile" }, el("b", {}, value), el("span", {}, what));
  fill("tiles",
    tile(count(seen.pages), "pages"),
    tile(count(seen.urls.queued), "queued"),
    tile(count(seen.requests), "requests"),
    tile(rate.toFixed(1), "requests/s in the last 10 s"),
    tile(size(seen.received_bytes), "received"),
    tile(count(seen.groups.worked_on), run?.state === "paused" ? "sites held while paused" : "sites worked on"),
    tile(count(seen.groups.waiting), "sites waiting"),
    live && run.memory_bytes ? tile(size(run.memory_bytes), "memory") : tile(count(seen.known_sites), "sites known"),
    live ? tile(span(run.lag_s), "lag of the event loop", run.lag_s > 1) : null,
  );
};
const chart = (seen) => {
  const bin = 3;
  const bins = [];
  for (let n = 0; n < seen.recent.length; n += bin) bins.push(seen.recent.slice(n, n + bin).reduce((sum, k) => sum + k, 0) / bin);
  const most = Math.max(...bins, 1);
  const width = 100 / bins.length;
  const columns = bins.map((n, k) => {
    const height = (n / most) * 112;
    return el("rect", { class: "c1", x: `${k * width}%`, y: 118 - height, width: `${width * 0.8}%`, height: Math.max(height, n ? 1 : 0) });
  });
  fill("chart", el("line", { class: "grid", x1: 0, x2: "100%", y1: 118, y2: 118 }), ...columns);
  $("rate").textContent = `The last five minutes, at most ${Number(most.toFixed(1))}`;
};
const bars = (id, rows) => {
  const most = Math.max(...rows.map(([, n]) => n), 1);
  if (!rows.some(([, n]) => n)) return fill(id, el("p", { class: "none" }, "None."));
  const parts = rows.flatMap(([what, n, colour]) => [
    el("span", {}, what),
    el("svg", { class: "bar", role: "presentation" }, el("rect", { class: colour, width: `${(100 * n) / most}%`, height: 12, rx: 2 })),
    el("span", { class: "n" }, count(n)),
  ]);
  fill(id, el("div", { class: "bars" }, ...parts));
};
const blocked = (seen) => {
  $("blocked").hidden = !seen.blocked.length;
  const chips = seen.blocked.map(({ name, since }) => {
    const lift = el("button", { type: "button", class: "small" }, "Unblock");
    lift.addEventListener("click", () => command("unblock", name));
    return el("li", {}, el("span", {}, `${name} has been blocked since ${clock(since, seen.at)}`), lift);
  });
  fill("blocked", el("ul", { class: "chips" }, ...chips));
};
let rows = new Map(); // by site; kept between snapshots, because a click on a replaced row would be lost
const sites = (seen) => {
  const next = new Map();
  for (const site of seen.sites) {
    const row = rows.get(site.site) ?? siteRow(site.site);
    const left = site.until - seen.at;
    const ended = seen.run?.state === "ended";
    const held = (ended || seen.paused_since != null) && left <= 0;
    const waits = site.at_limit ? site.waits_for : held && ended ? "the next run" : held ? "the operator to resume the crawl" : left > 0 ? site.waits_for : site.worked_on ? "nothing: a request is in flight" : "its turn";
    const until = site.at_limit ? "" : left > 0 ? `${clock(site.until, seen.at)}, in ${span(left < 60 ? Math.ceil(left) : left)}` : held ? "" : "now";
    const texts = [waits, until, site.queued >= 1000 ? "1,000 or more" : count(site.queued), count(site.fetched), site.robots ?? "not requested", span(site.pause_s)];
    texts.forEach((text, n) => (row.cells[n + 1].textContent = fit(text)));
    row.classList.toggle("busy", Boolean(site.worked_on) && !held);
    next.set(site.site, row);
  }
  rows = next;
  fill("sites", ...next.values());
  const shown = seen.sites.filter((site) => !site.at_limit).length;
  const hidden = seen.groups.worked_on + seen.groups.waiting + seen.groups.ready > shown || next.size - shown >= 20;
  $("sites-note").textContent = next.size ? (hidden ? `${next.size} of the sites with queued URLs: those worked on, those next in turn, those that wait longest, and those at a limit.` : "All sites with queued URLs.") : "No site has queued URLs.";
};
const workers = (seen) => {
  $("workers-section").hidden = !seen.workers.length;
  const lease = (worker) => {
    if (worker.ended_at != null) return `ended: ${worker.ended_by}`;
    if (!worker.alive) return "killed: other workers take over its sites";
    if (worker.lease_until == null) return "exclusive use of the store";
    const left = worker.lease_until - seen.at;
    return left > 0 ? `for ${span(Math.ceil(left))} more` : "expired: other workers take over its sites";
  };
  fill("workers", ...seen.workers.map((worker) => {
    const rate = worker.pages / Math.max(worker.seen_at - worker.started_at, 1);
    const texts = [`${worker.worker} (${worker.host}, process ${worker.pid})`, count(worker.groups_held), count(worker.pages), rate.toFixed(1), count(worker.requests), lease(worker)];
    const looks = ["named", "n", "n", "n minor", "n minor", ""];
    return el("tr", { class: worker.ended_at == null ? "busy" : "" }, ...texts.map((text, n) => el("td", { class: looks[n] }, text)));
  }));
};
const siteRow = (name) => {
  const button = el("button", { type: "button", class: "small danger" }, "Block");
  button.addEventListener("click", () => block(new URL(name).hostname));
  const cells = ["named", "", "n until", "n", "n minor", "minor", "n minor"].map((look) => el("td", { class: look }));
  cells[0].append(fit(name));
  return el("tr", {}, ...cells, el("td", { class: "n" }, button));
};

const listen = () => {
  const stream = new EventSource("/live");
  stream.addEventListener("message", (event) => show(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    $("state").textContent = "no connection";
    $("state").className = "badge bad";
    notice("The dashboard does not answer; the page tries again.", true);
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
};
listen();

/* --- questions -------------------------------------------------------------------------------------- */

const question = (form, place, path, render) => {
  $(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    fill(place, el("p", { class: "none" }, "Looking …"));
    try {
      fill(place, ...render(await ask(`${path}?${new URLSearchParams(new FormData($(form)))}`)));
    } catch (error) {
      fill(place, el("p", { class: "error" }, error.message));
    }
  });
};
question("why", "answer", "/why", ({ url, rows: facts }) => {
  let before = "";
  const parts = facts.flatMap(([label, text]) => {
    const parts = [el("dt", {}, label === before ? "" : label), el("dd", {}, text)];
    before = label;
    return parts;
  });
  return [el("p", { class: "url" }, url), el("dl", {}, ...parts)];
});
const marked = ({ text, marks }) => {
  const characters = [...text]; // code points, as Python counts them
  const parts = [];
  let end = 0;
  for (const [from, to] of marks) {
    parts.push(fit(characters.slice(end, from).join("")), el("mark", {}, characters.slice(from, to).join("")));
    end = to;
  }
  return el("span", {}, ...parts, characters.slice(end).join(""));
};
question("search", "found", "/search", ({ total, hits, note }) => {
  const items = hits.map((hit) => {
    const tell = el("button", { type: "button", class: "link" }, hit.title.text ? marked(hit.title) : hit.url);
    tell.addEventListener("click", () => {
      $("url").value = hit.url;
      $("why").requestSubmit();
      $("why").scrollIntoView({ block: "center" });
    });
    return el("li", {}, tell, el("div", { class: "url" }, hit.url), el("p", {}, marked(hit.excerpt)));
  });
  const said = `${count(total)} page${total === 1 ? "" : "s"} with all these words${note ? `; ${note}` : ""}`;
  return [el("p", { class: "note" }, said), el("ul", { class: "hits" }, ...items)];
});
