// Reads a histogram log with hdr-histogram-js and prints what it finds, one JSON object a tag.
// NODE_PATH=…/node_modules node readback.js FILE.hlog PERCENTILE…
'use strict';
const fs = require('fs');
const hdr = require('hdr-histogram-js');

const [file, ...percentiles] = process.argv.slice(2);
const text = fs.readFileSync(file, 'utf8');
const reader = new hdr.HistogramLogReader(text, 64);
const tags = new Map();
for (let next = reader.nextIntervalHistogram(); next !== null; next = reader.nextIntervalHistogram()) {
  if (!tags.has(next.tag)) {
    const sum = hdr.build({ bitBucketSize: 64, autoResize: true, numberOfSignificantValueDigits: 3 });
    tags.set(next.tag, { sum, intervals: 0, firstMs: Infinity, lastMs: 0 });
  }
  const tag = tags.get(next.tag);
  tag.intervals += 1;
  tag.firstMs = Math.min(tag.firstMs, next.startTimeStampMsec);
  tag.lastMs = Math.max(tag.lastMs, next.endTimeStampMsec);
  tag.sum.add(next);
}
for (const [tag, { sum, intervals, firstMs, lastMs }] of tags) {
  console.log(JSON.stringify({
    tag,
    intervals,
    first_ms: Math.floor(firstMs),
    last_ms: Math.floor(lastMs),
    count: sum.totalCount,
    max: sum.maxValue,
    percentiles: Object.fromEntries(percentiles.map((p) => [p, sum.getValueAtPercentile(Number(p))])),
    distribution: sum.outputPercentileDistribution(5, 1, false),
    listed: hdr.listTags(text),
  }));
}
