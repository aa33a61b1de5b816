// Runs one controller by itself, for whoever reaches it by ZooKeeper alone:
//   node alone.mjs host:port/chroot

import { Controller } from "./controller.mjs";

const FIRST_CONTROLLER = 101;

await new Controller(process.argv[2], FIRST_CONTROLLER, new Map()).start();
console.error("a controller acts, or stands by");
