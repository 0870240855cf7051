// Writes messages of Kafka Connect's group protocols and what its assignor makes of random groups, one JSON object a line:
//   java -cp '.servers/kafka/libs/*' tests/connect/distributed/RecordRounds.java > tests/connect/distributed/rounds.jsonl
// Members have one letter each and everything is handed over in order, so that no hash map has a say in who gets what.

import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.connect.runtime.distributed.*;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

public class RecordRounds {
    static final Random random = new Random(415);
    static final String URL = "http://127.0.0.1:8083/";

    public static void main(String[] arguments) throws Exception {
        messages();
        for (int group = 0; group < 40; group++) rounds(group);
    }

    // -- Messages

    static void messages() {
        List<ConnectorTaskId> tasks = List.of(new ConnectorTaskId("a", 0), new ConnectorTaskId("b", 3), new ConnectorTaskId("b", 12));
        List<ConnectorTaskId> gone = List.of(new ConnectorTaskId("d", 0), new ConnectorTaskId("e", 11));
        for (boolean sessioned : new boolean[] {true, false}) {
            String protocol = sessioned ? "sessioned" : "compatible";
            short version = (short) (sessioned ? 2 : 1);
            message("state", protocol, 17, null, IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState(URL, 17, null), sessioned));
            ExtendedAssignment held = assignment(version, 0, 42, List.of("a"), tasks, List.of(), List.of(), 0);
            message("state", protocol, 42, held, IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState(URL, 42, held), sessioned));
            ExtendedAssignment whole = assignment(version, 0, 43, List.of("a"), tasks, List.of("d"), gone, 300000);
            message("assignment", protocol, 43, whole, IncrementalCooperativeConnectProtocol.serializeAssignment(whole, sessioned));
            ExtendedAssignment failed = assignment(version, 1, -1, List.of(), List.of(), List.of(), List.of(), 0);
            message("assignment", protocol, -1, failed, IncrementalCooperativeConnectProtocol.serializeAssignment(failed, sessioned));
        }
        message("state", "default", 7, null, ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(URL, 7)));
        ExtendedAssignment eager = assignment((short) 0, 0, 9, List.of("a"), tasks, List.of(), List.of(), 0);
        message("assignment", "default", 9, eager, ConnectProtocol.serializeAssignment(eager));
    }

    static ExtendedAssignment assignment(short version, int error, long offset, List<String> connectors, List<ConnectorTaskId> tasks,
            List<String> revoked, List<ConnectorTaskId> revokedTasks, int delay) {
        return new ExtendedAssignment(version, (short) error, "leader-1", URL, offset, connectors, tasks, revoked, revokedTasks, delay);
    }

    static void message(String kind, String protocol, long offset, ExtendedAssignment held, ByteBuffer bytes) {
        byte[] data = new byte[bytes.remaining()];
        bytes.get(data);
        String assignment = held == null ? "null" : "{\"error\":" + held.error() + ",\"offset\":" + held.offset() + ",\"items\":"
            + items(held.connectors(), held.tasks()) + ",\"revoked\":" + items(held.revokedConnectors(), held.revokedTasks())
            + ",\"delay\":" + held.delay() + "}";
        System.out.println("{\"kind\":\"" + kind + "\",\"protocol\":\"" + protocol + "\",\"offset\":" + offset + ",\"assignment\":"
            + assignment + ",\"hex\":\"" + HexFormat.of().formatHex(data) + "\"}");
    }

    static String items(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        return Stream.concat(connectors.stream().sorted().map(c -> "[\"" + c + "\",-1]"),
            tasks.stream().sorted().map(t -> "[\"" + t.connector() + "\"," + t.task() + "]")).collect(Collectors.joining(",", "[", "]"));
    }

    // -- Rounds

    static long now = 1;

    /** A group over some rounds: workers come, go and return, connectors appear, vanish and change their tasks. */
    static void rounds(int group) throws Exception {
        int maxDelay = List.of(0, 10_000, 300_000).get(group % 3);
        now = 1;
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> now);
        IncrementalCooperativeAssignor assignor = new IncrementalCooperativeAssignor(new LogContext(), time, maxDelay);
        Method perform = Arrays.stream(IncrementalCooperativeAssignor.class.getDeclaredMethods())
            .filter(m -> m.getName().equals("performTaskAssignment") && m.getParameterCount() == 4).findFirst().get();
        perform.setAccessible(true);
        Field delayField = IncrementalCooperativeAssignor.class.getDeclaredField("delay");
        delayField.setAccessible(true);
        TreeMap<String, TreeSet<String>> connectors = new TreeMap<>();
        TreeMap<String, TreeSet<ConnectorTaskId>> tasks = new TreeMap<>();
        TreeMap<String, Integer> configured = new TreeMap<>();
        int generation = 0, completed = -1;
        char next = 'a';
        for (int round = 0; round < 16; round++) {
            if (connectors.isEmpty() || (random.nextInt(4) == 0 && connectors.size() < 5)) {
                connectors.put("" + next, new TreeSet<>());
                tasks.put("" + next++, new TreeSet<>());
            }
            if (connectors.size() > 1 && random.nextInt(5) == 0) {
                String gone = new ArrayList<>(connectors.keySet()).get(random.nextInt(connectors.size()));
                connectors.remove(gone);
                tasks.remove(gone);
            }
            if (random.nextInt(3) > 0) configured.put("c" + random.nextInt(7), random.nextInt(5));
            if (random.nextInt(6) == 0 && !configured.isEmpty()) configured.remove(configured.firstKey());
            if (random.nextInt(8) == 0 && connectors.size() > 1) {  // two say that they run the same
                connectors.lastEntry().getValue().addAll(connectors.firstEntry().getValue());
                tasks.lastEntry().getValue().addAll(tasks.firstEntry().getValue());
            }
            now += List.of(1, 20, 50, 2_000, 11_000, 301_000).get(random.nextInt(6));
            Map<String, ConnectorsAndTasks> running = new LinkedHashMap<>();
            for (String member : connectors.keySet())
                running.put(member, new ConnectorsAndTasks.Builder().with(new LinkedHashSet<>(connectors.get(member)),
                    new LinkedHashSet<>(tasks.get(member))).build());
            StringBuilder line = new StringBuilder("{\"kind\":\"round\",\"group\":" + group + ",\"maxDelay\":" + maxDelay + ",\"now\":" + now
                + ",\"configured\":" + items(configured.keySet(), allTasks(configured)) + ",\"running\":{" + connectors.keySet().stream()
                .map(m -> "\"" + m + "\":" + items(connectors.get(m), tasks.get(m))).collect(Collectors.joining(",")) + "}");
            generation++;
            line.append(",\"last\":" + completed + ",\"generation\":" + generation);
            Object dealt = perform.invoke(assignor, state(configured), completed, generation, running);
            List<String> assigned = new ArrayList<>(), revoked = new ArrayList<>();
            boolean taken = random.nextInt(8) > 0;  // else the round fails after the leader has dealt
            for (String member : connectors.keySet()) {
                Collection<String> newConnectors = of(dealt, "newlyAssignedConnectors", member), oldConnectors = of(dealt, "newlyRevokedConnectors", member);
                Collection<ConnectorTaskId> newTasks = of(dealt, "newlyAssignedTasks", member), oldTasks = of(dealt, "newlyRevokedTasks", member);
                assigned.add("\"" + member + "\":" + items(newConnectors, newTasks));
                revoked.add("\"" + member + "\":" + items(oldConnectors, oldTasks));
                if (taken) {
                    connectors.get(member).addAll(newConnectors);
                    tasks.get(member).addAll(newTasks);
                    connectors.get(member).removeAll(oldConnectors);
                    tasks.get(member).removeAll(oldTasks);
                }
            }
            if (taken) completed = generation;
            System.out.println(line + ",\"taken\":" + taken + ",\"assigned\":{" + String.join(",", assigned) + "},\"revoked\":{"
                + String.join(",", revoked) + "},\"delay\":" + delayField.get(assignor) + "}");
        }
    }

    static List<ConnectorTaskId> allTasks(Map<String, Integer> configured) {
        List<ConnectorTaskId> all = new ArrayList<>();
        configured.forEach((name, count) -> IntStream.range(0, count).forEach(n -> all.add(new ConnectorTaskId(name, n))));
        return all;
    }

    static ClusterConfigState state(Map<String, Integer> configured) throws Exception {
        Map<String, Map<String, String>> configs = new HashMap<>();
        configured.keySet().forEach(name -> configs.put(name, Map.of()));
        Object[] given = Arrays.stream(ClusterConfigState.class.getConstructors()).max(Comparator.comparing(Constructor::getParameterCount))
            .map(c -> new Object[] {c}).get();
        Constructor<?> constructor = (Constructor<?>) given[0];
        Object[] values = new Object[constructor.getParameterCount()];
        int maps = 0;
        for (int n = 0; n < values.length; n++) {
            Class<?> type = constructor.getParameterTypes()[n];
            if (type == long.class) values[n] = 1L;
            else if (type == Map.class) values[n] = switch (maps++) {
                case 0 -> new HashMap<>(configured);
                case 1 -> configs;
                default -> new HashMap<>();
            };
            else if (type == Set.class) values[n] = new HashSet<>();
        }
        return (ClusterConfigState) constructor.newInstance(values);
    }

    @SuppressWarnings("unchecked")
    static <T> Collection<T> of(Object dealt, String name, String member) throws Exception {
        Method method = dealt.getClass().getDeclaredMethod(name, String.class);
        method.setAccessible(true);
        return (Collection<T>) method.invoke(dealt, member);
    }
}
