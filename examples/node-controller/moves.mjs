// Requests, and the steps of a reassignment. Each function returns what is due first: {ops, then,
// warning}, where `then` is called when the ops are written; undefined where nothing is.

import { removeRecord, writeState } from "./controller.mjs";
import * as z from "./znodes.mjs";

const same = (a, b) => a.length === b.length && a.every((replica, i) => replica === b[i]);
const without = (all, some) => all.filter((replica) => !some.includes(replica));
const partitionsByKey = (tree) => new Map(tree.partitions.map((each) => [each.key, each]));

/** What a new controller finds a drop due for: nothing says so but the assignment. */
export function findDropsOwed(tree) {
  const partitions = partitionsByKey(tree);
  const owed = tree.records.filter(({ topic, number, record }) => {
    const assigned = partitions.get(`${topic}-${number}`)?.assigned;
    if (!record || !assigned || assigned.length <= record.top) return false;
    const lacks = without(record.target, assigned).length > 0;
    return lacks || assigned.length > record.top + record.target.length;
  });
  return new Set(owed.map(({ topic, number }) => `${topic}-${number}`));
}

// -- requests

/** Takes up the first request of the queue: all its records in one transaction, then it goes. */
export function takeUp(tree, memory) {
  const { request } = tree;
  if (request === null) return undefined;
  const remove = [{ remove: `${z.QUEUE}/${request.name}`, version: request.version }];
  const asked = /^request_\d{10}$/.test(request.name) ? z.parseRequest(request) : null;
  if (asked === null) return { warning: `refuses ${request.name}`, ops: remove };
  const partitions = partitionsByKey(tree);
  const begun = new Set(tree.records.map(({ topic }) => topic));
  const changed = [];
  const ops = asked.targets.flatMap(({ topic, number, target }) => {
    const partition = partitions.get(`${topic}-${number}`);
    const flight = tree.records.find((each) => each.topic === topic && each.number === number);
    if (!partition || !isTarget(target, tree.known)) return [];
    if (flight) {
      const { record, version } = flight;
      if (record.legacy !== asked.legacy || same(record.target, target)) return [];
      changed.push(partition.key);
      const data = z.encodeRecord({ ...record, target });
      return [{ set: z.recordPath(topic, number), data, version }];
    }
    const { assigned } = partition;
    if (same(assigned, target) || assigned.length < tree.minimum(topic)) return [];
    const above = begun.has(topic) ? [] : [{ create: `${z.RECORDS}/${topic}` }];
    begun.add(topic);
    const record = { top: assigned.length, target, legacy: asked.legacy };
    return [...above, { create: z.recordPath(topic, number), data: z.encodeRecord(record) }];
  });
  if (ops.length === 0) return { ops: remove };
  return {
    ops,
    then: () => {
      for (const key of changed) {
        memory.drops.add(key);
        memory.announced.delete(key);
        memory.completing.delete(key);
      }
    },
  };
}

function isTarget(target, known) {
  const distinct = new Set(target).size === target.length;
  return target.length > 0 && distinct && target.every((replica) => known.has(replica));
}

// -- the steps of a reassignment

export function stepOfMove(tree, memory) {
  const partitions = partitionsByKey(tree);
  for (const flight of tree.records) {
    const partition = partitions.get(`${flight.topic}-${flight.number}`);
    const due = step(flight, partition, tree, memory);
    if (due) return due;
  }
  return undefined;
}

function step(flight, partition, tree, memory) {
  const { key, assigned, state } = partition;
  const { target, top } = flight.record;
  if (memory.drops.has(key)) return drop(partition, top, tree, memory);
  const lacking = without(target, assigned);
  if (lacking.length) {
    return {
      ops: [writeAssigned(partition, [...assigned, ...lacking])],
      then: () => memory.announced.delete(key),
    };
  }
  if (state === null) return undefined;
  if (!memory.announced.has(key)) {
    return { ops: [writeState(partition, {})], then: () => memory.announced.add(key) };
  }
  return complete(flight, partition, tree, memory);
}

/** Makes room for a new target: the best `top` replicas stay. */
function drop(partition, top, tree, memory) {
  const { key, assigned, state } = partition;
  const done = () => memory.drops.delete(key);
  if (assigned.length <= top) return { ops: [], then: done };
  const led = state !== null && tree.live.has(state.leader) && state.isr.includes(state.leader);
  if (!led) return undefined;
  const inSync = assigned.filter((replica) => state.isr.includes(replica));
  const ranked = [...new Set([state.leader, ...inSync, ...assigned])];
  const dropped = ranked.slice(top);
  const isr = without(state.isr, dropped);
  if (isr.length < state.isr.length) return { ops: [writeState(partition, { isr })] };
  return { ops: [writeAssigned(partition, without(assigned, dropped))], then: done };
}

const LEADS = "a target replica leads and was told so";
const STOPPED = "the old replicas are stopped";

function complete(flight, partition, tree, memory) {
  const { key, assigned, state } = partition;
  const { target } = flight.record;
  const reached = memory.completing.get(key);
  const reach = (stage) => () => memory.completing.set(key, stage);
  if (reached !== STOPPED) {
    const ready = state.leader !== z.NO_LEADER && without(target, state.isr).length === 0;
    if (!ready) {
      memory.completing.delete(key);
      return undefined;
    }
    if (!target.includes(state.leader)) {
      const leader = target.find((replica) => tree.live.has(replica));
      return { ops: [writeState(partition, { leader })], then: reach(LEADS) };
    }
    if (reached !== LEADS) return { ops: [writeState(partition, {})], then: reach(LEADS) };
    const isr = state.isr.filter((replica) => target.includes(replica));
    if (isr.length < state.isr.length) {
      return { ops: [writeState(partition, { isr })], then: reach(STOPPED) };
    }
    return { ops: [], then: reach(STOPPED) };
  }
  if (!same(assigned, target)) return { ops: [writeAssigned(partition, target)] };
  return {
    ops: removeRecord(flight),
    then: () => {
      memory.completing.delete(key);
      memory.announced.delete(key);
    },
  };
}

function writeAssigned({ topic, number, content, version }, assigned) {
  const data = z.replaceAssigned(content, number, assigned);
  return { set: z.topicPath(topic), data, version };
}
