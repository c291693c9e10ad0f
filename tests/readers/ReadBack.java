// Reads a histogram log with HdrHistogram's own reader and prints what it finds, one JSON object a tag.
// java -cp HdrHistogram.jar ReadBack.java FILE.hlog PERCENTILE...

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

public class ReadBack {
    static final class Tag {
        int intervals;
        long firstMs = Long.MAX_VALUE;
        long lastMs;
        final Histogram sum;

        Tag(Histogram first) {
            sum = first.copy();
            sum.reset();
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Tag> tags = new LinkedHashMap<>();
        HistogramLogReader reader = new HistogramLogReader(new File(args[0]));
        EncodableHistogram next;
        while ((next = reader.nextIntervalHistogram()) != null) {
            Histogram first = (Histogram) next;
            Tag tag = tags.computeIfAbsent(String.valueOf(next.getTag()), name -> new Tag(first));
            tag.intervals++;
            tag.firstMs = Math.min(tag.firstMs, next.getStartTimeStamp());
            tag.lastMs = Math.max(tag.lastMs, next.getEndTimeStamp());
            tag.sum.add(first);
        }
        for (Map.Entry<String, Tag> entry : tags.entrySet()) {
            Histogram sum = entry.getValue().sum;
            String percentiles = Arrays.stream(args).skip(1)
                    .map(p -> "\"" + p + "\": " + sum.getValueAtPercentile(Double.parseDouble(p)))
                    .collect(Collectors.joining(", "));
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            sum.outputPercentileDistribution(new PrintStream(printed), 5, 1.0);
            String text = printed.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
            System.out.printf(Locale.ROOT, "{\"tag\": \"%s\", \"start_s\": %.6f, \"intervals\": %d, \"first_ms\": %d, "
                    + "\"last_ms\": %d, \"count\": %d, \"max\": %d, \"min\": %d, \"percentiles\": {%s}, "
                    + "\"distribution\": \"%s\"}%n", entry.getKey(), reader.getStartTimeSec(),
                    entry.getValue().intervals, entry.getValue().firstMs, entry.getValue().lastMs,
                    sum.getTotalCount(), sum.getMaxValue(), sum.getTotalCount() == 0 ? 0 : sum.getMinNonZeroValue(),
                    percentiles, text);
        }
    }
}
