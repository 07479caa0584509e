// The frames of a remote terminal: one byte says which stream (upstream: remotecommand, v4 and v5.channel.k8s.io).

export const STDIN = 0;
export const STDOUT = 1;
export const STDERR = 2;
export const ERROR = 3;
export const RESIZE = 4;

export function frame(channel: number, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(content.length + 1);
  bytes[0] = channel;
  bytes.set(content, 1);
  return bytes;
}

export const textFrame = (channel: number, text: string): Uint8Array<ArrayBuffer> => frame(channel, new TextEncoder().encode(text));

export const resizeFrame = (columns: number, rows: number): Uint8Array<ArrayBuffer> => textFrame(RESIZE, JSON.stringify({ Width: columns, Height: rows }));

/** How a session ended, from the status on the error channel: empty when it went well. */
export function endOf(status: string): string {
  try {
    const parsed = JSON.parse(status) as { status?: string; message?: string };
    return parsed.status === "Success" ? "" : parsed.message ?? status;
  } catch {
    return status;
  }
}
