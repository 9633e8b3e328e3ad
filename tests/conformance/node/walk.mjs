// The same walk as clients/walk.py with openai-node; prints what it saw as JSON, under the same names.
import fs from "node:fs";
import path from "node:path";
import OpenAI, { toFile } from "openai";
import { VERSION } from "openai/version";

const FOLDER = process.env.WALK_FOLDER;
const CHAT = process.env.WALK_CHAT;
const CROWDED_KEY = process.env.WALK_CROWDED_KEY;
const PATHS = JSON.parse(fs.readFileSync(path.join(FOLDER, "paths.json"), "utf8"));
const ENDED = new Set(["completed", "failed", "expired", "cancelled"]);
const NOBODY = "0".repeat(24);

const inFolder = (name) => path.join(FOLDER, name);
const now = () => performance.now() / 1000;
const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// The real way to the server, with every attempt noted; an answer can be lost on its way back.
class Counted {
  attempts = [];
  loseNextCreate = false;

  fetch = async (url, init) => {
    const sent = new Headers(init?.headers);
    const answer = await fetch(url, init);
    const call = `${(init?.method ?? "GET").toUpperCase()} ${new URL(url).pathname.split("/v1")[1]}`;
    this.attempts.push({
      call,
      status: answer.status,
      retry_count: sent.get("x-stainless-retry-count"),
      idempotency_key: sent.get("idempotency-key"),
      chunked: init?.body instanceof ReadableStream || init?.body?.[Symbol.asyncIterator] !== undefined,
      should_retry: answer.headers.get("x-should-retry"),
      retry_after: answer.headers.get("retry-after"),
    });
    if (this.loseNextCreate && call === "POST /batches") {
      this.loseNextCreate = false;
      await answer.text();
      throw new TypeError("the answer was lost");
    }
    return answer;
  };
}

const way = new Counted();
const client = new OpenAI({ fetch: way.fetch, timeout: 60_000 });

// What a customer's code reads from a typed object, path by path; what is not there stands as missing.
function seen(thing, kind) {
  const found = {};
  for (const where of PATHS[kind]) {
    let value = thing;
    for (const name of where.split(".")) value = value === "(missing)" ? value : (value?.[name] ?? absent(value, name));
    found[where] = value;
  }
  return found;
}

function absent(value, name) {
  return value !== null && typeof value === "object" && name in value ? null : "(missing)";
}

// What the SDK makes of a refusal, and how often it asked.
async function refusal(call, counted = way) {
  const before = counted.attempts.length;
  try {
    return { answered: String(await call()) };
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    return {
      class: error.constructor.name,
      status: error.status,
      message: error.message,
      code: error.code,
      param: error.param,
      type: error.type,
      request_id: error.requestID,
      limit: error.error?.limit ?? null,
      attempts: counted.attempts.slice(before),
    };
  }
}

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

async function content(id, options) {
  return Buffer.from(await (await client.files.content(id, options)).arrayBuffer());
}

// Upload in three ways, look, list in pages, download whole and in part, delete.
async function walkFiles() {
  const data = fs.readFileSync(inFolder("chat.jsonl"));
  let begun = now();
  async function* pieces() {
    yield data.subarray(0, 10);
    yield data.subarray(10);
  }
  const files = {
    path: await client.files.create({ file: fs.createReadStream(inFolder("chat.jsonl")), purpose: "batch" }),
    bytes: await client.files.create({ file: await toFile(data, 'réq "x".jsonl'), purpose: "batch" }),
    stream: await client.files.create({ file: await toFile(pieces(), "stream.jsonl"), purpose: "batch" }),
  };
  const seconds = now() - begun;
  const chunked = way.attempts.filter((one) => one.call === "POST /files").map((one) => one.chunked);
  const same = {};
  for (const [name, one] of Object.entries(files)) same[name] = data.equals(await content(one.id));
  const part = await client.files.content(files.path.id, { headers: { Range: "bytes=2-10" } });
  const isThePart = data.subarray(2, 11).equals(Buffer.from(await part.arrayBuffer()));
  begun = now();
  const waited = await client.files.waitForProcessing(files.stream.id);
  const waitedSeconds = now() - begun;
  const before = way.attempts.length;
  const listed = (await all(client.files.list({ limit: 2, purpose: "batch" }))).map((one) => one.id);
  return {
    uploaded: Object.fromEntries(Object.entries(files).map(([name, one]) => [name, seen(one, "file")])),
    seconds,
    chunked,
    listed: { ids: listed, pages: way.attempts.length - before },
    retrieved: seen(await client.files.retrieve(files.bytes.id), "file"),
    content: same,
    range: { status: part.status, is_the_part: isThePart },
    waited: { status: waited.status, seconds: waitedSeconds },
    deleted: await client.files.delete(files.stream.id),
    deleted_again: await refusal(() => client.files.delete(files.stream.id)),
  };
}

// Upload a file in parts; this SDK has no helper for it.
async function walkUploads() {
  const data = fs.readFileSync(inFolder("chat.jsonl"));
  const upload = await client.uploads.create({
    bytes: data.length,
    filename: "parts.jsonl",
    mime_type: "application/jsonl",
    purpose: "batch",
  });
  const parts = [];
  for (let at = 0; at < data.length; at += 100) {
    const piece = await toFile(data.subarray(at, at + 100), "part");
    parts.push((await client.uploads.parts.create(upload.id, { data: piece })).id);
  }
  const done = await client.uploads.complete(upload.id, { part_ids: parts });
  return {
    upload: seen(done, "upload"),
    parts: way.attempts.filter((one) => one.call.endsWith("/parts")).length,
    content: done.file != null && data.equals(await content(done.file.id)),
  };
}

