// Calls each method of Confluent's own Java client, as Apache Flink carries it, and Flink's serde upon it; prints what
// was not as it should be, one line each, and how much was checked.
//
//     java -cp ... RegistryCalls URL

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.ParsedSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchemaProvider;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.RestService;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Rule;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.RuleKind;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.RuleMode;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.RuleSet;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaEntity;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaTags;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.requests.RegisterSchemaRequest;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.requests.TagSchemaRequest;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

public final class RegistryCalls {
    private static final List<String> WRONG = new ArrayList<>();
    private static int checked;

    private static final String ORDER =
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}]}";
    private static final String WIDER =
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"},"
            + "{\"name\":\"note\",\"type\":[\"null\",\"string\"],\"default\":null}]}";
    private static final String NARROWER = ORDER.replace("long", "int");
    private static final String BOX =
        "{\"type\":\"record\",\"name\":\"Box\",\"fields\":[{\"name\":\"order\",\"type\":\"shop.Order\"}]}";

    private interface Call<T> {
        T run() throws Exception;
    }

    private static <T> T same(String what, Object want, Call<T> call) {
        checked++;
        try {
            T got = call.run();
            if (!Objects.equals(got, want)) {
                WRONG.add(what + ": got " + got + ", want " + want);
            }
            return got;
        } catch (Exception error) {
            WRONG.add(what + ": " + error);
            return null;
        }
    }

    private static void refused(String what, int code, Call<?> call) {
        checked++;
        try {
            WRONG.add(what + ": want error " + code + ", got " + call.run());
        } catch (RestClientException error) {
            if (error.getErrorCode() != code) {
                WRONG.add(what + ": want error " + code + ", got " + error);
            }
        } catch (Exception error) {
            WRONG.add(what + ": want error " + code + ", got " + error);
        }
    }

    private static Set<String> set(Collection<String> found) {
        return new TreeSet<>(found);
    }

    private static SchemaRegistryClient client(String url) {
        return new CachedSchemaRegistryClient(
            new RestService(url), 100, List.of(new AvroSchemaProvider()), Map.of(), Map.of());
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        registering(url);
        finding(url);
        settings(url);
        rest(new RestService(url));
        serde(url);
        deleting(url);
        WRONG.forEach(System.out::println);
        System.out.println("checked " + checked + ", wrong " + WRONG.size());
        System.exit(0);
    }

    private static void registering(String url) {
        SchemaRegistryClient client = client(url);
        AvroSchema order = new AvroSchema(ORDER);
        same("register", 1, () -> client.register("orders-value", order));
        same("registerWithResponse", 2, () -> client.registerWithResponse("orders-value", new AvroSchema(WIDER), true).getId());
        same("register again", 1, () -> client(url).register("orders-value", order, true));
        refused("register incompatible", 40901, () -> client.register("orders-value", new AvroSchema(NARROWER)));
        refused("register invalid", 42201, () -> new RestService(url).registerSchema("{\"type\":\"record\"}", "x-value"));
        same("setMode", "IMPORT", () -> client.setMode("IMPORT", "imported-value"));
        same("register with an id", 5000, () -> client.register("imported-value", new AvroSchema("\"bytes\""), 7, 5000));
        List<SchemaReference> references = List.of(new SchemaReference("shop.Order", "orders-value", 1));
        AvroSchema box = new AvroSchema(BOX, references, Map.of("shop.Order", ORDER), null);
        Integer boxId = same("register with references", 5001, () -> client.register("boxes-value", box));
        same("references", references, () -> client(url).getLatestSchemaMetadata("boxes-value").getReferences());
        if (boxId != null) {
            same("references by id", box.canonicalString(), () -> client(url).getSchemaById(boxId).canonicalString());
        }
        Metadata metadata = new Metadata(Map.of("**.id", Set.of("PII")), Map.of("owner", "shop"), Set.of("s"));
        Rule rule = new Rule(
            "positive", "ids are positive", RuleKind.CONDITION, RuleMode.WRITE, "CEL", Set.of("t"), Map.of("k", "v"),
            "message.id > 0", null, "ERROR", false);
        RuleSet rules = new RuleSet(List.of(), List.of(rule));
        AvroSchema described = order.copy(metadata, rules);
        same("register with metadata", 5002, () -> client.register("described-value", described));
        same("metadata", metadata, () -> client(url).getLatestSchemaMetadata("described-value").getMetadata());
        same("rules", List.of(rule), () -> client(url).getLatestSchemaMetadata("described-value").getRuleSet().getDomainRules());
        same("getLatestWithMetadata", 1, () -> client(url).getLatestWithMetadata("described-value", Map.of("owner", "shop"), false).getVersion());
    }

    private static void finding(String url) {
        SchemaRegistryClient client = client(url);
        AvroSchema order = new AvroSchema(ORDER);
        ParsedSchema wider = new AvroSchema(WIDER);
        same("getSchemaById", order, () -> client.getSchemaById(1));
        same("getById", new Schema.Parser().parse(ORDER), () -> client.getById(1));
        refused("getSchemaById", 40403, () -> client.getSchemaById(77));
        same("getSchemaBySubjectAndId", wider, () -> client.getSchemaBySubjectAndId("orders-value", 2));
        same("getAllSubjectsById", Set.of("orders-value"), () -> set(client.getAllSubjectsById(1)));
        same("getAllVersionsById", 1, () -> client.getAllVersionsById(1).size());
        same("getByVersion", WIDER, () -> client.getByVersion("orders-value", 2, false).getSchema());
        same("getSchemaMetadata", "AVRO", () -> client.getSchemaMetadata("orders-value", 1).getSchemaType());
        same("getLatestSchemaMetadata", 2, () -> client.getLatestSchemaMetadata("orders-value").getVersion());
        same("getVersion", 2, () -> client.getVersion("orders-value", wider));
        same("getVersion normalized", 2, () -> client(url).getVersion("orders-value", wider, true));
        same("getId", 2, () -> client(url).getId("orders-value", wider));
        refused("getId", 40403, () -> client(url).getId("orders-value", new AvroSchema("\"string\"")));
        same("getAllVersions", List.of(1, 2), () -> client.getAllVersions("orders-value"));
        same("getAllVersions deleted", List.of(1, 2), () -> client.getAllVersions("orders-value", true));
        refused("getAllVersions", 40401, () -> client.getAllVersions("nothing-value"));
        same("getSchemas", 2, () -> client.getSchemas("orders-", false, false).size());
        same("getSchemas latest", 1, () -> client.getSchemas("orders-", false, true).size());
        Set<String> all = Set.of("boxes-value", "described-value", "imported-value", "orders-value");
        same("getAllSubjects", all, () -> set(client.getAllSubjects()));
        same("getAllSubjects deleted", all, () -> set(client.getAllSubjects(true)));
        same("getAllSubjectsByPrefix", Set.of("orders-value"), () -> set(client.getAllSubjectsByPrefix("or")));
    }

    private static void settings(String url) {
        SchemaRegistryClient client = client(url);
        AvroSchema narrower = new AvroSchema(NARROWER);
        same("testCompatibility", true, () -> client.testCompatibility("orders-value", new AvroSchema(WIDER)));
        same("testCompatibility", false, () -> client.testCompatibility("orders-value", narrower));
        same("testCompatibilityVerbose", false, () -> client.testCompatibilityVerbose("orders-value", narrower).isEmpty());
        same("getCompatibility", "BACKWARD", () -> client.getCompatibility(null));
        same("updateCompatibility", "FULL", () -> client.updateCompatibility("settings-value", "FULL"));
        same("getCompatibility", "FULL", () -> client.getCompatibility("settings-value"));
        refused("updateCompatibility", 42203, () -> client.updateCompatibility("settings-value", "SOMETIMES"));
        Config config = new Config("FORWARD");
        config.setCompatibilityGroup("app");
        config.setAlias("orders-value");
        config.setNormalize(true);
        same("updateConfig", "FORWARD", () -> client.updateConfig("settings-value", config).getCompatibilityLevel());
        same("getConfig", List.of("FORWARD", "app", "orders-value", true), () -> {
            Config got = client.getConfig("settings-value");
            return List.of(got.getCompatibilityLevel(), got.getCompatibilityGroup(), got.getAlias(), got.isNormalize());
        });
        same("deleteConfig", null, () -> {
            client.deleteConfig("settings-value");
            return null;
        });
        refused("getConfig", 40408, () -> new RestService(url).getConfig(Map.of(), "settings-value", false));
        same("getMode", "READWRITE", () -> client.getMode());
        same("setMode", "READONLY", () -> client.setMode("READONLY", "settings-value"));
        same("getMode", "READONLY", () -> client.getMode("settings-value"));
        refused("register", 42205, () -> client.register("settings-value", narrower));
        same("setMode force", "IMPORT", () -> client.setMode("IMPORT", "settings-value", true));
        same("deleteMode", null, () -> {
            client.deleteMode("settings-value");
            return null;
        });
        refused("getMode", 40409, () -> client.getMode("settings-value"));
        refused("setMode", 42204, () -> client.setMode("SOMETIMES", "settings-value"));
    }

    private static void rest(RestService rest) {
        same("getSchemaTypes", List.of("JSON", "PROTOBUF", "AVRO"), () -> rest.getSchemaTypes());
        same("getAllContexts", List.of("."), () -> rest.getAllContexts());
        same("getReferencedBy", List.of(5001), () -> rest.getReferencedBy("orders-value", 1));
        same("getOnlySchemaById", ORDER, () -> rest.getOnlySchemaById(1));
        same("getVersionSchemaOnly", ORDER, () -> rest.getVersionSchemaOnly("orders-value", 1));
        same("getLatestVersionSchemaOnly", WIDER, () -> rest.getLatestVersionSchemaOnly("orders-value"));
        same("getId with maxId", 5002, () -> rest.getId(1, null, true).getMaxId());
        same("getClusterId", false, () -> rest.getClusterId().getScope() == null);
        same("getSchemaRegistryServerVersion", false, () -> rest.getSchemaRegistryServerVersion().getVersion().isEmpty());
        TagSchemaRequest tags = new TagSchemaRequest();
        tags.setTagsToAdd(List.of(new SchemaTags(new SchemaEntity("shop.Order.id", SchemaEntity.EntityType.SR_FIELD), List.of("PII"))));
        same("modifySchemaTags", false, () -> rest.modifySchemaTags(RestService.DEFAULT_REQUEST_PROPERTIES, tags, "orders-value", "latest").getId() == 2);
        same("tags", true, () -> rest.getLatestVersionSchemaOnly("orders-value").contains("PII"));
        RegisterSchemaRequest request = new RegisterSchemaRequest();
        request.setSchema(ORDER);
        same("lookUpSubjectVersion", 1, () -> rest.lookUpSubjectVersion(request, "orders-value", false, false).getVersion());
        request.setSchema(NARROWER);
        same("testCompatibility", true, () -> !rest.testCompatibility(request, "orders-value", "latest", false, true).isEmpty());
        same("testCompatibility", true, () -> !rest.testCompatibility(request, "orders-value", null, false, true).isEmpty());
    }

    private static void serde(String url) {
        Schema schema = new Schema.Parser().parse(WIDER);
        GenericRecord order = new GenericData.Record(schema);
        order.put("id", 7L);
        order.put("note", "hällo");
        same("serde", "{\"id\": 7, \"note\": \"hällo\"}", () -> {
            byte[] written = ConfluentRegistryAvroSerializationSchema.forGeneric("framed-value", schema, url).serialize(order);
            return ConfluentRegistryAvroDeserializationSchema.forGeneric(schema, url).deserialize(written).toString();
        });
        same("serde registers", Set.of("framed-value"), () -> set(client(url).getAllSubjectsByPrefix("framed")));
    }

    private static void deleting(String url) {
        SchemaRegistryClient client = client(url);
        RestService rest = new RestService(url);
        refused("deleteSchemaVersion in use", 42206, () -> client.deleteSchemaVersion("orders-value", "1"));
        same("deleteSchemaVersion", 2, () -> client.deleteSchemaVersion("orders-value", "2"));
        refused("getVersion", 40402, () -> rest.getVersion("orders-value", 2));
        same("getVersion deleted", 2, () -> rest.getVersion("orders-value", 2, true).getVersion());
        same("getDeletedOnlyVersions", List.of(2), () -> rest.getDeletedOnlyVersions("orders-value"));
        same("deleteSchemaVersion for good", 2, () -> client.deleteSchemaVersion("orders-value", "2", true));
        same("deleteSubject", List.of(1), () -> client.deleteSubject("boxes-value"));
        same("getDeletedOnlySubjects", List.of("boxes-value"), () -> rest.getDeletedOnlySubjects("boxes"));
        same("deleteSubject for good", List.of(1), () -> client.deleteSubject("boxes-value", true));
        refused("deleteSubject", 40401, () -> client.deleteSubject("boxes-value", true));
    }
}
