import { describe, expect, it } from "vitest";
import { portAddresses } from "../src/pure/ports";

describe("the ports of a pod", () => {
  it("are links where the pod has an address of this machine", () => {
    expect(portAddresses("127.20.3.4", [80, 8080], "127.0.0.1")).toEqual(["http://127.20.3.4:80/", "http://127.20.3.4:8080/"]);
    for (const host of ["localhost", "[::1]", "127.0.0.9"]) expect(portAddresses("127.1.2.3", [80], host)).toHaveLength(1);
  });
  it("are none where it is another one's, or the console is looked at from elsewhere", () => {
    for (const ip of ["10.0.0.7", "", "127.0.0.1.evil.com", "x127.0.0.1", "127.0.0.1/a"]) expect(portAddresses(ip, [80], "localhost")).toEqual([]);
    for (const host of ["example.com", "127.0.0.1.evil.com", ""]) expect(portAddresses("127.1.2.3", [80], host)).toEqual([]);
  });
});