// List the models, look at one, miss one.
async function walkModels() {
  return {
    ids: (await all(client.models.list())).map((one) => one.id),
    one: seen(await client.models.retrieve(CHAT), "model"),
    missing: await refusal(() => client.models.retrieve("no/such-model")),
  };
}

const upload = (name) => client.files.create({ file: fs.createReadStream(inFolder(name)), purpose: "batch" });

// A new batch of a file in the folder.
async function create(name, { endpoint = "/v1/chat/completions", window = "24h" } = {}) {
  const file = await upload(name);
  return client.batches.create({
    input_file_id: file.id,
    endpoint,
    completion_window: window,
    metadata: { walk: name },
  });
}

// The batch once it has ended, and the seconds that each look took.
async function finished(batch) {
  const looks = [];
  const until = now() + 240;
  while (!ENDED.has(batch.status) && now() < until) {
    await pause(0.5);
    const begun = now();
    batch = await client.batches.retrieve(batch.id);
    looks.push(now() - begun);
  }
  return [batch, looks];
}

// An ended batch, and what stands in its output file.
async function results(batch) {
  let lines = [];
  if (batch.output_file_id) {
    const text = await (await client.files.content(batch.output_file_id)).text();
    lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }
  return { batch: seen(batch, "batch"), lines };
}

// A chat batch, an embeddings batch with the longest window, a cancelled one, a bad one, and one whose answer was lost.
async function walkBatches() {
  const begun = now();
  const chat = await create("chat.jsonl");
  const createSeconds = now() - begun;
  const inUse = await refusal(() => client.files.delete(chat.input_file_id));
  const embeddings = await create("embeddings.jsonl", { endpoint: "/v1/embeddings", window: process.env.WALK_LONGEST_WINDOW });
  const cancelled = await create("chat.jsonl");
  const cancelling = await client.batches.cancel(cancelled.id);
  const bad = await create("bad.jsonl");
  let before = way.attempts.length;
  way.loseNextCreate = true;
  const lost = await create("chat.jsonl");
  const lostAttempts = way.attempts.slice(before).filter((one) => one.call === "POST /batches");
  await client.batches.cancel(lost.id);
  const made = [chat, embeddings, cancelled, bad, lost];
  const ended = [];
  const looks = [0];
  for (const one of made) {
    const [batch, seconds] = await finished(one);
    ended.push(batch);
    looks.push(...seconds);
  }
  before = way.attempts.length;
  const listed = await all(client.batches.list({ limit: 2 }));
  const pages = way.attempts.length - before;
  return {
    created: seen(chat, "batch"),
    create_seconds: createSeconds,
    look_seconds: Math.max(...looks),
    chat: await results(ended[0]),
    embeddings: await results(ended[1]),
    cancelling: seen(cancelling, "batch"),
    cancelled: seen(ended[2], "batch"),
    bad: seen(ended[3], "failed_batch"),
    lost: { attempts: lostAttempts, file: lost.input_file_id, id: lost.id },
    lost_made: listed.filter((one) => one.input_file_id === lost.input_file_id).map((one) => one.id),
    listed: { ids: listed.map((one) => one.id), pages, made: made.map((one) => one.id) },
    in_use: inUse,
    cancel_ended: await refusal(() => client.batches.cancel(chat.id)),
  };
}

// One refusal of each kind that an SDK has a class for.
async function walkRefusals() {
  const file = await upload("bad.jsonl");
  const keyed = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" };
  const key = { headers: { "Idempotency-Key": `walk-${file.id}` } };
  await client.batches.create(keyed, key);
  const stranger = new OpenAI({ apiKey: "gl_live_nobody", fetch: way.fetch, timeout: 60_000 });
  const notes = await toFile(Buffer.from("{}"), "notes.txt");
  const missing = `file-${NOBODY}`;
  return {
    missing_file: await refusal(() => client.files.retrieve(missing)),
    missing_batch: await refusal(() => client.batches.retrieve(`batch_${NOBODY}`)),
    missing_input: await refusal(() => client.batches.create({ ...keyed, input_file_id: missing })),
    bad_endpoint: await refusal(() => client.batches.create({ ...keyed, endpoint: "/v1/nothing" })),
    bad_extension: await refusal(() => client.files.create({ file: notes, purpose: "batch" })),
    bad_key: await refusal(() => stranger.files.list()),
    key_reused: await refusal(() => client.batches.create({ ...keyed, metadata: { other: "body" } }, key)),
    too_large: await refusal(() => upload("too_large.jsonl")),
  };
}

// Open batches until the account may open no more.
async function walkCrowd() {
  if (!CROWDED_KEY) return { skipped: true };
  const counted = new Counted();
  const crowded = new OpenAI({ apiKey: CROWDED_KEY, fetch: counted.fetch, timeout: 60_000 });
  const file = await crowded.files.create({ file: fs.createReadStream(inFolder("chat.jsonl")), purpose: "batch" });
  const made = [];
  const oneMore = async () =>
    made.push(
      await crowded.batches.create({
        input_file_id: file.id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      }),
    );
  let told = {};
  while (made.length < 5 && !("class" in told)) told = await refusal(oneMore, counted);
  for (const one of made) await crowded.batches.cancel(one.id);
  return { made: made.length, refusal: told };
}

const SCENES = {
  files: walkFiles,
  uploads: walkUploads,
  models: walkModels,
  batches: walkBatches,
  refusals: walkRefusals,
  crowd: walkCrowd,
};

const report = { sdk: `openai-node ${VERSION}` };
for (const [name, scene] of Object.entries(SCENES)) {
  try {
    report[name] = await scene();
  } catch (error) {
    report[name] = { raised: String(error?.stack ?? error) };
  }
}
report.attempts = way.attempts;
process.stdout.write(JSON.stringify(report));
