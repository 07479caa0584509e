// A line of a log as text: colours of terminals are taken out, other control characters are made visible.

const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** visibleText("\u001b[31mred\u001b[0m\u0007")  // "red␇" */
export function visibleText(line: string): string {
  return line.replace(ESCAPES, "").replace(/\r$/, "").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (character) => (character === "\u007f" ? "␡" : String.fromCharCode(0x2400 + character.charCodeAt(0))));
}
