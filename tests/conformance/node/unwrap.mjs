// Has openai-node unwrap what was delivered: {body, headers, secret, now} as JSON on stdin, the event or its refusal on stdout.
import fs from "node:fs";
import OpenAI from "openai";

const { body, headers, secret, now } = JSON.parse(fs.readFileSync(0, "utf8"));
Date.now = () => now * 1000;
const client = new OpenAI({ apiKey: "unused", webhookSecret: secret });

try {
  console.log(JSON.stringify({ event: await client.webhooks.unwrap(body, headers) }));
} catch (error) {
  console.log(JSON.stringify({ refused: error.constructor.name }));
}
