// salesforce-pubsub-api-client: log in, subscribe, publish one and a batch; prints [replay id, order number] of what came, and what
// came of a managed subscription, where one is named, to one client and, after its commit, to the next.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const require = createRequire(process.env.NODE_CLIENTS + "/");
const loaded = require("salesforce-pubsub-api-client");
const PubSubApiClient = loaded.default ?? loaded;

const [, , loginUrl, pubSubEndpoint, login, keyFile, managed] = process.argv;
const user = { authType: "username-password", username: "developer@tidegate.local", password: "tidegate-dev", userToken: "" };
const signer = { authType: "oauth-jwt-bearer", clientId: "tidegate", username: user.username, privateKey: keyFile && readFileSync(keyFile, "utf8") };
const app = { authType: "oauth-client-credentials", clientId: "tidegate", clientSecret: "tidegate-dev" };
const quiet = { debug() {}, info() {}, warn() {}, error: console.error };
const settings = { ...{ soap: user, jwt: signer, "client-credentials": app }[login], loginUrl, pubSubEndpoint, rejectUnauthorizedSsl: false };
const client = new PubSubApiClient(settings, quiet);
await client.connect();

const channel = "/event/Order_Shipped__e";
const order = (number) => ({
  CreatedDate: Date.now(), CreatedById: "005000000000000AAA", Order_Number__c: number, Amount__c: { double: 1.5 },
  Express__c: true, Shipped_At__c: null, Due__c: null, Note__c: null,
});
const came = [];
const all = new Promise((resolve, reject) => {
  client.subscribeFromEarliestEvent(channel, (_, type, data) => {
    if (type === "event") came.push([data.replayId, data.payload.Order_Number__c]);
    if (type === "error") reject(data);
    if (came.length === 3) resolve();
  }, 10);
});
await client.publish(channel, order("n-1"));
await client.publishBatch(channel, [{ payload: order("n-2") }, { payload: order("n-3") }], () => {});
await all;

// What has come after a commit comes after it in the stream, so the commit was taken. The first follower stays: the next takes over.
const followed = async (count, commitAt) => {
  const follower = new PubSubApiClient(settings, quiet);
  await follower.connect();
  const got = [];
  await new Promise((resolve, reject) => {
    follower.subscribeWithManagedSubscription(managed, ({ subscriptionId }, type, data) => {
      if (type === "error") reject(data);
      if (type !== "event") return;
      got.push(data.payload.Order_Number__c);
      if (got.length === commitAt) {
        follower.commitReplayId(subscriptionId, data.replayId);
        follower.requestAdditionalManagedEvents(subscriptionId, 10);
      }
      if (got.length === count) resolve();
    }, commitAt).catch(reject);
  });
  return got;
};
const held = managed ? [await followed(3, 2), await followed(1, 1)] : [];
console.log(JSON.stringify([came, held]));
process.exit(0);
