// A program of another firm: follows Order_Shipped__e with Salesforce's client for Node, and remembers where it was.
// Argument: how many events to take before it ends.
const fs = require("node:fs");
const loaded = require("salesforce-pubsub-api-client");
const PubSubApiClient = loaded.default ?? loaded;

const CHANNEL = "/event/Order_Shipped__e";
const POSITION = "position.txt";
const count = Number(process.argv[2]);

async function main() {
  const client = new PubSubApiClient(
    {
      authType: "oauth-client-credentials",
      loginUrl: "http://127.0.0.1:8090",
      clientId: "tidegate",
      clientSecret: "tidegate-dev",
      pubSubEndpoint: "127.0.0.1:7443",
      rejectUnauthorizedSsl: false,
    },
    { debug() {}, info() {}, warn() {}, error: console.error },
  );
  await client.connect();
  let seen = 0;
  const take = (_, type, data) => {
    if (type === "error") throw data;
    if (type !== "event" || seen === count) return;
    const order = data.payload;
    console.log(`${order.Order_Number__c} ${order.Quantity__c} x ${order.Product__c}`);
    fs.writeFileSync(POSITION, String(data.replayId)); // after the work: a crash repeats an event rather than losing it
    seen += 1;
    if (seen === count) process.exit(0);
  };
  if (fs.existsSync(POSITION)) client.subscribeFromReplayId(CHANNEL, take, 100, Number(fs.readFileSync(POSITION)));
  else client.subscribeFromEarliestEvent(CHANNEL, take, 100);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
