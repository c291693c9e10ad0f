import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import java.util.Arrays;

/**
 * The measurement of the tutorial of 2015 with its own parts: a Disruptor with one producer and one busy-spinning
 * consumer, System.nanoTime before the 64 bytes are written into the ring and after they are read. The caller binds the
 * two threads ("producer", "accumulator") to their CPUs before it sends a line.
 */
public final class Workshop2015 {
    private static final int SLOTS = 65_536;
    private static final int WARM = 400_000; // until both loops are compiled
    private static final int WORDS = 8;

    private static final class Packet {
        final long[] words = new long[WORDS];
        long readyNs;
    }

    public static void main(String[] args) throws Exception {
        int messages = Integer.parseInt(args[0]) + WARM;
        long intervalNs = Long.parseLong(args[1]);
        long[] transit = new long[messages];
        long[] sum = new long[1];
        RingBuffer<Packet> ring = RingBuffer.createSingleProducer(Packet::new, SLOTS, new BusySpinWaitStrategy());
        EventHandler<Packet> handler = (packet, sequence, endOfBatch) -> {
            long read = 0;
            for (int w = 0; w < WORDS; w++) {
                read ^= packet.words[w];
            }
            long now = System.nanoTime();
            if (packet.words[0] != sequence) {
                System.err.println("message " + packet.words[0] + " came as " + sequence);
                System.exit(2);
            }
            sum[0] ^= read;
            transit[(int) sequence] = now - packet.readyNs;
        };
        BatchEventProcessor<Packet> processor = new BatchEventProcessor<>(ring, ring.newBarrier(), handler);
        ring.addGatingSequences(processor.getSequence());
        Thread consumer = new Thread(processor, "accumulator");
        Object go = new Object();
        boolean[] gone = new boolean[1];
        Thread producer = new Thread(() -> {
            synchronized (go) {
                while (!gone[0]) {
                    try {
                        go.wait();
                    } catch (InterruptedException stopped) {
                        return;
                    }
                }
            }
            long[] record = new long[WORDS];
            Arrays.fill(record, 7);
            long last = System.nanoTime();
            for (int i = 0; i < messages; i++) {
                while (System.nanoTime() - last < intervalNs) {
                    // as the tutorial does
                }
                long sequence = ring.next();
                Packet packet = ring.get(sequence);
                record[0] = i;
                packet.readyNs = System.nanoTime();
                System.arraycopy(record, 0, packet.words, 0, WORDS);
                ring.publish(sequence);
                last = System.nanoTime();
            }
        }, "producer");
        consumer.start();
        producer.start();
        System.out.println("ready");
        System.in.read();
        synchronized (go) {
            gone[0] = true;
            go.notifyAll();
        }
        producer.join();
        while (processor.getSequence().get() < messages - 1) {
            Thread.onSpinWait();
        }
        processor.halt();
        long[] kept = Arrays.copyOfRange(transit, WARM, messages);
        Arrays.sort(kept);
        StringBuilder told = new StringBuilder("{\"clock\": \"nanoTime\", \"count\": " + kept.length + ", \"min\": " + kept[0]);
        for (String p : new String[] {"50", "90", "99", "99.9", "99.99"}) {
            int at = (int) Math.min(kept.length * Double.parseDouble(p) / 100, kept.length - 1);
            told.append(", \"p").append(p).append("\": ").append(kept[at]);
        }
        System.out.println(told.append(", \"max\": ").append(kept[kept.length - 1]).append("}"));
    }
}
