// A client of the SDK for TypeScript: it makes calls and prints what it read, and what it raised where a schema did not fit.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "check", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const tools = (await client.listTools()).tools;
const found = [];
for (const [name, given] of JSON.parse(calls)) {
  try {
    found.push(await client.callTool({ name, arguments: given }));
  } catch (error) {
    found.push({ raised: String(error) });
  }
}
console.log(JSON.stringify({ tools, found }));
await client.close();
