// One controller: it reads everything, takes the first step that is due, and begins again.

import { Session } from "./session.mjs";
import { stepOfMove, takeUp, findDropsOwed } from "./moves.mjs";
import * as z from "./znodes.mjs";

const ROOTS = [
  ...["/brokers", z.BROKERS, z.TOPICS],
  ...["/config", z.KNOWN, z.SETTINGS],
  ...["/admin", z.QUEUE, z.RECORDS],
];

export class Controller {
  /** `brokers` are told of states: the messages of this cluster are calls in this process. */
  constructor(address, id, brokers) {
    this.session = new Session(address);
    this.id = id;
    this.brokers = brokers;
    this.term = null;
    this.running = null;
    this.dirty = false;
    this.ended = false;
    this.wake = () => void this.work().catch((error) => this.complain(error));
  }

  complain(...said) {
    if (!this.ended) console.error(`controller ${this.id}:`, ...said);
  }

  async start() {
    await this.session.open();
    await this.prepare();
    await this.work();
  }

  /** The process dies: its session closes, its memory is gone. */
  async kill() {
    this.ended = true;
    await this.session.close();
  }

  get acts() {
    return this.term !== null;
  }

  /** Works until nothing is due; a call while it works has it look once more. */
  async work() {
    this.dirty = true;
    this.running ??= this.#workOff().finally(() => (this.running = null));
    await this.running;
  }

  async #workOff() {
    while (this.dirty && !this.ended) {
      this.dirty = false;
      while (!this.ended && (await this.#step()));
    }
  }

  /** Makes what has to be there before the first election. */
  async prepare() {
    for (const path of ROOTS) await this.session.commit([{ create: path }]);
    await this.session.commit([{ create: z.EPOCH, data: "0" }]);
  }

  /** Takes one step. Returns whether there may be another one. */
  async #step() {
    const tree = await z.readTree(this.session, this.wake);
    if (tree.acting?.owner !== this.session.id) {
      this.term = null;
      return tree.acting === null && this.#contend(tree);
    }
    // Owed drops are found once, by what the last controller left behind.
    this.term.memory ??= {
      drops: findDropsOwed(tree),
      announced: new Set(),
      completing: new Map(),
      told: new Map(),
    };
    this.#tell(tree);
    const due =
      removeForeign(tree) ??
      bringOnline(tree) ??
      replaceTheDead(tree) ??
      stepOfMove(tree, this.term.memory) ??
      takeUp(tree, this.term.memory);
    if (due === undefined) return false;
    if (due.warning) this.complain(due.warning);
    if (due.ops.length === 0) {
      due.then?.();
      return true;
    }
    return this.#write(due);
  }

  /** Tries to be elected. Returns whether to look again, which is so whoever won. */
  async #contend(tree) {
    const epoch = Number(tree.epoch.text) + 1;
    const about = { version: 1, brokerid: this.id, timestamp: String(Date.now()) };
    const refused = await this.session.commit([
      { create: z.CONTROLLER, data: JSON.stringify(about), ephemeral: true },
      { set: z.EPOCH, data: String(epoch), version: tree.epoch.version },
    ]);
    if (!refused) this.term = { epoch, version: tree.epoch.version + 1, memory: null };
    return true;
  }

  /** Writes under the fence of the term; what is refused is decided anew. */
  async #write({ ops, then }) {
    const { version, epoch } = this.term;
    const stamped = ops.map(({ state, ...op }) =>
      state ? { ...op, data: z.encodeState(state, epoch) } : op,
    );
    const refused = await this.session.commit([{ check: z.EPOCH, version }, ...stamped]);
    if (!refused) then?.();
    return true;
  }

  /** Tells each live assigned broker what has changed since it was told last. */
  #tell(tree) {
    const { told } = this.term.memory;
    for (const { key, assigned, state } of tree.partitions) {
      if (state === null) continue;
      const news = { key, assigned, state, controllerEpoch: this.term.epoch };
      const text = JSON.stringify(news);
      for (const id of assigned.filter((replica) => tree.live.has(replica))) {
        // A broker that is back has another registration, and is told everything.
        const to = `${tree.live.get(id)} ${key}`;
        // One that has registered and does not listen yet is told at the next look.
        const broker = this.brokers.get(id);
        if (!broker || told.get(to) === text) continue;
        told.set(to, text);
        broker.hear(news);
      }
    }
  }
}

/** A record that cannot be one, or of a partition that there is not. */
function removeForeign(tree) {
  const there = new Set(tree.partitions.map(({ key }) => key));
  const foreign = tree.records.find(
    ({ topic, number, record }) =>
      record === null || !z.isNumber(number) || !there.has(`${topic}-${number}`),
  );
  if (!foreign) return undefined;
  const path = z.recordPath(foreign.topic, foreign.number);
  return { warning: `removes ${path}, which is no record`, ops: removeRecord(foreign) };
}

/** Removes a record, and the znode above it with the last one. */
export function removeRecord({ topic, number, version, last }) {
  const above = last ? [{ remove: `${z.RECORDS}/${topic}` }] : [];
  return [{ remove: z.recordPath(topic, number), version }, ...above];
}

function bringOnline(tree) {
  for (const { topic, number, assigned, state, parents } of tree.partitions) {
    const isr = assigned.filter((replica) => tree.live.has(replica));
    if (state !== null || isr.length === 0) continue;
    const made = { leader: isr[0], epoch: 0, isr };
    return {
      ops: [
        ...parents.map((path) => ({ create: path })),
        { create: z.statePath(topic, number), state: made },
      ],
    };
  }
  return undefined;
}

/** Writes a state that follows another: its epoch is one higher. */
export function writeState({ topic, number, state }, changed) {
  return {
    set: z.statePath(topic, number),
    version: state.version,
    state: { ...state, ...changed, epoch: state.epoch + 1 },
  };
}

/** Has somebody lead who is alive, and nobody dead in sync under a leader. */
function replaceTheDead(tree) {
  for (const partition of tree.partitions) {
    const { state, assigned } = partition;
    if (state === null) continue;
    const isr = state.isr.filter((replica) => tree.live.has(replica));
    if (tree.live.has(state.leader)) {
      if (isr.length < state.isr.length) return { ops: [writeState(partition, { isr })] };
      continue;
    }
    const leader = assigned.find((replica) => isr.includes(replica));
    if (leader !== undefined) return { ops: [writeState(partition, { leader, isr })] };
    if (state.leader !== z.NO_LEADER) return { ops: [writeState(partition, { leader: z.NO_LEADER })] };
  }
  return undefined;
}
