// Writes what Apache Kafka's sticky assignor of streams groups makes of random groups, one JSON object a line:
//   java -cp '.servers/kafka/libs/*' tests/broker/groups/streams/RecordTasks.java > tests/broker/groups/streams/tasks.jsonl
// Members are in the order in which Kafka goes through their processes, and within these through them.

import java.util.*;
import java.util.stream.*;
import org.apache.kafka.coordinator.group.streams.assignor.*;

public class RecordTasks {
    static final Random random = new Random(1071);

    public static void main(String[] arguments) {
        for (int group = 0; group < 50; group++) {
            SortedMap<String, Integer> tasks = new TreeMap<>();
            Set<String> stateful = new TreeSet<>();
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                tasks.put("" + n, 1 + random.nextInt(8));
                if (random.nextBoolean()) stateful.add("" + n);
            }
            record(tasks, stateful, random.nextInt(3));
        }
    }

    static void record(SortedMap<String, Integer> tasks, Set<String> stateful, int standbys) {
        Map<String, String> processes = new LinkedHashMap<>();
        Map<String, MemberAssignment> before = new HashMap<>();
        for (int round = 0; round < 4; round++) {
            if (processes.size() > 1 && random.nextBoolean())
                processes.remove(new ArrayList<>(processes.keySet()).get(random.nextInt(processes.size())));
            for (int n = random.nextInt(3) + (processes.isEmpty() ? 1 : 0); n > 0; n--)
                processes.put("m" + Long.toHexString(random.nextLong()), "p" + random.nextInt(4));
            Map<String, AssignmentMemberSpec> members = new LinkedHashMap<>();
            for (String id : ordered(processes)) {
                MemberAssignment had = before.getOrDefault(id, new MemberAssignment(Map.of(), Map.of(), Map.of()));
                members.put(id, new AssignmentMemberSpec(Optional.empty(), Optional.empty(), had.activeTasks(), had.standbyTasks(),
                    Map.of(), processes.get(id), Map.of(), Map.of(), Map.of()));
            }
            GroupSpec spec = new GroupSpecImpl(members, Map.of("num.standby.replicas", "" + standbys));
            Map<String, MemberAssignment> result = new StickyTaskAssignor().assign(spec, describer(tasks, stateful)).members();
            print(tasks, stateful, standbys, members, result);
            before = result;
        }
    }

    /** As Kafka's own maps order them. */
    static List<String> ordered(Map<String, String> processes) {
        Map<String, Map<String, Integer>> byProcess = new HashMap<>(processes.size());
        processes.forEach((id, process) -> {
            byProcess.putIfAbsent(process, new HashMap<>());
            byProcess.get(process).put(id, 0);
        });
        return byProcess.values().stream().flatMap(m -> m.keySet().stream()).toList();
    }

    static TopologyDescriber describer(SortedMap<String, Integer> tasks, Set<String> stateful) {
        return new TopologyDescriber() {
            public List<String> subtopologies() { return List.copyOf(tasks.keySet()); }
            public int maxNumInputPartitions(String id) { return tasks.get(id); }
            public boolean isStateful(String id) { return stateful.contains(id); }
        };
    }

    static void print(SortedMap<String, Integer> tasks, Set<String> stateful, int standbys, Map<String, AssignmentMemberSpec> members,
            Map<String, MemberAssignment> result) {
        String described = tasks.keySet().stream().map(t -> "[\"" + t + "\"," + tasks.get(t) + "," + stateful.contains(t) + "]")
            .collect(Collectors.joining(","));
        String listed = members.keySet().stream().map(id -> {
            AssignmentMemberSpec m = members.get(id);
            MemberAssignment r = result.get(id);
            return "[\"" + id + "\",\"" + m.processId() + "\"," + json(m.activeTasks()) + "," + json(m.standbyTasks()) + ","
                + json(r.activeTasks()) + "," + json(r.standbyTasks()) + "]";
        }).collect(Collectors.joining(","));
        System.out.println("{\"standbys\":" + standbys + ",\"subtopologies\":[" + described + "],\"members\":[" + listed + "]}");
    }

    static String json(Map<String, Set<Integer>> tasks) {
        return new TreeMap<>(tasks).entrySet().stream()
            .map(e -> "\"" + e.getKey() + "\":" + new TreeSet<>(e.getValue()).toString().replace(" ", ""))
            .collect(Collectors.joining(",", "{", "}"));
    }
}
