// Writes what Apache Kafka's server-side assignors make of random groups, one JSON object a line:
//   java -cp '.servers/kafka/libs/*' tests/broker/groups/modern/assignors/RecordAssignments.java > tests/broker/groups/modern/assignors/assignments.jsonl
// Topics and members are in the order in which Kafka goes through them, where that matters.

import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.MemberAssignmentImpl;

public class RecordAssignments {
    record Member(String id, String instance, Set<Uuid> topics, Map<Uuid, Set<Integer>> assigned) {}

    static final Random random = new Random(848);

    public static void main(String[] arguments) {
        for (int group = 0; group < 60; group++) {
            PartitionAssignor assignor = group % 3 == 0 ? new RangeAssignor() : new UniformAssignor();
            record(assignor, group % 2 == 0);
        }
    }

    /** A group that changes a few times, each assignment building on the one before. */
    static void record(PartitionAssignor assignor, boolean homogeneous) {
        Map<Uuid, Integer> partitions = new LinkedHashMap<>();
        for (int n = 1 + random.nextInt(5); n > 0; n--)
            partitions.put(new Uuid(random.nextLong(), random.nextLong()), 1 + random.nextInt(12));
        List<Member> members = new ArrayList<>();
        for (int round = 0; round < 4; round++) {
            change(members, partitions, homogeneous);
            Map<String, MemberAssignment> result = assignor.assign(spec(members, homogeneous), describer(partitions)).members();
            print(assignor.name(), homogeneous, partitions, members, result);
            members.replaceAll(m -> new Member(m.id, m.instance, m.topics, result.containsKey(m.id)
                ? ordered(result.get(m.id).partitions()) : Map.of()));
        }
    }

    static Map<Uuid, Set<Integer>> ordered(Map<Uuid, Set<Integer>> partitions) {
        Map<Uuid, Set<Integer>> copy = new LinkedHashMap<>();
        partitions.forEach((topic, numbers) -> copy.put(topic, new TreeSet<>(numbers)));
        return copy;
    }

    static void change(List<Member> members, Map<Uuid, Integer> partitions, boolean homogeneous) {
        if (members.size() > 1 && random.nextBoolean()) members.remove(random.nextInt(members.size()));
        for (int n = random.nextInt(3) + (members.isEmpty() ? 1 : 0); n > 0; n--) {
            String id = Long.toHexString(random.nextLong());
            String instance = random.nextInt(3) == 0 ? "i" + random.nextInt(1000) : null;
            members.add(new Member(id, instance, Set.of(), Map.of()));
        }
        for (Uuid topic : partitions.keySet()) if (random.nextInt(4) == 0) partitions.merge(topic, 1 + random.nextInt(3), Integer::sum);
        Set<Uuid> all = new LinkedHashSet<>(partitions.keySet());
        if (random.nextInt(4) == 0) all.remove(partitions.keySet().iterator().next());
        members.replaceAll(m -> {
            Set<Uuid> some = all.stream().filter(t -> random.nextInt(3) > 0).collect(Collectors.toCollection(LinkedHashSet::new));
            boolean keeps = !homogeneous && !m.topics.isEmpty() && random.nextInt(3) > 0;
            return new Member(m.id, m.instance, homogeneous ? all : keeps ? m.topics : some, m.assigned);
        });
    }

    static GroupSpec spec(List<Member> members, boolean homogeneous) {
        Map<String, Member> byId = new LinkedHashMap<>();
        members.forEach(m -> byId.put(m.id, m));
        return new GroupSpec() {
            public Collection<String> memberIds() { return byId.keySet(); }
            public SubscriptionType subscriptionType() {
                return homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            }
            public boolean isPartitionAssigned(Uuid topic, int partition) {
                return members.stream().anyMatch(m -> m.assigned.getOrDefault(topic, Set.of()).contains(partition));
            }
            public boolean isPartitionAssignable(Uuid topic, int partition) { return true; }
            public MemberSubscription memberSubscription(String id) {
                return new MemberSubscription() {
                    public Optional<String> rackId() { return Optional.empty(); }
                    public Optional<String> instanceId() { return Optional.ofNullable(byId.get(id).instance); }
                    public Set<Uuid> subscribedTopicIds() { return byId.get(id).topics; }
                };
            }
            public MemberAssignment memberAssignment(String id) {
                return new MemberAssignmentImpl(Collections.unmodifiableMap(byId.get(id).assigned));
            }
        };
    }

    static SubscribedTopicDescriber describer(Map<Uuid, Integer> partitions) {
        return new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return partitions.getOrDefault(topic, -1); }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
            public Set<Integer> assignablePartitions(Uuid topic) {
                return IntStream.range(0, numPartitions(topic)).boxed().collect(Collectors.toSet());
            }
        };
    }

    static void print(String name, boolean homogeneous, Map<Uuid, Integer> partitions, List<Member> members, Map<String, MemberAssignment> result) {
        // The order of a HashSet of the subscribed topics: what the uniform assignor goes by.
        List<Uuid> topics = new ArrayList<>(new HashSet<>(members.get(0).topics));
        partitions.keySet().stream().filter(t -> !topics.contains(t)).forEach(topics::add);
        String described = topics.stream().map(t -> "[\"" + hex(t) + "\"," + partitions.get(t) + "]").collect(Collectors.joining(","));
        String listed = members.stream().map(m -> "[\"" + m.id + "\"," + (m.instance == null ? "null" : "\"" + m.instance + "\"") + ","
            + m.topics.stream().map(t -> "" + topics.indexOf(t)).collect(Collectors.joining(",", "[", "]")) + ","
            + partitions(topics, m.assigned) + "," + (result.containsKey(m.id) ? partitions(topics, result.get(m.id).partitions()) : "[]") + "]")
            .collect(Collectors.joining(","));
        System.out.println("{\"assignor\":\"" + name + "\",\"homogeneous\":" + homogeneous + ",\"topics\":[" + described + "],\"members\":[" + listed + "]}");
    }

    static String partitions(List<Uuid> topics, Map<Uuid, Set<Integer>> assigned) {
        return assigned.entrySet().stream().filter(e -> !e.getValue().isEmpty())
            .map(e -> "[" + topics.indexOf(e.getKey()) + "," + new TreeSet<>(e.getValue()).toString().replace(" ", "") + "]")
            .collect(Collectors.joining(",", "[", "]"));
    }

    static String hex(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
}
