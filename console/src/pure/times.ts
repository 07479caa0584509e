// Times as people read them in a list: 45s, 3m, 5h12m, 12d.

const UNITS: [string, number][] = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

/** How long ago, as kubectl writes it (upstream: duration.HumanDuration). */
export function age(from: string | number, now: number): string {
  const start = typeof from === "number" ? from : Date.parse(from);
  if (Number.isNaN(start)) return "";
  const seconds = Math.max(0, Math.floor((now - start) / 1000));
  for (let index = 0; index < UNITS.length; index++) {
    const [unit, size] = UNITS[index];
    if (seconds < size && size !== 1) continue;
    const whole = Math.floor(seconds / size);
    const next = UNITS[index + 1];
    const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
    return rest && whole < 10 ? `${whole}${unit}${rest}${next[0]}` : `${whole}${unit}`;
  }
  return "0s";
}

export function clockTime(text: string, language: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toLocaleTimeString(language, { hour12: false });
}

export function fullTime(text: string, language: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toLocaleString(language, { hour12: false });
}
