// Follows a channel with a Java client and prints "event REPLAYID VALUE" for each event; goes on by itself after the server was away.
//
//     EventsCalls cometd URL TOKEN CHANNEL REPLAY FIELD          CometD's client, as Salesforce's EMP connector uses it
//     EventsCalls grpc PORT TOKEN ORG TOPIC FIELD                gRPC's, from the earliest event; a line on standard input is published
//     EventsCalls camel URL USER PASSWORD PORT TOPIC FIELD       Camel's Salesforce component; likewise, "composite X" all-or-none with
//                                                                another, "bulk X" by a job

import com.google.protobuf.ByteString;
import com.salesforce.eventbus.protobuf.ConsumerEvent;
import com.salesforce.eventbus.protobuf.FetchRequest;
import com.salesforce.eventbus.protobuf.FetchResponse;
import com.salesforce.eventbus.protobuf.ProducerEvent;
import com.salesforce.eventbus.protobuf.PubSubGrpc;
import com.salesforce.eventbus.protobuf.PublishRequest;
import com.salesforce.eventbus.protobuf.ReplayPreset;
import com.salesforce.eventbus.protobuf.SchemaRequest;
import com.salesforce.eventbus.protobuf.TopicRequest;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.salesforce.AuthenticationType;
import org.apache.camel.component.salesforce.SalesforceComponent;
import org.apache.camel.component.salesforce.api.dto.bulkv2.ContentTypeEnum;
import org.apache.camel.component.salesforce.api.dto.bulkv2.Job;
import org.apache.camel.component.salesforce.api.dto.bulkv2.JobStateEnum;
import org.apache.camel.component.salesforce.api.dto.bulkv2.OperationEnum;
import org.apache.camel.component.salesforce.api.dto.composite.SObjectComposite;
import org.apache.camel.component.salesforce.api.dto.composite.SObjectCompositeResponse;
import org.apache.camel.impl.DefaultCamelContext;
import org.cometd.bayeux.Channel;
import org.cometd.bayeux.Message;
import org.cometd.bayeux.client.ClientSession;
import org.cometd.client.BayeuxClient;
import org.cometd.client.http.jetty.JettyHttpClientTransport;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Request;

public final class EventsCalls {
    public static void main(String[] given) throws Exception {
        switch (given[0]) {
            case "cometd" -> cometd(given[1], given[2], given[3], Long.parseLong(given[4]), given[5]);
            case "grpc" -> new Grpc(given).run();
            default -> camel(given);
        }
    }

    private static synchronized void show(long replayId, Object value) {
        System.out.println("event " + replayId + " " + value);
    }

    private static void cometd(String url, String token, String channel, long replay, String field) throws Exception {
        HttpClient http = new HttpClient();
        http.start();
        JettyHttpClientTransport transport = new JettyHttpClientTransport(new HashMap<>(), http) {
            @Override
            protected void customize(Request request) {
                request.headers(headers -> headers.put("Authorization", "OAuth " + token));
            }
        };
        BayeuxClient client = new BayeuxClient(url + "/cometd/60.0", transport);
        AtomicLong last = new AtomicLong(replay);
        client.addExtension(new ClientSession.Extension() {
            @Override
            public boolean sendMeta(ClientSession session, Message.Mutable message) {
                if (Channel.META_SUBSCRIBE.equals(message.getChannel())) {
                    message.getExt(true).put("replay", Map.of(channel, last.get()));
                }
                return true;
            }
        });
        client.getChannel(Channel.META_HANDSHAKE).addListener((org.cometd.bayeux.client.ClientSessionChannel.MessageListener)
            (from, answer) -> {
                if (answer.isSuccessful()) {
                    client.getChannel(channel).subscribe((where, message) -> {
                        Map<String, Object> data = message.getDataAsMap();
                        long id = ((Number) ((Map<?, ?>) data.get("event")).get("replayId")).longValue();
                        last.set(id);
                        show(id, ((Map<?, ?>) data.get("payload")).get(field));
                    }, subscribed -> System.out.println("subscribed " + subscribed.isSuccessful()));
                }
            });
        client.handshake();
        System.in.readAllBytes();
        client.disconnect(2000);
        http.stop();
    }

