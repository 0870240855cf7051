// cometd.js with a replay extension: prints the order numbers of the first events that are replayed.
const { createRequire } = require("node:module");
const clients = createRequire(process.env.NODE_CLIENTS + "/");
clients("cometd-nodejs-client").adapt();
const { CometD } = clients("cometd");

const [, , url, token, count] = process.argv;
const channel = "/event/Order_Shipped__e";
const cometd = new CometD();
cometd.unregisterTransport("websocket");
cometd.configure({ url: `${url}/cometd/60.0`, requestHeaders: { Authorization: `Bearer ${token}` }, appendMessageTypeToURL: false });
cometd.registerExtension("replay-from-the-start", {
  outgoing(message) {
    if (message.channel === "/meta/subscribe") message.ext = { replay: { [channel]: -2 } };
    return message;
  },
});
const came = [];
cometd.handshake((answer) => {
  if (!answer.successful) throw new Error(JSON.stringify(answer));
  cometd.subscribe(channel, (message) => {
    came.push(message.data.payload.Order_Number__c);
    if (came.length === Number(count)) {
      console.log(JSON.stringify(came));
      cometd.disconnect(() => process.exit(0));
    }
  });
});
