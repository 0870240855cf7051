"""Stands in for a Salesforce org: it keeps Accounts in org.db, by their external id Customer_Number__c.

It answers the requests of the sink and of simple-salesforce over TLS on a free port, with the platform's development
certificate, and writes the address to org.address.
"""

import json
import os
import sqlite3
import ssl
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

TLS = Path("tidegate-data/events/tls")
COLUMNS = {
    "Customer_Number__c": "customer_number",
    "Name": "name",
    "BillingCountry": "country",
    "NumberOfEmployees": "employees",
}
TABLE = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS accounts (
    id TEXT PRIMARY KEY, customer_number TEXT NOT NULL UNIQUE, name TEXT NOT NULL, country TEXT, employees INTEGER
);
"""


def upsert(database, account):
    """Create or change one Account; returns the answer of Salesforce's collections."""
    number = account["Customer_Number__c"]
    given = {COLUMNS[field]: value for field, value in account.items() if field in COLUMNS}
    row = database.execute("SELECT id FROM accounts WHERE customer_number = ?", (number,)).fetchone()
    try:
        if row:
            changes = ", ".join(f"{column} = :{column}" for column in given)
            database.execute(f"UPDATE accounts SET {changes} WHERE customer_number = :customer_number", given)
            return {"id": row[0], "success": True, "created": False, "errors": []}
        given["id"] = f"001{number:0>15}"
        columns = ", ".join(given)
        database.execute(f"INSERT INTO accounts ({columns}) VALUES (:{', :'.join(given)})", given)
        return {"id": given["id"], "success": True, "created": True, "errors": []}
    except sqlite3.IntegrityError:
        error = {"statusCode": "REQUIRED_FIELD_MISSING", "message": "an Account needs a Name", "fields": ["Name"]}
        return {"id": None, "success": False, "errors": [error]}


class Org(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.body()
        if self.path.startswith("/services/oauth2/token"):
            self.answer({"access_token": "token", "instance_url": f"https://{ADDRESS}"})
        else:
            self.answer([{"errorCode": "NOT_FOUND", "message": self.path}], 404)

    def do_GET(self):
        if self.path.endswith("/sobjects/Account/describe"):
            self.answer({"name": "Account", "fields": [{"name": name, "type": "string"} for name in ("Id", *COLUMNS)]})
            return
        with org_database() as database:
            found = "SELECT id AS Id, " + ", ".join(f"{column} AS {field}" for field, column in COLUMNS.items())
            database.row_factory = sqlite3.Row
            row = database.execute(f"{found} FROM accounts WHERE customer_number = ?", (self.number(),)).fetchone()
        if row:
            self.answer(dict(row))
        else:
            self.answer([{"errorCode": "NOT_FOUND", "message": "The requested resource does not exist"}], 404)

    def do_PATCH(self):
        """Up to 200 Accounts (/composite/sobjects/Account/Customer_Number__c), or the one that the path names."""
        body = json.loads(self.body())
        with org_database() as database:
            if "/composite/" in self.path:
                self.answer([upsert(database, record) for record in body["records"]])
            else:
                done = upsert(database, {**body, "Customer_Number__c": self.number()})
                self.answer(done if done["success"] else done["errors"], 200 if done["success"] else 400)

    def do_DELETE(self):
        with org_database() as database:
            database.execute("DELETE FROM accounts WHERE customer_number = ?", (self.number(),))
        self.answer(None, 204)

    def number(self):
        """The customer number in .../sobjects/Account/Customer_Number__c/NUMBER."""
        return unquote(self.path.rpartition("/")[2])

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, body, status=200):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class org_database:  # noqa: N801 - used like a function
    """org.db in one transaction."""

    def __enter__(self):
        self._database = sqlite3.connect("org.db", timeout=30)
        return self._database

    def __exit__(self, kind, error, traceback):
        with closing(self._database):
            if kind is None:
                self._database.commit()


with closing(sqlite3.connect("org.db")) as made:
    made.executescript(TABLE)
server = ThreadingHTTPServer(("127.0.0.1", 0), Org)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
ADDRESS = f"127.0.0.1:{server.server_port}"
Path("org.pid").write_text(str(os.getpid()))
Path("org.address").write_text(ADDRESS)
server.serve_forever()