    private static final class Grpc {
        private final String topic;
        private final String field;
        private final ManagedChannel channel;
        private final PubSubGrpc.PubSubStub asking;
        private final PubSubGrpc.PubSubBlockingStub blocking;
        private final Map<String, Schema> schemas = new ConcurrentHashMap<>();
        private volatile ByteString last = ByteString.EMPTY;

        Grpc(String[] given) {
            topic = given[4];
            field = given[5];
            Metadata metadata = new Metadata();
            put(metadata, "accesstoken", given[2]);
            put(metadata, "instanceurl", "https://127.0.0.1");
            put(metadata, "tenantid", given[3]);
            channel = ManagedChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(given[1])).usePlaintext().build();
            asking = PubSubGrpc.newStub(channel).withInterceptors(MetadataUtils.newAttachHeadersInterceptor(metadata));
            blocking = PubSubGrpc.newBlockingStub(channel).withWaitForReady()
                .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(metadata));
        }

        private static void put(Metadata metadata, String name, String value) {
            metadata.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
        }

        void run() throws Exception {
            Thread following = new Thread(this::follow);
            following.setDaemon(true);
            following.start();
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                publish(line);
            }
            channel.shutdownNow();
        }

        private void follow() {
            while (true) {
                CountDownLatch ended = new CountDownLatch(1);
                AtomicLong owed = new AtomicLong(10);
                StreamObserver<FetchRequest>[] requests = new StreamObserver[1];
                requests[0] = asking.subscribe(new StreamObserver<FetchResponse>() {
                    @Override
                    public void onNext(FetchResponse response) {
                        response.getEventsList().forEach(Grpc.this::take);
                        if (owed.addAndGet(-response.getEventsCount()) == 0) {
                            owed.set(10);
                            requests[0].onNext(FetchRequest.newBuilder().setTopicName(topic).setNumRequested(10).build());
                        }
                    }

                    @Override
                    public void onError(Throwable error) {
                        ended.countDown();
                    }

                    @Override
                    public void onCompleted() {
                        ended.countDown();
                    }
                });
                FetchRequest.Builder first = FetchRequest.newBuilder().setTopicName(topic).setNumRequested(10);
                if (last.isEmpty()) {
                    first.setReplayPreset(ReplayPreset.EARLIEST);
                } else {
                    first.setReplayPreset(ReplayPreset.CUSTOM).setReplayId(last);
                }
                requests[0].onNext(first.build());
                try {
                    ended.await();
                    Thread.sleep(200);
                } catch (InterruptedException error) {
                    return;
                }
            }
        }

        private void take(ConsumerEvent event) {
            try {
                Schema schema = schema(event.getEvent().getSchemaId());
                byte[] payload = event.getEvent().getPayload().toByteArray();
                GenericRecord record = new GenericDatumReader<GenericRecord>(schema)
                    .read(null, DecoderFactory.get().binaryDecoder(payload, null));
                last = event.getReplayId();
                show(last.asReadOnlyByteBuffer().getLong(), record.get(field));
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        private Schema schema(String id) {
            return schemas.computeIfAbsent(id, wanted -> new Schema.Parser().parse(
                blocking.getSchema(SchemaRequest.newBuilder().setSchemaId(wanted).build()).getSchemaJson()));
        }

        private void publish(String value) throws Exception {
            String id = blocking.getTopic(TopicRequest.newBuilder().setTopicName(topic).build()).getSchemaId();
            GenericRecord record = new GenericData.Record(schema(id));
            record.put("CreatedDate", System.currentTimeMillis());
            record.put("CreatedById", "005000000000000AAA");
            record.put("Express__c", false);
            record.put(field, value);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
            new GenericDatumWriter<GenericRecord>(schema(id)).write(record, encoder);
            encoder.flush();
            ProducerEvent event = ProducerEvent.newBuilder().setId(value).setSchemaId(id)
                .setPayload(ByteString.copyFrom(bytes.toByteArray())).build();
            PublishRequest request = PublishRequest.newBuilder().setTopicName(topic).addEvents(event).build();
            System.out.println("published " + blocking.publish(request).getResults(0).getCorrelationKey());
        }
    }

    private static void camel(String[] given) throws Exception {
        String event = given[5].substring("/event/".length());
        SalesforceComponent component = new SalesforceComponent();
        component.setAuthenticationType(AuthenticationType.USERNAME_PASSWORD);
        component.setLoginUrl(given[1]);
        component.setUserName(given[2]);
        component.setPassword(given[3]);
        component.setClientId("tidegate");
        component.setClientSecret(given[3]);
        component.setPubSubHost("localhost");
        component.setPubSubPort(Integer.parseInt(given[4]));
        DefaultCamelContext context = new DefaultCamelContext();
        context.addComponent("salesforce", component);
        context.addRoutes(new RouteBuilder() {
            @Override
            public void configure() {
                from("salesforce:pubSubSubscribe:" + given[5] + "?replayPreset=EARLIEST&pubSubDeserializeType=GENERIC_RECORD")
                    .process(exchange -> {
                        GenericRecord record = exchange.getIn().getBody(GenericRecord.class);
                        show(0, record.get(given[6]));
                    });
                from("salesforce:subscribe:event/" + event + "?replayId=-2&rawPayload=true")
                    .process(exchange -> System.out.println("streamed " + exchange.getIn().getBody(String.class)));
            }
        });
        context.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        ProducerTemplate template = context.createProducerTemplate();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("published " + switch (line.substring(0, line.indexOf(' '))) {
                case "composite" -> together(template, event, given[6], line);
                case "bulk" -> byJob(template, event, given[6], line);
                default -> template.requestBody("salesforce:createSObject?rawPayload=true&sObjectName=" + event,
                    "{\"" + given[6] + "\": \"" + line + "\"}") != null;
            });
        }
        context.stop();
    }

    private static boolean together(ProducerTemplate template, String event, String field, String value) {
        SObjectComposite both = new SObjectComposite("56.0", true);
        for (String name : List.of("first", "second")) {
            both.addGeneric(SObjectComposite.Method.POST, "/sobjects/" + event, Map.of(field, value + " " + name), name);
        }
        return template.requestBody("salesforce:composite", both, SObjectCompositeResponse.class).getCompositeResponse().stream()
            .allMatch(result -> result.getHttpStatusCode() == 201);
    }

    private static boolean byJob(ProducerTemplate template, String event, String field, String value) throws Exception {
        Job asked = new Job();
        asked.setObject(event);
        asked.setOperation(OperationEnum.INSERT);
        asked.setContentType(ContentTypeEnum.CSV);
        Job job = template.requestBody("salesforce:bulk2CreateJob", asked, Job.class);
        byte[] rows = (field + "\n" + value + "\n").getBytes(StandardCharsets.UTF_8);
        template.requestBodyAndHeader("salesforce:bulk2CreateBatch", new ByteArrayInputStream(rows), "jobId", job.getId());
        template.requestBodyAndHeader("salesforce:bulk2CloseJob", null, "jobId", job.getId());
        while (job.getState() != JobStateEnum.JOB_COMPLETE && job.getState() != JobStateEnum.FAILED) {
            Thread.sleep(50);
            job = template.requestBodyAndHeader("salesforce:bulk2GetJob", null, "jobId", job.getId(), Job.class);
        }
        return job.getState() == JobStateEnum.JOB_COMPLETE && job.getNumberRecordsFailed() == 0;
    }
}
