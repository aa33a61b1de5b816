// A ZooKeeper session with promises, and the tree below a chroot as it stands.

import zookeeper from "node-zookeeper-client";

const { CreateMode, Exception } = zookeeper;
const TIMEOUT_MS = 30000;

export class Session {
  constructor(address) {
    this.client = zookeeper.createClient(address, { sessionTimeout: TIMEOUT_MS, spinDelay: 50 });
  }

  open() {
    const connected = new Promise((done) => this.client.once("connected", done));
    this.client.connect();
    return connected;
  }

  /** Ends the session, which takes its ephemeral znodes away; resolves when it is over. */
  close() {
    const over = new Promise((done) => this.client.once("disconnected", done));
    this.client.close();
    return over;
  }

  get id() {
    return this.client.getSessionId().toString("hex");
  }

  /** Content, version and owner of a znode; null where it is not there. Watched by `watcher`. */
  async read(path, watcher) {
    const found = await this.#ask("getData", path, watcher);
    if (found !== null) return describe(...found);
    // What is not there is watched by another call; it may have come in between.
    const stat = watcher ? await this.#ask("exists", path, watcher) : null;
    return stat?.[0] ? this.read(path, watcher) : null;
  }

  /** Names below a path, sorted; null where it is not there. */
  async list(path, watcher) {
    const found = await this.#ask("getChildren", path, watcher);
    return found === null ? null : found[0].sort();
  }

  #ask(call, path, watcher) {
    return new Promise((done, fail) => {
      const answer = (error, ...found) => {
        if (!error) done(found);
        else if (error.getCode?.() === Exception.NO_NODE) done(null);
        else fail(error);
      };
      if (watcher) this.client[call](path, watcher, answer);
      else this.client[call](path, answer);
    });
  }

  /**
   * Carries out all of these or none: {check|create|set|remove: path, version, data, ephemeral}.
   * Returns "" when it is done, else the name of what refused it; throws when that is not known.
   */
  commit(ops) {
    const transaction = this.client.transaction();
    for (const { check, create, set, remove, version, data = "", ephemeral } of ops) {
      const mode = ephemeral ? CreateMode.EPHEMERAL : CreateMode.PERSISTENT;
      if (check) transaction.check(check);
      else if (create) transaction.create(create, Buffer.from(data), mode);
      else if (set) transaction.setData(set, Buffer.from(data));
      else transaction.remove(remove);
      // The library takes version 0 for "any version": it is put where it belongs afterwards.
      if (!create) transaction.ops.at(-1).version = version ?? -1;
    }
    return new Promise((done, fail) => {
      transaction.commit((error) => {
        if (!error) done("");
        else if (REFUSED.has(error.getCode?.())) done(error.getName());
        else fail(error);
      });
    });
  }
}

const REFUSED = new Set([
  Exception.NO_NODE,
  Exception.NODE_EXISTS,
  Exception.BAD_VERSION,
  Exception.NOT_EMPTY,
]);

function describe(data, stat) {
  return {
    text: (data ?? "").toString("utf8"),
    size: data?.length ?? 0,
    version: stat.version,
    owner: stat.ephemeralOwner.toString("hex"),
    made: stat.czxid.toString("hex"),
  };
}
