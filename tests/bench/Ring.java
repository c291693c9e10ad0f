import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

/** A ring between two threads of a JVM: prints the 50th and the 99th percentile of the messages' transit, in ns. */
public final class Ring {
    public static void main(String[] words) throws InterruptedException {
        int messages = Integer.parseInt(words[0]);
        long[] slots = new long[1024];
        long[] took = new long[messages];
        AtomicLong written = new AtomicLong();
        AtomicLong read = new AtomicLong();
        Thread reader = new Thread(() -> {
            for (int n = 0; n < messages; n++) {
                while (written.get() <= n) {
                    Thread.yield();
                }
                took[n] = System.nanoTime() - slots[n & 1023];
                read.lazySet(n + 1);
            }
        });
        reader.start();
        for (int n = 0; n < messages; n++) {
            while (n - read.get() >= 1024) {
                Thread.yield();
            }
            slots[n & 1023] = System.nanoTime();
            written.lazySet(n + 1);
        }
        reader.join();
        Arrays.sort(took);
        System.out.println("p50=" + took[messages / 2] + " p99=" + took[(int) (messages * 0.99)]);
    }
}
