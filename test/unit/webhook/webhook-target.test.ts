import { describe, expect, it } from "vitest";
import { checkWebhookTarget, WEBHOOK_URL_CHARS_MAX } from "../../../src/platform/webhook/webhook-target.ts";

const refusalOf = (url: string, allowed: readonly string[] = []) => {
  const checked = checkWebhookTarget(url, allowed);
  return checked.ok ? undefined : checked.error;
};

describe("a webhook's target", () => {
  it.each([
    "https://hooks.example.com/deputy?token=x",
    "https://hooks.example.com:8443/",
    "https://93.184.216.34/hook",
    "https://[2606:4700::1111]/hook",
    "https://bücher.example.org/",
    "HTTPS://Hooks.Example.COM./",
  ])("%s may be asked", (url) => {
    expect(refusalOf(url)).toBeUndefined();
  });

  /** The same few addresses, in every spelling that a parser, a resolver or a router would take for them. */
  it.each([
    [
      "loopback",
      "127.0.0.1",
      "127.1",
      "127.255.255.254",
      "2130706433",
      "0x7f000001",
      "0x7f.1",
      "0177.0.0.1",
      "017700000001",
    ],
    ["loopback with a root dot", "127.0.0.1.", "localhost.", "LOCALHOST", "a.localhost"],
    ["loopback in other scripts", "127。0。0。1", "１２７.0.0.1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127%2E0%2E0%2E1"],
    ["loopback in IPv6", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"],
    [
      "carried by a translator or tunnel",
      "[64:ff9b::127.0.0.1]",
      "[64:ff9b:1::7f00:1]",
      "[2002:7f00:1::]",
      "[2001:0:7f00:1::1]",
    ],
    ["unspecified", "0.0.0.0", "0", "[::]", "[::ffff:0:0]"],
    [
      "private",
      "10.0.0.1",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "0xa.0.0.1",
      "167772161",
      "[fc00::1]",
      "[fd12::1]",
    ],
    ["shared by a carrier", "100.64.0.1", "100.127.255.255"],
    ["link-local", "169.254.1.1", "[fe80::1]", "[febf::1]", "[fec0::1]"],
    [
      "metadata",
      "169.254.169.254",
      "2852039166",
      "0xa9fea9fe",
      "0251.0376.0251.0376",
      "[::ffff:169.254.169.254]",
      "[fd00:ec2::254]",
    ],
    [
      "metadata elsewhere",
      "100.100.100.200",
      "192.0.0.192",
      "168.63.129.16",
      "metadata.google.internal",
      "metadata.google.internal.",
      "metadata.goog",
      "metadata",
    ],
    [
      "names of a private network",
      "db.internal",
      "printer.local",
      "nas.lan",
      "x.home.arpa",
      "intranet",
      "a.b.corp",
      "x.localdomain",
    ],
    [
      "not for anybody",
      "224.0.0.1",
      "255.255.255.255",
      "240.0.0.1",
      "192.0.2.1",
      "198.18.0.1",
      "[ff02::1]",
      "[2001:db8::1]",
      "[100::1]",
    ],
  ])("%s is refused: %s", (_what, ...hosts) => {
    const passed = hosts.filter((host) => refusalOf(`https://${host}/hook`) === undefined);
    expect(passed).toEqual([]);
  });

  it.each([
    [
      "inside a cluster",
      "kubernetes",
      "kubernetes.default",
      "kubernetes.default.",
      "kubernetes.default.svc",
      "KUBERNETES.Default.SVC.",
      "api.prod.svc",
      "kubernetes.default.svc.cluster.local",
      "x.svc.cluster",
      "coredns.kube-system",
      "x.istio-system",
      "db.team1",
      "grafana.monitoring",
      "web.service.consul",
      "host.docker.internal",
    ],
    [
      "named like a metadata service",
      "metadata.tencentyun.com",
      "x.metadata.tencentyun.com",
      "metadata.platformequinix.com",
      "metadata.packet.net",
      "metadata.azure.com",
      "metadata.some-cloud.com",
      "instance-data.some-cloud.com",
      "instance-data.ec2.internal",
    ],
    ["with an empty label", "hooks..com", ".hooks.com", "hooks.com..", "hooks.com...", ".", ".."],
    [
      "with a hyphen at an end",
      "-.com",
      "-hooks.com",
      "hooks-.com",
      "a.-b.com",
      "a.b-.com",
      "hooks.com-",
      "hooks.-com",
    ],
    [
      "of no public form",
      "hooks.c",
      "hooks.123x",
      "hooks.c_m",
      "hooks.x-y",
      "ho*ks.com",
      "h(o)ks.com",
      "a=b.com",
      "a&b.com",
    ],
    ["too long", `${"a".repeat(64)}.com`, `${"a.".repeat(126)}com`],
    ["private by convention", "x.arpa", "1.0.0.127.in-addr.arpa", "x.mail", "x.alt", "x.i2p", "x.workgroup", "x.intra"],
  ])("a host %s is refused: %s", (_what, ...hosts) => {
    const passed = hosts.filter((host) => refusalOf(`https://${host}/hook`) === undefined);
    expect(passed).toEqual([]);
  });

  it.each([
    "https://metadata.io/",
    "https://svc.example.com/",
    "https://default.example.com/",
    "https://hooks_eu.example.com/",
    "https://xn--bcher-kva.xn--p1ai/",
    "https://a-b.c--d.io/",
    "https://3m.com/",
    `https://${"a".repeat(63)}.com/`,
    `https://${"a.".repeat(125)}com/`,
  ])("%s has a public name's form and passes", (url) => {
    expect(refusalOf(url)).toBeUndefined();
  });

  it("says what is wrong with a name", () => {
    const why = (host: string) => refusalOf(`https://${host}/`)?.replace("must be a public address: its host ", "");
    expect(["a..com", "-a.com", "a.b1", "a.default", "metadata.x.com", `${"a".repeat(64)}.com`].map(why)).toEqual([
      "has an empty label",
      "has a label that is not made of letters, digits and inner hyphens",
      "does not end with a public top-level name",
      "is a name inside a cluster",
      "is a metadata service by its name",
      "has a label of more than 63 characters",
    ]);
  });

  it.each([
    ["http://hooks.example.com/", "must be an https: URL"],
    ["ftp://hooks.example.com/", "must be an https: URL"],
    ["file:///etc/passwd", "must be an https: URL"],
    ["/threads", "must be an absolute https: URL"],
    ["hooks.example.com/", "must be an absolute https: URL"],
    ["", "must be an absolute https: URL"],
    ["https://", "must be an absolute https: URL"],
    ["https://hooks.exa\tmple.com/", "must be an absolute https: URL"],
    ["https://hooks.example.com\\@127.0.0.1/", "must be an absolute https: URL"],
    ["https://user@hooks.example.com/", "must not carry a user name or password"],
    ["https://:secret@hooks.example.com/", "must not carry a user name or password"],
    [
      `https://hooks.example.com/${"x".repeat(WEBHOOK_URL_CHARS_MAX)}`,
      `must have at most ${WEBHOOK_URL_CHARS_MAX} characters`,
    ],
  ])("%s: %s", (url, refusal) => {
    expect(refusalOf(url)).toBe(refusal);
  });

  it("a host that looks like an allowed one is judged by what it is, not by what it begins with", () => {
    expect(refusalOf("https://hooks.example.com@127.0.0.1/")).toBeDefined();
    expect(refusalOf("https://127.0.0.1.nip.io.internal/")).toBeDefined();
    expect(refusalOf("http://127.0.0.1:9000/", ["127.0.0.1:9"])).toBeDefined();
    expect(refusalOf("http://127.0.0.1:9000/", ["0.0.1:9000"])).toBeDefined();
  });

  it("the operator's allowance is for one host, or one port of it, and covers http", () => {
    expect(refusalOf("http://127.0.0.1:9000/hook", ["127.0.0.1:9000"])).toBeUndefined();
    expect(refusalOf("http://0x7f.1:9000/hook", ["127.0.0.1:9000"])).toBeUndefined();
    expect(refusalOf("http://127.0.0.1:9001/hook", ["127.0.0.1:9000"])).toBeDefined();
    expect(refusalOf("http://127.0.0.1:9001/hook", ["127.0.0.1"])).toBeUndefined();
    expect(refusalOf("http://hooks.internal/", ["hooks.internal"])).toBeUndefined();
    expect(refusalOf("http://user@127.0.0.1:9000/", ["127.0.0.1:9000"])).toBe("must not carry a user name or password");
    expect(refusalOf("file://127.0.0.1/", ["127.0.0.1"])).toBe("must be an https: URL");
  });
});
