// jsforce: OAuth by password, client credentials, JWT and code, a session that it renews itself, limits, log out; prints what came of each.
import { createRequire } from "node:module";
import { createSign } from "node:crypto";
import { readFileSync } from "node:fs";
const require = createRequire(process.env.NODE_CLIENTS + "/");
const jsforce = require("jsforce");

const [, , loginUrl, keyFile, code, redirectUri] = process.argv;
const [username, password] = ["developer@tidegate.local", "tidegate-dev"];
const app = { loginUrl, clientId: "tidegate", clientSecret: "tidegate-dev" };
const opened = (more = {}) => new jsforce.Connection({ oauth2: { ...app, ...more }, version: "60.0" });
const said = {};

const byPassword = opened();
said.password = (await byPassword.login(username, password)).organizationId;
said.identity = (await byPassword.identity()).username;

const byApp = opened();
said.client = (await byApp.authorize({ grant_type: "client_credentials" })).organizationId;
said.limits = (await byApp.limits()).DailyApiRequests.Max;
said.usage = byApp.limitInfo.apiUsage.used > 0;

const coded = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");
const claims = { iss: "tidegate", sub: username, aud: loginUrl, exp: Math.floor(Date.now() / 1000) + 180 };
const signed = `${coded({ alg: "RS256" })}.${coded(claims)}`;
const assertion = `${signed}.${createSign("RSA-SHA256").update(signed).sign(readFileSync(keyFile)).toString("base64url")}`;
const byKey = opened();
said.jwt = (await byKey.authorize({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion })).organizationId;

const byCode = opened({ redirectUri });
await byCode.authorize(code);
const { refreshToken, accessToken } = byCode;
await byCode.oauth2.revokeToken(accessToken);
said.renewed = (await byCode.describeGlobal()).sobjects.length;
said.another = byCode.accessToken !== accessToken;
await byCode.logout(true);
said.revoked = await byCode.oauth2.refreshToken(refreshToken).catch((error) => error.name);

const bySoap = new jsforce.Connection({ loginUrl, version: "60.0" });
await bySoap.login(username, password);
const ended = bySoap.accessToken;
await bySoap.logout();
const after = new jsforce.Connection({ instanceUrl: loginUrl, accessToken: ended, version: "60.0" });
said.loggedOut = await after.describeGlobal().catch((error) => error.errorCode);

said.refused = await opened({ clientId: "none" }).login(username, password).catch((error) => `${error.name}: ${error.message}`);
console.log(JSON.stringify(said));
process.exit(0);
