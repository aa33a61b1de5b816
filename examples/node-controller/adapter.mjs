#!/usr/bin/env node
// Answers what `reassure` asks, and keeps the cluster of one example: brokers and controllers.

import { createInterface } from "node:readline";
import { Broker } from "./brokers.mjs";
import { Controller } from "./controller.mjs";

const FIRST_CONTROLLER = 101;

let address = "";
let brokers = new Map();
let controllers = [];
let next = FIRST_CONTROLLER;

async function startBroker(broker) {
  const started = new Broker(address, broker);
  await started.start();
  brokers.set(broker, started);
}

const acting = () => controllers.find((controller) => controller.acts);

async function elect() {
  const controller = new Controller(address, next++, brokers);
  controllers.push(controller);
  await controller.start();
  return "ok";
}

/** Has every controller look again until one acts and has nothing left to do. */
async function settle({ timeout_s }) {
  const until = Date.now() + 1000 * timeout_s;
  do {
    for (const controller of controllers) await controller.work();
    if (acting()) return true;
    await new Promise((done) => setTimeout(done, 20));
  } while (Date.now() < until);
  return false;
}

async function stop() {
  await Promise.all(controllers.map((controller) => controller.kill()));
  await Promise.all([...brokers.values()].map((broker) => broker.stop()));
  controllers = [];
  brokers.clear();
  return null;
}

const calls = {
  describe: async ({ profile, readings }) => ({
    name: "controller in Node",
    version: "0.1",
    language: "JavaScript",
    profile,
    readings,
    capabilities: ["isr", "brokers", "kill"],
    adapter_version: 2,
  }),

  async start({ hosts, chroot, brokers: ids }) {
    address = hosts + chroot;
    await elect();
    await Promise.all(ids.map(startBroker));
    return null;
  },

  settle,
  stop,
  close: stop,
  elect,

  async start_broker({ broker }) {
    await startBroker(broker);
    return "ok";
  },

  async stop_broker({ broker }) {
    await brokers.get(broker).stop();
    brokers.delete(broker);
    return "ok";
  },

  async change_isr({ broker, topic, partition, joins }) {
    const leader = [...brokers.values()].find((each) => each.leads(`${topic}-${partition}`));
    const done = await leader?.changeIsr(broker, topic, String(partition), joins);
    return done ? "ok" : "refused";
  },

  async kill_controller() {
    const killed = acting();
    if (!killed) return "refused";
    controllers = controllers.filter((controller) => controller !== killed);
    await killed.kill();
    return "ok";
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, call, arguments: given } = JSON.parse(line);
  let said;
  try {
    if (!(call in calls)) throw new Error(`${call} is not written`);
    said = { answer: await calls[call](given) };
  } catch (error) {
    console.error(error);
    said = { error: String(error) };
  }
  process.stdout.write(JSON.stringify({ id, ...said }) + "\n");
}
await stop();
