package org.apache.kafka.connect.mirror;

import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Feeds random offset syncs to the original's store and prints what it makes of positions: one line of JSON a sequence. Made
 * translations.jsonl.gz, compiled and run with the libraries that `python -m tests.servers fetch kafka connect-mirror` brings.
 */
public final class Translations {
    private static final class Store extends OffsetSyncStore {
        @Override
        void backingStoreStart() {
        }
    }

    public static void main(String[] arguments) {
        Random random = new Random(7);
        TopicPartition place = new TopicPartition("t", 0);
        for (int sequence = 0; sequence < 40; sequence++) {
            Store store = new Store();
            store.start(false);
            int spread = 1 << (1 + random.nextInt(10));
            long upstream = random.nextInt(100);
            long downstream = 0;
            StringBuilder syncs = new StringBuilder();
            for (int n = 0, count = 1 + random.nextInt(60); n < count; n++) {
                upstream += 1 + random.nextInt(spread);
                if (random.nextInt(80) == 0) {
                    upstream = Math.max(0, upstream - random.nextInt(10 * spread));
                }
                downstream += 1 + random.nextInt(spread);
                OffsetSync sync = new OffsetSync(place, upstream, downstream);
                store.handleRecord(new ConsumerRecord<>("syncs", 0, n, sync.recordKey(), sync.recordValue()));
                syncs.append(n == 0 ? "" : ",").append("[").append(upstream).append(",").append(downstream).append("]");
            }
            StringBuilder told = new StringBuilder();
            for (int n = 0; n < 30; n++) {
                long position = Math.max(0, upstream + 5 - (n < 10 ? n : random.nextInt((int) upstream + 10)));
                long found = store.translateDownstream("g", place, position).orElse(-1);
                told.append(n == 0 ? "" : ",").append("[").append(position).append(",").append(found).append("]");
            }
            System.out.println("{\"syncs\":[" + syncs + "],\"told\":[" + told + "]}");
        }
    }
}
