// Gives a percentile distribution to the function with which HdrHistogram's own plotter page reads files, taken out of
// the page as it is, and prints the points that it would draw.
// node plotted.js plotFiles.html FILE.hgrm
'use strict';
const fs = require('fs');
const vm = require('vm');

const [page, file] = process.argv.slice(2);
const scripts = [...fs.readFileSync(page, 'utf8').matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map((m) => m[1]);
const source = scripts.find((script) => script.includes('function appendDataSeries'));
const place = vm.createContext({});
vm.runInContext(source, place);
const series = place.appendDataSeries(fs.readFileSync(file, 'utf8'), 'name', []);
console.log(JSON.stringify(series.slice(1)));
