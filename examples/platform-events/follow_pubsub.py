"""Follows Order_Shipped__e through the Pub/Sub API with gRPC. ``python follow_pubsub.py 3`` ends after three events.

The message classes come with Tidegate; those that grpc_tools makes of Salesforce's own pubsub_api.proto do as well.
"""

import io
import json
import queue
import sys

import fastavro
import grpc
import requests

from events.proto import pubsub_api_pb2 as pb

FORM = {
    "grant_type": "password",
    "client_id": "tidegate",
    "client_secret": "tidegate-dev",
    "username": "developer@tidegate.local",
    "password": "tidegate-dev",
}
login = requests.post("http://127.0.0.1:8090/services/oauth2/token", data=FORM, timeout=30).json()
org_id = login["id"].split("/")[-2]
metadata = (("accesstoken", login["access_token"]), ("instanceurl", login["instance_url"]), ("tenantid", org_id))

# Plain on this machine; against an org: grpc.secure_channel("api.pubsub.salesforce.com:7443", grpc.ssl_channel_credentials())
with grpc.insecure_channel("127.0.0.1:7080") as channel:
    service = "/eventbus.v1.PubSub"
    subscribe = channel.stream_stream(
        f"{service}/Subscribe", pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
    )
    get_schema = channel.unary_unary(
        f"{service}/GetSchema", pb.SchemaRequest.SerializeToString, pb.SchemaInfo.FromString
    )
    wanted, schemas, missing = queue.SimpleQueue(), {}, int(sys.argv[1])
    wanted.put(pb.FetchRequest(topic_name="/event/Order_Shipped__e", replay_preset=pb.EARLIEST, num_requested=missing))
    for response in subscribe(iter(wanted.get, None), metadata=metadata):
        for received in response.events:
            schema_id = received.event.schema_id
            if schema_id not in schemas:
                answer = get_schema(pb.SchemaRequest(schema_id=schema_id), metadata=metadata)
                schemas[schema_id] = fastavro.parse_schema(json.loads(answer.schema_json))
            fields = fastavro.schemaless_reader(io.BytesIO(received.event.payload), schemas[schema_id])
            print(int.from_bytes(received.replay_id[:8], "big"), fields["Order_Number__c"], fields["Amount__c"])
            missing -= 1
        if missing == 0:
            wanted.put(None)
            break
