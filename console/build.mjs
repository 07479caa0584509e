// `make console`: types, the bundle, and the hash of what it was made from, which a test without node compares.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";

const OUT = "../src/konverge/console/static";

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? filesBelow(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}

/** One hash over the names and contents of all sources, in the order of their names' bytes. */
function hashOfSources() {
  const names = ["build.mjs", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", ...filesBelow("src"), ...filesBelow("public")];
  const hash = createHash("sha256");
  for (const name of names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
    hash.update(`${name}\0${createHash("sha256").update(readFileSync(name)).digest("hex")}\n`);
  }
  return hash.digest("hex");
}

for (const command of [["tsc", "--noEmit"], ["vite", "build", "--logLevel", "warn"]]) execFileSync("npx", command, { stdio: "inherit" });
writeFileSync(`${OUT}/sources.sha256`, `${hashOfSources()}\n`);
