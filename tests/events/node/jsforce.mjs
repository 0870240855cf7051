// jsforce: SOAP login, describe, create singly, as a collection, by job and by SOAP, streaming with replay; prints what came of each.
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_CLIENTS + "/");
const jsforce = require("jsforce");
const { StreamingExtension } = require("jsforce/lib/api/streaming");

const [, , loginUrl, count] = process.argv;
const connection = new jsforce.Connection({ loginUrl, version: "60.0" });
const user = await connection.login("developer@tidegate.local", "tidegate-dev");
const event = connection.sobject("Order_Shipped__e");
const described = await event.describe();
const single = await event.create({ Order_Number__c: "j-1" });
const several = await event.create([{ Order_Number__c: "j-2" }, { Bad__c: 1 }]);
const bulk = await connection.bulk2.loadAndWaitForResults({
  object: "Order_Shipped__e", operation: "insert", input: [{ Order_Number__c: "j-3" }, { Order_Number__c: "x".repeat(41) }],
  pollInterval: 20,
});
const bySoap = await connection.soap.create([
  { type: "Order_Shipped__e", Order_Number__c: "j-4", Note__c: null }, { type: "Order_Shipped__e", Order_Number__c: "j-5", Amount__c: "many" },
]);
const channel = "/event/Order_Shipped__e";
const came = [];
const streaming = connection.streaming.createClient([new StreamingExtension.Replay(channel, -2)]);
await new Promise((resolve) => {
  streaming.subscribe(channel, (message) => {
    came.push(message.payload.Order_Number__c);
    if (came.length === Number(count)) resolve();
  });
});
console.log(JSON.stringify({
  organization: user.organizationId, fields: described.fields.map((field) => field.name), single: single.success,
  several: several.map((result) => result.success), came,
  bulk: [bulk.successfulResults.length, bulk.failedResults.length],
  soap: bySoap.map((result) => [result.success, result.errors.map((error) => error.statusCode)]),
}));
process.exit(0);
