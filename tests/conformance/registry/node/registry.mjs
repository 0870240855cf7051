// @kafkajs/confluent-schema-registry: register, look up, encode and decode each type of schema; prints what came, as JSON.
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_CLIENTS + "/");
const { SchemaRegistry, SchemaType, COMPATIBILITY } = require("@kafkajs/confluent-schema-registry");

const [, , host, username, password] = process.argv;
const auth = username ? { username, password } : undefined;
const registry = new SchemaRegistry({ host, auth, retry: { retries: 0 } }, { [SchemaType.AVRO]: {} });
const told = {};

const order = { type: "record", name: "Order", namespace: "shop", fields: [{ name: "id", type: "long" }] };
const avro = await registry.register(
  { type: SchemaType.AVRO, schema: JSON.stringify(order) },
  { subject: "shop.Order", compatibility: COMPATIBILITY.FULL },
);
told.avro = await registry.decode(await registry.encode(avro.id, { id: 7 }));
told.named = (await registry.register(order, { compatibility: COMPATIBILITY.FULL })).id === avro.id;
told.latest = (await registry.getLatestSchemaId("shop.Order")) === avro.id;
told.version = (await registry.getRegistryId("shop.Order", 1)) === avro.id;
told.lookup = (await registry.getRegistryIdBySchema("shop.Order", { type: SchemaType.AVRO, schema: JSON.stringify(order) })) === avro.id;

const box = { type: "record", name: "Box", namespace: "shop", fields: [{ name: "order", type: "shop.Order" }] };
const references = [{ name: "shop.Order", subject: "shop.Order", version: 1 }];
const boxed = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(box), references }, { subject: "shop.Box" });
const fresh = new SchemaRegistry({ host, auth });
told.references = await fresh.decode(await registry.encode(boxed.id, { order: { id: 9 } }));

const json = { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { id: { type: "integer" } } };
const described = await registry.register({ type: SchemaType.JSON, schema: JSON.stringify(json) }, { subject: "json-value" });
told.json = await registry.decode(await registry.encode(described.id, { id: 7 }));

const proto = 'syntax = "proto3"; package shop; message Item { int32 id = 1; string note = 2; }';
const message = await registry.register({ type: SchemaType.PROTOBUF, schema: proto }, { subject: "proto-value" });
told.protobuf = await registry.decode(await registry.encode(message.id, { id: 7, note: "x" }));

try {
  const wrong = { ...order, fields: [{ name: "id", type: "string" }] };
  await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(wrong) }, { subject: "shop.Order", compatibility: COMPATIBILITY.FULL });
  told.refused = "nothing";
} catch (error) {
  told.refused = `${error.name} ${error.status}`;
}
console.log(JSON.stringify(told));
