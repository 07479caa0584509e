// Where the ports of pods can be opened in a browser without a port-forward.

const LOOPBACK = /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;

/** Web addresses of a pod's ports, where the pod has an address of the machine that the browser runs on. */
export function portAddresses(podIP: string, ports: readonly number[], host: string): string[] {
  const isHere = host === "localhost" || host === "[::1]" || LOOPBACK.test(host);
  return isHere && LOOPBACK.test(podIP) ? ports.map((port) => `http://${podIP}:${Number(port)}/`) : [];
}
