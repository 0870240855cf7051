// Calls each method of SourceLab's Java client of Kafka Connect's REST API; prints what was not as it should be, one line
// each, and how much was checked.
//
//     java -cp ... ConnectCalls URL FILE

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.sourcelab.kafka.connect.apiclient.Configuration;
import org.sourcelab.kafka.connect.apiclient.KafkaConnectClient;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPlugin;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPluginConfigDefinition;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorStatus;
import org.sourcelab.kafka.connect.apiclient.request.dto.NewConnectorDefinition;
import org.sourcelab.kafka.connect.apiclient.request.post.PostConnectorRestart;
import org.sourcelab.kafka.connect.apiclient.rest.exceptions.InvalidRequestException;
import org.sourcelab.kafka.connect.apiclient.rest.exceptions.ResourceNotFoundException;

public final class ConnectCalls {
    private static final String SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector";
    private static final String NAME = "java-a";
    private static final List<String> WRONG = new ArrayList<>();
    private static int checked;

    private static void same(String what, Object expected, Object found) {
        checked++;
        if (!Objects.equals(expected, found)) {
            WRONG.add(what + ": expected " + expected + ", found " + found);
        }
    }

    private static void refused(String what, Class<? extends Exception> kind, Callable<?> call) {
        checked++;
        try {
            WRONG.add(what + ": not refused, but " + call.call());
        } catch (Exception error) {
            if (!kind.isInstance(error)) {
                WRONG.add(what + ": " + error);
            }
        }
    }

    private static String states(ConnectorStatus status) {
        return status.getConnector().get("state")
            + status.getTasks().stream().map(task -> " " + task.getState()).collect(Collectors.joining());
    }

    private static void becomes(String expected, KafkaConnectClient client, String name) throws Exception {
        String found = "";
        for (int tries = 0; tries < 300 && !found.equals(expected); tries++) {
            Thread.sleep(100);
            try {
                found = states(client.getConnectorStatus(name));
            } catch (ResourceNotFoundException error) {
                found = "none yet";
            }
        }
        same("states of " + name, expected, found);
    }

    public static void main(String[] arguments) throws Exception {
        KafkaConnectClient client = new KafkaConnectClient(new Configuration(arguments[0]));
        Map<String, String> config =
            Map.of("connector.class", SOURCE, "file", arguments[1], "topic", "java-lines", "tasks.max", "1");

        same("version", "4.3.1", client.getConnectServerVersion().getVersion());
        same("cluster id", false, client.getConnectServerVersion().getKafkaClusterId().isEmpty());
        NewConnectorDefinition wanted =
            NewConnectorDefinition.newBuilder().withName(NAME).withConfig(config).build();
        same("add", NAME, client.addConnector(wanted).getName());
        refused("add again", InvalidRequestException.class, () -> client.addConnector(wanted));
        becomes("RUNNING RUNNING", client, NAME);
        same("names", Set.of(NAME), new TreeSet<>(client.getConnectors()));
        same("expanded status", "RUNNING RUNNING",
            states(client.getConnectorsWithExpandedStatus().getStatusForConnector(NAME)));
        same("expanded info", "source",
            client.getConnectorsWithExpandedInfo().getDefinitionForConnector(NAME).getType());
        same("expanded, all", Set.of(NAME), client.getConnectorsWithAllExpandedMetadata().getMappedStatuses().keySet());
        same("tasks of the definition", 1, client.getConnector(NAME).getTasks().size());
        same("config", "java-lines", client.getConnectorConfig(NAME).get("topic"));
        Map<String, String> changed = new java.util.HashMap<>(config);
        changed.put("batch.size", "7");
        same("update", "7", client.updateConnectorConfig(NAME, changed).getConfig().get("batch.size"));
        becomes("RUNNING RUNNING", client, NAME);
        same("tasks", "java-lines", client.getConnectorTasks(NAME).iterator().next().getConfig().get("topic"));
        same("a task", "RUNNING", client.getConnectorTaskStatus(NAME, 0).getState());
        same("restart of a task", true, client.restartConnectorTask(NAME, 0));
        becomes("RUNNING RUNNING", client, NAME);
        same("restart", true, client.restartConnector(NAME));
        becomes("RUNNING RUNNING", client, NAME);
        same("restart with tasks", true,
            client.restartConnector(new PostConnectorRestart(NAME).withIncludeTasks(true).withOnlyFailed(true)));
        becomes("RUNNING RUNNING", client, NAME);
        for (int tries = 0; tries < 100 && client.getConnectorTopics(NAME).getTopics().isEmpty(); tries++) {
            Thread.sleep(100);
        }
        same("topics", List.of("java-lines"), client.getConnectorTopics(NAME).getTopics());
        same("reset of topics", true, client.resetConnectorTopics(NAME));
        same("topics after that", List.of(), client.getConnectorTopics(NAME).getTopics());
        same("pause", true, client.pauseConnector(NAME));
        becomes("PAUSED PAUSED", client, NAME);
        same("resume", true, client.resumeConnector(NAME));
        becomes("RUNNING RUNNING", client, NAME);
        same("stop", true, client.stopConnector(NAME));
        becomes("STOPPED", client, NAME);
        same("plugins", true, client.getConnectorPlugins().stream().map(ConnectorPlugin::getClassName)
            .collect(Collectors.toSet()).contains(SOURCE));
        ConnectorPluginConfigDefinition lacking = ConnectorPluginConfigDefinition.newBuilder()
            .withName("FileStreamSource").withConfig("connector.class", SOURCE).withConfig("name", "x").build();
        same("validate", 1, client.validateConnectorPluginConfig(lacking).getErrorCount());
        same("delete", true, client.deleteConnector(NAME));
        refused("what is gone", ResourceNotFoundException.class, () -> client.getConnector(NAME));

        WRONG.forEach(System.out::println);
        System.out.println("checked " + checked + ", wrong " + WRONG.size());
    }
}
