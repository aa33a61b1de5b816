// Paths, contents, and everything that a controller decides by, read at one go.

export const NO_LEADER = -1;
export const CONTROLLER = "/controller";
export const EPOCH = "/controller_epoch";
export const BROKERS = "/brokers/ids";
export const KNOWN = "/config/brokers";
export const SETTINGS = "/config/topics";
export const TOPICS = "/brokers/topics";
export const QUEUE = "/admin/reassignment_requests";
export const RECORDS = "/admin/reassignments";
const MAX_BYTES = 1024 * 1024;

export const topicPath = (topic) => `${TOPICS}/${topic}`;
export const statePath = (topic, number) => `${TOPICS}/${topic}/partitions/${number}/state`;
export const recordPath = (topic, number) => `${RECORDS}/${topic}/${number}`;

export const isNumber = (text) => /^(0|[1-9]\d*)$/.test(text);
const isReplicas = (value) => Array.isArray(value) && value.every(Number.isInteger);

/** The value of a text, undefined where it is no JSON. */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether an object of a JSON text names a key twice, which JSON.parse does not tell. */
function namesTwice(text) {
  const open = [];
  for (const [token, , colon] of text.matchAll(/"((?:[^"\\]|\\.)*)"(\s*:)?|[{}[\]]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (token === "}" || token === "]") open.pop();
    else if (colon) {
      const key = JSON.parse(token.slice(0, -colon.length));
      if (open.at(-1).has(key)) return true;
      open.at(-1).add(key);
    }
  }
  return false;
}

/** What a request asks for: {legacy, targets: [{topic, number, target}]}; null: malformed. */
export function parseRequest({ text, size }) {
  if (size > MAX_BYTES) return null;
  const asked = parse(text);
  if (!isObject(asked) || asked.version !== 1 || !isObject(asked.assignments)) return null;
  const { version, assignments, legacy = false, ...others } = asked;
  if (Object.keys(others).length || typeof legacy !== "boolean" || namesTwice(text)) return null;
  const targets = [];
  for (const [topic, partitions] of Object.entries(assignments)) {
    if (!isObject(partitions)) return null;
    for (const [number, target] of Object.entries(partitions)) {
      if (!isNumber(number) || !isReplicas(target)) return null;
      targets.push({ topic, number, target });
    }
  }
  return { legacy, targets };
}

function parseRecord(text) {
  const record = parse(text);
  const fits =
    isObject(record) &&
    record.version === 1 &&
    Number.isInteger(record.top) &&
    isReplicas(record.assignment);
  return fits ? { top: record.top, target: record.assignment, legacy: record.legacy ?? false } : null;
}

export const encodeRecord = ({ top, target, legacy }) =>
  JSON.stringify({ version: 1, top, assignment: target, legacy });

export const encodeState = ({ leader, epoch, isr }, controllerEpoch) =>
  JSON.stringify({ version: 1, leader, leader_epoch: epoch, controller_epoch: controllerEpoch, isr });

/** A topic's content with one assignment changed, and everything else that it says. */
export function replaceAssigned(text, number, assigned) {
  const topic = parse(text);
  topic.partitions[number] = assigned;
  return JSON.stringify(topic);
}

export function readState(found) {
  if (found === null) return null;
  const { leader, leader_epoch: epoch, isr } = parse(found.text);
  return { leader, epoch, isr, version: found.version };
}

/**
 * Reads the whole tree; `watcher` is called when any of it changes. The queue is read no further
 * than to its first member.
 */
export async function readTree(session, watcher) {
  const read = (path) => session.read(path, watcher);
  const list = async (path) => (await session.list(path, watcher)) ?? [];
  const [acting, epoch, ids, known, topics, queue, recorded, defaults] = await Promise.all([
    read(CONTROLLER),
    read(EPOCH),
    list(BROKERS),
    list(KNOWN),
    list(TOPICS),
    list(QUEUE),
    list(RECORDS),
    read(`${KNOWN}/<default>`),
  ]);
  const [lives, partitions, records, settings, first] = await Promise.all([
    Promise.all(ids.map((id) => session.read(`${BROKERS}/${id}`))),
    Promise.all(topics.map((topic) => readTopic(read, list, topic))),
    Promise.all(recorded.map((topic) => readRecords(read, list, topic))),
    Promise.all(topics.map((topic) => read(`${SETTINGS}/${topic}`))),
    queue.length ? read(`${QUEUE}/${queue[0]}`) : null,
  ]);
  const live = new Map(ids.map((id, i) => [Number(id), lives[i]?.made]));
  const minimum = (found) => found && parse(found.text)?.config?.["min.insync.replicas"];
  return {
    acting,
    epoch,
    live,
    known: new Set([...known.filter(isNumber).map(Number), ...live.keys()]),
    partitions: partitions.flat(),
    records: records.flat(),
    request: first && { name: queue[0], ...first },
    minimum: (topic) =>
      Number(minimum(settings[topics.indexOf(topic)]) ?? minimum(defaults) ?? 1),
  };
}

async function readTopic(read, list, topic) {
  const [found, numbers] = await Promise.all([
    read(topicPath(topic)),
    list(`${topicPath(topic)}/partitions`),
  ]);
  const partitions = Object.entries(parse(found?.text ?? "{}").partitions ?? {});
  const states = await Promise.all(partitions.map(([number]) => read(statePath(topic, number))));
  return partitions.map(([number, assigned], i) => ({
    topic,
    number,
    assigned,
    key: `${topic}-${number}`,
    content: found.text,
    version: found.version,
    state: readState(states[i]),
    // Parents of the state that have to be made with it.
    parents: [
      ...(numbers.length ? [] : [`${topicPath(topic)}/partitions`]),
      ...(numbers.includes(number) ? [] : [`${topicPath(topic)}/partitions/${number}`]),
    ],
  }));
}

async function readRecords(read, list, topic) {
  const numbers = await list(`${RECORDS}/${topic}`);
  const found = await Promise.all(numbers.map((number) => read(recordPath(topic, number))));
  return numbers.flatMap((number, i) =>
    found[i] === null
      ? []
      : [{ topic, number, last: numbers.length === 1, version: found[i].version, ...{ record: parseRecord(found[i].text) } }],
  );
}
