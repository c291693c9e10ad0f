//! The harness of the league's rivals in Rust: as harness.h, with rtrb or nexus-queue between the two threads.

use std::arch::x86_64::{__rdtscp, _rdtsc};
use std::sync::atomic::{compiler_fence, AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SLOTS: usize = 65_536;
const WARM: usize = 20_000;

/// 64 bytes; the first word is the sequence number.
type Message = [u64; 8];

fn now() -> u64 {
    unsafe { _rdtsc() }
}

fn ticks_per_ns() -> f64 {
    let (begun, ticks) = (Instant::now(), now());
    while begun.elapsed() < Duration::from_millis(200) {}
    (now() - ticks) as f64 / begun.elapsed().as_nanos() as f64
}

fn pin(cpu: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set), 0, "CPU {cpu} cannot be used");
    }
}

fn run(
    cpus: (usize, usize),
    messages: usize,
    interval_ticks: u64,
    mut push: impl FnMut(Message) -> bool + Send + 'static,
    mut pop: impl FnMut() -> Option<Message> + Send + 'static,
) -> Vec<u64> {
    let there = Arc::new(AtomicBool::new(false));
    let seen = there.clone();
    let consumer = thread::spawn(move || {
        pin(cpus.1);
        let (mut received, mut sum) = (vec![1u64; messages], 0u64);
        there.store(true, Ordering::Release);
        for i in 0..messages {
            let message = loop {
                if let Some(found) = pop() {
                    break std::hint::black_box(found);
                }
            };
            compiler_fence(Ordering::SeqCst);
            let mut cpu = 0u32;
            received[i] = unsafe { __rdtscp(&mut cpu) };
            assert_eq!(message[0], i as u64);
            sum = message[1..].iter().fold(sum, |all, word| all ^ word);
        }
        std::hint::black_box(sum);
        received
    });
    let producer = thread::spawn(move || {
        pin(cpus.0);
        let (mut ready, mut message) = (vec![1u64; messages], [7u64; 8]);
        while !seen.load(Ordering::Acquire) {}
        let mut last = now();
        for i in 0..messages {
            while now() - last < interval_ticks {}
            message[0] = i as u64;
            message = std::hint::black_box(message);
            ready[i] = now();
            compiler_fence(Ordering::SeqCst);
            while !push(message) {}
            last = now();
        }
        ready
    });
    let (ready, received) = (producer.join().unwrap(), consumer.join().unwrap());
    ready.iter().zip(&received).skip(WARM).map(|(from, to)| to.saturating_sub(*from)).collect()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    assert_eq!(words.len(), 6, "usage: league rtrb|nexus PRODUCER_CPU CONSUMER_CPU MESSAGES INTERVAL_NS");
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    let (cpus, messages, rate) = ((number(2), number(3)), number(4) + WARM, ticks_per_ns());
    let interval_ticks = (number(5) as f64 * rate) as u64;
    let mut transit = match words[1].as_str() {
        "rtrb" => {
            let (mut to, mut from) = rtrb::RingBuffer::<Message>::new(SLOTS);
            run(cpus, messages, interval_ticks, move |m| to.push(m).is_ok(), move || from.pop().ok())
        }
        "nexus" => {
            let (to, from) = nexus_queue::spsc::ring_buffer::<Message>(SLOTS);
            run(cpus, messages, interval_ticks, move |m| to.push(m).is_ok(), move || from.pop())
        }
        other => panic!("unknown queue {other}"),
    };
    transit.sort_unstable();
    let at = |percentile: f64| {
        let index = ((transit.len() as f64 * percentile / 100.0) as usize).min(transit.len() - 1);
        transit[index] as f64 / rate
    };
    print!("{{\"clock\": \"tsc\", \"count\": {}, \"min\": {:.1}", transit.len(), at(0.0));
    for percentile in ["50", "90", "99", "99.9", "99.99"] {
        print!(", \"p{percentile}\": {:.1}", at(percentile.parse().unwrap()));
    }
    println!(", \"max\": {:.1}}}", at(100.0));
}
