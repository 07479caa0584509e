// The build is deterministic: fixed names, no time, no machine path. The service revalidates each file by its ETag.
import { defineConfig } from "vite";

const chunkOf = (id: string) => {
  if (id.includes("@codemirror") || id.includes("@lezer") || id.includes("style-mod") || id.includes("w3c-keyname") || id.includes("crelt") || id.includes("@marijn")) return "editor";
  if (id.includes("@xterm")) return "terminal";
  if (id.includes("uplot")) return "plot";
  if (id.includes("@dagrejs")) return "layout";
  return undefined;
};

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/konverge/console/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        manualChunks: chunkOf,
      },
    },
  },
  server: {
    proxy: {
      "/k8s": { target: process.env.CONSOLE_BACKEND ?? "http://127.0.0.1:8082", ws: true },
      "/console": { target: process.env.CONSOLE_BACKEND ?? "http://127.0.0.1:8082" },
    },
  },
});
