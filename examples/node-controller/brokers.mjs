// A broker as ZooKeeper sees it: a session, a registration, and as a leader the in-sync set.

import { Session } from "./session.mjs";
import * as z from "./znodes.mjs";

export class Broker {
  constructor(address, id) {
    this.session = new Session(address);
    this.id = id;
    // By partition what the controller has said: assigned replicas, and state with its version.
    this.told = new Map();
  }

  async start() {
    await this.session.open();
    const nothing = JSON.stringify({ version: 1, config: {} });
    await this.session.commit([{ create: `${z.KNOWN}/${this.id}`, data: nothing }]);
    const about = {
      version: 4,
      host: "127.0.0.1",
      port: 9092,
      jmx_port: -1,
      timestamp: String(Date.now()),
      endpoints: ["PLAINTEXT://127.0.0.1:9092"],
      listener_security_protocol_map: { PLAINTEXT: "PLAINTEXT" },
    };
    const path = `${z.BROKERS}/${this.id}`;
    const data = JSON.stringify(about);
    const refused = await this.session.commit([{ create: path, data, ephemeral: true }]);
    if (refused) throw new Error(`broker ${this.id} cannot register: ${refused}`);
  }

  stop() {
    return this.session.close();
  }

  /** A message of a controller; one of an earlier controller or state changes nothing. */
  hear(news) {
    const known = this.told.get(news.key);
    const older =
      known &&
      (news.controllerEpoch < known.controllerEpoch ||
        (news.controllerEpoch === known.controllerEpoch && news.state.version < known.state.version));
    if (!older) this.told.set(news.key, news);
  }

  leads(key) {
    return this.told.get(key)?.state.leader === this.id;
  }

  /** As leader, takes a replica in or lets it go. Returns whether that is done. */
  async changeIsr(replica, topic, number, joins) {
    const { key, assigned, state, controllerEpoch } = this.told.get(`${topic}-${number}`);
    if (replica === this.id || state.isr.includes(replica) === joins) return false;
    if (joins && !assigned.includes(replica)) return false;
    if (joins && !(await this.session.read(`${z.BROKERS}/${replica}`))) return false;
    const isr = joins
      ? [...state.isr, replica]
      : state.isr.filter((member) => member !== replica);
    const path = z.statePath(topic, number);
    const there = await this.session.read(path);
    const stamp = z.parse(there.text).controller_epoch;
    const data = z.encodeState({ ...state, isr }, stamp);
    if (await this.session.commit([{ set: path, data, version: state.version }])) return false;
    const changed = { ...state, isr, version: state.version + 1 };
    this.hear({ key, assigned, controllerEpoch, state: changed });
    return true;
  }
}
