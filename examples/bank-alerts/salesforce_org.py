"""Stands in for a Salesforce org: it takes the requests of the sink and keeps the cases in cases.db.

It listens with TLS on a free port, writes the address to org.address, and uses the platform's development certificate.
"""

import json
import os
import sqlite3
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TLS = Path("tidegate-data/events/tls")
FIELDS = [{"name": name, "type": "string"} for name in ("Id", "Payment__c", "Subject", "Origin")]


class Org(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.read()
        if self.path.startswith("/services/oauth2/token"):
            self.answer({"access_token": "token", "instance_url": f"https://{ADDRESS}"})
        else:
            self.answer([{"errorCode": "NOT_FOUND", "message": self.path}], 404)

    def do_GET(self):
        if self.path.endswith("/sobjects/Case/describe"):
            self.answer({"name": "Case", "fields": FIELDS})
        else:
            self.answer([{"errorCode": "NOT_FOUND", "message": self.path}], 404)

    def do_PATCH(self):
        """Up to 200 cases, by their external id: /composite/sobjects/Case/Payment__c."""
        records = json.loads(self.read())["records"]
        with sqlite3.connect("cases.db", timeout=30) as cases:
            cases.execute("CREATE TABLE IF NOT EXISTS cases (payment INTEGER PRIMARY KEY, subject TEXT, origin TEXT)")
            rows = [(record["Payment__c"], record["Subject"], record["Origin"]) for record in records]
            cases.executemany("INSERT OR REPLACE INTO cases VALUES (?, ?, ?)", rows)
        self.answer([{"id": f"500{row[0]:0>12}", "success": True, "errors": []} for row in rows])

    def read(self):
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, body, status=200):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = ThreadingHTTPServer(("127.0.0.1", 0), Org)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
ADDRESS = f"127.0.0.1:{server.server_port}"
Path("org.pid").write_text(str(os.getpid()))
Path("org.address").write_text(ADDRESS)
server.serve_forever()
